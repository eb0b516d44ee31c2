"""The text of an answer, exactly, however it was cut into deltas and bytes."""

from __future__ import annotations

import json
import sys
import timeit
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from motamot.answer import AnswerEvent, Reasoning, Text
from motamot.limits import Limits
from motamot.model.assembly import Dialect, Kind, assembly_for
from motamot.model.openai import OpenAIAssembly
from motamot.sse import Event
from tests.model.assembling import DONE, HEAD, USAGE, answer, assemble, chunk, every_way, feed, said, sse

AWKWARD = [
    "\x00",
    "\ufeff",
    "\u2028",
    "\u2029",
    "\x85",
    "\r",
    "\n",
    "\r\n",
    "\x0b",
    "\x1c",
    " ",
    "é",
    "日",
    "😀",
    "👩🏽‍🦽",
]


@pytest.mark.parametrize("mark", AWKWARD, ids=ascii)
def test_every_character_is_text(mark: str) -> None:
    assembled = every_way(answer(said(mark, "a" + mark, mark + mark)))
    assert assembled.text == mark + "a" + mark + mark + mark
    assert assembled.events == [Text(mark), Text("a" + mark), Text(mark + mark)]


def cut_up(text: str, cuts: list[int]) -> list[str]:
    """`text` as deltas, cut between UTF-16 units: halves of a character become deltas of their own."""
    units = text.encode("utf-16-le", "surrogatepass")
    places = sorted({2 * (cut % (len(units) // 2 + 1)) for cut in cuts} | {0, len(units)})
    return [units[start:end].decode("utf-16-le", "surrogatepass") for start, end in pairwise(places)]


@given(
    text=st.text(), deltas=st.lists(st.integers(0, 500), max_size=6), reads=st.lists(st.integers(0, 5000), max_size=8)
)
def test_any_text_survives_any_cut_into_deltas_and_bytes(text: str, deltas: list[int], reads: list[int]) -> None:
    parts = cut_up(text, deltas)
    body = answer(*[chunk({"content": part}) for part in parts]).encode()
    assembled = assemble(body, cuts=sorted(read % (len(body) + 1) for read in reads))
    assert assembled.text == text
    assert assembled.turn.finish == "stop"


@given(
    text=st.text(), deltas=st.lists(st.integers(0, 500), max_size=6), reads=st.lists(st.integers(0, 5000), max_size=8)
)
def test_any_text_survives_as_raw_utf_8(text: str, deltas: list[int], reads: list[int]) -> None:
    places = sorted({cut % (len(text) + 1) for cut in deltas} | {0, len(text)})
    parts = [text[start:end] for start, end in pairwise(places)]
    events = [
        sse(json.dumps({"choices": [{"index": 0, "delta": {"content": part}}]}, ensure_ascii=False)) for part in parts
    ]
    body = answer(*events).encode()
    assembled = assemble(body, cuts=sorted(read % (len(body) + 1) for read in reads))
    assert assembled.text == text


def test_a_half_character_that_stays_alone_becomes_a_replacement_character() -> None:
    assert every_way(answer(said("a\ud83d"))).text == "a\ufffd"
    assert every_way(answer(said("a\ud83d", "b"))).text == "a\ufffdb"
    assert every_way(answer(said("\ude00b"))).text == "\ufffdb"


def test_a_half_character_waits_only_for_the_next_delta() -> None:
    assembly = assembly_for("openai-chat")
    assembly.feed(said("Hello", " there").encode())
    assert assembly.feed(said("\ud83d").encode()) == []
    assert assembly.feed(said("\ude00!").encode()) == [Text("😀!")]


def test_text_goes_on_the_moment_its_event_is_whole() -> None:
    assembly = assembly_for("openai-chat")
    first = said("Hel").encode()
    assert assembly.feed(first[:-1]) == []
    assert assembly.feed(first[-1:]) == [Text("Hel")]
    assert assembly.feed(said("lo").encode()) == [Text("lo")]
    assert assembly.turn().text == "Hello"  # a snapshot, before the end


def test_only_deltas_count_as_deltas() -> None:
    assembly = assembly_for("openai-chat")
    for quiet in (": ping\n\n", chunk({"role": "assistant", "content": ""}), chunk({"content": None}), sse("ping")):
        assembly.feed(quiet.encode())
        assert assembly.deltas == 0
    for number, loud in enumerate((said("a"), chunk({"reasoning": "b"}), chunk({"tool_calls": [{"id": "t"}]})), 1):
        assembly.feed(loud.encode())
        assert assembly.deltas == number


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}],
        [{"type": "output_text", "text": {"value": "Hello"}}],
        ["Hel", "lo"],
        {"type": "text", "text": "Hello"},
        [{"type": "refusal", "refusal": "Hello"}, {"type": "image_url", "image_url": {"url": "x"}}],
    ],
)
def test_content_in_parts_is_text(content: object) -> None:
    assembled = every_way(answer(said(content)))
    assert assembled.text == "Hello"
    assert "content-not-string" in assembled.kinds


