"""`/v1`: OpenAI's own clients and curl, against the server as it runs."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from motamot.assistant import Assistant
from motamot.exchange.exchange import Visible
from motamot.limits import Limits
from motamot.protocols.openai import PROTOCOL
from motamot.store.prices import Prices
from tests.need import need
from tests.node import node, npm_package
from tests.server.reading import Stream, Visitor, run
from tests.server.support import V1_KEY, Served, serving

COMPLETIONS = "/v1/chat/completions"
KEY = {"Authorization": f"Bearer {V1_KEY}"}
HELLO: Any = [{"role": "user", "content": "Hello"}]
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]
SAID = [{"say": ["Bon", "jour ", "😀\n"]}, {"usage": {"prompt": 9, "completion": 3, "cached": 2}}]
CALL = [{"say": "I look."}, {"call": {"name": "get_time", "arguments": {"zone": "Europe/Paris"}, "id": "c1"}}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "The time in a zone.",
            "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
        },
    }
]


async def complete(s: Served, body: dict[str, Any], **headers: str) -> Any:
    """One JSON answer: status, headers, and the document."""
    return await Visitor(s.port).fetch("POST", COMPLETIONS, {"messages": HELLO, **body}, headers={**KEY, **headers})


async def streamed(s: Served, **body: Any) -> Stream:
    asked = {"messages": HELLO, "stream": True, **body}
    return await Visitor(s.port).open("POST", COMPLETIONS, asked, headers=KEY, protocol="openai", head=False)


@asynccontextmanager
async def client(s: Served, key: str = V1_KEY) -> AsyncIterator[AsyncOpenAI]:
    """The client with its own ideas about retrying."""
    async with AsyncOpenAI(base_url=f"{s.url}/v1", api_key=key) as made:
        yield made


class TestPythonClient:
    def test_a_stream(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s, client(s) as c:
                got = [
                    chunk
                    async for chunk in await c.chat.completions.create(
                        model="default", messages=HELLO, stream=True, stream_options={"include_usage": True}
                    )
                ]
                deltas = [chunk.choices[0].delta for chunk in got if chunk.choices]
                assert deltas[0].role == "assistant"
                assert [delta.content for delta in deltas if delta.content] == ["Bon", "jour ", "😀\n"]
                assert [chunk.choices[0].finish_reason for chunk in got if chunk.choices][-1] == "stop"
                assert {chunk.model for chunk in got} == {"default"}
                assert len({chunk.id for chunk in got}) == 1
                usage = got[-1].usage
                assert usage is not None
                assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (9, 3, 12)
                assert usage.prompt_tokens_details is not None
                assert usage.prompt_tokens_details.cached_tokens == 2

        run(scenario())

    def test_a_whole_answer(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s, client(s) as c:
                answer = await c.chat.completions.create(model="default", messages=HELLO)
                assert answer.choices[0].message.content == "Bonjour 😀\n"
                assert answer.choices[0].finish_reason == "stop"
                assert answer._request_id == answer.id.removeprefix("chatcmpl-")

        run(scenario())

    def test_the_blocking_client_too(self, tmp_path: Path) -> None:
        def blocking(url: str) -> tuple[str, str | None]:
            with OpenAI(base_url=f"{url}/v1", api_key=V1_KEY) as c:
                with c.chat.completions.create(model="default", messages=HELLO, stream=True) as stream:
                    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
                return text, c.chat.completions.create(model="default", messages=HELLO).choices[0].message.content

        async def scenario() -> None:
            async with serving(tmp_path, [SAID, SAID]) as s:
                assert await asyncio.to_thread(blocking, s.url) == ("Bonjour 😀\n",) * 2

        run(scenario())

    @pytest.mark.parametrize("stream", [True, False])
    def test_its_own_tools_are_called_back_and_run_nowhere_here(self, tmp_path: Path, stream: bool) -> None:
        """One turn; the assistant's own tools are not offered beside them."""

        def get_time(zone: str) -> str:
            """Never run here."""
            raise AssertionError(zone)

        async def scenario() -> None:
            async with serving(tmp_path, [CALL, [{"say": "Noon."}]], tools=[get_time]) as s, client(s) as c:
                if stream:
                    async with c.chat.completions.stream(model="default", messages=HELLO, tools=TOOLS) as events:
                        first = await events.get_final_completion()
                else:
                    first = await c.chat.completions.create(model="default", messages=HELLO, tools=TOOLS)
                choice = first.choices[0]
                assert choice.finish_reason == "tool_calls"
                assert choice.message.content == "I look."
                assert choice.message.tool_calls is not None
                [call] = choice.message.tool_calls
                assert call.type == "function"
                assert (call.function.name, json.loads(call.function.arguments)) == (
                    "get_time",
                    {"zone": "Europe/Paris"},
                )
                assert len(s.model.requests) == 1
                asked = s.model.requests[0].body
                assert [tool["function"]["description"] for tool in asked["tools"]] == ["The time in a zone."]
                result: Any = {"role": "tool", "tool_call_id": call.id, "content": "12:00"}
                history = [*HELLO, choice.message.model_dump(exclude_none=True), result]
                second = await c.chat.completions.create(model="default", messages=history, tools=TOOLS)
                assert second.choices[0].message.content == "Noon."
                told = s.model.requests[1].body["messages"]
                assert [message["role"] for message in told] == ["user", "assistant", "tool"]
                assert told[1]["tool_calls"][0]["id"] == told[2]["tool_call_id"] == call.id

        run(scenario())

    def test_an_assistant_s_own_tools_run_here_and_are_its_own_business(self, tmp_path: Path) -> None:
        def get_time(zone: str) -> str:
            """The time in a zone."""
            return f"Noon in {zone}."

        async def scenario() -> None:
            script = [CALL, [{"say": "It is noon."}]]
            async with serving(tmp_path, script, tools=[get_time]) as s, client(s) as c:
                async with await c.chat.completions.create(model="default", messages=HELLO, stream=True) as stream:
                    got = [chunk async for chunk in stream]
                text = "".join(chunk.choices[0].delta.content or "" for chunk in got if chunk.choices)
                assert text == "I look.\n\nIt is noon."
                assert not any(chunk.choices[0].delta.tool_calls for chunk in got if chunk.choices)
                assert len(s.model.requests) == 2

        run(scenario())

    @pytest.mark.parametrize("stream", [True, False])
    def test_leaving_stops_the_model(self, tmp_path: Path, stream: bool) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s, client(s) as c:
                if stream:
                    async with await c.chat.completions.create(model="default", messages=HELLO, stream=True) as answer:
                        async for chunk in answer:
                            if chunk.choices[0].delta.content:
                                break
                else:
                    asking = asyncio.ensure_future(c.chat.completions.create(model="default", messages=HELLO))
                    await s.model.wait_pieces(0, 3)
                    asking.cancel()
                    await asyncio.wait({asking})
                assert (await s.model.wait_left(0, timeout=1)).cancelled

        run(scenario())

    def test_the_models_are_the_assistants(self, tmp_path: Path) -> None:
        def two(url: str) -> Sequence[Assistant]:
            return [Assistant(upstream=url, model="scripted", name=name) for name in ("shop/été #1?", "help")]

        async def scenario() -> None:
            async with serving(tmp_path, [SAID], assistants=two) as s, client(s) as c:
                assert [model.id async for model in c.models.list()] == ["shop/été #1?", "help"]
                assert (await c.models.retrieve("help")).id == "help"
                assert (await c.models.retrieve("shop/été #1?")).id == "shop/été #1?"
                with pytest.raises(openai.NotFoundError):
                    await c.models.retrieve("nobody")
                answer = await c.chat.completions.create(model="help", messages=HELLO)
                assert answer.model == "help"
                [exchange] = s.site.exchanges._by_id.values()
                assert exchange.begun.assistant == "help"

        run(scenario())

    def test_its_errors_are_its_own_kinds(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            prices = Prices(input=1_000_000, output=1_000_000)
            script = [[{"fail": {"status": 400, "message": "secret"}}], SAID]
            options = {"money_per_day": 1.0}
            async with serving(tmp_path, script, options=options, prices=prices) as s, client(s) as c:
                async with client(s, "wrong-key-of-nobody") as stranger:
                    with pytest.raises(openai.AuthenticationError) as wrong:
                        await stranger.chat.completions.create(model="default", messages=HELLO)
                assert wrong.value.code == "invalid_api_key"
                with pytest.raises(openai.NotFoundError) as unknown:
                    await c.chat.completions.create(model="gpt-4o", messages=HELLO)
                assert unknown.value.code == "model_not_found"
                with pytest.raises(openai.BadRequestError) as odd:
                    await c.chat.completions.create(model="default", messages=HELLO, n=2)
                assert odd.value.param == "n"
                with pytest.raises(openai.InternalServerError) as failed:
                    await c.chat.completions.create(model="default", messages=HELLO)
                assert (failed.value.status_code, failed.value.code) == (502, "upstream_error")
                assert "secret" not in str(failed.value)
                assert (await c.chat.completions.create(model="default", messages=HELLO)).choices
                with pytest.raises(openai.RateLimitError) as spent:
                    await c.with_options(max_retries=0).chat.completions.create(model="default", messages=HELLO)
                assert spent.value.code == "insufficient_quota"

        run(scenario())

    @pytest.mark.parametrize("stream", [True, False])
    def test_a_failed_answer_is_not_asked_for_again_behind_its_back(self, tmp_path: Path, stream: bool) -> None:
        """The client asks twice more by itself, and each time is paid: we say that it should not."""

        async def scenario() -> None:
            async with serving(tmp_path, [[{"send": "not a stream"}]] * 3) as s, client(s) as c:
                assert c.max_retries == 2
                with pytest.raises(openai.InternalServerError) as failed:
                    await c.chat.completions.create(model="default", messages=HELLO, stream=stream)
                assert failed.value.status_code == 502
                assert len(s.model.requests) == 1

        run(scenario())

    def test_an_answer_that_breaks_off_raises(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": ["One ", "two "]}, {"close": "reset"}]]) as s, client(s) as c:
                text = ""
                stream = await c.chat.completions.create(model="default", messages=HELLO, stream=True)
                with pytest.raises(openai.APIError) as broken:
                    async for chunk in stream:
                        text += chunk.choices[0].delta.content or ""
                assert text == "One two "
                assert broken.value.code == "upstream_cut"
                assert len(s.model.requests) == 1

        run(scenario())

    def test_a_silent_model_is_waited_for(self, tmp_path: Path) -> None:
        """Comments before the head's own delta, and among chunks, disturb it not."""

        async def scenario() -> None:
            script = [{"wait": 500}, {"say": ["One "]}, {"wait": 500}, {"say": ["two."]}]
            async with serving(tmp_path, [script], limits=Limits(heartbeat_seconds=0.15)) as s, client(s) as c:
                stream = await c.chat.completions.create(model="default", messages=HELLO, stream=True)
                text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
                assert text == "One two."

        run(scenario())


class TestNodeClient:
    """The same with OpenAI's client for Node, at its own defaults."""

    @staticmethod
    async def ask(s: Served, act: str, *, key: str = V1_KEY, question: str = "Hello") -> dict[str, Any]:
        place = await asyncio.to_thread(npm_package, "openai", "7")
        script = place / "openai_node.mjs"  # beside the package: that is where Node looks for it
        await asyncio.to_thread(shutil.copyfile, Path(__file__).parent / "openai_node.mjs", script)
        told = json.dumps({"url": s.url, "key": key, "act": act, "question": question})
        process = await asyncio.create_subprocess_exec(
            node(), script, told, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, errors = await asyncio.wait_for(process.communicate(), 40)
        assert process.returncode == 0, errors.decode()
        found: dict[str, Any] = json.loads(out)
        return found

    def test_a_stream_and_a_whole_answer(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID, SAID]) as s:
                got = await self.ask(s, "stream")
                assert got["pieces"] == ["Bon", "jour ", "😀\n"]
                assert got["finish"] == "stop"
                assert got["usage"]["total_tokens"] == 12
                whole = await self.ask(s, "whole")
                assert (whole["text"], whole["usage"]["completion_tokens"]) == ("Bonjour 😀\n", 3)

        run(scenario())

    def test_its_own_tools(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [CALL, [{"say": "Noon."}]]) as s:
                got = await self.ask(s, "tools")
                assert got["finish"] == "tool_calls"
                assert got["call"]["function"]["name"] == "get_time"
                assert json.loads(got["call"]["function"]["arguments"]) == {"zone": "Europe/Paris"}
                assert "".join(got["said"]) == "I look."
                assert got["text"] == "Noon."
                assert s.model.requests[1].body["messages"][-1]["content"] == "12:00"

        run(scenario())

    def test_its_abort_stops_the_model(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                asking = asyncio.ensure_future(self.ask(s, "abort"))
                left = await s.model.wait_left(0, timeout=40)
                assert left.cancelled
                assert (await asking) == {"aborted": True}

        run(scenario())

    def test_its_errors_and_that_it_asks_once(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            broken = [{"say": ["One "]}, {"close": "reset"}]
            async with serving(tmp_path, [[{"send": "not a stream"}], broken] + [SAID] * 3) as s:
                got = await self.ask(s, "stream", key="wrong-key-of-nobody")
                assert (got["error"], got["status"], got["code"]) == ("AuthenticationError", 401, "invalid_api_key")
                got = await self.ask(s, "stream")
                assert (got["error"], got["status"], got["code"]) == ("InternalServerError", 502, "upstream_error")
                assert len(s.model.requests) == 1
                got = await self.ask(s, "stream")
                assert (got["error"], got["code"]) == ("APIError", "upstream_cut")
                assert len(s.model.requests) == 2

        run(scenario())

    def test_the_models(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, []) as s:
                assert await self.ask(s, "models") == {"names": ["default"], "one": "default"}

        run(scenario())


class TestCurl:
    def test_pieces_come_as_they_are_said(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            need(shutil.which("curl"), "curl")
            async with serving(tmp_path, [[{"say": ["One ", "two "]}, {"gate": "more"}, {"say": ["three."]}]]) as s:
                process = await asyncio.create_subprocess_exec(
                    "curl",
                    "-sN",
                    f"{s.url}{COMPLETIONS}",
                    "-H",
                    f"Authorization: Bearer {V1_KEY}",
                    "-H",
                    "Content-Type: application/json",
                    "-d",
                    json.dumps({"model": "default", "messages": HELLO, "stream": True}),
                    stdout=asyncio.subprocess.PIPE,
                )
                assert process.stdout is not None
                got = b""
                reader = PROTOCOL.reader()
                text = ""
                async with asyncio.timeout(10):
                    while "two " not in text:
                        got = await process.stdout.read(10_000)
                        text += "".join(getattr(event, "text", "") for event in reader.feed(got))
                    await s.model.wait_gate("more")
                    s.model.release("more")
                    rest = await process.stdout.read()
                assert rest.endswith(b"data: [DONE]\n\n")
                assert await process.wait() == 0

        run(scenario())


class TestAsking:
    def test_the_caller_s_instructions_follow_the_assistant_s(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID], system="You help the customers of a shop.") as s:
                messages = [
                    {"role": "system", "content": "Answer in French."},
                    {"role": "user", "content": "first?"},
                    {"role": "assistant", "content": "One."},
                    {"role": "developer", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": "second?"}]},
                ]
                assert (await complete(s, {"messages": messages})).status == 200
                assert s.model.requests[0].body["messages"] == [
                    {
                        "role": "system",
                        "content": "You help the customers of a shop.\n\nAnswer in French.\n\nBe brief.",
                    },
                    {"role": "user", "content": "first?"},
                    {"role": "assistant", "content": "One."},
                    {"role": "user", "content": "second?"},
                ]

        run(scenario())

    def test_a_history_is_taken_whole(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID], limits=Limits(history_tokens=10)) as s:
                turns = [{"role": role, "content": "x " * 500} for _ in range(5) for role in ("user", "assistant")]
                await complete(s, {"messages": [*turns, *HELLO]})
                assert s.model.requests[0].body["messages"] == [*turns, *HELLO]

        run(scenario())

    def test_what_the_caller_sets_reaches_the_model(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
            settings = {
                "temperature": 0.5,
                "top_p": 0.9,
                "seed": 7,
                "stop": ["END"],
                "presence_penalty": 1,
                "response_format": shape,
                "reasoning_effort": "low",
            }
            async with serving(tmp_path, [SAID], extra={"temperature": 0.1, "top_k": 5}) as s:
                told = await complete(s, {**settings, "max_tokens": 100, "user": "u", "store": False})
                assert told.status == 200
                body = s.model.requests[0].body
                assert {name: body[name] for name in settings} == settings
                assert (body["max_tokens"], body["top_k"]) == (100, 5)
                assert "user" not in body
                assert "store" not in body
                assert body["stream"] is True

        run(scenario())

    @pytest.mark.parametrize(("asked", "sent"), [(None, 50), (10, 10), (1_000, 50)])
    def test_max_tokens_is_the_smaller_of_the_caller_s_and_the_assistant_s(
        self, tmp_path: Path, asked: int | None, sent: int
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID], limits=Limits(max_tokens=50)) as s:
                await complete(s, {} if asked is None else {"max_completion_tokens": asked})
                assert s.model.requests[0].body["max_tokens"] == sent

        run(scenario())

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            ("none", "none"),
            ("required", "required"),
            (
                {"type": "function", "function": {"name": "get_time"}},
                {"type": "function", "function": {"name": "get_time"}},
            ),
            (None, None),
        ],
    )
    def test_the_choice_of_a_tool_reaches_the_model(self, tmp_path: Path, choice: Any, sent: Any) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s:
                told = await complete(s, {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False})
                assert told.status == 200
                body = s.model.requests[0].body
                assert body.get("tool_choice") == sent
                assert body["parallel_tool_calls"] is False

        run(scenario())

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"n": 2}, "n"),
            ({"logprobs": True}, "logprobs"),
            ({"top_logprobs": 3}, "top_logprobs"),
            ({"modalities": ["audio"]}, "modalities"),
            ({"functions": [{"name": "f"}]}, "functions"),
            ({"messages": []}, "messages"),
            ({"messages": [{"role": "root", "content": "x"}]}, "messages[0].role"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
            ({"max_tokens": 0}, "max_tokens"),
            ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
            ({"tool_choice": "required"}, "tool_choice"),
            ({"messages": [{"role": "user", "content": "x" * 32_001}]}, "messages"),
        ],
    )
    def test_what_is_not_taken_is_refused_with_its_place(
        self, tmp_path: Path, body: dict[str, Any], param: str
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, []) as s:
                told = await complete(s, body)
                assert told.status == 400
                error = told.json["error"]
                assert (error["type"], error["param"]) == ("invalid_request_error", param)
                assert not s.model.requests

        run(scenario())

    @pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", f"Basic {V1_KEY}", V1_KEY, "Bearer é"])
    def test_without_a_key_there_is_nothing(self, tmp_path: Path, authorization: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s:
                for method, path, body in (("POST", COMPLETIONS, {"messages": HELLO}), ("GET", "/v1/models", None)):
                    told = await Visitor(s.port).fetch(method, path, body, headers={"Authorization": authorization})
                    assert told.status == 401
                    assert told.json["error"]["code"] == "invalid_api_key"
                    assert told.headers["www-authenticate"] == "Bearer"
                assert not s.model.requests

        run(scenario())

    def test_where_there_are_no_keys_v1_is_shut(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID], options={"v1_keys": ()}) as s:
                for key in (V1_KEY, "", "None"):
                    told = await Visitor(s.port).fetch("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
                    assert told.status == 401

        run(scenario())

    def test_hourly_budgets_are_for_strangers(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            options = {"requests_per_hour": 1, "address_factor": 1}
            limits = Limits(exchanges_per_visitor=1)
            async with serving(tmp_path, [ENDLESS] * 4, options=options, limits=limits) as s:
                streams = [await streamed(s) for _ in range(4)]
                for stream in streams:
                    assert await stream.head() == 200
                assert len(s.site.exchanges.running) == 4
                for stream in streams:
                    await stream.close()

        run(scenario())

    def test_how_many_are_under_way_in_all_bounds_callers_too(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS] * 3, limits=Limits(exchanges_running=2)) as s:
                streams = [await streamed(s) for _ in range(2)]
                for stream in streams:
                    await stream.head()
                told = await complete(s, {})
                assert (told.status, told.json["error"]["type"]) == (503, "server_error")
                assert told.headers["retry-after"]
                for stream in streams:
                    await stream.close()

        run(scenario())


class TestAnswering:
    @pytest.mark.parametrize(
        ("script", "limits", "status", "code"),
        [
            ([{"fail": {"status": 400, "message": "secret"}}], {}, 502, "upstream_error"),
            ([{"gate": "never"}], {"first_delta_seconds": 0.3}, 504, "timeout"),
            ([{"close": "reset"}], {"attempts": 1}, 502, "upstream_cut"),
        ],
    )
    @pytest.mark.parametrize("stream", [True, False])
    def test_a_failure_before_the_first_delta_has_a_status(
        self, tmp_path: Path, script: Any, limits: dict[str, Any], status: int, code: str, stream: bool
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [script], limits=Limits(**limits)) as s:
                told = await complete(s, {"stream": stream})
                assert told.status == status
                assert told.headers["content-type"] == "application/json"
                error = told.json["error"]
                assert (error["type"], error["code"]) == ("server_error", code)
                assert "secret" not in error["message"]
                assert told.headers["x-should-retry"] == "false"

        run(scenario())

    def test_a_server_that_is_told_to_end_says_so(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"gate": "never"}]] * 2) as s:
                asking = [asyncio.ensure_future(complete(s, {"stream": stream})) for stream in (True, False)]
                await s.model.wait_request(1)
                s.server.end()
                for told in await asyncio.gather(*asking):
                    assert (told.status, told.json["error"]["code"]) == (503, "interrupted")

        run(scenario())

    def test_a_refusal_of_the_model_to_go_on_is_no_failure(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            scripts = [[{"finish": "content_filter"}], [{"say": "a"}, {"finish": "length"}]]
            async with serving(tmp_path, scripts) as s:
                first = await (await streamed(s)).to_head()
                assert first.status == 200
                await first.to_end()
                assert '"finish_reason":"content_filter"' in first.body.decode()
                told = await complete(s, {})
                assert told.json["choices"][0]["finish_reason"] == "length"
                await first.close()

        run(scenario())

    def test_there_are_no_ids_and_the_stream_is_ended(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s:
                stream = await (await streamed(s)).to_head()
                await stream.to_end()
                assert b"id:" not in stream.body.replace(b'"id":', b"")
                assert stream.body.endswith(b"data: [DONE]\n\n")
                assert stream.headers["x-request-id"]
                await stream.close()

        run(scenario())

    def test_reasoning_is_given_where_the_assistant_shows_it(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            script = [{"think": "Hm."}, {"say": "Yes."}]
            async with serving(tmp_path, [script] * 2, visible=Visible(reasoning=True)) as s:
                told = await complete(s, {})
                assert told.json["choices"][0]["message"]["reasoning_content"] == "Hm."
                stream = await (await streamed(s)).to_head()
                await stream.to_end()
                assert b'"reasoning_content":"Hm."' in stream.body
                await stream.close()

        run(scenario())

    def test_every_completion_is_booked_on_its_caller(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID, ENDLESS]) as s:
                await complete(s, {})
                stream = await (await streamed(s)).to_head()
                await stream.until("word word ")
                await stream.close()
                await s.model.wait_left(1, timeout=1)
                async with asyncio.timeout(2):
                    while s.site.exchanges.running:
                        await asyncio.sleep(0.005)
                store = s.site.exchanges.store
                rows = await store.completions()
                assert [row.outcome for row in rows] == ["complete", "stopped"]
                first, second = [await store.exchange(row.exchange) for row in rows]
                assert first is not None and second is not None
                assert first.visitor == second.visitor
                assert V1_KEY not in first.visitor
                assert first.conversation != second.conversation

        run(scenario())


def test_the_limits_that_callers_are_let_off_are_the_visitors_own() -> None:
    """A guard for the one limit that the route lifts: everything else of `Limits` stays as the assistant has it."""
    limits = Limits()
    lifted = replace(limits, exchanges_per_visitor=limits.exchanges_running)
    assert lifted.exchanges_running == limits.exchanges_running
