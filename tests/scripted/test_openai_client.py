"""The `openai` client, unchanged, before the scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml

from motamot.scripted import ThreadedScriptedModel, scripted_model

EXAMPLE = yaml.safe_load((files("motamot.scripted") / "example.yaml").read_text("utf-8"))


@pytest.fixture
def server() -> Iterator[ThreadedScriptedModel]:
    with scripted_model(EXAMPLE, api_key="sk-test") as running:
        yield running


@pytest.fixture
def client(server: ThreadedScriptedModel) -> Iterator[Any]:
    with openai.OpenAI(base_url=server.url, api_key="sk-test", max_retries=0, timeout=10) as ready:
        yield ready


def ask(client: Any, question: str, **more: Any) -> Any:
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}], **more)


@pytest.mark.parametrize(
    ("question", "text", "finish"),
    [
        ("Say hello", "Hello! I am a scripted model.", "stop"),
        ("pieces", "Piece by piece.", "stop"),
        ("think", "Good morning.", "stop"),
        ("slow", "This answer takes its time.", "stop"),
        ("long", "The three causes are: first,", "length"),
        ("filtered", "I would rather", "content_filter"),
        ("what is the price?", "A ticket costs 2 euros.", "stop"),
        ("where is order #12345", "Your order is on its way.", "stop"),
    ],
)
def test_an_answer_is_read_whole_and_streamed(client: Any, question: str, text: str, finish: str) -> None:
    choice = ask(client, question).choices[0]
    assert (choice.message.content, choice.finish_reason) == (text, finish)
    chunks = list(ask(client, question, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    assert chunks[-1].choices[0].finish_reason == finish


def test_usage_is_read_where_it_was_asked_for(client: Any) -> None:
    *_, last = ask(client, "slow", stream=True, stream_options={"include_usage": True})
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (12, 27)


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_is_called_and_its_result_answered(client: Any, stream: bool) -> None:
    question = {"role": "user", "content": "weather?"}
    if stream:
        fragments = [c.choices[0].delta.tool_calls for c in ask(client, "weather?", stream=True)]
        calls = [call for found in fragments if found for call in found]
        name, call_id = calls[0].function.name, calls[0].id
        arguments = "".join(call.function.arguments or "" for call in calls)
    else:
        (call,) = ask(client, "weather?").choices[0].message.tool_calls
        name, call_id, arguments = call.function.name, call.id, call.function.arguments
    assert (name, arguments) == ("get_weather", '{"city": "Lyon"}')
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    history = [
        question,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "12"},
    ]
    answer = client.chat.completions.create(model="m", messages=history)
    assert answer.choices[0].message.content == "It is 12 degrees in Lyon."


def test_errors_are_the_clients_own_errors(client: Any, server: ThreadedScriptedModel) -> None:
    with pytest.raises(openai.RateLimitError) as limited:
        ask(client, "busy", stream=True)
    assert limited.value.response.headers["retry-after"] == "2"
    with pytest.raises(openai.APIError, match="The model crashed"):
        list(ask(client, "broken", stream=True))
    with pytest.raises(openai.InternalServerError, match="The model crashed"):
        ask(client, "broken")
    wrong = openai.OpenAI(base_url=server.url, api_key="no", max_retries=0)
    with wrong, pytest.raises(openai.AuthenticationError):
        ask(wrong, "hello")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_a_cut_connection_is_an_error_after_the_text(client: Any) -> None:
    seen = ""
    with pytest.raises(openai.APIConnectionError):
        for chunk in ask(client, "cut", stream=True):
            seen += chunk.choices[0].delta.content or ""
    assert seen == "The connection ends in the mid"


def test_leaving_a_stream_is_seen(client: Any, server: ThreadedScriptedModel) -> None:
    with ask(client, "endless", stream=True) as stream:
        for chunk in stream:
            if chunk.choices[0].delta.content:
                break
    received = server.wait_left(0)
    assert received.cancelled
    assert received.cancel_seconds == 1


def test_a_gate_holds_a_stream(client: Any, server: ThreadedScriptedModel) -> None:
    stream = ask(client, "gated", stream=True)
    server.wait_gate("curtain")
    assert "Before." in server.requests[0].sent.decode()
    server.release("curtain")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Before. After."


def test_models_and_embeddings_are_there(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["scripted"]
    vectors = client.embeddings.create(model="m", input=["a", "b", "a"]).data
    assert vectors[0].embedding == vectors[2].embedding != vectors[1].embedding
    assert len(vectors[0].embedding) == 256


def test_every_script_of_the_example_is_played_by_some_test() -> None:
    text = Path(__file__).read_text("utf-8")
    scripts = set(EXAMPLE["scripts"]) - {"prices", "orders", "parallel", "raw"}
    assert not [name for name in scripts if name not in text]


def test_two_calls_and_raw_bytes_of_the_example_arrive(client: Any) -> None:
    calls = ask(client, "parallel").choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["get_weather", "get_time"]
    indexes = [
        call.index for c in ask(client, "parallel", stream=True) for call in (c.choices[0].delta.tool_calls or [])
    ]
    assert indexes[:4] == [1, 2, 1, 2]
    raw = client.chat.completions.with_raw_response.create(
        model="m", stream=True, messages=[{"role": "user", "content": "raw"}]
    )
    assert raw.headers["x-served-by"] == "scripted"
    assert "".join(chunk.choices[0].delta.content for chunk in raw.parse()) == "Hello"
