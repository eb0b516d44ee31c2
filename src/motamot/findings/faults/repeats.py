"""Text that comes more than once."""

from __future__ import annotations

from motamot.findings.faults.clauses import OPENAI
from motamot.findings.finder import Finder, Rule, Scene
from motamot.findings.finding import Evidence, Fault, Level, Promise

__all__ = ["CUMULATIVE_DELTAS", "REPEATED_FULL_TEXT"]

_GROWN_MIN = 2  # "ha", "haha" may be honest; "ha", "haha", "hahaha" hardly
_LONG = 20  # characters that no honest answer begins its second piece with again
_SAME_LONG = 16  # likewise for a piece that says all of the answer again


class _CumulativeDeltas(Finder):
    """Every delta begins with all of the delta before it. Any protocol."""

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._watching = True
        self._before = ""
        self._grown = 0
        self._place: Evidence | None = None

    def on_text(self, text: str) -> None:
        if not self._watching:
            return
        before = self._before
        if not text.startswith(before):
            self._watching = False
        elif len(text) > len(before) > 0:
            self._grown += 1 if len(before) < _LONG else _GROWN_MIN
            if self._place is None:
                self._place = self.scene.here()
        self._before = text

    def at_end(self) -> None:
        if self._watching and self._grown >= _GROWN_MIN:
            self.saw("Each delta repeats the text so far.", self._place)


CUMULATIVE_DELTAS = Rule(
    Fault(
        id="cumulative-deltas",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="each delta repeats the text so far",
        clause=f"{OPENAI}: a delta holds what is new",
        remedy="Send only what was added since the last piece.",
        harm="Clients append: the answer begins again and again, «ParisParis isParis is the capital».",
    ),
    _CumulativeDeltas,
)


class _RepeatedFullText(Finder):
    """The last delta is all of the text before it."""

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._before = ""
        self._growing = True

    def on_text(self, text: str) -> None:
        if self._growing:
            self._growing = text.startswith(self._before)
            self._before = text

    def at_end(self) -> None:
        scene = self.scene
        last = scene.last_text
        if scene.truncated or scene.text_deltas < 2 or (self._growing and len(last) < _SAME_LONG):
            return
        text, told = scene.text, last.strip()
        before = text[: -len(last)]
        # To the letter, or a long one up to white space about it: " Yes." after "Yes." is an answer.
        repeated = text.endswith(last) and (before == last or (len(told) >= _SAME_LONG and before.strip() == told))
        if repeated and len(told) > 1 and "cumulative-deltas" not in scene.sightings:
            self.saw_nowhere(f"The last delta repeats the whole answer, {len(told):,} characters.")


REPEATED_FULL_TEXT = Rule(
    Fault(
        id="repeated-full-text",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the last delta repeats the whole answer",
        clause=f"{OPENAI}: a delta holds what is new",
        remedy="Leave the text out of the last piece, or send it where the protocol has a place for a whole message.",
        harm="Visitors read the answer twice.",
    ),
    _RepeatedFullText,
)
