"""Blocks without data: no event to the standard, and an empty one to some readers."""

from __future__ import annotations

from motamot.findings.faults.clauses import SSE_INTERPRET
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Fault, Level, Promise
from motamot.findings.known import STRICT
from motamot.findings.wire import Block
from motamot.sse import Ignored

__all__ = ["BLOCK_WITHOUT_DATA", "EVENT_WITHOUT_DATA", "ID_ON_FOREIGN_ROUTE"]

_PINGS = {"ping", "keep-alive", "keepalive", "heartbeat", "hb", "noop"}


def _names(block: Block) -> list[str]:
    """The event names of a block without data; [] for a block with data."""
    return [line[6:].strip().decode("utf-8", "replace") for line in block.lines if line.startswith(b"event:")]


def _has_no_data(block: Block) -> bool:
    return any(skipped.kind is Ignored.NO_DATA for skipped in block.skipped)


class _EventWithoutData(Finder):
    """Where it does harm: the event has a name somebody may wait for. A ping is missed by nobody."""

    def on_block(self, block: Block) -> None:
        if not _has_no_data(block):
            return
        names = [name for name in _names(block) if name and name.lower() not in _PINGS]
        if names:
            self.saw(f"An event named {names[-1][:40]!r} has no data line: a standard reader never dispatches it.")


EVENT_WITHOUT_DATA = Rule(
    Fault(
        id="event-without-data",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="an event somebody waits for has no data, and is never dispatched",
        clause=f"{SSE_INTERPRET}: if the data buffer is empty, no event is dispatched",
        remedy="Give every event a data line, if only `data: {}`.",
        harm="The page never hears of it: an end that is not heard makes a browser reconnect, and ask again.",
    ),
    _EventWithoutData,
)


class _BlockWithoutData(Finder):
    """`retry:`, `id:` or a ping's name alone; only where readers of upstream dialects come, the standard's pass it."""

    protocols = STRICT

    def on_block(self, block: Block) -> None:
        if _has_no_data(block) and all(not name or name.lower() in _PINGS for name in _names(block)):
            first = next((line for line in block.lines if line), b"").decode("utf-8", "replace")
            self.saw(f"A block holds no data, only {first[:40]!r}.")


BLOCK_WITHOUT_DATA = Rule(
    Fault(
        id="retry-only-block",
        promise=Promise.EXACT,
        level=Level.SHOULD,
        title="a block of `retry`, `id` or a ping's name alone, which some readers take for an event",
        clause=f"{SSE_INTERPRET}: it dispatches nothing; openai-python, anthropic-python and httpx-sse dispatch it",
        remedy="Put `retry:` into a block with data, or leave it out; keep alive with a comment line.",
        harm="Those clients fail with a JSON error before the first word.",
    ),
    _BlockWithoutData,
)


class _IdOnForeignRoute(Finder):
    protocols = STRICT

    def on_block(self, block: Block) -> None:
        for line in block.lines:
            if line.startswith(b"id:") and line[3:].strip():
                self.saw(f"An event has an id, {line[:40].decode('utf-8', 'replace')!r}.")
                return


ID_ON_FOREIGN_ROUTE = Rule(
    Fault(
        id="id-on-foreign-route",
        promise=Promise.EXACT,
        level=Level.NOTE,
        title="an event id where the protocol has none",
        clause=f"{SSE_INTERPRET}: an id stays set; openai-python then takes each comment block for an empty event",
        remedy="Send no `id:` to clients of this protocol.",
        harm="With keep-alive comments besides, such a client fails with a JSON error in the middle of an answer.",
    ),
    _IdOnForeignRoute,
)
