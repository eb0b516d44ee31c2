"""A connection that stays open after the answer's own end."""

from __future__ import annotations

from motamot.findings.faults.clauses import SSE_PROCESS
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Evidence, Fault, Level, Promise
from motamot.findings.recognise import Shape

__all__ = ["OPEN_AFTER_END"]

_OPEN_MAX = 5.0  # seconds: closing takes one round trip, and some servers write their books before it


class _OpenAfterEnd(Finder):
    """Comments do not count: a server may keep alive what it should have closed."""

    def at_end(self) -> None:
        scene = self.scene
        if scene.ended is None or scene.last_event_at is None or scene.shape not in (Shape.EVENTS, Shape.LINES):
            return
        seconds = scene.over_at - scene.last_event_at if scene.over_at is not None else 0.0
        if scene.timed and seconds >= _OPEN_MAX:
            who = "until whoever recorded it left" if scene.left else "until it was closed"
            self.saw(
                f"After the end of the answer the connection stayed open for {seconds:.0f} s, {who}.",
                Evidence(at=scene.last_event_at),
            )


OPEN_AFTER_END = Rule(
    Fault(
        id="open-after-end",
        promise=Promise.LIVE,
        level=Level.NOTE,
        title="the connection stays open after the answer's end",
        clause=f"{SSE_PROCESS}: a response lasts until it is closed; its own end mark is nothing to a browser",
        remedy="End the response as soon as the end mark is written.",
        harm="Clients that read to the end of the response wait on; a browser has six connections to a host over "
        "HTTP/1.1, and this is one of them.",
    ),
    _OpenAfterEnd,
)
