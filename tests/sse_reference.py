"""The standard, read aloud: slow, obvious and whole. The decoder's tests compare it with this.

Source: WHATWG HTML "Parsing an event stream", "Interpreting an event stream"; WHATWG Encoding "UTF-8 decode".
Nothing here is shared with the package, not even Python's own UTF-8 decoder or its idea of a line.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Reading:
    """What a stream means: its events as (type, data, id), and what was ignored as (kind, line, offset)."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    ignored: list[tuple[str, bytes, int]] = field(default_factory=list)
    last_event_id: str = ""
    retry: int | None = None
    over: bool = False
    left_data: str = ""
    left_event: str = ""
    left_id: str = ""
    left_block: bool = False
    left_line: bytes = b""


def utf8(data: bytes) -> str:
    """The UTF-8 decoder of the Encoding standard, byte for byte, errors replaced."""
    out: list[str] = []
    point = seen = needed = 0
    lower, upper = 0x80, 0xBF
    queue = list(data)
    at = 0
    while at < len(queue):
        byte = queue[at]
        if not needed:
            if byte <= 0x7F:
                out.append(chr(byte))
            elif 0xC2 <= byte <= 0xDF:
                needed, point = 1, byte & 0x1F
            elif 0xE0 <= byte <= 0xEF:
                lower = 0xA0 if byte == 0xE0 else lower
                upper = 0x9F if byte == 0xED else upper
                needed, point = 2, byte & 0xF
            elif 0xF0 <= byte <= 0xF4:
                lower = 0x90 if byte == 0xF0 else lower
                upper = 0x8F if byte == 0xF4 else upper
                needed, point = 3, byte & 0x7
            else:
                out.append("\ufffd")
            at += 1
            continue
        if not lower <= byte <= upper:
            point = seen = needed = 0
            lower, upper = 0x80, 0xBF
            out.append("\ufffd")
            continue  # the byte is read again
        lower, upper = 0x80, 0xBF
        point = (point << 6) | (byte & 0x3F)
        seen += 1
        at += 1
        if seen == needed:
            out.append(chr(point))
            point = seen = needed = 0
    if needed:
        out.append("\ufffd")
    return "".join(out)


def lines(stream: bytes) -> tuple[list[tuple[bytes, int]], tuple[bytes, int]]:
    """Finished lines with their offsets, and the unfinished one."""
    found: list[tuple[bytes, int]] = []
    start = at = 3 if stream[:3] == b"\xef\xbb\xbf" else 0
    while at < len(stream):
        if stream[at] == 0x0D:
            found.append((stream[start:at], start))
            at += 2 if stream[at + 1 : at + 2] == b"\n" else 1
            start = at
        elif stream[at] == 0x0A:
            found.append((stream[start:at], start))
            at += 1
            start = at
        else:
            at += 1
    return found, (stream[start:], start)


def field_of(line: bytes) -> tuple[bytes, bytes]:
    """Name and value of a line that is no comment."""
    colon = line.find(b":")
    if colon < 0:
        return line, b""
    value = line[colon + 1 :]
    return line[:colon], value[1:] if value[:1] == b" " else value


def read(stream: bytes, max_event_bytes: int = 1 << 20) -> Reading:
    """Read a whole stream that has ended; reading stops where a block holds more than `max_event_bytes`."""
    reading = Reading()
    data: list[bytes] = []
    event = identifier = b""
    has_event = has_id = has_retry = False
    id_buffer = ""
    finished, (tail, _) = lines(stream)

    def held(new_data: list[bytes], new_event: bytes, new_id: bytes) -> int:
        return len(b"\n".join(new_data)) + len(new_event) + len(new_id)

    for line, offset in finished:
        if line == b"":
            reading.last_event_id = id_buffer
            if data:
                reading.events.append((utf8(event) or "message", utf8(b"\n".join(data)), id_buffer))
            elif has_event or has_id or has_retry:
                reading.ignored.append(("no-data", b"", offset))
            data, event, identifier = [], b"", b""
            has_event = has_id = has_retry = False
            continue
        if line[:1] == b":":
            if len(line) > max_event_bytes:
                reading.over = True
                return reading
            reading.ignored.append(("comment", line, offset))
            continue
        name, value = field_of(line)
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event, has_event = value, True
        elif name == b"id":
            if held(data, event, value) > max_event_bytes:
                reading.over = True
                return reading
            if b"\0" in value:
                reading.ignored.append(("bad-id", line, offset))
            else:
                identifier, id_buffer, has_id = value, utf8(value), True
        elif len(line) > max_event_bytes:
            reading.over = True
            return reading
        elif name == b"retry":
            if value and all(0x30 <= byte <= 0x39 for byte in value) and len(value.lstrip(b"0")) <= 300:
                reading.retry, has_retry = int(value.lstrip(b"0") or b"0"), True
            else:
                reading.ignored.append(("bad-retry", line, offset))
        else:
            reading.ignored.append(("unknown-field" if b":" in line else "no-colon", line, offset))
        if held(data, event, identifier) > max_event_bytes:
            reading.over = True
            return reading
    may_become_a_mark = stream in (b"\xef", b"\xef\xbb")
    reading.over = not may_become_a_mark and tail_is_over(tail, data, event, identifier, max_event_bytes)
    if not reading.over:
        reading.left_data, reading.left_event = utf8(b"\n".join(data)), utf8(event)
        reading.left_id = utf8(identifier)
        reading.left_block = bool(data) or has_event or has_id
        reading.left_line = tail
    return reading


def tail_is_over(tail: bytes, data: list[bytes], event: bytes, identifier: bytes, maximum: int) -> bool:
    """Whether the unfinished line is too long however it may go on."""
    for name in (b"data", b"event", b"id"):
        if name.startswith(tail):
            return False
        if tail.startswith(name + b":"):
            _, value = field_of(tail)
            if name == b"data":
                return len(b"\n".join([*data, value])) + len(event) + len(identifier) > maximum
            if name == b"event":
                return len(b"\n".join(data)) + len(value) + len(identifier) > maximum
            return len(b"\n".join(data)) + len(event) + len(value) > maximum
    return len(tail) > maximum
