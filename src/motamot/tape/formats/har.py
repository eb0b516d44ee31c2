"""HAR 1.2, as browsers and Playwright export it: every entry that is a stream or a chat's answer becomes a tape.

What a HAR can hold was measured with Chromium: the whole body of a stream that was read to its end, none at all of one
that was stopped or broke; no times of pieces; and UTF-8 taken for windows-1252 where the type names no charset.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from motamot.errors import TapeError
from motamot.tape import bounds
from motamot.tape.formats.base import Format
from motamot.tape.formats.cut_json import mended
from motamot.tape.tape import Piece, Request, Tape

__all__ = ["FORMAT", "HOW_TO_EXPORT"]

HOW_TO_EXPORT = (
    "In the browser's network tools keep the panel open before you ask, wait until the answer has ended, then export "
    "the HAR with its content (with Playwright: record_har_content='embed'). Of a stream that is stopped or breaks, "
    "browsers keep nothing: motamot record and curl -i -N do"
)
_NO_TIMES = "A HAR holds no times of pieces: whether the answer came as it was written cannot be told from it."
_MOJIBAKE = (
    "The browser stored this body as windows-1252, because its type names no charset: it was put back into UTF-8, "
    "as it came over the wire."
)

_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"log\"\s*:")
_ENTRIES = re.compile(r'(?<!\\)"entries"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_STREAM_TYPES = ("event-stream", "ndjson", "jsonl", "json-seq", "jsonlines", "stream+json", "eventstream")
_FIELD = re.compile(r"\ufeff?\s*(?:(?:data|event|id|retry):|:)")
_CHAT_PLACE = re.compile(
    r"chat|complet|messages?\b|conversation|assistant|generate|responses\b|\bask\b|answer|agent|ag-ui|\bllm\b|prompt|"
    r"\bbot\b|copilot|threads?/",
    re.IGNORECASE,
)
_CHAT_KEYS = frozenset(
    {"choices", "naturalLanguageAnswer", "answer", "outcome", "reply", "response", "completion", "message", "messages",
     "content", "output", "text", "error"}
)  # fmt: skip
_NO_BODY = (204, 304)
_PEEK = 65_536  # characters of a body that are looked at

# windows-1252 as browsers have it (WHATWG Encoding): the five bytes without a character are C1 controls.
_DECODING = "".join(
    bytes([byte]).decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(byte) for byte in range(256)
)
_WINDOWS_1252 = codecs.charmap_build(_DECODING)


class _Log(msgspec.Struct):
    entries: list[msgspec.Raw]


class _Har(msgspec.Struct):
    log: _Log


_decode = msgspec.json.Decoder(_Har).decode
_entry = msgspec.json.Decoder().decode


def _read(data: bytes, wanted: str | None) -> list[Tape]:
    """The tapes of a HAR. wanted: a part of an address, by which any entry may be chosen.

    Raises: TapeError where there are none, or none of them has a body.
    """
    if data.count(b"{") + data.count(b"[") > bounds.JSON_VALUES:
        raise TapeError(f"this HAR holds more than {bounds.JSON_VALUES:,} lists and objects")
    data = data.removeprefix(b"\xef\xbb\xbf")
    broke: int | None = None
    last_is_cut = False
    try:
        entries = [_loaded(raw) for raw in _decode(data).log.entries[: bounds.ENTRIES + 1]]
    except RecursionError:
        raise TapeError("this HAR is nested deeper than any browser writes") from None
    except msgspec.ValidationError as error:
        raise TapeError(f"this looks like a HAR, and has no list of entries: {error}") from None
    except msgspec.DecodeError:
        entries, broke, last_is_cut = _salvaged(data)
    if len(entries) > bounds.ENTRIES:
        raise TapeError(f"this HAR holds more than {bounds.ENTRIES:,} requests")
    chosen = [entry for entry in entries if _is_chosen(entry, wanted)]
    tapes = [_tape(entry) for entry in chosen]
    last_is_cut = last_is_cut and bool(chosen) and chosen[-1] is entries[-1]
    if last_is_cut:
        note = f"The HAR was cut at byte {broke:,}, inside this entry: the rest of it is not known."
        tapes[-1] = _with(tapes[-1], note, end="unknown")
    if not entries and broke is not None:
        raise TapeError(f"this HAR breaks off at byte {broke:,}, inside its first entry. {HOW_TO_EXPORT}", offset=broke)
    where = "" if broke is None else f"; it breaks off at byte {broke:,}"
    if not tapes:
        raise TapeError(_none_of(entries, wanted) + where, offset=broke)
    if not any(tape.pieces for tape in tapes) and any(_misses_body(tape) for tape in tapes):
        raise TapeError(f"this HAR holds {_answers(len(tapes))} without a body{where}. {HOW_TO_EXPORT}", offset=broke)
    if broke is not None and not last_is_cut:
        note = f"The HAR was cut at byte {broke:,}: what was recorded after {_answers(len(tapes))} is not known."
        tapes = [_with(tape, note) for tape in tapes]
    return tapes


def _answers(count: int) -> str:
    return "one answer" if count == 1 else f"{count} answers"


def _with(tape: Tape, note: str, **changes: Any) -> Tape:
    return dataclasses.replace(tape, notes=(*tape.notes, note), **changes)


# --- the file


def _loaded(raw: msgspec.Raw) -> dict[str, Any]:
    """One entry; {} for one that cannot be read."""
    try:
        value = _entry(raw)
    except (msgspec.MsgspecError, RecursionError):  # half a surrogate pair, which msgspec refuses
        try:
            value = json.loads(bytes(raw))
        except (ValueError, RecursionError):
            value = None
    return value if isinstance(value, dict) else {}


def _salvaged(data: bytes) -> tuple[list[dict[str, Any]], int, bool]:
    """What can be read of a HAR that is no whole JSON: its entries, the byte where it broke, and whether that is in
    the last one of them."""
    text = data.decode("utf-8", "replace")
    found = _ENTRIES.search(text)
    if found is None:
        raise TapeError(
            f"this HAR breaks off at byte {len(data):,}, before its first entry. {HOW_TO_EXPORT}", offset=len(data)
        )
    decoder = json.JSONDecoder()
    entries: list[dict[str, Any]] = []
    at = found.end()
    try:
        while text.startswith("{", at := _between(text, at)):
            value, at = decoder.raw_decode(text, at)
            entries.append(value)
            if len(entries) > bounds.ENTRIES:
                break
    except json.JSONDecodeError as error:
        tail = text[at:]
        last = mended(tail)
        is_cut = last is not None or error.pos >= len(text)
        if isinstance(last, dict) and "response" in last:
            return [*entries, last], len(data), True
        return entries, len(data) if is_cut else len(text[: error.pos].encode()), False
    except RecursionError:
        raise TapeError("this HAR is nested deeper than any browser writes") from None
    is_cut = not text[at:].strip(" \t\r\n]}")
    return entries, len(data) if is_cut else len(text[:at].encode()), False


def _between(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    assert found is not None
    return found.end()


# --- an entry


def _object(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _string(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _number(value: Mapping[str, Any], name: str) -> float | None:
    """A finite number of 0 or more, or None: -1 says `not known` in a HAR."""
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1e12:
        return None
    return float(found)


def _headers(value: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    listed = value.get("headers")
    pairs = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    named = [(_string(item, "name"), _string(item, "value")) for item in pairs]
    return tuple((_encodable(name), _encodable(text)) for name, text in named if name and not name.startswith(":"))


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_chosen(entry: dict[str, Any], wanted: str | None) -> bool:
    request, response = _object(entry, "request"), _object(entry, "response")
    if not request or not response:
        return False
    if wanted is not None:  # a browser's CORS question goes to the same address and has no answer
        return wanted in _string(request, "url") and _string(request, "method") != "OPTIONS"
    return _is_stream(entry, request, response) or _is_chat(request, response)


def _is_stream(entry: dict[str, Any], request: dict[str, Any], response: dict[str, Any]) -> bool:
    """A stream came, or was asked for."""
    kind = _type_of(response)
    if any(word in kind for word in _STREAM_TYPES) or _string(entry, "_resourceType") == "eventsource":
        return True
    if any(name.lower() == "accept" and "event-stream" in value for name, value in _headers(request)):
        return True
    if re.search(r'"stream"\s*:\s*true', _string(_object(request, "postData"), "text")[:_PEEK]):
        return True
    content = _object(response, "content")
    if kind.startswith(("text/plain", "application/octet-stream")) or not kind:
        return _FIELD.match(_peek(content)) is not None
    return False


def _is_chat(request: dict[str, Any], response: dict[str, Any]) -> bool:
    """A chat's answer as one JSON document: posted to a place of such a name, with a field that such an answer has."""
    if "json" not in _type_of(response) or _string(request, "method") != "POST":
        return False
    if not _CHAT_PLACE.search(re.sub(r"^[a-z]+://[^/]*", "", _string(request, "url"))):
        return False
    if _object(response, "content").get("text") is None:
        return True
    return any(f'"{key}"' in _peek(_object(response, "content")) for key in _CHAT_KEYS)


