"""OpenAI's Responses and Anthropic's messages: their own clients, unchanged, before the scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import anthropic
import openai
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from motamot.answer import Reasoning, Text
from motamot.model.assembly import assembly_for
from motamot.scripted import ThreadedScriptedModel, load_scripts, scripted_model
from motamot.scripted.dialects import play_stream, play_whole
from motamot.scripted.messages import Messages
from motamot.scripted.responses import Responses
from motamot.sse import Decoder

EXAMPLE = yaml.safe_load((files("motamot.scripted") / "example.yaml").read_text("utf-8"))
HAZARDS = '\r\n\x00\ufeff\u0085\u2028\u2029 \t"\\/{}[]:😀é̈\ud83ddata: [DONE]'
TEXTS = st.text() | st.text(alphabet=HAZARDS)
CUTS = st.sampled_from(["whole", "words", "characters", "utf16"])
ENDS = [
    ("hello", "Hello! I am a scripted model.", "completed", "end_turn"),
    ("pieces", "Piece by piece.", "completed", "end_turn"),
    ("think", "Good morning.", "completed", "end_turn"),
    ("long", "The three causes are: first,", "incomplete", "max_tokens"),
    ("filtered", "I would rather", "incomplete", "refusal"),
]


@pytest.fixture
def server() -> Iterator[ThreadedScriptedModel]:
    with scripted_model(EXAMPLE, api_key="sk-test") as running:
        yield running


@pytest.fixture
def responses(server: ThreadedScriptedModel) -> Iterator[Any]:
    with openai.OpenAI(base_url=server.url, api_key="sk-test", max_retries=0, timeout=10) as client:
        yield client.responses


@pytest.fixture
def messages(server: ThreadedScriptedModel) -> Iterator[Any]:
    base = server.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base, api_key="sk-test", max_retries=0, timeout=10) as client:
        yield client.messages


def normal(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def asked(question: str) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": question}]}


@pytest.mark.parametrize(("question", "text", "status", "_reason"), ENDS)
def test_a_response_is_read_whole_and_streamed(
    responses: Any, question: str, text: str, status: str, _reason: str
) -> None:
    whole = responses.create(model="m", input=question)
    assert (whole.output_text, whole.status) == (text, status)
    with responses.stream(model="m", input=question) as stream:
        events = list(stream)
        last = events[-1].response
    assert (last.output_text, last.status) == (text, status)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == text
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize(("question", "text", "_status", "reason"), ENDS)
def test_a_message_is_read_whole_and_streamed(
    messages: Any, question: str, text: str, _status: str, reason: str
) -> None:
    whole = messages.create(**asked(question))
    said = "".join(block.text for block in whole.content if block.type == "text")
    assert (said, whole.stop_reason) == (text, reason)
    with messages.stream(**asked(question)) as stream:
        assert "".join(stream.text_stream) == text
        last = stream.get_final_message()
    assert last.stop_reason == reason and last.usage.input_tokens == 1 and last.usage.output_tokens > 0


def test_reasoning_is_kept_apart(responses: Any, messages: Any) -> None:
    first, *_ = responses.create(model="m", input="think").output
    assert first.type == "reasoning" and first.content[0].text
    with responses.stream(model="m", input="think") as stream:
        kinds = [event.type for event in stream]
    assert "response.reasoning_text.delta" in kinds and "response.reasoning_text.done" in kinds
    with messages.stream(**asked("think")) as stream:
        thinking, text = stream.get_final_message().content
    assert (thinking.type, text.type) == ("thinking", "text") and thinking.thinking and thinking.signature


def test_a_tool_is_called_and_its_result_brings_the_next_turn_by_responses(responses: Any) -> None:
    with responses.stream(model="m", input="weather") as stream:
        last = stream.get_final_response()
    call = next(item for item in last.output if item.type == "function_call")
    assert json.loads(call.arguments) == {"city": "Lyon"}
    results = [
        {"role": "user", "content": "weather"},
        call.model_dump(exclude_none=True, exclude={"parsed_arguments", "status"}),
        {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
    ]
    after = responses.create(model="m", input=results)
    assert after.output_text and after.status == "completed"


def test_a_tool_is_called_and_its_result_brings_the_next_turn_by_messages(messages: Any) -> None:
    with messages.stream(**asked("weather")) as stream:
        last = stream.get_final_message()
    call = next(block for block in last.content if block.type == "tool_use")
    assert last.stop_reason == "tool_use" and call.input == {"city": "Lyon"}
    more = asked("weather")
    more["messages"] += [
        {"role": "assistant", "content": [block.model_dump() for block in last.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"}]},
    ]
    after = messages.create(**more)
    assert after.stop_reason == "end_turn" and after.content[0].text


def test_an_error_in_and_before_the_stream_is_raised_by_both(responses: Any, messages: Any) -> None:
    *_, last = responses.create(model="m", input="broken", stream=True)
    assert last.type == "error" and last.message
    with pytest.raises(openai.RateLimitError):
        responses.create(model="m", input="busy")
    with pytest.raises(anthropic.APIStatusError), messages.stream(**asked("broken")) as stream:
        list(stream)
    with pytest.raises(anthropic.RateLimitError):
        messages.create(**asked("busy"))


def test_a_wrong_key_and_a_bad_request_are_told_in_the_interfaces_own_shape(server: ThreadedScriptedModel) -> None:
    base = server.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base, api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            client.messages.create(**asked("hello"))
        body: Any = caught.value.body
        assert body["type"] == "error" and body["error"]["type"] == "authentication_error"
    with anthropic.Anthropic(base_url=base, api_key="sk-test", max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError) as refused:
            client.messages.create(model="m", max_tokens=1, messages=[])
        assert "messages" in str(refused.value)


def test_nothing_flagged_is_what_a_moderation_gives(server: ThreadedScriptedModel) -> None:
    with openai.OpenAI(base_url=server.url, api_key="sk-test", max_retries=0) as client:
        assert [result.flagged for result in client.moderations.create(input=["one", "two"]).results] == [False, False]
        with pytest.raises(openai.BadRequestError):
            client.moderations.create(input=[])


def test_both_count_as_completions_in_the_record(server: ThreadedScriptedModel, responses: Any, messages: Any) -> None:
    responses.create(model="m", input="hello")
    messages.create(**asked("hello"))
    assert [(one.path, one.script) for one in server.requests] == [
        ("/v1/responses", "hello"),
        ("/v1/messages", "hello"),
    ]


@given(said=TEXTS, thought=TEXTS, cut=CUTS)
def test_any_text_in_any_cut_is_read_back_from_messages(said: str, thought: str, cut: Any) -> None:
    turn = turn_of({"think": thought, "cut": cut}, {"say": said, "cut": cut})
    dialect = Messages()
    data = b"".join(op for op in play_stream(turn, dialect, dialect.read(asked("q")), 1) if isinstance(op, bytes))
    assembly = assembly_for("anthropic-messages")
    events = [*assembly.feed(data), *assembly.close()]
    read = assembly.turn()
    assert read.text == clean(said) and read.reasoning == clean(thought) and not read.deviations
    assert "".join(event.text for event in events if isinstance(event, Text)) == clean(said)
    assert all(isinstance(event, Text | Reasoning) for event in events)


@given(said=TEXTS, cut=CUTS)
def test_any_text_in_any_cut_is_read_back_from_responses(said: str, cut: Any) -> None:
    turn = turn_of({"say": said, "cut": cut})
    dialect = Responses()
    question = dialect.read({"model": "m", "input": "q"})
    data = b"".join(op for op in play_stream(turn, dialect, question, 1) if isinstance(op, bytes))
    events = [json.loads(event.data) for event in Decoder().feed(data)]
    deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert normal(deltas) == normal(said)
    whole = json.loads(b"".join(op for op in play_whole(turn, dialect, question, 1) if isinstance(op, bytes)))
    assert normal(whole["output"][0]["content"][0]["text"]) == normal(said)
    assert whole["output"] == events[-1]["response"]["output"] or "\ud800" <= max(said, default="") <= "\udfff"


def turn_of(*steps: Any) -> Any:
    default = load_scripts(list(steps)).default
    assert default is not None
    return default.turns[0]


def clean(text: str) -> str:
    """As it can be written: halves that belong together joined, an orphan as U+FFFD."""
    return normal(text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
