"""Server-sent events to the letter: bytes in, frozen events out, no I/O.

Source: WHATWG HTML, "Server-sent events", sections "Parsing an event stream" and "Interpreting an event stream".
What comes out never depends on where the bytes were cut. The standard library only.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple, Protocol

from motamot.errors import LimitExceeded

__all__ = ["Decoder", "Event", "Ignored", "LimitExceeded", "Observer", "Residue", "comment", "encode"]

_MARK = b"\xef\xbb\xbf"  # the byte-order mark; "UTF-8 decode" drops one at the very start
_NUL, _LF, _CR, _COLON = 0, 10, 13, 58  # `13 in data` is seven times as fast as `b"\r" in data`
_RETRY_DIGITS = 300  # a longer wait than the age of the world, and still a float when divided by 1000
_STEP = 1 << 18  # a larger piece is worked through in steps: what is made of it at once stays in the cache
_BREAK_OUT = re.compile("[\r\n\0]")  # what would end a line, or make readers ignore the id


class Event(NamedTuple):
    """One event as the standard dispatches it.

    event: its type, "message" when the stream named none.
    data:  its text; the lines of several `data` fields are joined by LF.
    id:    the last event id at its dispatch, "" when none was ever sent.

    A named tuple because it is frozen and made in 0.1 us; a frozen dataclass takes five times as long.
    """

    event: str = "message"
    data: str = ""
    id: str = ""


class Residue(NamedTuple):
    """What a stream left unterminated; the standard discards it. False when nothing was left.

    data, event, id: of a block that no blank line ended ("" where it had none).
    block:           whether there was such a block: at least one finished `data`, `event` or `id` line.
    line:            the bytes of a line that no line end ended.
    """

    data: str = ""
    event: str = ""
    id: str = ""
    block: bool = False
    line: bytes = b""

    def __bool__(self) -> bool:
        return self.block or bool(self.line)


class Ignored(StrEnum):
    """What the standard tells a reader to ignore."""

    COMMENT = "comment"  # a line that begins with a colon
    UNKNOWN_FIELD = "unknown-field"  # a field name other than data, event, id and retry, to the letter
    NO_COLON = "no-colon"  # a line without a colon that is no field name either
    BAD_ID = "bad-id"  # an id that holds NUL
    BAD_RETRY = "bad-retry"  # a retry that is not ASCII digits, or has more than 300 of them
    NO_DATA = "no-data"  # a block of event, id or retry lines without a data line: no event


class Observer(Protocol):
    """Is told what a reader ignores. It must not raise and must not feed the decoder that calls it."""

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        """One line was ignored, in wire order, the same wherever the stream was cut.

        line:   its bytes without the line end; for `NO_DATA` the blank line that ended the block, b"".
        offset: of the line's first byte in the stream (a byte-order mark counts).
        """


class Decoder:
    """Reads one event stream. A stream after a reconnection gets a new decoder.

    last_event_id: as a reconnection would send it: the id at the last blank line, "" before any.
    retry:         milliseconds, the last valid one, or None.

    `max_event_bytes` bounds what one block may hold, counted on the wire and the same at every cut:

    - the values of its `data` lines and an LF between each two, of its last `event` line and of its last `id` line;
      of an unfinished line of these, what stands behind the colon and the one space counts in the same way;
    - any other line (comment, `retry`, unknown) counts alone and whole, and only until it has ended.

    Memory is bounded by a small multiple of it.
    """

    __slots__ = (
        "_at",
        "_clean",
        "_closed",
        "_data",
        "_data_size",
        "_event",
        "_held",
        "_id",
        "_id_size",
        "_in_block",
        "_max",
        "_observer",
        "_over",
        "_retried",
        "_short",
        "_skip_lf",
        "_started",
        "_tail",
        "last_event_id",
        "retry",
    )

    last_event_id: str
    retry: int | None
    _data: bytes | bytearray | None  # the data buffer of the block under way, without its last LF
    _event: bytes  # its event type buffer
    _data_size: int  # bytes
    _id_size: int  # bytes of an id set in this block
    _held: int  # bytes of data, event type and id together
    _in_block: bool  # a data, event or id line came
    _retried: bool  # a valid retry line came
    _tail: bytes | bytearray  # the unfinished line

    def __init__(self, *, max_event_bytes: int = 1 << 20, observer: Observer | None = None) -> None:
        if max_event_bytes < 1:
            raise ValueError(f"max_event_bytes is {max_event_bytes}; an event needs at least 1")
        self._max = max_event_bytes
        self._short = max_event_bytes + len(b"data: \n\n")
        self._observer = observer
        self.last_event_id = ""
        self.retry = None
        self._started = False  # the byte-order mark, if there was one, is behind us
        self._skip_lf = False  # the last byte was CR: an LF now belongs to it
        self._at = 0  # offset of the line under way in the stream; kept for an observer only
        self._over = False
        self._closed = False
        self._clean = False  # between two blocks, nothing pending, nobody watching: the short cut may be taken
        self._id = ""
        self._drop()

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Event]:
        """Decode the next bytes of the stream.

        chunk:   any slice, 0..n bytes; may cut a line, a CRLF or a UTF-8 sequence anywhere.
        Returns: the events this slice completed, in wire order.
        Raises:  LimitExceeded when an earlier call met a block of more than `max_event_bytes`; that call returned
                 the events before it, and the decoder is finished. ValueError after `close`.
        """
        if type(chunk) is not bytes:
            chunk = bytes(memoryview(chunk))  # a str or an int is a TypeError here, not text or zeros
        # Most servers send one event per read: that case alone is worth a short cut.
        # Tests compare it, and every other way through, with a plain reading of the standard.
        size = len(chunk)
        if (
            self._clean
            and chunk[:6] == b"data: "
            and chunk.find(b"\n") == size - 2
            and chunk[-1] == _LF
            and _CR not in chunk
            and size <= self._short
        ):
            return [_new(Event, ("message", chunk[6:-2].decode("utf-8", "replace"), self.last_event_id))]
        self._refuse_after_the_end()
        if self._closed:
            raise ValueError("the decoder is closed; a new stream needs a new Decoder")
        events: list[Event] = []
        if size <= _STEP:
            self._take(chunk, events)
            return events
        for start in range(0, size, _STEP):
            self._take(chunk[start : start + _STEP], events)
            if self._over:
                break
        return events

    def close(self) -> Residue:
        """End the stream. An event that no blank line ended is discarded, and told here.

        Raises: LimitExceeded as `feed` does.
        """
        self._refuse_after_the_end()
        residue = Residue(
            data=(self._data or b"").decode("utf-8", "replace"),
            event=self._event.decode("utf-8", "replace"),
            id=self._id if self._id_size else "",
            block=self._in_block,
            line=bytes(self._tail),
        )
        self._closed = True
        self._drop()
        return residue

    def _take(self, chunk: bytes, events: list[Event]) -> None:
        """Take a piece of at most `_STEP` bytes: whole lines to the state machine, the rest to the tail."""
        if self._skip_lf or not self._started:
            chunk = self._without_prefix(chunk)
        if chunk:
            lines = self._finished_lines(chunk)
            if not lines:
                pass
            elif self._observer is None:
                self._read(lines, events)
            else:
                self._read_observed(lines, events)
        if self._held + len(self._tail) > self._max and not self._over:
            self._bound_tail()
        self._clean = not (
            self._in_block
            or self._tail
            or self._skip_lf
            or self._over
            or self._observer is not None
            or not self._started
        )

    def _without_prefix(self, chunk: bytes) -> bytes:
        """Drop a byte-order mark at the start of the stream, and the LF of a CRLF that was cut."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == _LF:
                self._at += 1
                chunk = chunk[1:]
        if self._started:
            return chunk
        chunk = bytes(self._tail) + chunk
        if len(chunk) < len(_MARK) and _MARK.startswith(chunk):
            self._tail = chunk  # it may become a mark yet
            return b""
        self._started, self._tail = True, b""
        if chunk.startswith(_MARK):
            self._at = len(_MARK)
            return chunk[len(_MARK) :]
        return chunk

    def _finished_lines(self, chunk: bytes) -> bytes:
        """The lines that `chunk` finishes, line ends included; what follows them becomes the tail.

        A CR ends its line at once: waiting for the LF that may follow would hold an event back.
        """
        end = chunk.rfind(b"\n") + 1
        if _CR in chunk:
            end = max(end, chunk.rfind(b"\r") + 1)
            self._skip_lf = chunk[-1] == _CR
        tail = self._tail
        if not end:
            if not tail:
                self._tail = chunk
            elif isinstance(tail, bytearray):
                tail += chunk  # in place: a long line byte by byte stays linear
            else:
                self._tail = bytearray(tail) + chunk
            return b""
        self._tail = chunk[end:]
        return b"".join((tail, chunk[:end])) if tail else chunk[:end]

    def _read(self, text: bytes, events: list[Event]) -> None:
        """Read finished lines, with the short cut for runs of events that are one `data: ` line each."""
        end_of_line = b"\r\n" if _CR in text else b"\n"
        blank = end_of_line * 2
        if self._in_block:  # first to the end of that block
            end = text.find(blank) + len(blank)
            if text.startswith(end_of_line):
                end = len(end_of_line)
            elif end < len(blank):
                end = len(text)
            self._lines(text[:end].splitlines(), events)
            text = text[end:]
        if text[:6] == b"data: " and not self._over:
            end = text.rfind(blank)
            if 0 < end <= self._max and self._read_run(text[6:end], blank.decode(), events):
                text = text[end + len(blank) :]
        if text and not self._over:
            self._lines(text.splitlines(), events)  # of bytes: at CR, LF and CRLF only

    def _read_run(self, run: bytes, blank: str, events: list[Event]) -> bool:
        """Read what stands between the first "data: " and the last blank line, if it is a run of one-line events.

        All in C: cut where one event ends and the next begins; then no line end may be left inside any of them.
        """
        texts = run.decode("utf-8", "replace").split(blank + "data: ")
        left = "".join(texts)
        if "\n" in left or "\r" in left:
            return False
        last_id = self.last_event_id
        events += [_new(Event, ("message", text, last_id)) for text in texts]
        return True

    def _read_observed(self, text: bytes, events: list[Event]) -> None:
        """Read finished lines one by one, so that the state machine knows where in the stream each stands."""
        for line in text.splitlines(keepends=True):
            self._lines([line.rstrip(b"\r\n")], events)
            self._at += len(line)
            if self._over:
                return

    def _lines(self, lines: list[bytes], events: list[Event]) -> None:
        """The state machine: interpret finished lines, given without their line ends.

        One long function on local names: its steps are what every stream pays that is no plain run of `data: ` lines.
        """
        maximum, in_block, over = self._max, self._in_block, False
        data, data_size, event, id_size = self._data, self._data_size, self._event, self._id_size
        for line in lines:
            if not line:  # dispatch
                self.last_event_id = self._id
                if data is not None:
                    kind = event.decode("utf-8", "replace") if event else "message"
                    events.append(_new(Event, (kind, data.decode("utf-8", "replace"), self._id)))
                elif in_block or self._retried:
                    self._ignore(Ignored.NO_DATA, line)
                data, data_size, event, id_size = None, 0, b"", 0
                in_block = self._retried = False
                continue
            field, _, value = line.partition(b": ")
            if field != b"data" and field != b"event" and field != b"id":
                field, _, value = line.partition(b":")  # no space after the colon, or none of these
            if field == b"data":
                if data is None:
                    data, data_size = value, len(value)
                else:
                    if not isinstance(data, bytearray):
                        data = bytearray(data)  # grows in place: many short lines stay linear
                    data += b"\n"
                    data += value
                    data_size = len(data)
            elif field == b"event":
                event = value
            elif field == b"id":
                if over := data_size + len(event) + len(value) > maximum:
                    break
                if _NUL in value:
                    self._ignore(Ignored.BAD_ID, line)
                    continue
                self._id, id_size = value.decode("utf-8", "replace"), len(value)
            else:
                if over := len(line) > maximum:
                    break
                self._other(line, field, value)
                continue
            in_block = True
            if over := data_size + len(event) + id_size > maximum:
                break
        self._data, self._data_size, self._event, self._id_size = data, data_size, event, id_size
        self._in_block, self._held = in_block, data_size + len(event) + id_size
        if over:
            self._exceed()

    def _other(self, line: bytes, field: bytes, value: bytes) -> None:
        """A line that is none of data, event and id: the wait before a reconnection, or nothing to a reader."""
        if field == b"retry":
            digits = value.removeprefix(b" ").lstrip(b"0") or value[-1:]
            if digits.isdigit() and len(digits) <= _RETRY_DIGITS:
                self.retry, self._retried = int(digits), True
            else:
                self._ignore(Ignored.BAD_RETRY, line)
        elif line[0] == _COLON:
            self._ignore(Ignored.COMMENT, line)
        else:
            self._ignore(Ignored.UNKNOWN_FIELD if _COLON in line else Ignored.NO_COLON, line)

    def _ignore(self, kind: Ignored, line: bytes) -> None:
        if self._observer is not None:
            self._observer.ignored(kind, line, self._at)

    def _bound_tail(self) -> None:
        """Refuse an unfinished line as soon as no end of it could make it short enough, and not before."""
        size, head = len(self._tail), bytes(self._tail[:7])
        if not self._started:
            return  # two bytes that may become the byte-order mark
        if head.startswith(b"data:"):
            size += self._held + (self._data is not None) - 5 - (head[5:6] == b" ")
        elif head.startswith(b"event:"):
            size += self._held - len(self._event) - 6 - (head[6:7] == b" ")
        elif head.startswith(b"id:"):
            size += self._held - self._id_size - 3 - (head[3:4] == b" ")
        elif b"data".startswith(head) or b"event".startswith(head) or b"id".startswith(head):
            return
        if size > self._max:
            self._exceed()

    def _exceed(self) -> None:
        self._over = True
        self._drop()

    def _drop(self) -> None:
        """Hold nothing: at the start of a block, and of a line."""
        self._tail = b""
        self._data = None
        self._event = b""
        self._data_size = self._id_size = self._held = 0
        self._in_block = self._retried = self._clean = False

    def _refuse_after_the_end(self) -> None:
        if self._over:
            raise LimitExceeded(
                f"an event of the stream holds more than {self._max:,} bytes: nothing from it on was read; "
                "give the decoder a larger max_event_bytes if its sender can be trusted",
                limit="event_bytes",
                maximum=self._max,
            )


