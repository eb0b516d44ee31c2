"""When text came: all at once, too late, in lumps; and silence that a proxy takes for a dead connection."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from motamot.findings.faults.clauses import NGINX, OPENAI_STREAM, SSE_AUTHORING
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Evidence, Fault, Level, Promise
from motamot.findings.recognise import Shape

__all__ = ["BATCHED_DELIVERY", "BURST_DELIVERY", "LATE_FIRST_TEXT", "NO_KEEPALIVE"]

_SPAN_MIN = 1.0  # seconds the model must have taken, or the wait have lasted, to say that something was held back
_AT_ONCE = 0.05  # seconds in which a burst arrives, or 5 % of the time in which it was produced
_WHOLE_CHARS = 200  # as many characters within `_AT_ONCE` no model writes (16,000 tokens a second)
_MANY_DELTAS, _DELTA_RATE = 8, 1_500  # deltas, and as many a second, likewise
_WAIT_MIN = 1.5
_PIECES_MIN = 6  # upstream pieces from which lumps can be told
_FEWER = 2.5  # times fewer lumps than upstream pieces
_LAG_MIN = 0.3  # seconds that the first piece of a lump waited
_LUMP_GAP, _LUMP_DELTAS, _LUMP_TOTAL = 0.5, 4, 12  # without the model's times: gaps between lumps, deltas in one
_TWO_GAP = 2.0  # between two lumps: one gap alone may be the model's, a network's is shorter
_SILENCE_MAX = 30.0  # proxies close silent connections: nginx and AWS after 60 s, Cloudflare later, by plan


class _Delivery(Finder):
    """What the three share: the times, where the tape has them."""

    def at_end(self) -> None:
        scene = self.scene
        if scene.lumps and scene.timed and scene.shape in (Shape.EVENTS, Shape.LINES):  # a document comes at once
            self.judge(scene.lumps[0].at, scene.lumps[-1].last, sorted(scene.tape.upstream_at))

    def judge(self, first: float, last: float, upstream: list[float]) -> None:
        """first, last: when text arrived; upstream: when the model produced it, [] where that is not known."""
        raise NotImplementedError

    def report(self, message: str) -> None:
        """At the moment the first text arrived."""
        self.saw(message, Evidence(at=self.scene.lumps[0].at))


def _is_burst(finder: _Delivery, first: float, last: float, upstream: list[float]) -> bool:
    scene, span = finder.scene, last - first
    if len(upstream) > 1:
        made = upstream[-1] - upstream[0]
        held = first - upstream[0]
        return made >= _SPAN_MIN and span <= max(_AT_ONCE, _AT_ONCE * made) and held >= max(_SPAN_MIN, made / 2)
    began = scene.first_delta_at if scene.first_delta_at is not None else first
    if first - began >= _SPAN_MIN:  # reasoning or tool calls were seen meanwhile: it was live until the text
        return False
    if sum(lump.characters for lump in scene.lumps) >= _WHOLE_CHARS and span <= _AT_ONCE and first >= _SPAN_MIN:
        return True
    return scene.text_deltas >= _MANY_DELTAS and first >= _WAIT_MIN and span * _DELTA_RATE <= scene.text_deltas


class _BurstDelivery(_Delivery):
    """A fast model, a short answer and a slow network are not named: see the figures above."""

    def judge(self, first: float, last: float, upstream: list[float]) -> None:
        if not _is_burst(self, first, last, upstream):
            return
        deltas, span = self.scene.text_deltas, (last - first) * 1000
        made = f", which the model had produced over {upstream[-1] - upstream[0]:.1f} s" if len(upstream) > 1 else ""
        self.report(f"All text ({deltas} deltas{made}) arrived within {span:.0f} ms, {first:.1f} s after the request.")


BURST_DELIVERY = Rule(
    Fault(
        id="burst-delivery",
        promise=Promise.LIVE,
        level=Level.MUST,
        title="all text arrives at once, long after it was produced",
        clause=f"{NGINX} and compressing layers hold a stream back until it ends; live means: leave when it arrives",
        remedy="Pass each piece on as it comes; no compression and no buffering on this route, nor in a proxy.",
        harm="Visitors look at nothing, then at everything: it is no streaming at all.",
    ),
    _BurstDelivery,
)


class _LateFirstText(_Delivery):
    """Needs the model's times: an answer sliced evenly after its end looks live."""

    def judge(self, first: float, last: float, upstream: list[float]) -> None:
        del last
        if len(upstream) > 1 and upstream[-1] - upstream[0] >= _SPAN_MIN and first >= upstream[-1]:
            self.report(
                f"The first text arrived {first:.1f} s after the request, and the model had produced the last of it "
                f"at {upstream[-1]:.1f} s, the first at {upstream[0]:.1f} s."
            )


