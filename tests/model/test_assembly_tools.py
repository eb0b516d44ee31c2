"""Tool calls from fragments: by the book, and as servers in the field send them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.limits import Limits
from motamot.model.assembly import Dialect
from tests.model.assembling import DONE, answer, assemble, call, chunk, every_way, sse, tools

LYON, PARIS = '{"city":"Lyon"}', '{"zone":"Europe/Paris"}'
TWO = [("t1", "get_weather", {"city": "Lyon"}), ("t2", "get_time", {"zone": "Europe/Paris"})]
ANY = "*"  # an id made up here


@dataclass(frozen=True)
class Way:
    """How a server says two parallel calls."""

    name: str
    deltas: list[str]
    kinds: frozenset[str] = frozenset()
    ids: tuple[str, str] = ("t1", "t2")


def pieces(text: str, index: int | None, *, id_: str | None = None, name: str | None = None) -> list[str]:
    """The arguments in three fragments."""
    third = len(text) // 3
    return [tools(call(index, id_, name, part)) for part in (text[:third], text[third : 2 * third], text[2 * third :])]


WAYS = [
    Way(
        "by the book",
        [
            tools(call(0, "t1", "get_weather", "")),
            *pieces(LYON, 0),
            tools(call(1, "t2", "get_time", "")),
            *pieces(PARIS, 1),
        ],
    ),
    Way(
        "no index, whole calls in one delta",
        [tools(call(None, "t1", "get_weather", LYON), call(None, "t2", "get_time", PARIS))],
        frozenset({"tool-index-missing"}),
    ),
    Way(
        "no index, a whole call a chunk",
        [tools(call(None, "t1", "get_weather", LYON)), tools(call(None, "t2", "get_time", PARIS))],
        frozenset({"tool-index-missing"}),
    ),
    Way(
        "no index, in fragments",
        [
            tools(call(None, "t1", "get_weather", "")),
            *pieces(LYON, None),
            tools(call(None, "t2", "get_time", "")),
            *pieces(PARIS, None),
        ],
        frozenset({"tool-index-missing"}),
    ),
    Way(
        "no index, in fragments that each have the id",
        [
            tools(call(None, "t1", "get_weather", ""), call(None, "t2", "get_time", "")),
            *[
                part
                for pair in zip(pieces(LYON, None, id_="t1"), pieces(PARIS, None, id_="t2"), strict=True)
                for part in pair
            ],
        ],
        frozenset({"tool-index-missing"}),
    ),
    Way(
        "the same index with new ids",
        [
            tools(call(0, "t1", "get_weather", "")),
            *pieces(LYON, 0),
            tools(call(0, "t2", "get_time", "")),
            *pieces(PARIS, 0),
        ],
        frozenset({"tool-index-reused"}),
    ),
    Way(
        "index from 1",
        [
            tools(call(1, "t1", "get_weather", "")),
            *pieces(LYON, 1),
            tools(call(2, "t2", "get_time", "")),
            *pieces(PARIS, 2),
        ],
    ),
    Way(
        "name repeated on each fragment",
        [
            tools(call(0, "t1", "get_weather", "")),
            *pieces(LYON, 0, name="get_weather"),
            tools(call(1, "t2", "get_time", "")),
            *pieces(PARIS, 1, name="get_time"),
        ],
        frozenset({"tool-name-repeated"}),
    ),
    Way(
        "id repeated on each fragment",
        [
            tools(call(0, "t1", "get_weather", "")),
            *pieces(LYON, 0, id_="t1"),
            tools(call(1, "t2", "get_time", "")),
            *pieces(PARIS, 1, id_="t2"),
        ],
    ),
    Way(
        "id first, name later",
        [
            tools(call(0, "t1", None, "")),
            tools(call(0, None, "get_weather", "")),
            *pieces(LYON, 0),
            tools(call(1, "t2", None, "")),
            tools(call(1, None, "get_time", "")),
            *pieces(PARIS, 1),
        ],
    ),
    Way(
        "a name alone at a used index",
        [
            tools(call(0, None, "get_weather", "")),
            *pieces(LYON, 0),
            tools(call(0, None, "get_time", "")),
            *pieces(PARIS, 0),
        ],
        frozenset({"tool-id-missing", "tool-index-reused"}),
        (ANY, ANY),
    ),
    Way(
        "no ids",
        [
            tools(call(0, None, "get_weather", "")),
            *pieces(LYON, 0),
            tools(call(1, None, "get_time", "")),
            *pieces(PARIS, 1),
        ],
        frozenset({"tool-id-missing"}),
        (ANY, ANY),
    ),
    Way(
        "neither ids nor indexes",
        [tools(call(None, None, "get_weather", LYON)), tools(call(None, None, "get_time", PARIS))],
        frozenset({"tool-id-missing", "tool-index-missing"}),
        (ANY, ANY),
    ),
    Way(
        "interleaved",
        [
            tools(call(0, "t1", "get_weather", ""), call(1, "t2", "get_time", "")),
            *[part for pair in zip(pieces(LYON, 0), pieces(PARIS, 1), strict=True) for part in pair],
        ],
    ),
    Way(
        "whole calls, both at index 0, in one delta",
        [tools(call(0, "t1", "get_weather", LYON), call(0, "t2", "get_time", PARIS))],
        frozenset({"tool-index-reused"}),
    ),
    Way(
        "arguments as objects",
        [tools(call(0, "t1", "get_weather", json.loads(LYON)), call(1, "t2", "get_time", json.loads(PARIS)))],
        frozenset({"tool-args-not-string"}),
    ),
    Way(
        "the whole arguments twice",
        [
            tools(call(0, "t1", "get_weather", "")),
            *pieces(LYON, 0),
            tools(call(0, None, None, LYON)),
            tools(call(1, "t2", "get_time", PARIS)),
            *pieces(PARIS, 1),
        ],
        frozenset({"tool-args-duplicated"}),
    ),
    Way(
        "an empty object before the arguments",
        [
            tools(call(0, "t1", "get_weather", "{}")),
            *pieces(LYON, 0),
            tools(call(1, "t2", "get_time", {})),
            *pieces(PARIS, 1),
        ],
        frozenset({"tool-args-duplicated", "tool-args-not-string"}),
    ),
    Way(
        "a made-up id on each fragment",
        [
            tools(call(0, "t1", "get_weather", "")),
            *[tools(call(0, f"x{n}", None, part)) for n, part in enumerate((LYON[:4], LYON[4:]))],
            tools(call(1, "t2", "get_time", "")),
            *[tools(call(1, f"y{n}", None, part)) for n, part in enumerate((PARIS[:4], PARIS[4:]))],
        ],
        frozenset({"tool-id-repeated"}),
    ),
    Way(
        "the same id for every call",
        [tools(call(0, "t1", "get_weather", LYON)), tools(call(1, "t1", "get_time", PARIS))],
        frozenset({"tool-id-repeated"}),
        ("t1", ANY),
    ),
    Way(
        "the same id for every call, in fragments",
        [
            tools(call(0, "t1", "get_weather", ""), call(1, "t1", "get_time", "")),
            *pieces(LYON, 0, id_="t1"),
            *pieces(PARIS, 1, id_="t1"),
        ],
        frozenset({"tool-id-repeated"}),
        ("t1", ANY),
    ),
    Way(
        "the name in pieces",
        [
            tools(call(0, "t1", "get_", "")),
            tools(call(0, None, "weather", "")),
            *pieces(LYON, 0),
            tools(call(1, "t2", "get_", "")),
            tools(call(1, None, "get_time", "")),
            *pieces(PARIS, 1),
        ],
    ),
    Way(
        "an empty id and name on later fragments",
        [
            tools(call(0, "t1", "get_weather", "")),
            *pieces(LYON, 0, id_="", name=""),
            tools(call(1, "t2", "get_time", "")),
            *pieces(PARIS, 1, id_="", name=""),
        ],
    ),
    Way(
        "indexes as strings, no function object",
        [
            tools({"index": "0", "id": "t1", "name": "get_weather", "arguments": LYON}),
            tools({"index": "1", "id": "t2", "name": "get_time", "arguments": PARIS}),
        ],
    ),
    Way(
        "an id alone behind the last call",
        [
            tools(call(0, "t1", "get_weather", LYON)),
            tools(call(1, "t2", "get_time", PARIS)),
            tools(call(1, "t3", None, "")),
        ],
        frozenset({"tool-index-reused"}),
    ),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_two_parallel_calls_are_both_found_however_they_are_said(way: Way) -> None:
    assembled = every_way(answer(*way.deltas, finish="tool_calls"))
    assert assembled.turn.finish == "tool_calls"
    assert [(name, arguments) for _, name, arguments in assembled.calls] == [(name, made) for _, name, made in TWO]
    for (ours, _, _), theirs in zip(assembled.calls, way.ids, strict=True):
        assert ours == theirs or (theirs == ANY and re.fullmatch("[A-Za-z0-9]{9}", ours))
    assert len(assembled.turn.runnable) == 2
    assert assembled.kinds - {"usage-missing"} == way.kinds


def one(*fragments: dict[str, Any], finish: str = "tool_calls") -> str:
    return answer(*[tools(fragment) for fragment in fragments], finish=finish)


@pytest.mark.parametrize("arguments", ["", None, "{}", "null", " \n", {}])
def test_no_arguments_are_an_empty_object(arguments: object) -> None:
    assembled = every_way(one(call(0, "t1", "now", arguments)))
    assert assembled.calls == [("t1", "now", {})]
    assert json.loads(assembled.turn.tool_calls[0].raw) == {}
    assert [made.name for made in assembled.turn.runnable] == ["now"]


def test_arguments_go_back_to_the_model_as_it_wrote_them() -> None:
    raw = '{\n  "b": 1.0,\n  "a": "\\u00e9"\n}'
    (made,) = assemble(one(call(0, "t1", "f", raw))).turn.tool_calls
    assert made.raw == raw
    assert made.arguments == {"b": 1.0, "a": "é"}


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ('{"city":"Ly', "tool-args-truncated"),
        ('{"city":', "tool-args-truncated"),
        ('{"city":"Lyon"', "tool-args-truncated"),
        ('{"city":"Lyon\\', "tool-args-truncated"),
        ("{city: Lyon}", "tool-args-invalid-json"),
        ('{"city":"Lyon"}}', "tool-args-invalid-json"),
        ('{"n": NaN}', "tool-args-invalid-json"),
        ('["Lyon"]', "tool-args-invalid-json"),
        ('"Lyon"', "tool-args-invalid-json"),
        ('{"city":"Lyon"}{"city":"Nice"}', "tool-args-invalid-json"),
        ('{"n": ' + "9" * 5000 + "}", "tool-args-invalid-json"),
        ("[" * 100_000 + "]" * 100_000, "tool-args-invalid-json"),
    ],
    ids=lambda value: value[:30],
)
def test_broken_arguments_never_run_and_go_back_as_json(raw: str, kind: str) -> None:
    assembled = assemble(one(call(0, "t1", "f", raw)))
    (made,) = assembled.turn.tool_calls
    assert made.problem
    assert made.arguments is None
    assert json.loads(made.raw) == {}
    assert assembled.turn.finish == "tool_calls"
    assert assembled.turn.runnable == ()
    assert kind in assembled.kinds


def test_arguments_may_be_nested_to_a_limit() -> None:
    for depth, problems in ((5, 0), (6, 1)):
        raw = '{"a":' * depth + '"[[[[[["' + "}" * depth
        assembled = assemble(one(call(0, "t1", "f", raw)), limits=Limits(json_depth=5))
        assert sum(made.problem is not None for made in assembled.turn.tool_calls) == problems


def test_a_broken_call_does_not_keep_the_others_from_running() -> None:
    assembled = every_way(one(call(0, "t1", "f", '{"a"'), call(1, "t2", "g", "{}")))
    assert [made.name for made in assembled.turn.runnable] == ["g"]


def test_half_a_character_in_arguments_becomes_a_replacement_character() -> None:
    assembled = every_way(one(call(0, "t1", "f", '{"a":"\\ud83d","b":"\\ud83d\\ude00"}')))
    assert assembled.calls == [("t1", "f", {"a": "\ufffd", "b": "😀"})]


def test_a_character_cut_in_two_fragments_is_joined() -> None:
    assembled = every_way(one(call(0, "t1", "f", '{"a":"\ud83d'), call(0, None, None, '\ude00"}')))
    assert assembled.calls == [("t1", "f", {"a": "😀"})]


def test_arguments_sent_three_times_run_once() -> None:
    assembled = every_way(one(call(0, "t1", "f", LYON), call(0, None, None, LYON), call(0, None, None, " " + LYON)))
    assert assembled.calls == [("t1", "f", {"city": "Lyon"})]
    assert "tool-args-duplicated" in assembled.kinds


def test_a_whole_call_sent_twice_under_one_id_runs_once() -> None:
    twice = [call(0, "t1", "f", LYON), call(0, "t1", "f", '{"city":'), call(0, "t1", "f", '"Lyon"}')]
    assembled = every_way(one(*twice))
    assert assembled.calls == [("t1", "f", {"city": "Lyon"})]
    assert "tool-args-duplicated" in assembled.kinds


def test_the_same_arguments_written_otherwise_run_once() -> None:
    spaced = '{ "city" : "Lyon" }'
    for second in (call(0, None, None, spaced), call(0, "t1", "f", spaced)):
        assembled = every_way(one(call(0, "t1", "f", LYON), second))
        assert assembled.calls == [("t1", "f", {"city": "Lyon"})]
    nameless = every_way(one(call(0, None, "f", LYON), call(0, None, "f", spaced)))
    assert len(nameless.turn.runnable) == 1


def test_equal_in_python_is_not_equal_in_json() -> None:
    assembled = every_way(one(call(0, "t1", "f", '{"a":1}'), call(0, None, None, '{"a":true}')))
    assert assembled.turn.runnable == ()


def test_two_equal_calls_under_their_own_ids_are_two() -> None:
    assembled = every_way(one(call(0, "t1", "f", LYON), call(1, "t2", "f", LYON)))
    assert [made.id for made in assembled.turn.runnable] == ["t1", "t2"]


def test_two_equal_calls_in_one_delta_are_two() -> None:
    """Without ids and indexes their places tell them apart."""
    assembled = every_way(answer(tools(call(None, None, "f", LYON), call(None, None, "f", LYON)), finish="tool_calls"))
    assert len(assembled.turn.runnable) == 2


def test_a_fragment_that_may_belong_to_two_calls_spoils_both_and_opens_none() -> None:
    opened = tools(call(None, "t1", "f", ""), call(None, "t2", "g", ""))
    assembled = every_way(answer(opened, tools(call(None, None, None, LYON)), finish="tool_calls"))
    assert [made.name for made in assembled.turn.tool_calls] == ["f", "g"]
    assert assembled.turn.runnable == ()
    assert "tool-fragment-ambiguous" in assembled.kinds


def test_a_stray_fragment_opens_no_call() -> None:
    first = every_way(answer(tools(call(None, None, None, LYON)), finish="tool_calls"))
    assert first.turn.tool_calls == ()
    assert "tool-fragment-ambiguous" in first.kinds
    late = every_way(
        one(call(0, "t1", "f", LYON), call(1, "t2", "g", PARIS), call(None, None, None, '{"x":1}')),
    )
    assert len(late.turn.runnable) == 2
    assert "tool-fragment-ambiguous" in late.kinds


def test_an_unknown_index_goes_on_with_the_one_unfinished_call() -> None:
    assembled = every_way(one(call(0, "t1", "f", ""), call(1, None, None, LYON)))
    assert assembled.calls == [("t1", "f", {"city": "Lyon"})]


def test_a_call_without_a_name_has_a_problem() -> None:
    assembled = every_way(one(call(0, "t1", None, LYON)))
    (made,) = assembled.turn.tool_calls
    assert made.problem
    assert made.name  # servers refuse an empty name when the call goes back


def test_the_old_function_call_is_a_call() -> None:
    body = (
        chunk({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}})
        + chunk({"function_call": {"arguments": '{"a":'}})
        + chunk({"function_call": {"arguments": "1}"}})
        + chunk({}, "function_call")
        + DONE
    )
    assembled = every_way(body)
    assert assembled.turn.finish == "tool_calls"
    assert [(name, made) for _, name, made in assembled.calls] == [("f", {"a": 1})]
    assert "legacy-function-call" in assembled.kinds


@pytest.mark.parametrize("finish", ["stop", "STOP", "end_turn", "eos"])
def test_stop_after_tool_calls_means_tool_calls(finish: str) -> None:
    """tool-called-but-finish-stop: Gemini."""
    assembled = every_way(one(call(0, "t1", "f", LYON), finish=finish))
    assert assembled.turn.finish == "tool_calls"
    assert "finish-mismatch" in assembled.kinds
    assert len(assembled.turn.runnable) == 1


def test_an_end_mark_without_a_reason_lets_tools_run() -> None:
    assembled = every_way(tools(call(0, "t1", "f", LYON)) + DONE)
    assert assembled.turn.finish == "tool_calls"
    assert {"finish-mismatch", "finish-missing"} <= assembled.kinds
    assert len(assembled.turn.runnable) == 1


@pytest.mark.parametrize(
    "end", ["", chunk({}, "length") + DONE, chunk({}, "content_filter") + DONE, sse({"error": "x"})]
)
def test_no_tool_of_a_turn_that_did_not_end_well_runs(end: str) -> None:
    """finish-length-in-tool-arguments, finish-never-and-no-done: not even a call that is whole."""
    assembled = every_way(tools(call(0, "t1", "f", LYON), call(1, "t2", "send_mail", '{"body":"Dear')) + end)
    assert assembled.turn.finish in {"length", "content_filter", "incomplete", "error"}
    assert [made.problem is None for made in assembled.turn.tool_calls] == [False, False]
    assert assembled.turn.runnable == ()


def test_tool_calls_as_reason_without_a_call_is_no_tool_turn() -> None:
    """An exchange that asked again would ask the same, and pay for it."""
    assembled = every_way(answer(finish="tool_calls"))
    assert assembled.turn.finish == "unknown"
    assert "finish-mismatch" in assembled.kinds


def test_too_many_calls_are_a_limit() -> None:
    calls = [call(n, f"t{n}", "f", "{}") for n in range(4)]
    assembled = every_way(one(*calls), limits=Limits(tool_calls_per_turn=3))
    assert assembled.turn.finish == "error"
    assert assembled.turn.error is not None
    assert assembled.turn.error.code == "limit"
    assert assembled.done


def test_arguments_count_towards_the_answer_limit() -> None:
    endless = [tools(call(0, "t1", "f", '{"a":"'))] + [tools(call(0, None, None, "x" * 100))] * 50
    assembled = every_way(answer(*endless), limits=Limits(answer_bytes=1000))
    assert assembled.turn.error is not None
    assert assembled.turn.error.code == "limit"


def test_cumulative_arguments_are_put_right_where_the_dialect_says_so() -> None:
    body = one(call(0, "t1", "f", '{"ci'), call(0, "t1", "f", '{"city":"L'), call(0, "t1", "f", LYON))
    assert every_way(body, dialect=Dialect(cumulative=True)).calls == [("t1", "f", {"city": "Lyon"})]
    assert every_way(body).turn.runnable == ()


@pytest.mark.parametrize(
    "entries",
    [[None], [5, "x"], "x", [{}], [{"index": -1}], [{"function": 3}], [{"index": 0, "function": {"name": 7}}]],
)
def test_entries_that_are_no_calls_open_none(entries: object) -> None:
    assert every_way(answer(chunk({"tool_calls": entries}))).turn.tool_calls == ()


FRAGMENTS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 0, 1, 2, None]),
        "id": st.sampled_from(["t1", "t2", "", None]),
        "function": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["f", "g", "get_", "", None]),
                "arguments": st.sampled_from(
                    ["", "{}", '{"a":', "1}", '{"a":1}', '{"b":2}', " ", '"', "\\", "}", {"a": 1}]
                ),
            },
        ),
    },
)


@given(deltas=st.lists(st.lists(FRAGMENTS, min_size=1, max_size=3), max_size=6), cumulative=st.booleans())
def test_any_fragments_make_calls_that_can_go_back_to_the_model(deltas: list[list[Any]], cumulative: bool) -> None:
    """What holds of every turn is checked by `assemble`: ids, names, JSON that is an object, and who may run."""
    body = answer(*[tools(*entries) for entries in deltas], finish="tool_calls")
    assembled = assemble(body, dialect=Dialect(cumulative=cumulative))
    said = [entry["function"].get("arguments") for entries in deltas for entry in entries if "function" in entry]
    written = sum(text.count('"a"') + text.count('"b"') if isinstance(text, str) else 1 for text in said if text)
    assert sum(len(made.arguments or {}) for made in assembled.turn.runnable) <= written  # nothing runs twice


def test_text_beside_tool_calls_is_text() -> None:
    body = chunk({"content": "Let me see.", "tool_calls": [call(0, "t1", "f", LYON)]}) + chunk({}, "tool_calls") + DONE
    assembled = every_way(body)
    assert assembled.text == "Let me see."
    assert len(assembled.turn.runnable) == 1