_new = tuple.__new__  # a named tuple's own __new__ is a Python function


def encode(data: str, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:  # noqa: A002 - the field's name
    """One event for the wire, its blank line included; every line ends with LF.

    data:   any text; CR and CRLF become LF (the format cannot carry them), "" is an event with empty data.
    event:  the type; None or "" for the default one, "message".
    id:     the id to reconnect with; "" forgets the last one.
    retry:  milliseconds.
    Raises: ValueError for half a surrogate pair, for a line end or NUL in `event` or `id`, for a negative `retry` or
            one of more than 300 digits; TypeError for a `retry` that is no whole number.
    """
    if "\r" in data:
        data = data.replace("\r\n", "\n").replace("\r", "\n")
    if "\n" in data:
        data = data.replace("\n", "\ndata: ")
    body = b"data: %b\n\n" % _utf8("data", data)
    if event is None and id is None and retry is None:
        return body
    # Data comes last: there are readers that act on each line as it comes.
    head = b""
    if id is not None:
        head += b"id: %b\n" % _one_line("id", id)
    if event:
        head += b"event: %b\n" % _one_line("event", event)
    if retry is not None:
        head += b"retry: %d\n" % _milliseconds(retry)
    return head + body


def comment(text: str = "") -> bytes:
    """A comment for the wire, such as a keep-alive; ends with ONE line end, so that no reader takes it for an event.

    Text of several lines becomes several comment lines. A line ends here wherever any reader might end it: some
    Python readers also split at U+2028, U+0085, form feeds and the like.

    Raises: ValueError for half a surrogate pair.
    """
    lines = text.splitlines() or [""]
    return b"".join(b": %b\n" % _utf8("comment", line) if line else b":\n" for line in lines)


def _utf8(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} holds half a surrogate pair ({text[error.start]!r}): join the halves before encoding"
        ) from error


def _one_line(what: str, text: str) -> bytes:
    if found := _BREAK_OUT.search(text):
        raise ValueError(f"{what} must be one line without NUL; it holds {found[0]!r} at character {found.start()}")
    return _utf8(what, text)


def _milliseconds(retry: int) -> int:
    if isinstance(retry, bool) or not isinstance(retry, int):
        raise TypeError(f"retry must be a whole number of milliseconds, not {type(retry).__name__}")
    if not 0 <= retry < 10**_RETRY_DIGITS:
        raise ValueError(f"retry must be 0 or more milliseconds and at most {_RETRY_DIGITS} digits long")
    return retry