def test_a_number_as_content_is_the_token_it_was() -> None:
    assembled = every_way(answer(said("1 + 1 = ", 2, True)))
    assert assembled.text == "1 + 1 = 2true"
    assert "content-not-string" in assembled.kinds


def test_content_nested_without_end_does_no_harm() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    assert every_way(answer(said("a", deep))).turn.finish == "stop"


def test_a_refusal_is_what_the_model_says_to_the_visitor() -> None:
    assembled = every_way(answer(chunk({"refusal": "I cannot "}), chunk({"refusal": "help."})))
    assert assembled.text == "I cannot help."


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "why"},
        {"reasoning": "why"},
        {"reasoning": "why", "reasoning_content": "why"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}]},
    ],
)
def test_reasoning_is_kept_apart(delta: object) -> None:
    assembled = every_way(answer(chunk(delta), said("so")))
    assert assembled.events == [Reasoning("why"), Text("so")]
    assert (assembled.turn.text, assembled.turn.reasoning) == ("so", "why")


def test_reasoning_and_text_of_one_delta_come_in_that_order() -> None:
    assembled = every_way(answer(chunk({"content": "so", "reasoning_content": "why"})))
    assert assembled.events == [Reasoning("why"), Text("so")]


def test_text_in_the_finish_chunk_comes_before_the_reason() -> None:
    assembled = every_way(said("Hel") + chunk({"content": "lo"}, "length") + DONE)
    assert (assembled.text, assembled.turn.finish) == ("Hello", "length")
    assert "content-after-finish" not in assembled.kinds


def test_text_after_the_reason_is_kept_and_reported() -> None:
    assembled = every_way(said("Hel") + chunk({}, "stop") + said("lo") + DONE)
    assert (assembled.text, assembled.turn.finish) == ("Hello", "stop")
    assert "content-after-finish" in assembled.kinds


def test_text_after_the_end_mark_is_none() -> None:
    assert every_way(answer(said("Hi")) + said(" there")).text == "Hi"


# A message instead of deltas, several choices, unknown things.


def test_a_whole_message_in_a_stream_is_the_answer() -> None:
    message = {"role": "assistant", "content": "Hello", "tool_calls": None}
    body = sse({**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}) + DONE
    assembled = every_way(body)
    assert assembled.text == "Hello"
    assert "delta-missing" in assembled.kinds


@pytest.mark.parametrize("delta", [{"delta": {}}, {"delta": {"content": ""}}, {}])
def test_a_whole_message_behind_its_deltas_is_not_shown_again(delta: dict[str, Any]) -> None:
    last = {"index": 0, **delta, "message": {"role": "assistant", "content": "Hello!"}, "finish_reason": "stop"}
    assembled = every_way(said("Hel", "lo") + sse({**HEAD, "choices": [last]}) + DONE)
    assert assembled.text == "Hello!"  # what the deltas had left out is not lost
    assert "repeated-full-text" in assembled.kinds


def test_text_instead_of_a_delta_is_text() -> None:
    body = sse({"object": "text_completion", "choices": [{"index": 0, "text": "Hello", "finish_reason": None}]})
    assembled = every_way(body + chunk({}, "stop") + DONE)
    assert assembled.text == "Hello"
    assert "delta-missing" in assembled.kinds


def test_only_the_first_choice_is_the_answer() -> None:
    other = {**HEAD, "choices": [{"index": 1, "delta": {"content": "Bye"}, "finish_reason": "length"}]}
    both = {**HEAD, "choices": [{"index": 1, "delta": {"content": "Bye"}}, {"index": 0, "delta": {"content": "lo"}}]}
    assembled = every_way(answer(sse(other), said("Hel"), sse(both)))
    assert (assembled.text, assembled.turn.finish) == ("Hello", "stop")
    assert "choices-several" in assembled.kinds


