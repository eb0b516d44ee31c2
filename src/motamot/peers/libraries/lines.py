"""Lines of bytes, ended by LF, CR or CRLF, however the stream was cut."""

from __future__ import annotations

__all__ = ["Lines"]


class Lines:
    """Finished lines, as soon as they are: a CR ends its line at once, and an LF right behind it is part of it."""

    __slots__ = ("_parts", "_skip_lf")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of the unfinished line; joined once, so that small reads stay linear
        self._skip_lf = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` finishes, without their ends."""
        if not data:
            return []
        if self._skip_lf and data[0] == 10:
            data = data[1:]
        self._skip_lf = data.endswith(b"\r")
        lines = data.splitlines()  # of bytes: at LF, CR and CRLF only
        if not lines:
            return []
        lines[0] = b"".join((*self._parts, lines[0]))
        self._parts = [] if data.endswith((b"\r", b"\n")) else [lines.pop()]
        return lines

    @property
    def rest(self) -> bytes:
        """The line that nothing has ended yet."""
        return b"".join(self._parts)
