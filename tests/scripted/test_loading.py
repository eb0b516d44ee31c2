"""Scripts from files and from Python values; whatever is wrong with them is told with its place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import ScriptError
from motamot.scripted import Scripts, load_scripts
from motamot.scripted.steps import (
    Call,
    CallDialect,
    Calls,
    Close,
    ExpectCancel,
    Fail,
    FailHow,
    Finish,
    Gate,
    Head,
    How,
    Repeat,
    ReportUsage,
    Say,
    Send,
    SendRepeat,
    Step,
    Think,
    UsagePlace,
    Wait,
)


def steps_of(*values: Any) -> tuple[Step, ...]:
    (script,) = load_scripts([list(values)]).requests or ()
    (turn,) = script.turns
    return turn.steps


def written(tmp_path: Path, text: str, name: str = "scripts.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def refused(source: object) -> str:
    with pytest.raises(ScriptError) as raised:
        load_scripts(source)
    return raised.value.message


@pytest.mark.parametrize(
    ("value", "step"),
    [
        ({"say": "a b"}, Say(("a", " b"))),
        ({"say": ["a", "", "b"], "pace": "1.5s"}, Say(("a", "", "b"), pace=1.5)),
        ({"say": "abc", "cut": "characters", "slice_bytes": 7}, Say(("a", "b", "c"), slice_bytes=7)),
        ({"say": "abcd", "cut": 2, "pace": 20}, Say(("ab", "cd"), pace=0.02)),
        ({"say": "abcd", "cut": {"every": 3}}, Say(("abc", "d"))),
        ({"say": "abcd", "cut": {"at": [1, 1, 3]}}, Say(("a", "", "bc", "d"))),
        ({"say": "😀", "cut": "utf16"}, Say(("\ud83d", "\ude00"))),
        ({"say": "\ud83d\ude00", "cut": "whole"}, Say(("😀",))),
        ({"say": ""}, Say(())),
        ({"think": "hm", "field": "reasoning"}, Think(("hm",), name="reasoning")),
        ({"call": {"name": "f"}}, Call("f", ("{}",))),
        ({"call": {"name": "f", "arguments": {"é": 1}, "id": "x"}}, Call("f", ('{"é": 1}',), id="x")),
        ({"call": {"name": "f", "arguments": "{]", "cut": 2}}, Call("f", ("{", "]"))),
        ({"call": [{"name": "f", "dialect": "no-id"}]}, Calls((Call("f", ("{}",), dialect=CallDialect.NO_ID),))),
        ({"finish": "length"}, Finish("length")),
        ({"finish": None, "done": False}, Finish(None, done=False)),
        ({"finish": "stop", "text": "end"}, Finish("stop", with_text="end")),
        ({"usage": {"prompt": 3, "completion": 4, "cached": 1, "place": "every"}},
         ReportUsage(3, 4, cached=1, place=UsagePlace.EVERY)),
        ({"usage": None}, ReportUsage(place=UsagePlace.NONE)),
        ({"usage": "none"}, ReportUsage(place=UsagePlace.NONE)),
        ({"fail": "boom"}, Fail("boom")),
        ({"fail": {"message": "m", "status": 429, "code": 429, "how": "event", "retry_after": 2}},
         Fail("m", 429, code="429", how=FailHow.EVENT, headers=(("retry-after", "2"),))),
        ({"wait": "250ms"}, Wait(0.25)),
        ({"wait": 20}, Wait(0.02)),
        ({"gate": "curtain", "timeout": "2s"}, Gate("curtain", 2.0)),
        ({"status": 404, "headers": {"X-A": "b", "Retry-After": 3}}, Head(404, (("x-a", "b"), ("retry-after", "3")))),
        ({"send": "é\u2028"}, Send("é\u2028".encode())),
        ({"send_base64": "/wA="}, Send(b"\xff\x00")),
        ({"send_repeat": "ab", "times": 3}, SendRepeat(b"ab", 3)),
        ({"wait_ms": 1500}, Wait(1.5)),
        ({"hold_open_ms": 0}, Wait(0.0)),
        ({"repeat": 2, "steps": [{"wait_ms": 1}]}, Repeat(2, (Wait(0.001),))),
        ({"close": "half-chunk"}, Close(How.HALF_CHUNK)),
        ({"expect_cancel_within_ms": 1000}, ExpectCancel(1.0)),
    ],
)  # fmt: skip
def test_a_step_is_read_as_it_is_meant(value: dict[str, Any], step: Step) -> None:
    assert steps_of(value) == (step,)


def test_a_list_of_steps_is_one_answer_to_everything() -> None:
    scripts = load_scripts([{"say": "Hello"}])
    assert scripts.choose("whatever", 7) is scripts.default is not None


def test_a_list_of_lists_is_an_answer_for_each_request_and_nothing_more() -> None:
    scripts = load_scripts([[{"say": "one"}], [{"say": "two"}], []])
    chosen = [scripts.choose("one", n) for n in range(4)]
    assert [script and script.name for script in chosen] == ["request 1", "request 2", "request 3", None]


def test_scripts_already_loaded_are_taken_as_they_are() -> None:
    scripts = load_scripts([{"say": "Hello"}])
    assert load_scripts(scripts) is scripts


BOOK = {
    "default": "Hello",
    "scripts": {
        "Hello": "Good morning.",
        "été": "Warm.",
        "case-12": [{"say": "Twelve."}],
        "order": {"match": {"regex": "order #\\d+"}, "steps": [{"say": "Sent."}]},
        "fare": {"match": {"contains": ["price", "ticket"]}, "steps": [{"say": "Two."}]},
        "offer": {"match": "price", "steps": [{"say": "One."}]},
    },
}


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("hello", "Hello"),
        ("Say HELLO!", "Hello"),
        ("hello, then case-12.", "case-12"),
        ("case-12 and then hello", "Hello"),
        ("case-12x, case-1, hello-case", "Hello"),  # none of these words is a name: the default
        ("E\u0301TE\u0301?", "été"),  # decomposed, upper case
        ("where is Order #12", "order"),
        ("the price, please", "offer"),
        ("the price of a TICKET", "fare"),
        ("the order", "order"),
        ("", "Hello"),
    ],
)
def test_the_last_word_that_is_a_name_answers_then_the_first_match_then_the_default(question: str, name: str) -> None:
    chosen = load_scripts(BOOK).choose(question, 0)
    assert chosen is not None
    assert chosen.name == name


def test_without_a_default_a_question_may_have_no_answer() -> None:
    assert load_scripts({"scripts": {"a": "A"}}).choose("b", 0) is None


def test_a_very_long_question_is_read_at_its_end_and_in_time() -> None:
    scripts = load_scripts(BOOK)
    begun = perf_counter()
    chosen = scripts.choose("hello " + "x y " * 2_000_000 + "été", 0)
    assert chosen is not None
    assert chosen.name == "été"
    assert perf_counter() - begun < 2


YAML = """\
# a comment
models: [small, large]
default: hello
scripts:
  hello: Good morning.
  on:
    - say: "\\ud83d\\ude00 it is on"
      cut: whole
  "12":
    - send: "data: x\\n\\n"
