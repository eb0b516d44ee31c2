"""How an answer ended, and why nothing can be said of one that came: it failed, or was not read to its end. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from motamot.errors import LimitExceeded
from motamot.findings import Examination
from motamot.findings.recognise import Shape
from motamot.sse import Decoder
from motamot.tape import Tape

__all__ = ["failure", "still_open", "unjudged"]

EVENT_BYTES = 1 << 20  # of an event that is looked at for why the answer failed
WORDS = 200  # characters of a server's words that are told

_FAILED = ("failed", "interrupted", "error", "RUN_ERROR", "response.failed")  # words of an answer's own end
_FAULT = "error-in-stream"  # of findings: what upstream protocols have in the place of such a word
_SHORT = ("An event from byte", "The answer is longer than")  # how notes begin that tell of what was not read
_TOLD = re.compile(r'"(?:error|errorText|outcome|code)"|error"|RUN_ERROR|response\.failed')
_TIME = re.compile(r"It had not ended after (\S+) s, and was left\.")  # a note of `motamot.tape.recording`


def failure(tape: Tape, examined: Examination) -> str | None:
    """The code and the words with which an answer says that it failed, "" where it says none; None: it did not."""
    if examined.ended not in _FAILED and not any(finding.id == _FAULT for finding in examined.findings):
        return None
    told = ""
    for name, data in _events(tape, examined):
        if name in ("error", "erreur") or _TOLD.search(data):
            told = _words(data, named=name in ("error", "erreur")) or told
    return told


def unjudged(tape: Tape, examined: Examination, failed: str | None) -> str | None:
    """Why that nothing was found says nothing, in a sentence; None where the answer was read to its end, or as far as
    its recording holds it.

    failed: as `failure` gives it.
    """
    if failed is not None:
        return f"the answer failed{f' ({failed})' if failed else ''}: ask again; half an answer shows no loss"
    for note in examined.notes:
        if note.startswith(_SHORT):
            return f"it was read up to there only: {note[0].lower()}{note[1:].rstrip('.')}"
    if not examined.deltas:
        what = f"{examined.events:,} event{'' if examined.events == 1 else 's'}" if examined.events else "it"
        return f"no text was found in {what}, nor anything else of an answer; if you know what it is, say --protocol"
    if examined.ended is None and (seconds := _left_after(tape)):
        return f"it had not ended after {seconds} s: what came is only its beginning; --timeout waits longer"
    if examined.ended is None and tape.end == "reset":
        return "the connection broke before the answer's end: what came is only its beginning"
    return None


def still_open(tape: Tape, examined: Examination) -> Examination:
    """The same, where the answer had ended and its stream had not: noted as that, and not as an answer without end."""
    seconds = _left_after(tape)
    if seconds is None or examined.ended is None:
        return examined
    told = (
        f"The answer ended ({_short(examined.ended)}), and the server did not close its stream within {seconds} s: "
        "whoever waits for the close of the connection waits on."
    )
    return replace(examined, notes=tuple(told if _TIME.fullmatch(note) else note for note in examined.notes))


def _left_after(tape: Tape) -> str | None:
    """The seconds after which whoever recorded it left, or None."""
    found = (_TIME.fullmatch(note) for note in tape.notes if tape.end == "left")
    return next((match[1] for match in found if match), None)


def _events(tape: Tape, examined: Examination) -> Iterator[tuple[str, str]]:
    """Name and data of each event, or line of JSON."""
    if examined.recognised.shape is not Shape.EVENTS:
        for line in tape.body.split(b"\n"):
            if len(line) <= EVENT_BYTES:
                yield "", line.decode("utf-8", "replace")
        return
    decoder = Decoder(max_event_bytes=EVENT_BYTES)
    try:
        for piece in tape.pieces:
            for event in decoder.feed(piece.data):
                yield event.event, event.data
    except LimitExceeded:  # what came before it is told
        return


def _words(data: str, *, named: bool) -> str:
    """Code and message of an event that tells of a failure; "" for any other."""
    try:
        told: Any = json.loads(data)
    except (ValueError, RecursionError):
        return _short(data) if named else ""
    if not isinstance(told, dict):
        return ""
    response = told.get("response")
    error = told.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if not (named or error or told.get("outcome") in _FAILED or told.get("type") in _FAILED):
        return ""
    if isinstance(error, str):
        return _short(error)
    inner = error if isinstance(error, dict) else told
    code = inner.get("code") or (inner.get("type") if inner is error else None)
    message = inner.get("message") or inner.get("errorText")
    return ": ".join(_short(str(one)) for one in (code, message) if isinstance(one, str | int) and one)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WORDS else text[: WORDS - 1] + "…"
