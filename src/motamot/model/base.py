"""What every kind of completion has in common while it is put together: text, reasoning, reasons, usage, the turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace

from motamot.answer import AnswerEvent, Reasoning, Source, SurrogateJoiner, Text, Usage
from motamot.errors import UpstreamError
from motamot.limits import Limits
from motamot.model.fragments import ToolFragments
from motamot.model.think import ThinkSplitter
from motamot.model.turn import Deviation, ToolCall, Turn
from motamot.model.words import FINISH_WORDS, Note, brief, usage_of, worse_finish

__all__ = ["Assembly", "Dialect"]

_REPEATS_MIN = 3  # deltas before a pattern counts: "ha", "haha" may be honest
_MODEL_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server is known to do, so that it may be put right. By default nothing is: text is text.

    cumulative: each delta repeats everything so far (text, reasoning and arguments). Not guessed, because "ha",
                "haha" may be honest; without it, the pattern is reported.
    think_tags: a `<think>` block at the start of the answer is reasoning. Off, because nothing on the wire tells the
                template's tag from one the model was asked to write, and a server that knows its template can
                send `reasoning_content` itself.
    """

    cumulative: bool = False
    think_tags: bool = False


class Assembly(ABC):
    """One completion, put together from the bytes of its response. No sockets, clocks or tasks.

    Feed it what arrives, `close` it when the body has ended or nobody wants more, then take the `turn`. Where the
    body was cut never changes the result. Nothing that comes raises: it ends up in `turn().error`.

    deltas: how many deltas of text, reasoning or tool calls have come; comments and pings do not count.
    """

    __slots__ = (
        "_closed",
        "_clue",
        "_deltas_max",
        "_deviations",
        "_dialect",
        "_done",
        "_end_mark",
        "_error",
        "_finish",
        "_finish_word",
        "_joiner",
        "_left",
        "_limits",
        "_model",
        "_reasoning_joiner",
        "_reasonings",
        "_repeats",
        "_started",
        "_texts",
        "_think",
        "_tools",
        "_usage",
        "_watch",
        "_went_on",
        "_whole_reasoning",
        "_whole_text",
        "deltas",
    )

    def __init__(self, *, dialect: Dialect | None = None, limits: Limits | None = None) -> None:
        self._dialect = dialect or Dialect()
        self._limits = limits or Limits()
        self.deltas = 0
        self._started = False
        self._closed = False
        self._done = False
        self._end_mark = False  # [DONE], message_stop, "done": true
        self._finish: str | None = None
        self._finish_word = ""
        self._went_on = False  # deltas came after the finish reason
        self._error: UpstreamError | None = None
        self._clue = ""  # something that explains an early end, should it come to that
        self._usage: Usage | None = None
        self._model = ""
        self._deviations: dict[str, str] = {}
        self._watch: Note | None = None
        self._tools = self._fragments()
        self._left = self._limits.answer_bytes
        self._deltas_max = self._limits.answer_events
        self._texts: list[str] = []
        self._joiner = SurrogateJoiner()
        self._reasonings: list[str] = []
        self._reasoning_joiner = SurrogateJoiner()
        self._think = ThinkSplitter() if self._dialect.think_tags else None
        self._repeats = _Repeats()
        self._whole_text = _Whole() if self._dialect.cumulative else None
        self._whole_reasoning = _Whole() if self._dialect.cumulative else None

    @abstractmethod
    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Take the next bytes of the body, any slice of it.

        Returns: `Text` and `Reasoning` events in order, the moment they are known; none empty, all encodable.
        """

    def close(self) -> list[AnswerEvent]:
        """The body has ended, cleanly or not, or no more of it is wanted. Returns what was held back."""
        if self._closed:
            return []
        out: list[AnswerEvent] = []
        self._end_body(out)
        self._closed = True
        self._flush(out)
        return out

    @property
    def done(self) -> bool:
        """Nothing more is wanted: the end mark has come, or an error. Do not wait for the end of the body."""
        return self._done

    @property
    def finished(self) -> bool:
        """A finish reason has come: usage and the end mark follow soon or never.

        False again once more of the answer comes: some servers send a reason with every chunk, and whoever stopped
        waiting at the first would take a shorter answer for a complete one.
        """
        return self._finish is not None and not self._went_on

    @property
    def noted(self) -> frozenset[str]:
        """The kinds of deviations met so far; what only the whole turn shows is not among them."""
        return frozenset(self._deviations)

    def watch(self, note: Note) -> None:
        """Tell `note` of each deviation the moment it is met, every time: who feeds event by event knows its place."""
        self._watch = note

    def turn(self, *, error: UpstreamError | None = None) -> Turn:
        """The completion as far as it has come; a snapshot before `close`, the turn after it.

        error: what the transport says (reset, timeout, …). It counts only where the completion had not ended:
               an answer whose reason was seen is whole, however its connection was closed.
               Usage with source `unknown` holds only part of the counts, or a running total.
        """
        deviations = dict(self._deviations)
        note = deviations.setdefault
        finish, failure = self._ending(error)
        calls = self._tools.calls(note)
        if calls and failure is None and finish in {"stop", "unknown"}:
            # tool-called-but-finish-stop; Ollama has no other word for it
            if self._stop_ends_tools:
                note("finish-mismatch", f"tools were called, and the finish reason was {self._finish_word}")
            finish = "tool_calls"
        elif finish == "tool_calls" and not calls:
            note("finish-mismatch", "the finish reason was tool_calls, and no tool was called")
            finish = "unknown"
        if finish != "tool_calls":
            calls = tuple(_not_run(call, finish) for call in calls)
        if self._closed and (failure is None or finish == "incomplete"):
            self._note_missing(note)
        last = self._texts[-1] if self._texts else ""
        text = self._joined(self._texts)
        self._repeats.report(note, text, last)
        return Turn(
            finish=finish,
            text=text,
            reasoning=self._joined(self._reasonings),
            tool_calls=calls,
            usage=self._usage,
            error=failure,
            deviations=tuple(Deviation(kind=kind, note=sentence) for kind, sentence in deviations.items()),
            model=self._model,
            started=self._started,
        )

    # What a kind of completion adds.

    _stop_ends_tools = True  # a `stop` after tool calls is a deviation in this dialect
    _end_mark_name = "[DONE]"

    @abstractmethod
    def _end_body(self, out: list[AnswerEvent]) -> None:
        """The body has ended: look at what is left of it."""

    def _fragments(self, *, by_the_book: bool = True) -> ToolFragments:
        cumulative, depth = self._dialect.cumulative, self._limits.json_depth
        return ToolFragments(self._note, cumulative=cumulative, by_the_book=by_the_book, depth=depth)

    # What kinds of completion call.

    def _note(self, kind: str, sentence: str) -> None:
        self._deviations.setdefault(kind, sentence)
        if self._watch is not None:
            self._watch(kind, sentence)

    def _add_text(self, delta: str, out: list[AnswerEvent]) -> None:
        """One delta of the answer's text. This is the hot path: it runs once for every token."""
        self._count_delta()
        if self._repeats.watching:
            self._repeats.see(delta)
        if self._whole_text is not None:
            delta = self._whole_text.rest(delta, self._note)
        text = self._joiner.feed(delta)
        if self._think is not None:
            self._put_pieces(self._think.feed(text), out)
        elif text and self._room(text):
            self._texts.append(text)
            out.append(Text(text))

    def _add_reasoning(self, delta: str, out: list[AnswerEvent]) -> None:
        """One delta of reasoning."""
        self._count_delta()
        if self._whole_reasoning is not None:
            delta = self._whole_reasoning.rest(delta, self._note)
        self._put_pieces([(True, self._reasoning_joiner.feed(delta))], out)

    def _add_tools(self, entries: object) -> None:
        """The `tool_calls` of one delta."""
        self._count_delta()
        self._spend(self._tools.add(entries))
        if len(self._tools) > self._limits.tool_calls_per_turn:
            maximum = self._limits.tool_calls_per_turn
            self._fail("The model asked for too many tools at once.", code="limit", detail=f"over {maximum} tool calls")

    def _add_reason(self, word: object) -> None:
        """A finish reason in the provider's word; null and "" are none."""
        if word is None:
            return
        if isinstance(word, str) and word.strip().lower() in {"", "null", "none"}:
            self._note("finish-empty-string", f"the finish reason was {word!r} instead of null")
            return
        reason = FINISH_WORDS.get(word.strip().lower()) if isinstance(word, str) else None
        if reason is None:
            reason = "unknown"
            self._note("finish-unknown-word", f"the finish reason was {brief(word)}")
        if self._finish is not None and self._finish != reason:
            self._note("finish-repeated", f"the finish reason was {self._finish}, then {reason}")
            reason = worse_finish(self._finish, reason)
        self._finish = reason
        self._finish_word = brief(word)

    def _add_usage(self, report: object) -> bool:
        """A usage report: the last one of a completion counts, never a sum. Gives whether there was one."""
        usage = usage_of(report, self._note)
        if usage is None:
            return False
        if self._usage is None or usage.prompt_tokens or usage.completion_tokens:  # zeros replace no counts
            self._usage = usage
        return True

    def _add_model(self, name: object) -> None:
        if isinstance(name, str) and not self._model:
            self._model = name[:_MODEL_CHARS].encode("utf-8", "replace").decode()

    def _fail(self, message: str, *, code: str = "upstream_error", detail: str | None = None) -> None:
        """The completion is broken, and nothing that follows is wanted. The first error counts."""
        if self._error is None:
            self._error = UpstreamError(message, code=code, detail=detail)
        self._done = True

    def _fail_event_limit(self) -> None:
        self._fail(
            "The model sent more at once than is taken.",
            code="limit",
            detail=f"an event of more than {self._limits.event_bytes} bytes",
        )

    # Inside.

    def _count_delta(self) -> None:
        self.deltas += 1
        if self._finish is not None:
            self._went_on = True
            self._note("content-after-finish", "more of the answer came after the finish reason")

    def _room(self, text: str) -> bool:
        return self._spend(len(text) if text.isascii() else len(text.encode()))

    def _spend(self, size: int) -> bool:
        """Whether so much more may be kept; what does not fit is left out whole, and the completion has failed."""
        self._left -= size
        if self._left >= 0 and self.deltas <= self._deltas_max:
            return True
        limit = f"{self._limits.answer_bytes} bytes or {self._deltas_max} deltas"
        self._fail("The answer was longer than is allowed.", code="limit", detail=f"over {limit}")
        return False

    def _put_pieces(self, pieces: list[tuple[bool, str]], out: list[AnswerEvent]) -> None:
        for is_reasoning, text in pieces:
            if not text or not self._room(text):
                continue
            if is_reasoning:
                self._reasonings.append(text)
                out.append(Reasoning(text))
            else:
                self._texts.append(text)
                out.append(Text(text))

    def _flush(self, out: list[AnswerEvent]) -> None:
        """What was held back in case its other half came."""
        self._put_pieces([(True, self._reasoning_joiner.close())], out)
        held = self._joiner.close()
        if self._think is None:
            self._put_pieces([(False, held)], out)
        else:
            self._put_pieces(self._think.feed(held) + self._think.close(), out)

    def _joined(self, parts: list[str]) -> str:
        """The parts as one text. All but the last are kept as one: the next snapshot joins only what came since."""
        if len(parts) > 2:
            parts[:-1] = ["".join(parts[:-1])]
        return "".join(parts)

    def _ending(self, error: UpstreamError | None) -> tuple[str, UpstreamError | None]:
        """The finish word, and the error where it is `error` or `incomplete`."""
        if self._error is not None:
            return "error", self._error
        if self._finish == "error":
            detail = f"finish reason {self._finish_word}"
            return "error", UpstreamError("The model's server broke the answer off.", detail=detail)
        if self._finish is not None:
            return self._finish, None
        said = self._explained()
        if said is not None:
            return "error", said
        if self._end_mark:
            return "unknown", None
        clue = self._clue_of_end()
        if error is None:
            detail = clue or f"the stream ended with neither a finish reason nor {self._end_mark_name}"
            error = UpstreamError("The model's answer was cut off.", code="upstream_cut", detail=detail)
        elif clue and error.detail and clue not in error.detail:
            error = copy(error)
            error.detail = f"{error.detail}; {clue}"
        return ("incomplete" if error.code == "upstream_cut" else "error"), error

    def _clue_of_end(self) -> str:
        """What may explain that the completion broke off, for the operator."""
        return self._clue

    def _explained(self) -> UpstreamError | None:
        """An error that was told in a place that counts only if the completion did not finish."""
        return None

    def _note_missing(self, note: Note) -> None:
        if self._finish is None:
            note("finish-missing", "no finish reason came")
        if not self._end_mark:
            note("done-missing", f"{self._end_mark_name} did not come")
        if self._usage is None or self._usage.source is not Source.REPORTED:
            note("usage-missing", "the tokens were not reported")


