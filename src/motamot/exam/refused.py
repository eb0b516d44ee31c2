"""Why a response cannot be checked: what it is instead of a stream, and what to do about it. Pure."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from motamot.findings import Examination
from motamot.findings.recognise import Shape
from motamot.tape import Tape
from motamot.tape.formats.har import HOW_TO_EXPORT

__all__ = ["refused"]

_HEAD_BYTES = 64_000
_MESSAGE = 200  # characters of what a server says
_LOGIN = re.compile(r"\b(log[ _-]?in|sign[ _-]?in|sso|oauth|auth)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>\s*([^<]{1,300})", re.IGNORECASE)
_PASSWORD = re.compile(r"""type\s{0,5}=\s{0,5}["']?password""", re.IGNORECASE)
_HEADERS = "-H 'Authorization: Bearer …', or -H 'Cookie: …' as the browser's developer tools show it on this request"


def refused(tape: Tape, examined: Examination) -> str | None:
    """Why there is no stream to check in this response, in a sentence or two; None where there is one."""
    shape = examined.recognised.shape
    if tape.status is not None and (tape.status >= 300 or tape.status == 204):
        return _status(tape, tape.status)
    if shape is Shape.HTML:
        return _html(_head(tape))
    if shape is Shape.JSON:
        return _json(_head(tape))
    if not examined.bytes and tape.source == "har":
        return f"{tape.notes[-1] if tape.notes else 'The recording holds no body for this response.'} {HOW_TO_EXPORT}."
    if not examined.bytes and (shape is Shape.EMPTY or tape.end == "left"):
        ends = {"reset": "the connection broke", "left": "whoever read it left"}.get(tape.end, "the body ended")
        return f"{ends} before anything came" + (f": {tape.notes[-1]}" if tape.notes else "")
    if shape is Shape.TEXT and "\0" in _head(tape):
        return "no event stream, and no text at all: binary data"
    if examined.protocol == "text" and examined.recognised.sure == "guess":
        first = next((line for line in _head(tape).splitlines() if line.strip()), "")
        return (
            f"no event stream: plain text, beginning {_short(first)!r}; if the answer does come so, say --protocol text"
        )
    return None


def _status(tape: Tape, status: int) -> str:
    said = _said(_head(tape))
    told = f"the server answered {status}" + (f": {said}" if said else "")
    if status == 204:
        return "the server answered 204: it has nothing to send (an EventSource that comes back too late gets that)"
    if status < 400:
        where = tape.header("location") or "nowhere"
        if _LOGIN.search(_path(where)):
            return f"it wants a login (it sends to {_short(where)}): give {_HEADERS}"
        return f"the server answered {status} and sends to {_short(where)}: check that address"
    if status == 401:
        return f"it wants a login ({told}): give {_wanted(tape)}"
    if status == 407:
        return f"a proxy wants a login ({told})"
    if status == 403:
        return f"{told}; if it wants a login, give {_HEADERS}; if it wants to be asked by its own page, -H 'Origin: …'"
    if status in (404, 405):
        return f"{told}; is this the address of the stream, and the method? With a body it is asked by POST"
    if status in (400, 415, 422):
        return f"{told}; the body that its own page sends stands in the browser's developer tools: give it with -d"
    return told


def _path(address: str) -> str:
    try:
        return urlsplit(address).path
    except ValueError:  # a server may write anything there
        return ""


def _wanted(tape: Tape) -> str:
    scheme = (tape.header("www-authenticate") or "").split(" ", 1)[0].lower()
    if scheme == "basic":
        return "-H 'Authorization: Basic …' (name:password in base64)"
    if scheme == "bearer":
        return "-H 'Authorization: Bearer …'"
    return _HEADERS


def _html(head: str) -> str:
    title = _TITLE.search(head)
    named = f" ({_short(unescape(title[1]))!r})" if title else ""
    if _PASSWORD.search(head):
        return f"it wants a login: a page with a password came instead of a stream{named}; give {_HEADERS}"
    return (
        f"no event stream: an HTML page{named}; for a page with a chat use --page, for its stream the address that the "
        "page asks (developer tools, Network)"
    )


def _json(head: str) -> str:
    said = _said(head)
    try:
        told: Any = json.loads(head)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and told.get("error") and said:
        return f"no event stream: a JSON error: {said}"
    if isinstance(told, dict) and told.get("object") == "chat.completion":
        return 'no event stream: a whole chat completion; ask with "stream": true'
    return "no event stream: one JSON document, the whole answer at once; a stream of it stands at another address"


def _said(head: str) -> str:
    """What the server says is wrong, if it says so in JSON or in a line of text."""
    try:
        told: Any = json.loads(head)
    except (ValueError, RecursionError):
        first = head.strip().splitlines()[0] if head.strip() else ""
        return "" if first.startswith("<") else _short(first)
    for name in ("error", "detail", "message", "title"):
        if isinstance(told, dict) and told.get(name):
            value = told[name]
            if isinstance(value, dict):
                value = value.get("message") or value.get("code") or json.dumps(value)
            return _short(value if isinstance(value, str) else json.dumps(value))
    return ""


def _head(tape: Tape) -> str:
    head = bytearray()
    for piece in tape.pieces:
        head += piece.data[: _HEAD_BYTES - len(head)]
        if len(head) >= _HEAD_BYTES:
            break
    return head.decode("utf-8", "replace")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MESSAGE else text[: _MESSAGE - 1] + "…"