LATE_FIRST_TEXT = Rule(
    Fault(
        id="late-first-text",
        promise=Promise.LIVE,
        level=Level.MUST,
        title="the first text leaves after the last was produced",
        clause=f"{OPENAI_STREAM}: with `stream`, deltas are sent as they become available",
        remedy="Ask the model for a stream, and pass it on; do not wait for the whole answer and slice it.",
        harm="Words come one by one, for show: the wait before the first is as long as without streaming.",
    ),
    _LateFirstText,
)


class _BatchedDelivery(_Delivery):
    """Fewer lumps than pieces were produced. Jitter, and a model that writes in lumps itself, are not named."""

    def judge(self, first: float, last: float, upstream: list[float]) -> None:
        if _is_burst(self, first, last, upstream):
            return
        lumps = self.scene.lumps
        if len(upstream) < _PIECES_MIN:
            self._judge_alone()
            return
        gaps = [later - earlier for earlier, later in pairwise(upstream)]
        near = min(_AT_ONCE, median(gaps) / 3)
        arrived = _groups([(lump.at, lump.last, lump.deltas) for lump in lumps], near)
        produced = _groups([(at, at, 1) for at in upstream], near)
        if not 1 < len(arrived) * _FEWER <= len(produced) or first >= upstream[-1]:
            return
        lag = _longest_wait(arrived, upstream)
        if lag >= _LAG_MIN:
            self.report(
                f"{self.scene.text_deltas} deltas arrived in {len(arrived)} lumps; the model had produced them at "
                f"{len(produced)} moments, and the longest wait was {lag:.1f} s."
            )

    def _judge_alone(self) -> None:
        """Without the model's times: many deltas in few lumps, long apart."""
        scene = self.scene
        groups = _groups([(lump.at, lump.last, lump.deltas) for lump in scene.lumps], _AT_ONCE)
        if scene.text_deltas < _LUMP_TOTAL or len(groups) < 2:
            return
        if len(groups) == 2:
            self._judge_two(*groups)
            return
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(groups)]
        if median(gaps) >= _LUMP_GAP and median(group[2] for group in groups) >= _LUMP_DELTAS:
            self.report(f"{scene.text_deltas} deltas arrived in {len(groups)} lumps, {median(gaps):.1f} s apart.")

    def _judge_two(self, one: tuple[float, float, int], two: tuple[float, float, int]) -> None:
        """Two lumps are named where each came at once: a live answer that pauses is no lump before and after.

        What came between, a tool's call or its result, explains the pause.
        """
        scene, gap = self.scene, two[0] - one[1]
        if scene.deltas != scene.text_deltas or gap < _TWO_GAP:
            return
        if all(last - first <= _AT_ONCE and count >= _LUMP_DELTAS for first, last, count in (one, two)):
            self.report(f"{scene.text_deltas} deltas arrived in 2 lumps, {gap:.1f} s apart.")


def _groups(moments: list[tuple[float, float, int]], near: float) -> list[tuple[float, float, int]]:
    """Moments (first, last, how many), those put together that follow each other within `near` seconds."""
    groups: list[tuple[float, float, int]] = []
    for first, last, count in moments:
        if groups and first - groups[-1][1] <= near:
            groups[-1] = (groups[-1][0], last, groups[-1][2] + count)
        else:
            groups.append((first, last, count))
    return groups


def _longest_wait(arrived: list[tuple[float, float, int]], upstream: list[float]) -> float:
    """How long the first delta of a lump had waited at most, pieces and deltas matched by their share."""
    total = sum(count for _, _, count in arrived)
    waits, done = [0.0], 0
    for at, _, count in arrived:
        waits.append(at - upstream[done * len(upstream) // total])
        done += count
    return max(waits)


BATCHED_DELIVERY = Rule(
    Fault(
        id="batched-delivery",
        promise=Promise.LIVE,
        level=Level.SHOULD,
        title="text arrives in a few lumps",
        clause=f"{NGINX}: a proxy passes on what it has buffered when the buffer is full",
        remedy="Flush each piece; `X-Accel-Buffering: no`, no compression, no minimum size in proxies of the way.",
        harm="The answer stands still, then jumps by a paragraph.",
    ),
    _BatchedDelivery,
)


class _NoKeepalive(Finder):
    def at_end(self) -> None:
        seconds, since, offset = self.scene.silence
        if self.scene.timed and self.scene.shape is Shape.EVENTS and seconds >= _SILENCE_MAX:
            self.saw(
                f"Nothing came for {seconds:.0f} s, from {since:.1f} s after the request on, not even a comment.",
                Evidence(offset=offset, at=since),
            )


NO_KEEPALIVE = Rule(
    Fault(
        id="no-keepalive",
        promise=Promise.LIVE,
        level=Level.SHOULD,
        title="a long silence without a keep-alive",
        clause=f"{SSE_AUTHORING}: proxies drop silent connections; send a comment every 15 seconds or so",
        remedy="While nothing comes from the model, send a comment line (`:` LF) every 15 s.",
        harm="Proxies close such a connection (nginx after 60 s, Cloudflare after about 100 s or more, by plan): the "
        "answer is cut.",
    ),
    _NoKeepalive,
)
