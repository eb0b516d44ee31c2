"""Recordings of streams: what they hold, reading them from files, recording, and playing them again.

`record` and `replay` are loaded on first use: they need an HTTP client and sockets, and reading a file does not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from motamot.errors import TapeError
from motamot.tape.loading import load
from motamot.tape.saving import dumps, save
from motamot.tape.tape import END_KINDS, Piece, Request, Tape

if TYPE_CHECKING:
    from motamot.tape.recording import Recorder, record
    from motamot.tape.replaying import Replay, replay

_HOMES = {
    "Recorder": "motamot.tape.recording",
    "record": "motamot.tape.recording",
    "Replay": "motamot.tape.replaying",
    "replay": "motamot.tape.replaying",
}

__all__ = [
    "END_KINDS",
    "Piece",
    "Recorder",
    "Replay",
    "Request",
    "Tape",
    "TapeError",
    "dumps",
    "load",
    "record",
    "replay",
    "save",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'motamot.tape' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
