"""Recordings of streams: what they hold, reading them from files, recording, and playing them again."""

from motamot.tape.tape import END_KINDS, Piece, Request, Tape

__all__ = ["END_KINDS", "Piece", "Request", "Tape"]
