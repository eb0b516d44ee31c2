"""Vercel's UI message stream: parts its client does not know, and parts out of order."""

from __future__ import annotations

import re
from typing import Any

from motamot.findings.faults.clauses import UI_MESSAGE
from motamot.findings.finder import Finder, Rule, Scene
from motamot.findings.finding import Fault, Level, Promise

__all__ = ["UI_MESSAGE_ORDER", "UI_MESSAGE_UNKNOWN_PART"]

_PROTOCOL = frozenset({"ui-message"})
_OPEN_MOST = 10_000
# ai 7.0.173, src/ui-message-stream/ui-message-chunks.ts
_KNOWN = frozenset(
    (
        *("start", "start-step", "finish-step", "reset-step", "message-metadata", "steering-message", "custom"),
        *("text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"),
        *("reasoning-file", "file", "source-url", "source-document", "finish", "abort", "error"),
        *("tool-input-start", "tool-input-delta", "tool-input-available", "tool-input-error"),
        *("tool-approval-request", "tool-approval-response"),
        *("tool-output-available", "tool-output-error", "tool-output-denied"),
    )
)
_DATA = re.compile(r"data-.+", re.DOTALL)


class _UnknownPart(Finder):
    protocols = _PROTOCOL

    def on_value(self, value: Any) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            self.saw("A part has no type.")
        elif kind not in _KNOWN and not _DATA.fullmatch(kind):
            self.saw(f"A part has the type {kind[:60]!r}, which the client does not know.")


UI_MESSAGE_UNKNOWN_PART = Rule(
    Fault(
        id="ui-message-unknown-part",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="a part of a type that the client does not know",
        clause=f"{UI_MESSAGE}: parts are validated (`ai` 7.0.173)",
        remedy="Send what is your own as `data-…` parts.",
        harm="Validation fails: `useChat` ends with an error in the middle of the answer.",
    ),
    _UnknownPart,
)


class _Order(Finder):
    """Text and reasoning are opened, go on, and are closed, each by its id; a finished step forgets them all."""

    protocols = _PROTOCOL

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._open: set[tuple[str, str]] = set()

    def on_value(self, value: Any) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            return
        if kind in ("finish-step", "reset-step"):
            self._open.clear()
        what, _, act = kind.partition("-")
        if kind == "finish" and self._open:
            names = ", ".join(sorted(f"{what} {name}" for what, name in self._open))
            self.saw(f"`finish` came while parts were open: {names[:100]}.")
        if what not in ("text", "reasoning") or act not in ("start", "delta", "end"):
            return
        part = (what, str(value.get("id"))[:200])
        if act == "start":
            if len(self._open) < _OPEN_MOST:
                self._open.add(part)
        elif part not in self._open:
            self.saw(f"`{kind}` came without a `{what}-start` of its id.")
        elif act == "end":
            self._open.discard(part)


UI_MESSAGE_ORDER = Rule(
    Fault(
        id="ui-message-order",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="parts of a UI message out of order",
        clause=f"{UI_MESSAGE}: a part is started, goes on under the same id, and is ended",
        remedy="Send `text-start` before and `text-end` after the deltas of a text, with one id.",
        harm="`useChat` ends with an error and shows no text; a part that is never ended stays «streaming».",
    ),
    _Order,
)
