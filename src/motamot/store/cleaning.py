"""Text as it can be written."""

from __future__ import annotations

import re
from typing import overload

__all__ = ["clean"]

_SURROGATE = re.compile("[\ud800-\udfff]")


@overload
def clean(text: str) -> str: ...


@overload
def clean(text: None) -> None: ...


def clean(text: str | None) -> str | None:
    """Text that can be encoded: half a character must not keep a booking out."""
    return text if text is None or text.isascii() else _SURROGATE.sub("\ufffd", text)
