"""The formats that recordings come in, each recognised by its content."""

from __future__ import annotations

from motamot.tape.formats import curl, curl_verbose, har, own, raw
from motamot.tape.formats.base import Format

__all__ = ["FORMATS", "Format"]

FORMATS: tuple[Format, ...] = (own.FORMAT, har.FORMAT, curl.FORMAT, curl_verbose.FORMAT, raw.FORMAT)
"""In the order in which they are tried; the last one takes any body."""
