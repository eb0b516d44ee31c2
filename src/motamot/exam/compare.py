"""The wire against the page: what a right reader has of an answer, and what a visitor has of it. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from motamot.errors import LimitExceeded
from motamot.exam.compare_text import first_letters, letters_of, lost
from motamot.exam.page import Heard, Look
from motamot.exam.page_faults import QUOTE, page_finding, quoted
from motamot.findings import Evidence, Finding
from motamot.sse import Decoder

__all__ = ["Compared", "compare"]

CHARACTERS = 1_000_000  # of an answer, and of an element, that are compared
EVENTS = 20_000  # of a stream that are looked at for what is no text
EVENT_BYTES = 1 << 20
ERRORS = 20  # of a stream that are looked for
HEAD = 40  # characters of an event's JSON by which it is known on a page
_BEGIN = 100  # letters of an answer by which its element is known where no word of it is
LIKE = 0.25  # an element less like the answer than this is something else,
PART, PART_WORDS = 0.8, 3  # unless so much of its words, and so many, are the answer's: then the rest was lost
LIVE_SECONDS = 1.0  # an answer that came within less is at once for everybody

_DATA = re.compile(r"^data: ?\S|data: \{", re.MULTILINE)
_PLACEHOLDERS = ("undefined", "[object Object]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the comparison gave.

    where:   the element that was read, "" where none was found.
    shown:   characters in it.
    findings: what the page does to the answer.
    reasons: what could not be judged, and why, a sentence each.
    """

    where: str = ""
    shown: int = 0
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


def compare(heard: Heard, text: str) -> Compared:
    """Compare an answer as it came with what the page shows of it.

    text: the answer as a right reader has it from the wire.
    """
    text = text[:CHARACTERS]
    payloads = _payloads(heard)
    # What carries no answer (news for the page) may be asked for as often as the page likes.
    findings = list(_once(heard)) if text or payloads else []
    if not heard.looks:
        return Compared(findings=tuple(findings), reasons=(f"what the page shows: {_unseen(heard)}",))
    findings += _wire_shown(heard.looks, text, payloads)
    if not text.strip():
        return Compared(findings=tuple(findings), reasons=("the wire held no text to look for on the page",))
    look = heard.looks[-1] if heard.named else _likest(heard, text)
    if look is None:
        why = "no element of the page is like the answer: name its place with --answer SELECTOR"
        return Compared(findings=tuple(findings), reasons=(why,))
    findings += lost(text, look.text[:CHARACTERS])
    findings += _strange(look, text)
    late, reason = _at_once(heard, look)
    return Compared(
        where=look.where, shown=len(look.text), findings=(*findings, *late), reasons=(reason,) if reason else ()
    )


def _unseen(heard: Heard) -> str:
    """Why nothing was seen of the page."""
    if heard.tape.ended_at is None:
        return "the answer had not ended when the visit did"
    return (
        "no element fits --answer" if heard.named else "the page was gone when the answer had ended, or did not respond"
    )


# --- once


def _once(heard: Heard) -> Iterator[Finding]:
    if heard.asked > 1:
        asked = heard.tape.request
        what = f"{asked.method} {asked.url}" if asked is not None else ""
        message = f"the page sent the same request {heard.asked} times for one question"
        yield page_finding("page-asked-twice", message, Evidence(quote=quoted(what)), times=heard.asked - 1)


# --- what is for the reader alone


def _payloads(heard: Heard) -> list[str]:
    """The data of the stream's events that are JSON objects."""
    decoder = Decoder(max_event_bytes=EVENT_BYTES)
    found: list[str] = []
    for piece in heard.tape.pieces:
        try:
            events = decoder.feed(piece.data)
        except LimitExceeded:  # what came before it is enough
            break
        found += [event.data for event in events if event.data.startswith("{")]
        if len(found) > EVENTS:
            break
    return found


def _is_error(payload: str) -> bool:
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    if not isinstance(told, dict):
        return False
    failed = told.get("outcome") == "failed" or str(told.get("type", "")).lower() in ("error", "run_error")
    return failed or bool(told.get("error"))


