"""Server-sent events to the letter: bytes in, frozen events out, no I/O.

Source: WHATWG HTML, "Server-sent events", sections "Parsing an event stream" and "Interpreting an event stream".
What comes out never depends on where the bytes were cut. The standard library only.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial
from itertools import repeat
from typing import NamedTuple, Protocol

from motamot.errors import LimitExceeded

__all__ = ["Decoder", "Event", "Ignored", "LimitExceeded", "Observer", "Residue", "comment", "encode"]

_MARK = b"\xef\xbb\xbf"  # the byte-order mark; "UTF-8 decode" drops one at the very start
_CR, _LF = 13, 10
_FIELDS = (b"data", b"event", b"id")  # the fields a block holds on to
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

    data, event, id: of the lines of a block that no blank line ended ("" where there was none).
    fields:          how many finished `data`, `event` and `id` lines that block had.
    line:            the bytes of a line that no line end ended.
    """

    data: str = ""
    event: str = ""
    id: str = ""
    fields: int = 0
    line: bytes = b""

    def __bool__(self) -> bool:
        return self.fields > 0 or bool(self.line)


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
        "_event",
        "_fields",
        "_id",
        "_id_size",
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

    def __init__(self, *, max_event_bytes: int = 1 << 20, observer: Observer | None = None) -> None:
        if max_event_bytes < 1:
            raise ValueError(f"max_event_bytes is {max_event_bytes}; an event needs at least 1")
        self._max = max_event_bytes
        self._short = max_event_bytes + len("data: \n\n")
        self._observer = observer
        self.last_event_id = ""
        self.retry = None
        self._started = False  # the byte-order mark, if there was one, is behind us
        self._skip_lf = False  # the last byte was CR: an LF now belongs to it
        self._tail: bytes | bytearray = b""  # the unfinished line
        self._at = 0  # offset of the line under way in the stream; kept for an observer only
        self._over = False
        self._closed = False
        self._clean = False  # between two blocks, nothing pending, nobody watching: short cuts may be taken
        self._start_block()
        self._id = ""

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Event]:
        """Decode the next bytes of the stream.

        chunk:   any slice, 0..n bytes; may cut a line, a CRLF or a UTF-8 sequence anywhere.
        Returns: the events this slice completed, in wire order.
        Raises:  LimitExceeded when an earlier call met a block of more than `max_event_bytes`; that call returned
                 the events before it, and the decoder is finished. ValueError after `close`.
        """
        # Most servers send one event per read: this case alone is worth a short cut.
        # test_the_short_cuts_change_nothing keeps it equal to the state machine.
        if (
            self._clean
            and type(chunk) is bytes
            and chunk.startswith(b"data: ")
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk[-1] == _LF
            and len(chunk) <= self._short
            and b"\r" not in chunk
        ):
            return [_new(Event, ("message", chunk[6:-2].decode("utf-8", "replace"), self.last_event_id))]
        if self._over:
            raise self._limit_error()
        if self._closed:
            raise ValueError("the decoder is closed; a new stream needs a new Decoder")
        if type(chunk) is not bytes:
            chunk = bytes(memoryview(chunk))  # a str or an int is a TypeError here, not text or zeros
        events: list[Event] = []
        if len(chunk) <= _STEP:
            self._take(chunk, events)
            return events
        for start in range(0, len(chunk), _STEP):
            self._take(chunk[start : start + _STEP], events)
            if self._over:
                break
        return events

    def close(self) -> Residue:
        """End the stream. An event that no blank line ended is discarded, and told here.

        Raises: LimitExceeded as `feed` does.
        """
        if self._over:
            raise self._limit_error()
        data = b"" if self._data is None else bytes(self._data)
        residue = Residue(
            data=data.decode("utf-8", "replace"),
            event=self._event.decode("utf-8", "replace"),
            id=self._id if self._id_size is not None else "",
            fields=self._fields,
            line=bytes(self._tail),
        )
        self._closed = True
        self._drop()
        return residue

    def _take(self, chunk: bytes, events: list[Event]) -> None:
        """Take a piece of at most `_STEP` bytes: whole lines to the state machine, the rest to the tail."""
        if not self._started:
            chunk = self._without_mark(chunk)
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
                self._at += 1
        if not chunk:
            self._set_clean()
            return
        if self._observer is not None:
            self._take_observed(chunk, events)
        else:
            self._take_unobserved(chunk, events)
        if not self._over:
            self._bound_tail()
            self._set_clean()

    def _without_mark(self, chunk: bytes) -> bytes:
        """Drop the byte-order mark, however it was cut; gives nothing until it is known whether there is one."""
        chunk = bytes(self._tail) + chunk
        self._tail = b""
        if len(chunk) < len(_MARK) and _MARK.startswith(chunk):
            self._tail = chunk
            return b""
        self._started = True
        if chunk.startswith(_MARK):
            self._at = len(_MARK)
            return chunk[len(_MARK) :]
        return chunk

    def _take_unobserved(self, chunk: bytes, events: list[Event]) -> None:
        if b"\r" in chunk:  # the same lines with LF only; CR ends a line at once, so nothing waits for the next piece
            self._skip_lf = chunk[-1] == _CR
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._extend_tail(chunk)
            return
        text = b"".join((self._tail, chunk[:end])) if self._tail else chunk[:end]
        self._tail = chunk[end:]
        if self._in_block():  # to the end of the block under way, so that whole blocks may take the short cut
            end = 1 if text[0] == _LF else text.find(b"\n\n") + 2
            if end == 1 and text[0] != _LF:
                end = len(text)
            self._lines(text[: end - 1].split(b"\n"), events)
            text = text[end:]
        if not self._over and text.startswith(b"data: "):
            end = text.rfind(b"\n\n") + 2
            if end > 1 and self._bulk(text[:end], events):
                text = text[end:]
        if text and not self._over:
            self._lines(text[:-1].split(b"\n"), events)

    def _take_observed(self, chunk: bytes, events: list[Event]) -> None:
        """Line by line, so that the state machine knows where in the stream each stands."""
        if b"\n" not in chunk and b"\r" not in chunk:
            self._extend_tail(chunk)
            return
        self._skip_lf = chunk[-1] == _CR
        lines = b"".join((self._tail, chunk)).splitlines(keepends=True)  # of bytes: at CR, LF and CRLF only
        self._tail = b"" if chunk[-1] in (_CR, _LF) else lines.pop()
        for line in lines:
            self._lines([line.rstrip(b"\r\n")], events)
            if self._over:
                return
            self._at += len(line)

    def _extend_tail(self, chunk: bytes) -> None:
        if not self._tail:
            self._tail = chunk
            return
        if not isinstance(self._tail, bytearray):  # grows in place: a long line byte by byte stays linear
            self._tail = bytearray(self._tail)
        self._tail += chunk

    def _in_block(self) -> bool:
        return self._data is not None or bool(self._event) or self._id_size is not None

    def _set_clean(self) -> None:
        self._clean = self._started and not (self._tail or self._skip_lf or self._in_block()) and self._observer is None

    def _bulk(self, text: bytes, events: list[Event]) -> bool:
        """Take a run of whole blocks that each are one `data: ` line, if that is what `text` is.

        Ending each block takes two LF; if there are no others in `text`, no block holds a second line.
        """
        if len(text) > self._max:
            return False
        pieces = text[6:-2].decode("utf-8", "replace").split("\n\ndata: ")
        if text.count(b"\n") != 2 * len(pieces):
            return False
        events.extend(map(_new_event, zip(repeat("message"), pieces, repeat(self.last_event_id), strict=False)))
        return True

    def _lines(self, lines: list[bytes], events: list[Event]) -> None:
        """The state machine: interpret finished lines, given without their line ends."""
        for line in lines:
            if not line:
                self._dispatch(events)
            elif line.startswith(b"data: "):
                self._add_data(line[6:])
            else:
                self._other(line)
            if self._over:
                return

    def _dispatch(self, events: list[Event]) -> None:
        self.last_event_id = self._id
        if self._data is not None:
            event = self._event.decode("utf-8", "replace") or "message"
            events.append(_new(Event, (event, self._data.decode("utf-8", "replace"), self._id)))
        elif self._fields or self._retried:
            self._ignore(Ignored.NO_DATA, b"")
        self._start_block()

    def _start_block(self) -> None:
        self._data: bytes | bytearray | None = None
        self._event = b""
        self._id_size: int | None = None  # bytes of the id set in this block
        self._fields = 0  # finished data, event and id lines of this block
        self._retried = False  # it had a valid retry line

    def _add_data(self, value: bytes) -> None:
        self._fields += 1
        if self._data is None:
            self._data = value
        else:
            if not isinstance(self._data, bytearray):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
        self._bound(self._held())

    def _other(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._fields += 1
            self._event = value
            self._bound(self._held())
        elif name == b"id":
            self._set_id(line, value)
        elif len(line) > self._max:
            self._exceed()
        elif name == b"retry":
            self._set_retry(line, value)
        elif not name and colon:
            self._ignore(Ignored.COMMENT, line)
        else:
            self._ignore(Ignored.UNKNOWN_FIELD if colon else Ignored.NO_COLON, line)

    def _set_id(self, line: bytes, value: bytes) -> None:
        self._bound(self._held() - (self._id_size or 0) + len(value))
        if self._over:
            return
        if b"\0" in value:
            self._ignore(Ignored.BAD_ID, line)
            return
        self._fields += 1
        self._id = value.decode("utf-8", "replace")
        self._id_size = len(value)

    def _set_retry(self, line: bytes, value: bytes) -> None:
        digits = value.lstrip(b"0") or b"0"
        if not value.isdigit() or len(digits) > _RETRY_DIGITS:
            self._ignore(Ignored.BAD_RETRY, line)
            return
        self._retried = True
        self.retry = int(digits)

    def _ignore(self, kind: Ignored, line: bytes) -> None:
        if self._observer is not None:
            self._observer.ignored(kind, line, self._at)

    def _held(self) -> int:
        """Bytes held by the block under way."""
        return (len(self._data) if self._data is not None else 0) + len(self._event) + (self._id_size or 0)

    def _bound_tail(self) -> None:
        """Find an unfinished line too long exactly when no end of it could make it short enough."""
        size, held = len(self._tail), self._held()
        if held + size <= self._max or not self._started:
            return
        head = bytes(self._tail[:7])
        if head.startswith(b"data:"):
            self._bound(held + size - 5 - (head[5:6] == b" ") + (self._data is not None))
        elif head.startswith(b"event:"):
            self._bound(held - len(self._event) + size - 6 - (head[6:7] == b" "))
        elif head.startswith(b"id:"):
            self._bound(held - (self._id_size or 0) + size - 3 - (head[3:4] == b" "))
        elif not any(name.startswith(head) for name in _FIELDS):
            self._bound(size)

    def _bound(self, size: int) -> None:
        if size > self._max:
            self._exceed()

    def _exceed(self) -> None:
        self._over = True
        self._drop()

    def _drop(self) -> None:
        self._clean = False
        self._tail = b""
        self._start_block()

    def _limit_error(self) -> LimitExceeded:
        return LimitExceeded(
            f"an event of the stream holds more than {self._max:,} bytes: nothing after it was read; "
            "give the decoder a larger max_event_bytes if its sender can be trusted",
            limit="event_bytes",
            maximum=self._max,
        )


_new = tuple.__new__  # a named tuple's own __new__ is a Python function
_new_event = partial(_new, Event)


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