requests:
  - hello
  - - say: Second.
    - finish: stop
"""


def test_a_yaml_file_holds_what_it_seems_to_hold(tmp_path: Path) -> None:
    scripts = load_scripts(written(tmp_path, YAML))
    assert scripts.models == ("small", "large")
    assert set(scripts.scripts) == {"hello", "on", "12"}  # not true and 12, which YAML 1.1 would make of them
    assert scripts.scripts["on"].turns[0].steps == (Say(("😀 it is on",)),)
    assert scripts.requests is not None
    assert [script.name for script in scripts.requests] == ["hello", "request 2"]


def test_json_and_yaml_of_the_same_values_are_the_same_scripts(tmp_path: Path) -> None:
    from_json = load_scripts(written(tmp_path, json.dumps(BOOK, indent="\t"), "scripts.json"))
    from_yaml = load_scripts(str(written(tmp_path, yaml.safe_dump(BOOK))))
    assert from_json == from_yaml == load_scripts(BOOK)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ': holds nothing; expected "scripts:" or a list of steps'),
        ("42", ', line 1: expected a mapping with "scripts"; got 42'),
        ("scripts:\n  a:\n    - say: 3\n", ', line 3, script "a", step 1, "say": expected text; got 3'),
        ("scripts:\n  a:\n    - wait: 1\n    - sya: x\n", ', line 4, script "a", step 2: expected one of say, think'),
        ("scripts:\n  a:\n    - {say: x, send: y}\n", 'step 1: expected one of say, think, call, finish, usage'),
        ("scripts:\n  a:\n    - say: x\n      pase: 3\n", ', line 4, script "a", step 1: does not know the key "pase"'),
        ("scripts:\n  a:\n    - say: x\n  a:\n    - say: y\n", ', line 4: the key "a" stands here twice'),
        ("scripts:\n  a: x\n  A: y\n", ', line 3, script "A": there is another script with this name'),
        ("scripts:\n  a b: x\n", ', line 2, script "a b": a script\'s name is letters'),
        ("scripts:\n  ? [a]\n  : x\n", ", line 2: a key must be a word"),
        ("scripts: [a]\n", "line 1: expected scripts by name; got a list"),
        ("scripts:\n  a:\n    turns: []\n", ', line 3, script "a": a script has at least one turn'),
        ("scripts:\n  a:\n    turns:\n    - - wait: x\n", ', line 4, script "a", turn 1, step 1, "wait": expected'),
        ("scripts:\n  a: {steps: [], turns: []}\n", ', line 2, script "a": expected either "steps" or "turns"'),
        ("scripts:\n  a:\n    match: {regex: '(a'}\n    steps: []\n", ', line 3, script "a", "match": expected a re'),
        ("scripts:\n  a:\n    match: ''\n    steps: []\n", ', line 3, script "a", "match": expected text; got an'),
        ("scripts:\n  a:\n    match: {}\n    steps: []\n", 'expected "contains" or "regex"'),
        ("scripts:\n  a: x\ndefault: b\n", ', line 3, "default": expected the name of a script (a); got \'b\''),
        ("scripts:\n  a: x\nrequests: [a, c]\n", ", line 3, request 2: expected the name of a script (a); got 'c'"),
        ("scripts:\n  a: x\nmodels: small\n", ', line 3, "models": expected a list of model names'),
        ("scripts:\n  a: x\nscript: y\n", ', line 3: does not know the key "script"'),
        ("models: [a]\n", "holds no script"),
        ("- say: x\n- status: 200\n", ", line 2, step 2: a status must come before anything is sent"),
        ("- fail: x\n- say: y\n", ', line 2, step 2: comes after "fail", which ends the response'),
        ("- close: clean\n- wait_ms: 1\n", 'step 2: comes after "close", which ends the response'),
        ("- repeat: 2\n  steps: [{close: clean}]\n", 'line 2, step 1, step 1: "close" ends the response and cannot'),
        ("- repeat: 2\n", ', line 1, step 1: "repeat" needs "steps"'),
        ("- repeat: 1000000\n  steps: [{repeat: 1000000, steps: [{wait_ms: 0}]}]\n", "pieces of 0 bytes in all"),
        ("- send_repeat: xx\n  times: 1000000000\n", "would send 1 pieces of 2000000000 bytes in all"),
        ("- send_repeat: x\n", '"send_repeat" needs "times"'),
        ("- status: 99\n", '"status": expected a whole number from 200 to 599; got 99'),
        ("- status: 200\n  headers: {'a b': c}\n", "cannot be set as a header's name"),
        ("- status: 200\n  headers: {a: \"x\\r\\nb: c\"}\n", ", line 2, step 1, \"headers\": expected a header"),
        ("- status: 200\n  headers: {content-length: -1}\n", '"headers": expected a number of bytes'),
        ("- status: 200\n  headers: {transfer-encoding: gzip}\n", "cannot be set as a header's name"),
        ("- send_base64: '*'\n", '"send_base64": expected base64'),
        ('- send: "\\ud83d"\n', '"send": holds half a surrogate pair'),
        ("- say: x\n  cut: 0\n", ', line 2, step 1, "cut": expected a whole number from 1'),
        ("- say: x\n  cut: words please\n", '"cut": expected a number of pieces, whole, words, lines'),
        ("- say: x\n  cut: {at: [9]}\n", '"at": expected a whole number from 0 to 1; got 9'),
        ("- say: xyz\n  cut: {at: [2, 1]}\n", '"at": expected ascending offsets'),
        ("- say: [a, b]\n  cut: 2\n", '"cut": a list is in pieces already'),
        ("- say: [a, 2]\n", '"say", piece 2: expected text; got 2'),
        ("- call: {arguments: {}}\n", '"call": a call needs a "name"'),
        ("- call: {name: f, arguments: .nan}\n", '"arguments": expected JSON values or the JSON text'),
        ("- call: {name: f, arguments: '{', dialect: arguments-object}\n", '"arguments": are to be sent as an object'),
        ("- call: {name: f, dialect: french}\n", '"dialect": expected one of standard, whole, no-index'),
        ("- call: []\n", '"call": expected at least one call'),
        ("- finish: 3\n", '"finish": expected a reason'),
        ("- finish: stop\n  done: perhaps\n", '"done": expected true or false; got \'perhaps\''),
        ("- usage: {prompt: -1}\n", '"prompt": expected a whole number from 0'),
        ("- usage: {}\n- usage: {}\n", 'a turn has one "usage" at most'),
        ("- gate: a/b\n", '"gate": a gate\'s name is letters'),
        ("- wait: 2h\n", '"wait": expected milliseconds, "250ms" or "1.5s", an hour at most'),
        ("- wait_ms: 3600001\n", '"wait_ms": expected milliseconds, an hour at most'),
        ("- wait_ms: .inf\n", '"wait_ms": expected milliseconds'),
        ("- wait_ms: true\n", '"wait_ms": expected milliseconds, an hour at most; got true'),
        ("- fail: {status: 200}\n", '"status": expected a whole number from 400 to 599'),
        ("- 3\n", "step 1: expected a step such as {say: text}; got 3"),
        ("- say: [\n", ": is not YAML: "),
        ("a: b: c\n", ", line 1: is not YAML: mapping values are not allowed here"),
        ("- say: !!python/object/apply:os.system [id]\n",
         'know the tag tag:yaml.org,2002:python/object/apply:os.system'),
        ("- say: !frob x\n", "cannot be read: could not determine a constructor"),
        ("- say: *nothing\n", ", line 1: is not YAML: found undefined alias"),
        ("--- a\n--- b\n", "line 2: is not YAML"),
        ("base: &b {say: x}\nscripts: {a: [{<<: *b}]}\n", "merge keys"),
        ("- wait_ms: 0x" + "f" * 5000 + "\n", '"wait_ms": expected milliseconds'),
        ("- wait_ms: " + "9" * 5000 + "\n", ", line 1: cannot be read: too large a number"),
        ("- say: !!binary aGVsbG8=\n", '"say": expected text'),
        ("- say: !!timestamp x\n- say: 2001-13-45\n", None),
        ("- say: 2001-01-01\n", None),  # a date to YAML: the text that stands there
        ("\ufeff- say: x\n", None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_line_and_place(tmp_path: Path, text: str, message: str | None) -> None:
    path = written(tmp_path, text)
    if message is None:
        assert load_scripts(path).default is not None
    else:
        told = refused(path)
        assert told.startswith(str(path))
        assert message in told
        assert "\n" not in told
        assert len(told) < 600 + len(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"scripts":\n {"a":\n  [{"say": "x"},\n   {"sya": 1}]}}', ', line 4, script "a", step 2: expected one of'),
        ('{"scripts": {"a": [\n{"say": "x",\n"cut": 0}]}}', ', line 3, script "a", step 1, "cut": expected a whole'),
        ('{"scripts": {"a":\n"x", "b": "é",\n"a": "y"}}', ', line 3: the key "a" stands here twice'),
        ('{"scripts": {"a\\"b":\n "x"}}', ', line 1, script "a"b": a script\'s name'),
        ('{"scripts": }', ", line 1: is not JSON: Expecting value (column 13)"),
        ("[" * 100_000, "is nested deeper than"),
        ("[" * 60 + "]" * 60, "is nested deeper than 40 levels"),
        ("[" + "1," * 300_000 + "1]", "holds more than 200000 values"),
        ('[{"wait_ms": ' + "9" * 5000 + "}]", ": is not JSON"),
        ("", ", line 1: is not JSON"),
    ],
)
def test_json_files_are_told_of_with_lines_too(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text, "scripts.json")
    told = refused(path)
    assert told.startswith(str(path))
    assert message in told


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory"
    assert "cannot be read: Is a directory" in refused(tmp_path)
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: x\nb: é\n".encode("latin-1"))
    assert refused(path) == f"{path}, line 2: is not UTF-8 (byte 8)"
    assert "not YAML" in refused(written(tmp_path, "a: \x00\n"))


def test_a_file_that_would_fill_the_memory_is_refused_in_time(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    begun = perf_counter()
    assert "holds more than 200000 values (aliases are followed)" in refused(written(tmp_path, "\n".join(levels)))
    assert "nested deeper" in refused(written(tmp_path, "&a [*a]"))
    assert "nested deeper" in refused(written(tmp_path, "[" * 50_000))
    assert "is larger than 1000 kB" in refused(written(tmp_path, "#" * 1_000_001))
    assert perf_counter() - begun < 20


def test_python_values_are_told_of_by_their_place_alone() -> None:
    assert refused([[{"say": "x"}], [{"say": b"x"}]]) == "request 2, step 1, \"say\": expected text; got b'x'"
    assert refused({"scripts": {1: "x"}}) == "expected scripts by name; got a mapping"
    assert refused(7) == 'expected a mapping with "scripts"; got 7'


KEYS = st.sampled_from(
    [
        "scripts",
        "requests",
        "default",
        "models",
        "steps",
        "turns",
        "match",
        "contains",
        "regex",
        "say",
        "think",
        "call",
        "finish",
        "usage",
        "fail",
        "wait",
        "gate",
        "status",
        "send",
        "send_base64",
        "send_repeat",
        "times",
        "wait_ms",
        "hold_open_ms",
        "repeat",
        "close",
        "expect_cancel_within_ms",
        "cut",
        "pace",
        "every",
        "at",
        "name",
        "arguments",
        "id",
        "dialect",
        "headers",
        "message",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(value=JSON)
def test_any_values_are_scripts_or_a_script_error(value: Any) -> None:
    if isinstance(value, str):
        value = [value]
    try:
        assert isinstance(load_scripts(value), Scripts)
    except ScriptError as error:
        assert error.message


@pytest.mark.skipif(sys.platform == "win32", reason="no such file system")
@given(data=st.binary(max_size=60) | st.text("-:[]{}&*!?|>'\"\n\t ,#%@ab", max_size=40).map(str.encode))
def test_any_file_is_scripts_or_a_script_error(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("any.yaml", "any.json"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(data)
        try:
            assert isinstance(load_scripts(path), Scripts)
        except ScriptError as error:
            assert error.message.startswith(str(path))