def _not_run(call: ToolCall, finish: str) -> ToolCall:
    """A call of a turn that did not end by asking for tools."""
    if call.problem is not None:
        return call
    reason = "the token limit cut the turn" if finish == "length" else f"the turn ended as {finish}"
    return replace(call, problem=f"not run: {reason}")


class _Repeats:
    """Sees whether deltas repeat the text so far, or the last one all of it. It reports and never repairs."""

    __slots__ = ("_before", "_grown", "_seen", "watching")

    def __init__(self) -> None:
        self.watching = True  # until a delta does not begin with the one before
        self._before = ""
        self._grown = 0
        self._seen = 0

    def see(self, delta: str) -> None:
        if not delta:
            return
        before, self._before = self._before, delta
        self._seen += 1
        if not delta.startswith(before):
            self.watching = False
            self._before = ""
        elif len(delta) > len(before) > 0:
            self._grown += 1

    def report(self, note: Note, text: str, last: str) -> None:
        if self.watching:
            if self._seen >= _REPEATS_MIN and self._grown >= _REPEATS_MIN - 1:
                note("cumulative-deltas", "each delta repeats the text so far")
        elif len(last) > 1 and text == last * 2:
            note("repeated-full-text", "the last delta repeats the whole answer")


class _Whole:
    """For a dialect whose deltas hold everything so far: takes off what came before."""

    __slots__ = ("_so_far",)

    def __init__(self) -> None:
        self._so_far = ""

    def rest(self, delta: str, note: Note) -> str:
        """The new part of `delta`; a delta that does not go on from the last is new as a whole."""
        if delta and "\ud800" <= delta[-1] <= "\udbff":
            delta = delta[:-1]  # half a character: the next delta brings it whole
        if not delta:
            return ""
        if delta.startswith(self._so_far):
            rest = delta[len(self._so_far) :]
            if self._so_far:
                note(
                    "cumulative-deltas", "each delta repeats the text so far; the dialect says so, and it was put right"
                )
            self._so_far = delta
            return rest
        note("cumulative-broken", "a delta of a cumulative dialect does not repeat the text so far")
        self._so_far += delta
        return delta
