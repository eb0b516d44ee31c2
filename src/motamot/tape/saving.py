"""Writing a tape to a file, without the secrets in it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from motamot.errors import TapeError
from motamot.tape.formats import own
from motamot.tape.hiding import without_secrets
from motamot.tape.tape import Tape

__all__ = ["dumps", "save"]


def dumps(tape: Tape) -> bytes:
    """`tape` as the bytes of its file, without credentials."""
    return b"".join(own.lines(without_secrets(tape)))


def save(tape: Tape, path: str | os.PathLike[str]) -> None:
    """Write `tape` as JSON Lines (docs/tapes.md), readable by its owner alone: it holds a conversation.

    Credentials are left out (`[removed]`). The file is there whole or not at all; one of that name is replaced.
    Raises: TapeError where it cannot be written.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a terminal, a pipe, /dev/null
            with target.open("wb") as file:
                file.writelines(own.lines(without_secrets(tape)))
            return
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".tape-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(own.lines(without_secrets(tape)))
            Path(name).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise TapeError(f"the tape {target} cannot be written: {error.strerror or error}") from error