@pytest.mark.parametrize(
    "noise",
    [
        sse({"type": "ping"}),
        sse({**HEAD, "choices": []}),
        sse({**HEAD, "choices": None}),
        sse({**HEAD, "choices": [None, 3]}),
        sse("null"),
        sse({**HEAD, "obfuscation": "x" * 40, "choices": [{"index": 0, "delta": {}, "logprobs": None}]}),
        sse('{"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"logprob":-Infinity}]}}]}'),
        sse({"choices": [{"delta": {"content": None, "audio": {"id": "a"}}}]}),
        sse('{"created":' + "9" * 5000 + ',"choices":[]}'),
        "event: tool.progress\n" + sse({"label": "searching"}),
        "event: status\n" + sse("searching"),
        "data\n\n",
        "data: \n\n",
        ": comment\n\n",
        sse(": OPENROUTER PROCESSING"),
        sse("keep-alive"),
        "id: 5\nretry: 10\n\n",
        "event: ping\n\n",
    ],
    ids=lambda value: value[:50],
)
def test_what_is_no_text_is_not_shown_and_harms_nothing(noise: str) -> None:
    assembled = every_way(answer(said("Hel"), noise, said("lo")))
    assert (assembled.text, assembled.turn.finish) == ("Hello", "stop")


def test_a_chunk_under_an_event_name_is_a_chunk_all_the_same() -> None:
    """No client in the field looks at the name: text lost here would be lost by us alone."""
    assert every_way(answer("event: chunk\n" + said("Hello"))).text == "Hello"


def test_the_name_of_the_model_is_the_first_that_is_said() -> None:
    azure = sse({"id": "", "model": "", "choices": []})
    named = sse({**HEAD, "model": "m-2", "choices": [{"index": 0, "delta": {"content": "a"}}]})
    assert every_way(azure + named + said("b")).turn.model == "m-2"
    nameless = [sse({"choices": [{"index": 0, "delta": {"content": str(n)}}]}) for n in range(20)]
    assert every_way("".join(nameless)).turn.model == ""


# Repeats.


def test_cumulative_deltas_are_reported_and_left_alone() -> None:
    body = answer(said("Paris", "Paris is", "Paris is the capital"))
    assembled = every_way(body)
    assert assembled.text == "ParisParis isParis is the capital"
    assert "cumulative-deltas" in assembled.kinds


def test_cumulative_deltas_are_put_right_where_the_dialect_says_so() -> None:
    deltas = ["Paris", "Paris", "Paris is \ud83d", "Paris is 😀 the", "Paris is 😀 the capital"]
    thoughts = [chunk({"reasoning_content": text}) for text in ("be", "because")]
    assembled = every_way(answer(*thoughts, said(*deltas)), dialect=Dialect(cumulative=True))
    assert assembled.text == "Paris is 😀 the capital"
    assert assembled.reasoning == "because"


def test_a_delta_that_breaks_a_cumulative_dialect_is_not_lost() -> None:
    assembled = every_way(answer(said("Paris", "Paris is", " the")), dialect=Dialect(cumulative=True))
    assert assembled.text == "Paris is the"
    assert "cumulative-broken" in assembled.kinds


@pytest.mark.parametrize("deltas", [["ha", "haha"], ["ha", "ha", "ha"], ["a", "ab", "b"], ["no", " no", " no no"]])
def test_honest_repeats_are_not_touched_and_not_reported(deltas: list[str]) -> None:
    assembled = every_way(answer(said(*deltas)))
    assert assembled.text == "".join(deltas)
    assert not assembled.kinds & {"cumulative-deltas", "repeated-full-text"}


def test_a_last_delta_that_repeats_the_whole_answer_is_reported() -> None:
    assembled = every_way(answer(said("Hel", "lo", " you", "Hello you")))
    assert assembled.text == "Hello youHello you"
    assert "repeated-full-text" in assembled.kinds


# Reasoning in tags.

THOUGHT = "<think>Count <b>it</b>.</think>\n\nThree </think> <think>."


@given(cuts=st.lists(st.integers(0, len(THOUGHT)), max_size=8))
def test_think_tags_are_reasoning_where_the_dialect_says_so_however_they_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(THOUGHT)]
    body = answer(said(*[THOUGHT[start:end] for start, end in pairwise(places)]))
    assembled = assemble(body, dialect=Dialect(think_tags=True))
    assert assembled.reasoning == "Count <b>it</b>."
    assert assembled.text == "\n\nThree </think> <think>."
    assert assemble(body).text == THOUGHT


