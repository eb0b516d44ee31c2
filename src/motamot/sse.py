"""Server-sent events to the letter: bytes in, frozen events out, no I/O.

Source: WHATWG HTML, "Server-sent events", sections "Parsing an event stream" and "Interpreting an event stream".
What comes out never depends on where the bytes were cut. The standard library only.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from motamot.errors import LimitExceeded

__all__ = ["Decoder", "Event", "Ignored", "LimitExceeded", "Observer", "Residue", "comment", "encode"]

_MARK = b"\xef\xbb\xbf"  # the byte-order mark; "UTF-8 decode" drops one at the very start
_NUL, _LF, _CR, _SPACE, _COLON = 0, 10, 13, 32, 58  # `13 in data` is seven times as fast as `b"\r" in data`
_RETRY_DIGITS = 300  # a longer wait than the age of the world, and still a float when divided by 1000
_BLANKS = (b"\n\n", b"\r\n\r\n")  # how blocks end, without and with CR
_BETWEEN = (b"\n\ndata: ", b"\r\n\r\ndata: ")
_SMALL = 1 << 10  # bytes; in a smaller piece a run of events is not worth looking for
_STEP = 1 << 16  # bytes; a larger piece is worked through in steps: what is made of it at once stays in the cache


class Event(NamedTuple):
    """One event as the standard dispatches it.

    event: its type, "message" when the stream named none.
    data:  its text; the lines of several `data` fields are joined by LF.
    id:    the last event id at its dispatch, "" when none was ever sent.

    A named tuple because it is frozen and made in 0.1 us; a frozen dataclass takes four times as long.
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
        "_closed",
        "_data",
        "_event",
        "_head",
        "_held",
        "_id",
        "_id_size",
        "_in_block",
        "_max",
        "_observer",
        "_over",
        "_plain",
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
    _id_size: int  # bytes of an id set in this block
    _held: int  # bytes of data, event type and id together
    _in_block: bool  # a data, event or id line came
    _retried: bool  # a valid retry line came
    _head: bytes  # up to two bytes that may become a byte-order mark
    _tail: bytes | bytearray  # the unfinished line

    def __init__(self, *, max_event_bytes: int = 1 << 20, observer: Observer | None = None) -> None:
        if max_event_bytes < 1:
            raise ValueError(f"max_event_bytes is {max_event_bytes}; an event needs at least 1")
        self._max = max_event_bytes
        self._short = min(max_event_bytes + len(b"data:\n\n"), _SMALL)  # of such a size no event can be too large
        self._observer = observer
        self.last_event_id = ""
        self.retry = None
        self._started = False  # the byte-order mark, if there was one, is behind us
        self._skip_lf = False  # the last byte was CR: an LF now belongs to it
        self._at = 0  # offset of the line under way in the stream; kept for an observer only
        self._over = False
        self._closed = False
        self._plain = False  # between two blocks, the tail aside, and nobody watching: short cuts may be taken
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
        # Most servers send one event per read; next come runs of whole events, then events cut in small pieces. Each is
        # worth a short cut. Tests compare every way through with a plain reading of the standard.
        size, tail = len(chunk), self._tail
        if tail:
            if _LF not in chunk and _CR not in chunk and size <= _STEP:
                if type(tail) is not bytearray:
                    tail = self._tail = bytearray(tail)  # grows in place: a long line byte by byte stays linear
                tail += chunk
                if self._held + len(tail) > self._max:
                    self._bound_tail()
                return []
        elif self._plain and size <= self._short:
            if chunk[:6] == b"data: ":
                first = chunk.find(b"\n")
                if first == size - 2 and chunk[-1] == _LF and _CR not in chunk:
                    return [_new(Event, ("message", chunk[6:-2].decode("utf-8", "replace"), self.last_event_id))]
                if first == size - 3 and chunk[-2:] == b"\r\n" and chunk.find(b"\r") == size - 4:
                    return [_new(Event, ("message", chunk[6:-4].decode("utf-8", "replace"), self.last_event_id))]
            if chunk[-2:] == b"\n\n" or chunk[-4:] == b"\r\n\r\n":
                return self._take_small(chunk, size)
        if self._plain and size <= _STEP:
            has_cr = _CR in chunk
            end = chunk.rfind(_BLANKS[has_cr])
            if end >= 0:
                return self._take_blocks(chunk, end, has_cr)
        if self._over or self._closed:
            self._refuse()
        if self._skip_lf or not self._started:
            chunk = self._without_prefix(chunk)
            if self._plain:
                return self.feed(chunk)
        if size <= _STEP:
            return self._take(chunk)
        events = []
        for start in range(0, size, _STEP):
            events += self.feed(chunk[start : start + _STEP])
            if self._over:
                break
        return events

    def close(self) -> Residue:
        """End the stream. An event that no blank line ended is discarded, and told here.

        Raises: LimitExceeded as `feed` does.
        """
        if self._over:
            self._refuse()
        residue = Residue(
            data=(self._data or b"").decode("utf-8", "replace"),
            event=self._event.decode("utf-8", "replace"),
            id=self._id if self._id_size else "",
            block=self._in_block,
            line=self._head + self._tail,
        )
        self._closed = True
        self._drop()
        return residue

    def _take_small(self, chunk: bytes, size: int) -> list[Event]:
        """Take a small piece of whole blocks, nothing pending before it: most often one event with a type or an id."""
        lines = chunk.splitlines()
        if len(lines) == 2 and chunk[:5] == b"data:" and chunk[5] != _SPACE:
            return [_new(Event, ("message", lines[0][5:].decode("utf-8", "replace"), self.last_event_id))]
        if len(lines) == 3 and lines[1][:6] == b"data: ":
            head, data = lines[0], lines[1][6:].decode("utf-8", "replace")
            if head[:7] == b"event: " and head[7:]:
                return [_new(Event, (head[7:].decode("utf-8", "replace"), data, self.last_event_id))]
            if head[:4] == b"id: " and _NUL not in head:
                self._id = self.last_event_id = head[4:].decode("utf-8", "replace")
                return [_new(Event, ("message", data, self._id))]
        events: list[Event] = []
        self._lines(lines, size, events)
        return events

    def _take_blocks(self, chunk: bytes, end: int, has_cr: bool) -> list[Event]:
        """Take a piece that, with the tail before it, holds whole blocks up to the blank line at `end`.

        Most often each block is one `data: ` line. Such a run is cut where one ends and the next begins; what has no
        line end left inside is an event, and the rare part that has one goes to the state machine.
        """
        blank = _BLANKS[has_cr]
        if self._tail:
            end += len(self._tail)
            chunk = b"".join((self._tail, chunk))
            self._tail = b""
        rest = chunk[end + len(blank) :]
        if chunk[:6] != b"data: " or end > self._max:  # of a run that is no larger, no block can be too large
            events: list[Event] = []
            self._lines(chunk[: end + len(blank)].splitlines(), end, events)
            if self._over:
                return events
        else:
            run, last_id = chunk[6:end], self.last_event_id
            if _LF not in run and not (has_cr and _CR in run):
                events = [_new(Event, ("message", run.decode("utf-8", "replace"), last_id))]
            else:
                parts = run.split(_BETWEEN[has_cr])
                inside = b"".join(parts)
                if _LF not in inside and not (has_cr and _CR in inside):
                    events = [_new(Event, ("message", part.decode("utf-8", "replace"), last_id)) for part in parts]
                else:
                    events = self._take_parts(parts, blank)
        if _LF in rest or _CR in rest or len(rest) > self._max:
            events += self._take(rest)
        else:
            self._tail = rest
        return events

    def _take_parts(self, parts: list[bytes], blank: bytes) -> list[Event]:
        """Take whole blocks, given without the `data: ` they begin with and the blank line they end with."""
        events: list[Event] = []
        for part in parts:
            if _LF in part or _CR in part:
                self._lines((b"data: " + part + blank).splitlines(), len(part), events)
            else:
                events.append(_new(Event, ("message", part.decode("utf-8", "replace"), self.last_event_id)))
        return events

    def _take(self, chunk: bytes) -> list[Event]:
        """Take any piece: finished lines are read, the rest becomes the tail."""
        events: list[Event] = []
        end = chunk.rfind(b"\n") + 1
        if _CR in chunk:  # ends its line at once: waiting for the LF that may follow would hold an event back
            end = max(end, chunk.rfind(b"\r") + 1)
            self._skip_lf = chunk[-1] == _CR
        if end:
            text = b"".join((self._tail, chunk[:end]))
            self._tail = chunk[end:]
            if self._observer is None:
                self._lines(text.splitlines(), len(text), events)  # of bytes: at CR, LF and CRLF only
            else:
                self._observed_lines(text.splitlines(keepends=True), events)
        else:
            self._tail = chunk  # of a line that begins here; `feed` takes its further pieces
        if self._held + len(self._tail) > self._max and not self._over:
            self._bound_tail()
        self._set_plain()
        return events

    def _set_plain(self) -> None:
        self._plain = self._started and self._observer is None and not (self._in_block or self._skip_lf or self._over)

    def _without_prefix(self, chunk: bytes) -> bytes:
        """Drop a byte-order mark at the start of the stream, and the LF of a CRLF that was cut."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == _LF:
                self._at += 1
                chunk = chunk[1:]
        if not self._started:
            chunk = self._head + chunk
            if len(chunk) < len(_MARK) and _MARK.startswith(chunk):
                self._head = chunk
                return b""
            self._started, self._head = True, b""
            if chunk.startswith(_MARK):
                self._at = len(_MARK)
                chunk = chunk[len(_MARK) :]
        self._set_plain()
        return chunk

    def _observed_lines(self, lines: list[bytes], events: list[Event]) -> None:
        """Finished lines with their line ends, one by one, so that it is known where in the stream each stands."""
        for line in lines:
            self._lines([line.rstrip(b"\r\n")], len(line), events)
            self._at += len(line)
            if self._over:
                return

    def _lines(self, lines: list[bytes], size: int, events: list[Event]) -> None:
        """The state machine: interpret finished lines of `size` bytes in all, given without their line ends.

        One long function on local names: its steps are what every stream pays that is no plain run of `data: ` lines.
        """
        maximum, in_block, over = self._max, self._in_block, False
        data, event, id_size = self._data, self._event, self._id_size
        tight = self._held + size > maximum  # else nothing here can be too much, and nothing need be counted
        for line in lines:
            if not line:  # dispatch
                self.last_event_id = self._id
                if data is not None:
                    kind = event.decode("utf-8", "replace") if event else "message"
                    events.append(_new(Event, (kind, data.decode("utf-8", "replace"), self._id)))
                elif in_block or self._retried:
                    self._ignore(Ignored.NO_DATA, line)
                data, event, id_size, in_block = None, b"", 0, False
                self._retried = False
                continue
            field, _, value = line.partition(b": ")
            if field != b"data" and field != b"event" and field != b"id":
                field, _, value = line.partition(b":")  # no space after the colon, or none of these
            if field == b"data":
                if data is None:
                    data = value
                else:
                    if not isinstance(data, bytearray):
                        data = bytearray(data)  # grows in place: many short lines stay linear
                    data += b"\n"
                    data += value
            elif field == b"event":
                event = value
            elif field == b"id":
                if tight and (over := len(data or b"") + len(event) + len(value) > maximum):
                    break
                if _NUL in value:
                    self._ignore(Ignored.BAD_ID, line)
                    continue
                self._id, id_size = value.decode("utf-8", "replace"), len(value)
            else:
                if tight and (over := len(line) > maximum):
                    break
                self._other(line, field, value)
                continue
            in_block = True
            if tight and (over := len(data or b"") + len(event) + id_size > maximum):
                break
        if in_block or self._in_block:
            self._data, self._event, self._id_size, self._in_block = data, event, id_size, in_block
            self._held = len(data or b"") + len(event) + id_size
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
        self._head = self._tail = b""
        self._data = None
        self._event = b""
        self._id_size = self._held = 0
        self._in_block = self._retried = self._plain = False

    def _refuse(self) -> None:
        if self._over:
            raise LimitExceeded(
                f"an event of the stream holds more than {self._max:,} bytes: nothing from it on was read; "
                "give the decoder a larger max_event_bytes if its sender can be trusted",
                limit="event_bytes",
                maximum=self._max,
            )
        if self._closed:
            raise ValueError("the decoder is closed; a new stream needs a new Decoder")


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
    # Data comes last: there are readers that act on each line as it comes.
    text = f"data: {data}\n\n"
    if retry is not None:
        text = f"retry: {_milliseconds(retry)}\n{text}"
    if event:
        text = f"event: {_one_line('event', event)}\n{text}"
    if id is not None:
        text = f"id: {_one_line('id', id)}\n{text}"
    return _utf8(text)


def comment(text: str = "") -> bytes:
    """A comment for the wire, such as a keep-alive; ends with ONE line end, so that no reader takes it for an event.

    Text of several lines becomes several comment lines. A line ends here wherever any reader might end it: some
    Python readers also split at U+2028, U+0085, form feeds and the like.

    Raises: ValueError for half a surrogate pair.
    """
    return _utf8("".join(f": {line}\n" if line else ":\n" for line in text.splitlines() or [""]))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        start = text.rfind("\n", 0, error.start) + 1
        name = text[start : error.start].partition(":")[0] or "comment"
        # Where, not what: the text is somebody's conversation and does not belong in a log.
        raise ValueError(
            f"{name} holds half a surrogate pair, character {error.start - start} of the line: join the halves first"
        ) from error


def _one_line(what: str, text: str) -> str:
    for forbidden in ("\n", "\r", "\0"):
        if forbidden in text:
            raise ValueError(f"{what} must be one line without NUL; character {text.index(forbidden)} is {forbidden!r}")
    return text


def _milliseconds(retry: int) -> int:
    if isinstance(retry, bool) or not isinstance(retry, int):
        raise TypeError(f"retry must be a whole number of milliseconds, not {type(retry).__name__}")
    if not 0 <= retry < 10**_RETRY_DIGITS:
        raise ValueError(f"retry must be 0 or more milliseconds and at most {_RETRY_DIGITS} digits long")
    return retry
