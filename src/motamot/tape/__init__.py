"""Recordings of streams: what they hold, reading them from files, recording, and playing them again."""

from __future__ import annotations

from motamot.errors import TapeError
from motamot.tape.loading import load
from motamot.tape.saving import save
from motamot.tape.tape import END_KINDS, Piece, Request, Tape

__all__ = ["END_KINDS", "Piece", "Request", "Tape", "TapeError", "load", "save"]
