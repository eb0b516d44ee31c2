"""HARs as browsers write them, and as they arrive: without bodies, cut, mangled, hostile."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import TapeError
from motamot.tape import Tape, load
from motamot.tape.formats.cut_json import mended
from tests.tape.support import entry, har

# windows-1252 as browsers decode it, where Python's has no character for five of the bytes.
WINDOWS_1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256)}


def mangled(body: bytes) -> str:
    """UTF-8 as a browser stores it that takes it for windows-1252."""
    return "".join(WINDOWS_1252[byte] for byte in body)


def read(*entries: dict[str, Any], select: str | None = None) -> list[Tape]:
    return load(json.dumps(har(*entries)).encode(), select=select)


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        (entry(), True),
        (entry(kind="text/event-stream; charset=utf-8", method="GET"), True),
        (entry('{"done":false}\n', kind="application/x-ndjson"), True),
        (entry('{"a":1}\n', kind="application/jsonl"), True),
        (entry("data: x\n\n", kind="text/plain"), True),
        (entry("\ufeffdata: x\n\n", kind="text/plain"), True),
        (entry(base64.b64encode(b": ping\n\n").decode(), kind="application/octet-stream", encoding="base64"), True),
        (entry("data: x\n\n", kind=""), True),
        (entry('{"choices":[]}', kind="application/json", url="https://x/v1/chat/completions"), True),
        (entry('{"naturalLanguageAnswer":"x"}', kind="application/json", url="https://x/api/chatbot/chat"), True),
        (entry('{"error":{}}', kind="application/json", url="https://x/v1/messages"), True),
        (entry('{"text":"x"}', kind="application/json; charset=utf-8", url="https://x/api/ask"), True),
        (entry("<html>Sign in</html>", kind="text/html") | {"_resourceType": "eventsource"}, True),
        (entry("<html></html>", kind="text/html", url="https://x/"), False),
        (entry("Just words.", kind="text/plain"), False),
        (entry('{"choices":[]}', kind="application/json", url="https://x/v1/chat/completions", method="GET"), False),
        (entry('{"choices":[]}', kind="application/json", url="https://x/api/settings"), False),
        (entry('{"rows":[]}', kind="application/json", url="https://chat.example.com/api/rows"), False),
        (entry("function(){}", kind="text/javascript"), False),
    ],
)
def test_streams_and_answers_are_taken_and_nothing_else(made: dict[str, Any], taken: bool) -> None:
    if taken:
        assert len(read(made)) == 1
        return
    with pytest.raises(TapeError, match=r"holds 1 requests and none of them is a stream or a chat's answer"):
        read(made)
    assert len(read(made, select="https")) == 1


def test_a_browsers_cors_question_is_no_answer_that_could_be_chosen() -> None:
    tapes = read(entry(None, method="OPTIONS", status=204), entry(), select="chat/stream")
    assert [tape.body for tape in tapes] == [b"data: Hello\n\n"]


@pytest.mark.parametrize(
    "asked",
    [
        {"headers": [{"name": "Accept", "value": "text/event-stream"}]},
        {"postData": {"text": '{"stream": true, "messages": []}'}},
    ],
)
def test_an_answer_that_is_no_stream_where_one_was_asked_for_is_taken(asked: dict[str, Any]) -> None:
    made = entry("<html>502 Bad Gateway</html>", kind="text/html", status=502, url="https://x/y")
    made["request"] |= asked
    [tape] = read(made)
    assert (tape.status, tape.header("Content-Type")) == (502, "text/html")


def test_a_tape_has_what_a_har_holds() -> None:
    [tape] = read(entry())
    assert (tape.status, tape.end, tape.head_at, tape.ended_at) == (200, "closed", 0.1205, 0.3005)
    assert tape.headers == (("content-type", "text/event-stream"), ("set-cookie", "[removed]"))
    assert tape.request is not None
    assert (tape.request.method, tape.request.body) == ("POST", b'{"message":"Hi"}')
    assert tape.notes == (
        "A HAR holds no times of pieces: whether the answer came as it was written cannot be told from it.",
    )


@given(st.text(min_size=1).filter(lambda text: not text.isascii()), st.booleans())
def test_utf8_that_a_browser_took_for_windows_1252_is_put_back(text: str, cut: bool) -> None:
    body = f"data: {text}\n\n".encode("utf-8", "replace")
    if cut:
        body = body[:-3]  # inside a character, most often
    [tape] = read(entry(mangled(body)))
    assert tape.body == body


@given(st.text(min_size=1))
def test_what_was_read_rightly_is_left_as_it_is(text: str) -> None:
    body = f"data: {text}\n\n"
    for made in (entry(body, kind="text/event-stream; charset=utf-8"), entry(body + "日")):
        [tape] = read(made)
        assert tape.body == made["response"]["content"]["text"].encode("utf-8", "replace").replace(b"?", b"?")


def test_text_that_only_looks_mangled_is_left_where_the_type_names_its_charset() -> None:
    [declared] = read(entry("data: Ãª\n\n", kind="text/event-stream;charset=UTF-8"))
    [undeclared] = read(entry("data: Ãª\n\n"))
    assert (declared.body, undeclared.body) == ("data: Ãª\n\n".encode(), "data: ê\n\n".encode())
    assert "windows-1252" not in " ".join(declared.notes)
    assert "windows-1252" in undeclared.notes[1]


@pytest.mark.parametrize("size", [-1, 0, 500])
def test_an_answer_without_a_body_is_noted_and_the_others_are_read(size: int) -> None:
    lost = entry(None, size=size, kind="text/event-stream")
    lost["response"]["_failureText"] = "net::ERR_ABORTED"
    full, empty = read(entry(), lost)
    assert full.body == b"data: Hello\n\n"
    assert (empty.pieces, empty.end) == ((), "unknown")
    assert f"no body for this response (size {size})" in empty.notes[1]
    assert "net::ERR_ABORTED" in empty.notes[2]


def test_a_har_without_any_body_is_told_how_to_be_exported() -> None:
    with pytest.raises(TapeError, match=r"holds 2 answers without a body.*export the HAR with its content"):
        read(entry(None), entry(None, size=-1))
    with pytest.raises(TapeError, match="without a body"):
        read(entry(None, _file="0123.txt"))


@pytest.mark.parametrize("made", [entry(None, status=204), entry(None, method="HEAD"), entry("")])
def test_a_response_that_has_no_body_by_its_nature_is_no_missing_one(made: dict[str, Any]) -> None:
    [tape] = read(made)
    assert (tape.body, len(tape.notes)) == (b"", 1)


def test_base64_is_decoded_and_what_is_none_is_told() -> None:
    body = b"data: \xff\n\n"
    [good, bad] = read(
        entry(base64.b64encode(body).decode(), encoding="base64"), entry("####", encoding="base64", size=4)
    )
    assert good.body == body
    assert "no base64" in bad.notes[1]


def test_half_a_surrogate_pair_is_the_replacement_character() -> None:
    """msgspec refuses it; JSON.stringify writes it."""
    content = json.dumps(har(entry("data: MARK\n\n", kind="text/event-stream; charset=utf-8"))).encode()
    [tape] = load(content.replace(b"MARK", b"\\ud83d x \\ud83d\\ude8c"))
    assert tape.body == "data: \ufffd x 🚌\n\n".encode()


@pytest.mark.parametrize(
    "broken",
    [
        {"request": None},
        {"response": []},
        {"response": {"status": "200", "headers": {"a": 1}, "content": [], "_error": 5}},
        {"request": {"url": 5, "method": None, "headers": [1, {"name": 2}], "postData": "x"}},
        {"timings": {"wait": -1, "receive": True}},
        {"timings": {"wait": 1e400}},
        {"timings": "soon"},
    ],
)
def test_fields_of_other_types_than_the_format_has_break_nothing(broken: dict[str, Any]) -> None:
    tapes = load(json.dumps(har(entry() | broken, entry())).replace("Infinity", "1e999").encode())
    assert tapes[-1].body == b"data: Hello\n\n"
    assert tapes[0].head_at is None or len(tapes) == 1 or "timings" not in broken


def test_a_har_cut_anywhere_gives_what_can_be_read_or_says_where_it_broke() -> None:
    bodies = ["data: first\n\n", 'data: sécond \\ "x"\n\n']
    content = json.dumps(har(*(entry(body, kind="text/event-stream; charset=utf-8") for body in bodies))).encode()
    marks = [content.index(b"data: first"), content.index(b"data: s\\u00e9cond")]
    read_of_second = set()
    for cut in range(len(b'{"log":'), len(content)):
        try:
            tapes = load(content[:cut])
        except TapeError as error:
            assert cut < marks[1], "the first one was whole by then"
            assert f"byte {cut:,}" in error.message or "without a body" in error.message, error.message
            assert error.offset == cut
            continue
        assert tapes[0].body == bodies[0].encode()[: len(tapes[0].body)]
        assert any(f"cut at byte {cut:,}" in note for note in tapes[-1].notes)
        if len(tapes) == 2:
            assert tapes[0].body == bodies[0].encode()
            assert bodies[1].encode().startswith(tapes[1].body)
            assert tapes[1].end == ("unknown" if cut < len(content) - len("]}}") else "closed")
            read_of_second.add(tapes[1].body)
    assert len(read_of_second) == len(bodies[1]) + 1, "each cut inside a body keeps what came before it"


def test_a_har_that_is_damaged_within_is_read_up_to_there() -> None:
    content = json.dumps(har(entry(), entry(), entry())).encode()
    place = content.rindex(b'"request"')
    tapes = load(content[:place] + b"!!" + content[place:])
    assert len(tapes) == 2
    assert f"cut at byte {place:,}" in tapes[0].notes[-1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.data(), st.booleans())
def test_json_cut_anywhere_is_closed_where_it_was_cut(
    value: dict[str, Any], data: st.DataObject, escaped: bool
) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    cut = data.draw(st.integers(1, len(text)))
    kept = mended(text[:cut])
    assert isinstance(kept, dict)
    if cut == len(text):
        assert kept == value
    assert list(kept) == list(value)[: len(kept)], "no member is made up, and none is left out"
    for key in list(kept)[:-1]:
        assert kept[key] == value[key]


@pytest.mark.parametrize("text", ["}", "]", "[}", '{"a":1}}', "", "[" * 100_000])
def test_json_damaged_otherwise_than_by_a_cut_is_not_closed(text: str) -> None:
    assert mended(text) is None
