"""AG-UI: the order its client enforces."""

from __future__ import annotations

from typing import Any

from motamot.findings.faults.clauses import AG_UI
from motamot.findings.finder import Finder, Rule, Scene
from motamot.findings.finding import Fault, Level, Promise

__all__ = ["AG_UI_ORDER"]

_OPEN_MOST = 10_000
# What opens, what goes on and what closes: event types and the field that names it.
_OPENS = {
    "TEXT_MESSAGE_START": ("text message", "messageId"),
    "TOOL_CALL_START": ("tool call", "toolCallId"),
    "STEP_STARTED": ("step", "stepName"),
    "REASONING_MESSAGE_START": ("reasoning message", "messageId"),
}
_NEEDS = {
    "TEXT_MESSAGE_CONTENT": ("text message", "messageId"),
    "TOOL_CALL_ARGS": ("tool call", "toolCallId"),
    "REASONING_MESSAGE_CONTENT": ("reasoning message", "messageId"),
}
_CLOSES = {
    "TEXT_MESSAGE_END": ("text message", "messageId"),
    "TOOL_CALL_END": ("tool call", "toolCallId"),
    "STEP_FINISHED": ("step", "stepName"),
    "REASONING_MESSAGE_END": ("reasoning message", "messageId"),
}


class _AgUiOrder(Finder):
    """Source: packages/client/src/verify of @ag-ui/client 1.0.0."""

    protocols = frozenset({"ag-ui"})

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._open: dict[tuple[str, str], None] = {}
        self._state = "before"

    def on_value(self, value: Any) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            return
        state = self._state
        if kind == "RUN_STARTED":
            if state == "running":
                self.saw("RUN_STARTED came while a run was under way.")
            self._state = "running"
            self._open.clear()
            return
        if kind == "RUN_ERROR":
            self._state = "failed"
            return
        if state == "before":
            self.saw(f"The first event is {kind[:40]}: it must be RUN_STARTED or RUN_ERROR.")
            self._state = "running"
        elif state == "failed":
            self.saw(f"{kind[:40]} came after RUN_ERROR.")
        elif state == "finished":
            self.saw(f"{kind[:40]} came after RUN_FINISHED.")
        if kind == "RUN_FINISHED":
            for what, name in list(self._open)[:1]:
                self.saw(f"RUN_FINISHED came while a {what} was open ({name[:40]}).")
            self._state = "finished"
        elif kind in _OPENS:
            if len(self._open) < _OPEN_MOST:
                self._open[_named(_OPENS[kind], value)] = None
        elif kind in _CLOSES:
            if self._open.pop(_named(_CLOSES[kind], value), self) is self and len(self._open) < _OPEN_MOST:
                self.saw(f"{kind} came for a {_CLOSES[kind][0]} that is not open.")
        elif kind in _NEEDS and _named(_NEEDS[kind], value) not in self._open and len(self._open) < _OPEN_MOST:
            self.saw(f"{kind} came for a {_NEEDS[kind][0]} that is not open.")


def _named(what: tuple[str, str], value: dict[str, Any]) -> tuple[str, str]:
    return what[0], str(value.get(what[1]))[:200]


AG_UI_ORDER = Rule(
    Fault(
        id="ag-ui-order",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="AG-UI events in an order its client refuses",
        clause=f"{AG_UI}: RUN_STARTED first; what was started is ended before RUN_FINISHED",
        remedy="Close every message, tool call and step before RUN_FINISHED, in the error path, too.",
        harm="@ag-ui/client rejects the run: the visitor sees an error, and sometimes loses the text.",
    ),
    _AgUiOrder,
)