def _wire_shown(looks: Sequence[Look], text: str, payloads: Sequence[str]) -> Iterator[Finding]:
    sent = _squeezed(text)
    smallest = sorted((look for look in looks if look.text), key=lambda look: len(look.text))
    shown = [(look, look.text[:CHARACTERS], _squeezed(look.text[:CHARACTERS])) for look in smallest]
    errors = [payload for payload in dict.fromkeys(payloads) if _is_error(payload)][:ERRORS]
    seen: set[str] = set()
    for error in errors:
        wanted = _squeezed(error)[:QUOTE]
        there = next((look for look, _, squeezed in shown if wanted in squeezed), None)
        if there is not None and wanted not in sent:
            seen.add(error)
            message = f"the error object of the wire stands in {there.where} as text"
            yield page_finding("page-error-shown", message, Evidence(quote=quoted(there.text.strip())))
    # The head of an event's JSON tells it from any text; its first words are of the protocol.
    heads = {_squeezed(payload)[:HEAD] for payload in (*payloads[:3], *payloads[-3:]) if payload not in seen}
    heads = {head for head in heads if len(head) > HEAD / 3 and head not in sent}
    for look, there_text, squeezed in shown:
        if "[DONE]" in there_text and "[DONE]" not in text:
            what = "[DONE]"
        elif "data:" not in text and _DATA.search(there_text):
            what = "data:"
        elif any(head in squeezed for head in heads):
            what = "the JSON of an event"
        else:
            continue
        place = max(0, there_text.find(what) - QUOTE // 2)
        quote = there_text[place : place + QUOTE].strip()
        yield page_finding("page-wire-shown", f"{what} stands in {look.where}", Evidence(quote=quote))
        return


def _squeezed(text: str) -> str:
    return "".join(text.split())


# --- the place of the answer


def _likest(heard: Heard, text: str) -> Look | None:
    """The element whose words are most like the answer's; of equals the smallest.

    That it holds all of the answer counts for more than that it holds nothing else (F-measure with beta 2): an answer
    shown twice is more like it than half of one. What held most of its text before the question is the conversation.
    """
    fresh = [look for look in heard.looks if _before(look, heard.began) < 0.4 * len(look.text)]
    looks = fresh or heard.looks
    wanted = Counter(_words(text))
    best: Look | None = None
    best_rank = (0.0, 0)
    for look in looks:
        there = Counter(_words(look.text[:CHARACTERS]))
        both = sum((wanted & there).values())
        rank = (round(5 * both / max(1, 4 * wanted.total() + there.total()), 6), -len(look.text))
        is_part = both >= PART_WORDS and both >= PART * there.total()
        if rank > best_rank and (rank[0] > LIKE or is_part):
            best, best_rank = look, rank
    if best is None:  # not one word: they may all have run into one another
        begin = first_letters(text, _BEGIN)
        holding = [look for look in looks if begin in letters_of(look.text[:CHARACTERS])] if begin else []
        best = min(holding, key=lambda look: len(look.text), default=None)
    return best


def _before(look: Look, began: float) -> int:
    """Characters that an element held before the answer was asked for."""
    return next((length for at, length in reversed(look.samples) if at < began), 0)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


# --- strange words, and when


def _strange(look: Look, text: str) -> Iterator[Finding]:
    for word in _PLACEHOLDERS:
        if (times := look.text.count(word)) > text.count(word):
            place = max(0, look.text.find(word) - 60)
            message = f"`{word}` stands in {look.where} and did not come over the wire"
            yield page_finding(
                "page-placeholder-shown", message, Evidence(quote=look.text[place : place + 120]), times=times
            )
            break
    if (times := look.text.count("\ufffd") - text.count("\ufffd")) > 0:
        place = max(0, look.text.find("\ufffd") - 60)
        message = f"{times} characters of {look.where} are U+FFFD and were whole on the wire"
        yield page_finding(
            "page-broken-characters", message, Evidence(quote=look.text[place : place + 120]), times=times
        )


def _at_once(heard: Heard, look: Look) -> tuple[tuple[Finding, ...], str]:
    """Whether the page held back what came piece by piece; else, where that cannot be told, why."""
    reads = [(piece.at, len(piece.data)) for piece in heard.tape.pieces if piece.at is not None]
    total = sum(size for _, size in reads)
    span = reads[-1][0] - reads[0][0] if reads else 0.0
    if span < LIVE_SECONDS or len(reads) < 4 or max(size for _, size in reads) > total / 2:
        return (), "whether the page shows text as it comes: the wire brought it within a moment, or in few pieces"
    first, last = reads[0][0], reads[0][0] + 0.8 * span
    grown = [_grown(samples, heard.began + first, heard.began + last) for samples in (look.samples, heard.totals)]
    if max(grown) >= 0.2:
        return (), ""
    shown = look.samples[-1][0] - heard.began if look.samples else heard.tape.ended_at or reads[-1][0]
    message = (
        f"the wire brought the answer in {len(reads)} reads over {span:.1f} s; at {last:.1f} s, when 80 % of that time "
        f"had passed, the page showed {max(grown):.0%} of it; all of it at {shown:.1f} s"
    )
    return (page_finding("page-shown-at-once", message, Evidence(at=shown)),), ""


def _grown(samples: Sequence[tuple[float, int]], since: float, until: float) -> float:
    """Which part of its growth since a moment a text had behind it at another (seconds since the epoch)."""
    before = next((length for at, length in reversed(samples) if at < since), 0)
    after = [(at, length - before) for at, length in samples if at >= since]
    if not after or after[-1][1] <= 0:
        return 0.0
    by_then = [length for at, length in after if at <= until]
    return max(0.0, by_then[-1] / after[-1][1]) if by_then else 0.0
