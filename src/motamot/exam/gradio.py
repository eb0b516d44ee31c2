"""Gradio's queue, seen from its visitor: a question is put into the queue, and its answer is read from another address.

Source: Gradio, "Querying Gradio Apps with Curl" (https://www.gradio.app/guides/querying-gradio-apps-with-curl).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from motamot.answer import AnswerEvent, Code, Ended, Outcome, Text
from motamot.exam.asking import question
from motamot.exam.presets import EVENT_BYTES, Hearing, Preset, Talk, events_in
from motamot.protocols.base import failure
from motamot.sse import Decoder
from motamot.tape import Request

__all__ = ["GRADIO"]


class _Gradio(Preset):
    """A `ChatInterface` by its API, `…/gradio_api/call/chat`. It keeps no conversation for who asks by it."""

    name = "gradio"
    claims = frozenset({"cr", "errors", "stop"})
    twice = True

    def ask(self, url: str, talk: Talk, message: str) -> Request:
        del talk
        return question(url, body=json.dumps({"data": [message]}).encode())

    def then(self, asked: Request, body: bytes) -> Request | None:
        try:
            event = json.loads(body)["event_id"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        url = f"{asked.url}/{quote(str(event), safe='')}"
        kept = tuple((name, value) for name, value in asked.headers if name.lower() != "content-type")
        return replace(asked, method="GET", url=url, body=b"", headers=kept)

    def hear(self) -> Hearing:
        return _Answer()


class _Answer:
    """Each event holds the answer so far; what it adds is the text that comes."""

    def __init__(self) -> None:
        self.ended = False
        self._said = ""
        self._decoder = Decoder(max_event_bytes=EVENT_BYTES)

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """The next bytes."""
        return [found for event in events_in(self._decoder, chunk) for found in self._event(event.event, event.data)]

    def close(self) -> list[AnswerEvent]:
        """The end of the bytes; a stream that has not said so was cut."""
        if self.ended:
            return []
        self.ended = True
        return [failure(Code.UPSTREAM_CUT, "the stream ended without its end")]

    def _event(self, kind: str, data: str) -> list[AnswerEvent]:
        if self.ended:
            return []
        if kind == "error":
            self.ended = True
            return [failure(Code.UPSTREAM_ERROR, data)]
        found: list[AnswerEvent] = []
        if kind in ("generating", "complete") and (added := self._added(data, last=kind == "complete")):
            found.append(Text(added))
        if kind == "complete":
            self.ended = True
            found.append(Ended(outcome=Outcome.COMPLETE))
        return found

    def _added(self, data: str, *, last: bool) -> str:
        try:
            told: Any = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        said = told[0] if isinstance(told, list) and told and isinstance(told[0], str) else ""
        if not last and said and (said[-1] == "\ufffd" or "\ud800" <= said[-1] <= "\udbff"):
            said = said[:-1]  # half a character, which the next event has whole
        # An answer that does not go on with what was shown stands in its place: told whole, it shows as a fault.
        added = said.removeprefix(self._said) if said.startswith(self._said) else said
        self._said = said or self._said
        return added


GRADIO = _Gradio()
"""The preset `gradio`."""