def _peek(content: dict[str, Any]) -> str:
    """The start of a body."""
    text = _string(content, "text")[:_PEEK]
    if _string(content, "encoding") != "base64":
        return text
    try:
        return base64.b64decode(text[: len(text) // 4 * 4]).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _type_of(response: dict[str, Any]) -> str:
    declared = next((value for name, value in _headers(response) if name.lower() == "content-type"), "")
    return (declared or _string(_object(response, "content"), "mimeType")).lower()


def _tape(entry: dict[str, Any]) -> Tape:
    request, response, timings = (_object(entry, name) for name in ("request", "response", "timings"))
    content = _object(response, "content")
    bodiless = response.get("status") in _NO_BODY or _string(request, "method") == "HEAD"
    body, notes = (b"", []) if bodiless else _body(content, _type_of(response))
    broke = _string(response, "_failureText") or _string(response, "_error") or _string(entry, "_error")
    if broke:
        notes.append(f"The browser says of this response: {_encodable(broke)[:200]}.")
    wait, receive = _number(timings, "wait"), _number(timings, "receive")
    status = response.get("status")
    return Tape(
        pieces=(Piece(None, body),) if body else (),
        status=status if isinstance(status, int) and 100 <= status <= 999 else None,
        headers=_headers(response),
        request=Request(
            method=_encodable(_string(request, "method")) or "GET",
            url=_encodable(_string(request, "url")),
            headers=_headers(request),
            body=_encodable(_string(_object(request, "postData"), "text")).encode(),
        ),
        end="closed" if body and not broke else "unknown",
        head_at=None if wait is None else wait / 1000,
        ended_at=None if wait is None or receive is None else (wait + receive) / 1000,
        source="har",
        notes=(_NO_TIMES, *notes),
    )


_MISSING = "This HAR has no body for this response"


def _misses_body(tape: Tape) -> bool:
    return any(note.startswith(_MISSING) for note in tape.notes)


def _body(content: dict[str, Any], kind: str) -> tuple[bytes, list[str]]:
    text = content.get("text")
    if not isinstance(text, str):
        if _string(content, "_file"):
            return b"", [f"{_MISSING}: it is in a file of its own ({_encodable(_string(content, '_file'))[:100]})."]
        return b"", [f"{_MISSING} (size {content.get('size', 'not given')!s:.20})."]
    if _string(content, "encoding") == "base64":
        try:
            return base64.b64decode(text[: len(text) // 4 * 4], validate=True), []
        except (binascii.Error, ValueError) as error:
            return b"", [f"{_MISSING} that can be read: it is no base64 ({error})."]
    if text.isascii():
        return text.encode("ascii"), []
    declared = kind + _string(content, "mimeType").lower()
    if "charset" not in declared and (original := _unmangled(text)) is not None:
        return original, [_MOJIBAKE]
    return _encodable(text).encode(), []


def _unmangled(text: str) -> bytes | None:
    """The bytes of UTF-8 that was read as windows-1252, or None for a text that was not."""
    try:
        original, _ = codecs.charmap_encode(text, "strict", _WINDOWS_1252)
        codecs.getincrementaldecoder("utf-8")().decode(original)  # not the end: it may be cut inside a character
    except UnicodeError:
        return None
    return original


def _none_of(entries: list[dict[str, Any]], wanted: str | None) -> str:
    if wanted is not None:
        return f"none of the {len(entries)} requests of this HAR has {_encodable(wanted)[:100]!r} in its address"
    if not entries:
        return f"this HAR holds no requests. {HOW_TO_EXPORT}"
    kinds = Counter(_type_of(_object(entry, "response")).partition(";")[0][:60] or "no type" for entry in entries)
    listed = ", ".join(f"{_encodable(kind)} {count}" for kind, count in kinds.most_common(5))
    return (
        f"this HAR holds {len(entries)} requests and none of them is a stream or a chat's answer ({listed}): "
        "name one by a part of its address"
    )


FORMAT = Format(name="har", title="a HAR", recognises=lambda data: _BEGINS.match(data[:_PEEK]) is not None, read=_read)
