"""`data:` without the standard's space, in front of text that has spaces of its own."""

from __future__ import annotations

from collections import Counter

from motamot.findings.faults.clauses import SSE_PARSE
from motamot.findings.finder import EVIDENCE_MOST, Finder, Rule, Scene
from motamot.findings.finding import Evidence, Fault, Level, Promise
from motamot.findings.known import RAW
from motamot.sse import Event

__all__ = ["SPACE_EATEN"]

_NAMES_MOST = 100  # event names that are told apart


class _SpaceEaten(Finder):
    """Raw text whose lines begin with `data:` at times, and with `data: ` at others: the writer adds no space.

    Then the space is the text's, and every reader takes it away. JSON, `[DONE]`, blank lines and events of another
    name say nothing of how the text is written.
    """

    protocols = RAW

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._bare: set[str] = set()
        self._spaced: dict[str, list[Evidence]] = {}  # the first places
        self._times: Counter[str] = Counter()

    def on_event(self, event: Event) -> None:
        if event.data.lstrip()[:1] in ("", "{", "[") or len(self._spaced) > _NAMES_MOST:
            return
        lines = self.scene.raw.removeprefix(b"\xef\xbb\xbf").splitlines()
        values = [line[5:] for line in lines if line.startswith(b"data:") and line[5:].strip()]
        if any(value[:1] != b" " for value in values):
            self._bare.add(event.event)
        places = self._spaced.setdefault(event.event, [])
        if any(value[:1] == b" " for value in values):
            self._times[event.event] += 1
            if len(places) < EVIDENCE_MOST:
                places.append(self.scene.here())

    def at_end(self) -> None:
        for name in sorted(self._bare):
            times, places = self._times[name], self._spaced[name]
            message = f"Some lines begin with `data:`, {times:,} with `data: `: that space was the text's, and is lost."
            for place in places:
                self.saw(message, place)
            for _ in range(times - len(places)):
                self.saw_nowhere(message)


SPACE_EATEN = Rule(
    Fault(
        id="space-eaten",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the first space of a piece is taken for the standard's",
        clause=f"{SSE_PARSE}: if the value begins with a space, it is removed",
        remedy="Write `data: ` with the space before every line of the text, or send the text as JSON (Spring's "
        "`ServerSentEvent` and `Flux<String>` write `data:` alone).",
        harm="Words are glued: `Hello` and ` world` arrive as `Helloworld`.",
    ),
    _SpaceEaten,
)
