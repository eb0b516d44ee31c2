"""What a format of recordings is: one file each in this folder, and one line in the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from motamot.tape.tape import Tape

__all__ = ["Format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How recordings of one kind are recognised and read.

    name:       as `Tape.source` has it.
    title:      in a sentence: `a HAR`.
    recognises: whether a file is of this kind, by its content alone; only the start is looked at.
    read:       the tapes in it. Bytes and, for a format that holds more than answers, the part of the address that is
                looked for, or None. Raises TapeError; anything else it raises is a fault of ours.
    """

    name: str
    title: str
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, str | None], list[Tape]]