@pytest.mark.parametrize(
    ("text", "answer_text", "reasoning"),
    [
        ("\n <think>a</think>b", "\n b", "a"),
        ("Use <think>a</think> tags", "Use <think>a</think> tags", ""),
        ("<thin", "<thin", ""),
        ("<thinking>a", "<thinking>a", ""),
        ("<think>a</thin", "", "a</thin"),
        ("<think>a", "", "a"),
        ("<think></think>", "", ""),
        ("<", "<", ""),
        ("   ", "   ", ""),
    ],
)
def test_only_a_block_at_the_start_is_reasoning(text: str, answer_text: str, reasoning: str) -> None:
    for deltas in ([text], list(text)):
        assembled = every_way(answer(said(*deltas)), dialect=Dialect(think_tags=True))
        assert (assembled.text, assembled.reasoning) == (answer_text, reasoning)


def test_what_cannot_be_a_tag_is_not_held_back() -> None:
    assembly = assembly_for("openai-chat", dialect=Dialect(think_tags=True))
    assert assembly.feed(said("<b").encode()) == [Text("<b")]
    assert assembly.feed(said("<think>").encode()) == [Text("<think>")]


# Both ways through.


class Tolerant(OpenAIAssembly):
    """Takes no short cut."""

    def _take(self, data: bytes | str, out: list[AnswerEvent]) -> None:
        self._event(Event(data=data if isinstance(data, str) else data.decode("utf-8", "replace")), out)
        self._settle()


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.text(max_size=5) | st.integers(-1, 2) | st.booleans() | st.just([]) | st.just({})
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.text(max_size=8) | VALUES,
        "reasoning_content": VALUES,
        "reasoning": VALUES,
        "refusal": VALUES,
        "tool_calls": st.none() | st.just([]) | st.just([{"index": 0, "id": "t", "function": {"name": "f"}}]),
        "function_call": st.none() | st.just({"name": "f"}),
        "role": VALUES,
    },
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 0, 0, 1, None, "0", 0.0, True]),
        "delta": DELTAS | VALUES,
        "finish_reason": st.sampled_from([None, None, "", "stop", "length", 3]),
        "message": st.none() | st.fixed_dictionaries({"content": VALUES}),
        "usage": st.none() | st.just(USAGE),
        "error": st.sampled_from([None, None, {"message": "no"}]),
        "text": VALUES,
    },
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICES, max_size=2) | CHOICES.map(lambda choice: [choice]) | VALUES,
        "model": VALUES,
        "usage": st.none() | st.just(USAGE),
        "error": st.sampled_from([None, None, "", "no"]),
        "x_groq": st.none() | st.just({"usage": USAGE}),
        "object": VALUES,
    },
)
BODIES = st.lists(CHUNKS | st.text(max_size=6) | st.just("[DONE]"), max_size=8)


@given(values=BODIES, ascii_only=st.booleans(), named=st.booleans())
def test_the_short_cuts_change_nothing(values: list[Any], ascii_only: bool, named: bool) -> None:
    """Three ways: JSON of the bytes of whole events; of the decoder's text; and the tolerant way for all."""
    start = said("a", "b") if named else ""
    events = [
        "data: " + (value if isinstance(value, str) else json.dumps(value, ensure_ascii=ascii_only)) + "\n\n"
        for value in values
    ]
    body = (start + "".join(events)).encode("utf-8", "replace")
    ends = [at + 2 for at in range(len(body)) if body[at : at + 2] == b"\n\n"]
    by_event = feed(OpenAIAssembly(), body, ends)
    for other in (
        feed(OpenAIAssembly(), body, ends[::2]),
        feed(OpenAIAssembly(), body, range(1, len(body))),
        feed(OpenAIAssembly(), body, []),
        feed(Tolerant(), body, ends),
    ):
        assert other.events == by_event.events
        assert (other.turn.usage, other.turn.finish, other.turn.text, other.turn.model, other.kinds, other.done) == (
            by_event.turn.usage,
            by_event.turn.finish,
            by_event.turn.text,
            by_event.turn.model,
            by_event.kinds,
            by_event.done,
        )
        assert [made.raw for made in other.turn.tool_calls] == [made.raw for made in by_event.turn.tool_calls]


JSON = st.recursive(VALUES | st.floats(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["choices", "delta", "content", "message", "tool_calls", "error", "usage", "type", "index", "id",
                     "function", "name", "arguments", "finish_reason", "content_block", "done", "response", "text"]),
    inner, max_size=4), max_leaves=12)  # fmt: skip


