"""The bytes of an event stream as blocks, each with its place: the codec reads them, this file knows where they stand.

The one pass over a tape. A block that is one `data: ` line, perhaps with a name or an id before it, needs no codec
(nine of ten are such: 0.4 us instead of 4); everything else goes through `motamot.sse.Decoder`, and what that ignores
is kept beside it. Both ways give the same (test_a_short_block_is_read_as_the_codec_reads_it).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from motamot.errors import LimitExceeded
from motamot.sse import Decoder, Event, Ignored, Residue

__all__ = ["BLOCK_BYTES", "EVENT_BYTES", "Block", "Skipped", "Wire"]

EVENT_BYTES = 4 << 20
"""The largest event that is read: a whole answer as motamot bounds it. Nothing is read from a larger one on."""

BLOCK_BYTES = 1 << 16
"""How much of one block is kept to look at its lines."""

_SKIPPED_MOST = 1_000  # lines of one block that are kept as ignored: a block of a million comments shows no more
_NUL, _LF, _CR, _COLON, _D = 0, 10, 13, 58, ord("d")
_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?:\r\n|\n|\r)")  # atomic: a CRLF is no blank line
_LINE_END = re.compile(rb"\r\n|\n|\r")
_EMPTY = re.compile(rb"[\r\n]+")  # blank lines between blocks are nothing to a reader


class Skipped(NamedTuple):
    """A line that the standard ignores. offset: of its first byte in the body."""

    kind: Ignored
    line: bytes
    offset: int


class Block(NamedTuple):
    """What stands between two blank lines.

    offset:  of its first byte in the body; raw: its bytes, the blank line included, at most `BLOCK_BYTES`.
    events:  what the standard dispatches for it: one event, or none.
    skipped: its lines that the standard ignores, at most a thousand.
    closed:  a blank line ended it; False for what the end of the body cut.
    """

    offset: int
    raw: bytes
    events: tuple[Event, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    closed: bool = True

    @property
    def lines(self) -> list[bytes]:
        """Its lines without their ends, as far as they were kept."""
        return self.raw.splitlines()


class Wire:
    """Cuts the body of an event stream into blocks.

    plain:  is told of each block that is one `data: ` line: offset, bytes (with the blank line, all ends as LF).
    before: what may stand on one line before it, for the block to be told to `plain` all the same.
    part:   is told the bytes of any other block, of a long one as they come: offset of the block, bytes.
    block:  is told such a block when it has ended.

    comments:  comment lines met so far.
    offset:    of the block under way, or of the next one.
    at:        of the next byte in the body.
    over:      offset of a block of more than `EVENT_BYTES`, from which on nothing was read, or None.
    residue:   after `close`: what the body's end left unterminated.
    mark, cr:  the body begins with a byte-order mark; offset of the first CR that ended a line, or None.
    """

    def __init__(
        self,
        *,
        plain: Callable[[int, bytes], None],
        part: Callable[[int, bytes], None],
        block: Callable[[Block], None],
        before: tuple[bytes, ...] = (b"event: ", b"id: "),
    ) -> None:
        self._before = before
        self._plain, self._part, self._block = plain, part, block
        self._decoder = Decoder(max_event_bytes=EVENT_BYTES, observer=self)
        self._idle = False  # the decoder is between two blocks; False at the start: it looks for a byte-order mark
        self._raw = bytearray()
        self._size = 0  # bytes of the block under way
        self._last = 0  # its last byte so far
        self._given = 0  # bytes the decoder was given before it
        self._skipped: list[Skipped] = []
        self.comments = 0
        self.offset = 0
        self.at = 0
        self.over: int | None = None
        self.residue = Residue()
        self.mark = False
        self.cr: int | None = None

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        """The decoder ignored a line (`motamot.sse.Observer`)."""
        if kind is Ignored.COMMENT:
            self.comments += 1
        if len(self._skipped) < _SKIPPED_MOST:
            # The decoder is not given all of the body: of what it was given, this block begins at `_given`.
            self._skipped.append(Skipped(kind, line, self.offset + offset - self._given))

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body, cut anywhere."""
        base, at, end = self.at, 0, len(chunk)
        short, plain = self._short, self._plain
        while at < end and self.over is None:
            if not self._idle:
                at = self._slow(chunk, at, base)
                continue
            self.offset = base + at
            stop, raw = short(chunk, at)
            if raw:
                at = stop
                plain(self.offset, raw)
            else:
                at = self._between(chunk, at)
        self.at = base + end
        if self._idle and self.over is None:
            self.offset = self.at

    def _short(self, chunk: bytes, at: int) -> tuple[int, bytes]:
        """A block of one `data: ` line, perhaps with a line before it, that is all in `chunk`: its end, its bytes.

        No bytes where something else begins at `at`. Lines that end with CRLF are said with LF: to every reader it is
        the same block.
        """
        stop = chunk.find(b"\n", at)
        if chunk[at : at + 6] != b"data: ":
            if not chunk.startswith(self._before, at) or chunk[stop + 1 : stop + 7] != b"data: ":
                return 0, b""
            stop = chunk.find(b"\n", stop + 1)
        if not 0 < stop <= at + EVENT_BYTES:
            return 0, b""
        if chunk[stop + 1 : stop + 2] == b"\n":
            raw = chunk[at : stop + 2]
            return (stop + 2, raw) if _CR not in raw and (raw[:1] == b"d" or _NUL not in raw) else (0, b"")
        if chunk[stop - 1 : stop + 3] == b"\r\n\r\n" and chunk[at] == _D:
            raw = chunk[at : stop - 1]
            if _CR not in raw:
                if self.cr is None:
                    self.cr = self.offset + stop - 1 - at
                return stop + 3, raw + b"\n\n"
        return 0, b""

    def close(self) -> None:
        """The body has ended."""
        if self.over is not None:
            return
        if 0 < self._size <= BLOCK_BYTES:
            self._part(self.offset, bytes(self._raw))
        try:
            self.residue = self._decoder.close()
        except LimitExceeded:
            self.over = self.offset
            return
        if self._size and (self.residue or self._skipped):
            self._block(Block(self.offset, bytes(self._raw), (), tuple(self._skipped), closed=False))

    def _between(self, chunk: bytes, at: int) -> int:
        """Pass blank lines and comments that stand before a block; anything else begins one."""
        first = chunk[at]
        if first in (_LF, _CR):
            found = _EMPTY.match(chunk, at)
            assert found is not None
            return found.end()
        if first == _COLON:
            stop = chunk.find(b"\n", at)
            if stop > 0 and chunk.find(b"\r", at, stop) < 0:
                self.comments += 1
                return stop + 1
        self._idle = False
        return at

    def _slow(self, chunk: bytes, at: int, base: int) -> int:
        """Give the decoder the rest of the block under way, as far as it is in `chunk`."""
        if not self._size:
            self.offset = base + at
        stop, closed = self._end_of_block(chunk, at)
        part = chunk[at:stop] if at or stop < len(chunk) else chunk
        if self.cr is None and _CR in part:
            self.cr = base + at + part.find(b"\r")
        self._raw += part[: BLOCK_BYTES - len(self._raw)]
        self._last = part[-1]
        if not self.offset:
            self.mark = self._raw.startswith(_MARK)
        try:
            events = self._decoder.feed(part)
            self._pass_on(part, closed=closed)
            if self._size > EVENT_BYTES:
                self._decoder.feed(b"")  # an event that is too large is told by the call after
        except LimitExceeded:
            self.over = self.offset
            return len(chunk)
        if closed and self._begins_as_comment():
            self._leave()
        elif closed:
            block = Block(self.offset, bytes(self._raw), tuple(events), tuple(self._skipped))
            self._leave()
            self._block(block)
        return stop

    def _leave(self) -> None:
        """Stand between two blocks."""
        self._given += self._size
        self._idle, self._size = True, 0
        self._raw.clear()
        self._skipped.clear()

    def _begins_as_comment(self) -> bool:
        """Whether a comment was cut by a read: it stands before a block, and is none."""
        return self._raw.startswith((b":", _MARK + b":"))

    def _pass_on(self, part: bytes, *, closed: bool) -> None:
        """Tell the bytes of the block under way: all at once when it has ended, or as they come if it is long."""
        told = self._size > BLOCK_BYTES
        self._size += len(part)
        if told:
            self._part(self.offset, part)
        elif self._size > BLOCK_BYTES:
            self._part(self.offset, bytes(self._raw[: self._size - len(part)]) + part)
        elif closed and not self._begins_as_comment():
            self._part(self.offset, bytes(self._raw))

    def _end_of_block(self, chunk: bytes, at: int) -> tuple[int, bool]:
        """Where the blank line ends that ends the block under way, and whether there is one in `chunk`."""
        start = at
        if self._size and self._last in (_LF, _CR):
            if self._last == _CR and chunk[at] == _LF:
                start += 1
            if start < len(chunk) and chunk[start] in (_LF, _CR):
                return start + (2 if chunk[start : start + 2] == b"\r\n" else 1), True
        elif not self._size and chunk[at] in (_LF, _CR):  # at the very start of the body
            return at + 1, True
        begins = bytes(self._raw[:4]) + chunk[at : at + 4]
        if begins.removeprefix(_MARK).startswith(b":"):  # a comment ends with its line
            found = _LINE_END.search(chunk, start)
        else:
            found = _BLANK.search(chunk, start)
        return (found.end(), True) if found else (len(chunk), False)
