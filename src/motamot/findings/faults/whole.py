"""The stream against the same answer in one piece."""

from __future__ import annotations

from motamot.findings.difference import Difference, Place, difference
from motamot.findings.faults.clauses import SSE_INTERPRET
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Evidence, Fault, Level, Promise

__all__ = ["WHOLE_DIFFERS"]

_UNKNOWN = frozenset({"event-stream", "json-lines", "json"})
_TELLING = 40  # characters; in a shorter text an error or a greeting may stand for the answer


class _WholeDiffers(Finder):
    """Two answers to one question are not named: most of each is not in the other."""

    def at_end(self) -> None:
        scene = self.scene
        if scene.whole is None or scene.truncated or scene.over is not None:
            return
        if not scene.deltas and scene.bytes and scene.protocol in _UNKNOWN:
            return  # it may well be in there, under a name that nobody knows
        whole, text = _lf(scene.whole), _lf(scene.text)
        if whole == text:
            return
        found = difference(whole, text)
        if _are_two_answers(whole, text, found):
            scene.other_answer = True
            return
        place = _first(found)
        where = f"; first at character {place.at:,}: {place.original!r} became {place.got!r}" if place else ""
        self.saw(
            f"The stream gives {len(text):,} characters, the whole answer has {len(whole):,}: {found.told}{where}.",
            Evidence(quote=place.got if place else ""),
        )


def _are_two_answers(whole: str, text: str, found: Difference) -> bool:
    """Whether most of each is not in the other: a model asked twice answers twice; what a wire does loses or adds."""
    if min(len(whole), len(text)) < _TELLING:
        return False
    moved = found.reordered.characters
    return (found.lost.characters + moved) * 2 > len(whole) and (found.added.characters + moved) * 2 > len(text)


def _first(found: Difference) -> Place | None:
    """Where the two differ first."""
    parts = (found.glued, found.lost, found.doubled, found.reordered, found.added, found.spacing)
    places = [place for part in parts for place in part.places[:1]]
    return min(places, default=None)


def _lf(text: str) -> str:
    """With LF for each line end: an event stream of raw text cannot carry another, and no reader sees one."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


WHOLE_DIFFERS = Rule(
    Fault(
        id="whole-differs",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the stream is not the answer as the server gives it whole",
        clause=f"{SSE_INTERPRET}: data of one event joined with LF, events in order, are the text that was written",
        remedy="Look at what cuts the answer into pieces (pieces put end to end must give it back), at line breaks, "
        "and at the end.",
        harm="Lists become one bullet, words are glued, lines are missing.",
    ),
    _WholeDiffers,
)