@pytest.mark.parametrize("kind", list(Kind))
@given(
    values=st.lists(JSON, max_size=4), name=st.sampled_from(["", "error", "message_start", "x"]), cut=st.integers(1, 50)
)
def test_whatever_comes_nothing_raises(kind: Kind, values: list[Any], name: str, cut: int) -> None:
    lines = [json.dumps(value) for value in values]
    if kind is Kind.OLLAMA_NDJSON:
        body = "\n".join(lines)
    else:
        body = "".join((f"event: {name}\n" if name else "") + f"data: {line}\n\n" for line in lines)
    assemble(body, kind, cuts=range(cut, len(body), cut))


@pytest.mark.parametrize("kind", list(Kind))
@given(body=st.binary(max_size=200), cut=st.integers(1, 50))
def test_garbage_is_an_error_and_never_text(kind: Kind, body: bytes, cut: int) -> None:
    assume(b"[DONE]" not in body)  # an end mark is no garbage
    assembled = assemble(body, kind, cuts=range(cut, len(body), cut))
    assert assembled.text == ""
    assert assembled.turn.finish in {"error", "incomplete"}


NESTED = [
    '{"choices":[{"delta":{"content":%s}}]}',
    '{"choices":[{"delta":{"reasoning":%s}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"id":"t","function":{"name":"f","arguments":%s}}]}}]}',
    '{"choices":[{"delta":{},"finish_reason":%s}]}',
    '{"usage":{"prompt_tokens":%s}}',
    '{"error":%s}',
    '{"message":%s}',
    "%s",
]


@pytest.mark.parametrize("shape", ["[]", '{"a":1}', '{"error":1}', '{"text":1}'])
def test_json_nested_to_any_depth_does_no_harm(shape: str) -> None:
    """Just below the depth that the parser refuses, whatever walks over a value must not go deeper than it did."""
    opening, closing = (shape[:-1], shape[-1]) if shape == "[]" else (shape[:-2], shape[-1])
    limit = sys.getrecursionlimit()
    for depth in [*range(limit // 2 - 20, limit // 2), *range(limit - 120, limit), 50_000]:
        value = opening * depth + ("" if shape == "[]" else "1") + closing * depth
        for around in NESTED:
            assemble(said("a") + sse(around % value) + DONE)


# Limits and cost.


def test_an_answer_that_is_too_long_ends_before_the_delta_that_breaks_the_limit() -> None:
    deltas = ["é" * 40] * 30
    for reasoning in (False, True):
        parts = [chunk({"reasoning" if reasoning else "content": delta}) for delta in deltas]
        assembled = every_way(answer(*parts), limits=Limits(answer_bytes=1000))
        assert len((assembled.text + assembled.reasoning).encode()) == 960
        assert assembled.turn.error is not None
        assert assembled.turn.error.code == "limit"
        assert assembled.done


def test_too_many_deltas_are_a_limit() -> None:
    assembled = every_way(answer(said(*"abcdefgh")), limits=Limits(answer_events=5))
    assert assembled.text == "abcde"
    assert assembled.turn.error is not None
    assert assembled.turn.error.code == "limit"


@pytest.mark.parametrize("kind", list(Kind))
def test_an_event_that_is_too_long_is_a_limit(kind: Kind) -> None:
    long = json.dumps({"x": "y" * 3000})
    body = long + "\n" if kind is Kind.OLLAMA_NDJSON else f"data: {long}\n\n"
    assembled = every_way(body * 2, kind, limits=Limits(event_bytes=2000))
    assert assembled.turn.error is not None
    assert assembled.turn.error.code == "limit"
    assert assembled.done
    json_body = assemble(long, "openai-json", limits=Limits(event_bytes=2000))
    assert json_body.turn.error is not None
    assert json_body.turn.error.code == "limit"


def test_text_before_an_event_that_is_too_long_is_kept() -> None:
    assembled = every_way(said("Hello") + sse("y" * 3000) + said("!"), limits=Limits(event_bytes=2000))
    assert assembled.text == "Hello"
    assert assembled.turn.finish == "error"


def test_a_snapshot_each_second_does_not_cost_more_as_the_answer_grows() -> None:
    """Joining all deltas again and again would make it a hundred times as dear."""
    assembly = assembly_for("openai-chat")
    delta = said("word ").encode()

    def grow_and_look() -> float:
        for _ in range(50):
            assembly.feed(delta)
        return timeit.timeit(assembly.turn, number=1)

    first = min(grow_and_look() for _ in range(20))
    for _ in range(40_000):
        assembly.feed(delta)
    assembly.turn()
    later = min(grow_and_look() for _ in range(20))
    assert len(assembly.turn().text) == 5 * 42_000
    assert later < 20 * first + 0.001
