"""What `curl -v` writes where its notes and the body go to one place: lines marked `*`, `>` and `<`, then the body.

curl writes its notes at once and the body when its buffer is full, so that notes may stand before, after and among it.
"""

from __future__ import annotations

import dataclasses
import re

from motamot.errors import TapeError
from motamot.tape.formats.base import Format
from motamot.tape.formats.curl import response
from motamot.tape.http1 import read_fields
from motamot.tape.tape import Request, Tape

__all__ = ["FORMAT"]

_BEGINS = re.compile(rb"(?:\* [^\n]*|[{}] \[[^\n]*|[>] [^\n]*|Note: [^\n]*|  % Total[^\n]*|\s+Dload[^\n]*|\r[^\n]*)\n")
_SEEN = re.compile(rb"^(?:< HTTP/\d(?:\.\d)? \d{3}|> [A-Z]+ \S+ HTTP/|\* +Trying )", re.MULTILINE)
_METER = re.compile(rb"  % Total[^\n]*\n +Dload[^\n]*\n|\r[ \d]{3} [^\r\n*]{50,76}\n?")
_MARKED = re.compile(rb"(?:[*<>] ?|[{}] \[)[^\n]*\n")
_WORDS = (
    rb"\* (?:Connection #\d+ to host|Closing connection|transfer closed|Recv failure:|Send failure:|OpenSSL SSL_read|"
    rb"Operation timed out after|HTTP/2 stream \d+ was|Leftovers after chunking|Connection died|Simulate a HTTP|"
    rb"Mark bundle as|Excess found|Failure writing output|TLSv1|shutting down connection)[^\n]*\n?"
)
# Also in the middle of a line: what is left of a body that broke off has no line end.
_AMONG = re.compile(rb"[{}] \[\d+ bytes data\]\r?\n|" + _WORDS)
_BROKEN = re.compile(
    rb"\* (?:transfer closed|Recv failure:|Operation timed out after|HTTP/2 stream \d+ was not closed)"
)
_HEAD_LINES = 10_000
_NOTE = "The notes of curl -v stood among the body here and were taken out: curl -i keeps a body untouched."


def _recognises(data: bytes) -> bool:
    start = data[: 1 << 20]
    return (_BEGINS.match(start) is not None or _SEEN.match(start) is not None) and _SEEN.search(start) is not None


def _read(data: bytes, _: str | None) -> list[Tape]:
    data = _METER.sub(b"", data)
    asked: list[bytes] = []
    answered: list[bytes] = []
    at = 0
    while line := _MARKED.match(data, at):
        mark, content = data[at : at + 1], line[0][2:]
        if mark == b">":
            if answered:  # the request after a redirect or a login
                asked, answered = [], []
            asked.append(content)
        elif mark == b"<":
            answered.append(content)
            if len(answered) > _HEAD_LINES:
                raise TapeError(f"the heads of this response have more than {_HEAD_LINES:,} lines", offset=at)
        elif answered and _has_ended(answered) and not _AMONG.match(data, at):
            break  # a body that begins with a star
        at = line.end()
    if not answered:
        raise TapeError("these are the notes of curl -v, and no response is among them", offset=at)
    head = b"".join(answered)
    if not answered[-1].strip(b"\r\n ") == b"":
        raise TapeError(f"the recording breaks off inside the response's head, at byte {at:,}", offset=at)
    body, taken = _AMONG.subn(b"", data[at:])
    tape, _end = response(head + body, 0, _request(b"".join(asked)))
    notes = (*tape.notes, _NOTE) if taken else tape.notes
    end = tape.end
    if _BROKEN.search(data):
        end = "reset"
    elif end == "unknown" and re.search(rb"^\* Connection #\d+ to host .*left intact", data, re.MULTILINE):
        end = "closed"  # curl keeps a connection only after a body that ended properly
    return [dataclasses.replace(tape, notes=notes, end=end)]


def _has_ended(answered: list[bytes]) -> bool:
    """Whether the head of a final response is whole: what follows is its body."""
    if answered[-1].strip():
        return False
    status = next((line for line in reversed(answered) if line.startswith(b"HTTP/")), b"").split()[1:2]
    return not status or not (status[0][:1] in b"13" or status[0] in (b"401", b"407"))


def _request(head: bytes) -> Request | None:
    first, _, rest = head.partition(b"\n")
    words = first.decode("latin-1").split()
    if len(words) < 2:
        return None
    headers = read_fields(rest)
    host = next((value for name, value in headers if name.lower() == "host"), "")
    return Request(method=words[0], url=f"//{host}{words[1]}" if host else words[1], headers=headers)


FORMAT = Format(name="curl", title="what curl -v writes", recognises=_recognises, read=_read)
