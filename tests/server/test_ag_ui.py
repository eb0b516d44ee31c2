"""`/api/ag-ui`: AG-UI's own clients, and the bytes, against the server as it runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent, By, Cited, Code, Outcome, Routed, Text, ToolCalled, ToolReturned
from motamot.assistant import Assistant, Question
from motamot.exchange.exchange import Visible
from motamot.limits import Limits
from motamot.scripted.model import scripted_model
from tests.protocols.ag_ui_client import DECLARING, VERSIONS, client
from tests.protocols.strategies import HAZARDS
from tests.server.reading import Stream, Visitor, run
from tests.server.support import Served, serve_process, serving, upstream

PATH = "/api/ag-ui"
USER = {"id": "1", "role": "user", "content": "Hello"}
SAID = [{"say": ["Bon", "jour ", "😀\n"]}, {"usage": {"prompt": 9, "completion": 3, "cached": 2}}]
HELD = [{"say": "Hello "}, {"gate": "more"}, {"say": "world."}]
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]
CALL = [{"say": "I look."}, {"call": {"name": "get_time", "arguments": {"zone": "Europe/Paris"}, "id": "c1"}}]
TOOL = {
    "name": "get_time",
    "description": "The time on the page's clock.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
}
TEXT = "".join(hazard for hazard in HAZARDS if not re.search("[\ud800-\udfff]", hazard))
SECRET = "s" * 22
EACH = pytest.mark.parametrize("version", VERSIONS)


def body(run_id: str = "r1", *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"threadId": "t1", "runId": run_id, "messages": [*messages] or [USER], **fields}


async def ask(v: Visitor, run_id: str = "r1", *messages: dict[str, Any], path: str = PATH, **fields: Any) -> Stream:
    return await v.open("POST", path, body(run_id, *messages, **fields), protocol="ag-ui")


def events(stream: Stream) -> list[dict[str, Any]]:
    return [json.loads(block.data) for block in stream.blocks]


def kinds(stream: Stream) -> list[str]:
    return [event["type"] for event in events(stream)]


def text_of(messages: list[dict[str, Any]]) -> str:
    return "".join(message.get("content") or "" for message in messages if message["role"] == "assistant")


class TestRun:
    def test_it_is_a_stream_that_no_proxy_holds_back(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                stream = await (await ask(Visitor(s.port))).until("Hello ")  # while the model is held
                assert stream.status == 200
                assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
                assert (stream.headers["x-accel-buffering"], stream.headers["cache-control"]) == (
                    "no",
                    "no-cache, no-transform",
                )
                s.model.release("more")
                await stream.to_end()
                assert stream.text == "Hello world."
                assert kinds(stream)[0] == "RUN_STARTED"
                assert kinds(stream)[-1] == "RUN_FINISHED"
                assert b"\nid:" not in stream.body and b"\nevent:" not in stream.body and b"[DONE]" not in stream.body
                await stream.close()

        run(scenario())

    def test_every_hazard_comes_through(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": TEXT, "cut": "characters"}]]) as s:
                stream = await (await ask(Visitor(s.port))).to_end()
                assert stream.text == TEXT
                assert "".join(e["delta"] for e in events(stream) if e["type"] == "TEXT_MESSAGE_CONTENT") == TEXT
                await stream.close()

        run(scenario())

    def test_the_same_run_asked_again_is_joined_and_paid_once(self, tmp_path: Path) -> None:
        """A double click, a component that is mounted twice, a proxy that tries again."""

        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                first, second = await asyncio.gather(ask(v), ask(v))
                await asyncio.gather(first.until("Hello "), second.until("Hello "))
                s.model.release("more")
                await asyncio.gather(first.to_end(), second.to_end())
                third = await (await ask(v)).to_end()
                assert first.body == second.body == third.body
                assert len(s.model.requests) == 1
                for stream in (first, second, third):
                    await stream.close()

        run(scenario())

    @pytest.mark.parametrize(
        "other",
        [
            {"messages": [{**USER, "content": "Something else"}]},
            {"messages": [USER, {"role": "assistant", "content": "Hi."}, USER]},
            {"threadId": "t2"},
            {"tools": [TOOL]},
        ],
    )
    def test_another_run_under_the_same_name_is_a_conflict(self, tmp_path: Path, other: dict[str, Any]) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s:
                v = Visitor(s.port)
                await (await (await ask(v)).to_end()).close()
                told = await v.fetch("POST", PATH, {**body(), **other})
                assert (told.status, told.json["error"]["code"]) == (409, "conflict")
                assert len(s.model.requests) == 1

        run(scenario())

    def test_somebody_else_s_run_of_the_same_name_is_their_own(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID, [{"say": "Another."}]]) as s:
                first = await (await ask(Visitor(s.port))).to_end()
                second = await (await ask(Visitor(s.port))).to_end()
                assert (first.text, second.text) == ("Bonjour 😀\n", "Another.")
                assert events(first)[1]["value"]["conversation"] != events(second)[1]["value"]["conversation"]
                for stream in (first, second):
                    await stream.close()

        run(scenario())

    def test_leaving_stops_the_model(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                stream = await (await ask(v)).until("Hello ")
                began = time.monotonic()
                await stream.close()
                left = await s.model.wait_left(0)
                assert left.cancelled
                assert time.monotonic() - began < 1
                [again] = [await (await ask(v)).to_end()]  # the same run, and nothing is generated for it
                assert again.ended is not None
                assert (again.ended.outcome, again.ended.by) == (Outcome.STOPPED, By.DISCONNECT)
                assert len(s.model.requests) == 1
                await again.close()

        run(scenario())

    @pytest.mark.parametrize("declared", ["1.0", None])
    def test_a_stop_by_the_run_s_name_ends_it_as_cancelled(self, tmp_path: Path, declared: str | None) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                fields = {"protocolVersion": declared} if declared else {}
                stream = await (await ask(v, **fields)).until("Hello ")
                assert (await v.stop("r1")).status == 200
                assert (await s.model.wait_left(0)).cancelled
                await stream.to_end()
                outcome = {"outcome": {"type": "cancelled"}} if declared else {}
                last = events(stream)[-1]
                assert {name: last[name] for name in last if name != "usage"} == {
                    "type": "RUN_FINISHED",
                    "threadId": "t1",
                    "runId": "r1",
                    **outcome,
                }
                assert kinds(stream)[-3:-1] == ["TEXT_MESSAGE_END", "CUSTOM"]
                assert events(stream)[-2]["value"]["outcome"] == "stopped"
                await stream.close()

        run(scenario())

    @pytest.mark.parametrize(
        ("script", "text", "code"),
        [
            ([{"fail": {"status": 500, "message": "secret"}}], "", Code.UPSTREAM_ERROR),
            ([{"say": ["One ", "two "]}, {"close": "reset"}], "One two ", Code.UPSTREAM_CUT),
            ([{"say": ["One "]}, {"fail": {"message": "secret"}}], "One ", Code.UPSTREAM_ERROR),
        ],
    )
    def test_a_failure_is_an_error_event_and_no_text(
        self, tmp_path: Path, script: object, text: str, code: Code
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [script]) as s:
                stream = await (await ask(Visitor(s.port))).to_end()
                assert (stream.status, stream.text) == (200, text)
                assert events(stream)[-1]["type"] == "RUN_ERROR"
                assert events(stream)[-1]["code"] == code
                assert "secret" not in stream.body.decode()
                await stream.close()

        run(scenario())

    def test_an_answer_of_somebody_s_own_names_its_agent_and_its_sources(self, tmp_path: Path) -> None:
        async def skill(question: Question) -> AsyncIterator[AnswerEvent]:
            yield Routed(agent="skill.greeting", confidence=0.85, method="semantic")
            yield Text(f"You said {question.message}.")
            yield Cited(title="A book", url="https://example.org/")

        async def scenario() -> None:
            async with serving(tmp_path, []) as s:
                s.site.default.answer(skill)
                await s.site.stop()  # opened anew, with the answer
                stream = await (await ask(Visitor(s.port))).to_end()
                assert stream.events[1:4] == [
                    Routed(agent="skill.greeting", confidence=0.85, method="semantic"),
                    Text("You said Hello."),
                    Cited(title="A book", url="https://example.org/"),
                ]
                await stream.close()

        run(scenario())

    @pytest.mark.parametrize("seen", [True, False])
    def test_of_the_assistant_s_tools_a_visitor_sees_what_they_may(self, tmp_path: Path, seen: bool) -> None:
        def get_time(zone: str) -> str:
            """The time in a zone."""
            return f"12:00 in {zone}"

        async def scenario() -> None:
            visible = Visible(tool_arguments=seen, tool_results=seen)
            async with serving(tmp_path, [CALL, [{"say": "Noon."}]], tools=[get_time], visible=visible) as s:
                stream = await (await ask(Visitor(s.port))).to_end()
                assert stream.text == "I look.\n\nNoon."
                arguments = {"zone": "Europe/Paris"} if seen else None
                told = "12:00 in Europe/Paris" if seen else None
                assert ToolCalled(id="c1", name="get_time", arguments=arguments) in stream.events
                assert ToolReturned(id="c1", name="get_time", status="ok", result=told) in stream.events
                assert ("Paris" in stream.body.decode()) is seen
                await stream.close()

        run(scenario())

    def test_bringing_a_tool_shows_nothing_of_the_assistant_s_own(self, tmp_path: Path) -> None:
        async def skill(question: Question) -> AsyncIterator[AnswerEvent]:
            yield ToolCalled(id="x1", name="look_up", arguments={"customer": "4711"})
            yield ToolReturned(id="x1", name="look_up", status="ok", result="owes 99")
            yield ToolCalled(id="x2", name="get_time", arguments={"zone": "of 4711"})
            yield ToolReturned(id="x2", name="get_time", status="ok", result="99")
            async for event in question.model_answer():
                yield event

        async def scenario() -> None:
            async with serving(tmp_path, [CALL]) as s:
                s.site.default.answer(skill)
                await s.site.stop()  # opened anew, with the answer
                stream = await (await ask(Visitor(s.port), tools=[TOOL])).to_end()
                assert b"4711" not in stream.body and b"99" not in stream.body
                calls = [event for event in stream.events if isinstance(event, ToolCalled)]
                assert calls[-1] == ToolCalled(id="c1", name="get_time", arguments={"zone": "Europe/Paris"})
                assert [call.arguments for call in calls[:-1]] == [None, None]
                await stream.close()

        run(scenario())

    def test_reasoning_comes_apart_from_the_text_where_it_may_be_seen(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            script = [{"think": "Hm."}, {"say": "Yes."}]
            async with serving(tmp_path, [script], visible=Visible(reasoning=True)) as s:
                stream = await (await ask(Visitor(s.port))).to_end()
                assert stream.text == "Yes."
                assert [e["delta"] for e in events(stream) if e["type"] == "REASONING_MESSAGE_CONTENT"] == ["Hm."]
                await stream.close()
            async with serving(tmp_path, [script]) as s:
                stream = await (await ask(Visitor(s.port), "r2")).to_end()
                assert b"Hm." not in stream.body
                await stream.close()

        run(scenario())


class TestAsking:
    def test_the_history_is_what_the_client_sends_and_as_much_as_of_ours(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            limits = Limits(history_tokens=120)
            long = {"role": "user", "content": "An old question of many words. " * 40}
            history = [long, {"role": "assistant", "content": "Old."}, {"role": "user", "content": "Newer?"}]
            context = [{"description": "The page", "value": "Chords"}]
            async with serving(tmp_path, [SAID], limits=limits, system="Be kind.") as s:
                asked = [*history, {"role": "assistant", "content": "Newer."}, USER]
                stream = await (await ask(Visitor(s.port), "r1", *asked, context=context)).to_end()
                assert [(m["role"], m["content"]) for m in s.model.requests[0].body["messages"]] == [
                    ("system", "Be kind."),
                    ("user", "Newer?"),
                    ("assistant", "Newer."),
                    ("user", "The page\nChords\n\nHello"),
                ]
                await stream.close()

        run(scenario())

    def test_a_thread_is_one_conversation_of_its_visitor(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID, [{"say": "Again."}]]) as s:
                v = Visitor(s.port)
                first = await (await ask(v)).to_end()
                second = await (await ask(v, "r2")).to_end()
                names = {events(stream)[1]["value"]["conversation"] for stream in (first, second)}
                [name] = names
                told = await v.fetch("GET", f"/api/conversations/{name}")
                assert [(one["question"], one["text"], one["key"]) for one in told.json["exchanges"]] == [
                    ("Hello", "Bonjour 😀\n", "r1"),
                    ("Hello", "Again.", "r2"),
                ]
                assert (await Visitor(s.port).fetch("GET", f"/api/conversations/{name}")).status == 404
                assert (await v.fetch("DELETE", f"/api/conversations/{name}")).status == 204
                assert (await v.fetch("POST", PATH, body("r3"))).status == 404  # it is gone, and does not come back
                for stream in (first, second):
                    await stream.close()

        run(scenario())

    def test_a_visitor_without_a_secret_gets_a_cookie(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s:
                async with s.client.post(s.url + PATH, json=body()) as first:
                    told = await first.read()
                    assert "HttpOnly" in first.headers["set-cookie"]
                async with s.client.post(s.url + PATH, json=body()) as second:  # with it: the same visitor's run
                    assert await second.read() == told
                    assert "set-cookie" not in second.headers
                assert len(s.model.requests) == 1

        run(scenario())

    def test_the_address_names_the_assistant(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            def two(url: str) -> list[Assistant]:
                return [Assistant(name=name, system=name, upstream=url, model="scripted") for name in ("tea", "coffee")]

            async with serving(tmp_path, [SAID, SAID], assistants=two) as s:
                v = Visitor(s.port)
                for run_id, path in (("r1", PATH), ("r2", f"{PATH}?assistant=coffee")):
                    await (await (await ask(v, run_id, path=path)).to_end()).close()
                assert [r.body["messages"][0]["content"] for r in s.model.requests] == ["tea", "coffee"]
                assert (await v.fetch("POST", f"{PATH}?assistant=milk", body("r3"))).status == 404

        run(scenario())

    def test_what_is_not_taken_is_refused_in_words_and_costs_nothing(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, []) as s:
                v = Visitor(s.port)
                told = await v.fetch("POST", PATH, body("r1", {**USER, "role": "system"}))
                assert (told.status, told.json["error"]["field"]) == (400, "messages[0].role")
                image = {**USER, "content": [{"type": "image", "source": {"type": "url", "value": "x"}}]}
                told = await v.fetch("POST", PATH, body("r1", image))
                assert (told.status, told.json["error"]["field"]) == (400, "messages[0].content[0]")
                told = await v.fetch("POST", PATH, body(), headers={"Content-Type": "text/plain"})
                assert told.status == 415
                told = await v.fetch("POST", PATH, body(), headers={"Origin": "https://elsewhere.example"})
                assert told.status == 403
                told = await v.fetch("GET", PATH)
                assert (told.status, told.headers["allow"]) == (405, "POST")
                told = await v.fetch("POST", PATH, body(), headers={"Accept": "application/vnd.ag-ui.event+proto"})
                assert (told.status, told.json["error"]["code"]) == (406, "not_acceptable")
                assert s.model.requests == []

        run(scenario())

    @pytest.mark.parametrize(
        "accept", ["application/vnd.ag-ui.event+proto, text/event-stream;q=0.9", "*/*", "application/json"]
    )
    def test_whoever_can_read_events_gets_them(self, tmp_path: Path, accept: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID]) as s:
                v = Visitor(s.port)
                stream = await v.open("POST", PATH, body(), headers={"Accept": accept}, protocol="ag-ui")
                await stream.to_end()
                assert stream.text == "Bonjour 😀\n"
                await stream.close()

        run(scenario())

    def test_a_listed_page_of_another_site_may_ask_and_read(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            listed = "https://pages.example"
            async with serving(tmp_path, [SAID], origins=[listed]) as s:
                v = Visitor(s.port)
                wanted = {
                    "Origin": listed,
                    "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "authorization,content-type",
                }
                told = await v.fetch("OPTIONS", PATH, headers=wanted)
                assert told.headers["access-control-allow-headers"] == "authorization,content-type"
                stream = await v.open("POST", PATH, body(), headers={"Origin": listed}, protocol="ag-ui")
                assert stream.headers["access-control-allow-origin"] == listed
                await (await stream.to_end()).close()

        run(scenario())

    def test_a_stranger_s_requests_are_counted(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SAID], options={"requests_per_hour": 1}) as s:
                v = Visitor(s.port)
                await (await (await ask(v)).to_end()).close()
                again = await (await ask(v)).to_end()  # joins what is there
                assert again.status == 200
                assert (await v.fetch("POST", PATH, body("r2"))).status == 429
                assert len(s.model.requests) == 1
                await again.close()

        run(scenario())


async def their(s: Served, version: str, act: str = "run", **told: Any) -> dict[str, Any]:
    asked = {"threadId": "t1", "messages": [USER], "parameters": {"runId": "r1"}, **told}
    return await client(version, act, url=s.url + PATH, secret=SECRET, **asked)


class TestClients:
    """`@ag-ui/client` as it is, at each version that is told to work."""

    @EACH
    def test_an_answer(self, tmp_path: Path, version: str) -> None:
        async def scenario() -> None:
            said = [{"say": TEXT, "cut": "words"}, {"usage": {"prompt": 9, "completion": 3}}]
            async with serving(tmp_path, [said]) as s:
                got = await their(s, version)
                assert (got["rejected"], got["errors"], got["warnings"]) == (None, [], [])
                assert [message["role"] for message in got["messages"]] == ["user", "assistant"]
                assert text_of(got["messages"]) == TEXT
                last = got["events"][-1]
                assert (last["threadId"], last["runId"]) == ("t1", "r1")
                assert last["usage"][0]["totalTokens"] == 12
                assert ("protocolVersion" in got["events"][0]) is (version in DECLARING)

        run(scenario())

    @EACH
    def test_the_next_question_with_all_that_it_has_gathered(self, tmp_path: Path, version: str) -> None:
        """A tool that ran here stands in its history; the model is told the texts."""

        def get_time(zone: str) -> str:
            """The time in a zone."""
            return zone

        async def scenario() -> None:
            async with serving(tmp_path, [CALL, [{"say": "Noon."}], SAID], tools=[get_time]) as s:
                first = await their(s, version)
                assert [message["role"] for message in first["messages"]] == ["user", "assistant", "tool", "assistant"]
                assert text_of(first["messages"]) == "I look.\n\nNoon."
                more = [*first["messages"], {**USER, "id": "9", "content": "Thanks."}]
                second = await their(s, version, messages=more, parameters={"runId": "r2"})
                assert (second["rejected"], second["warnings"]) == (None, [])
                told = s.model.requests[2].body["messages"]
                assert [message["role"] for message in told] == ["user", "assistant", "user"]
                assert told[1]["content"] == "I look.\n\nNoon."

        run(scenario())

    @EACH
    def test_its_own_tools(self, tmp_path: Path, version: str) -> None:
        async def scenario() -> None:
            call = [{"call": {"name": "get_time", "arguments": {"zone": "x"}, "id": "c1"}}]  # the same id again
            async with serving(tmp_path, [CALL, call, [{"say": "Noon."}]]) as s:
                got = await their(s, version, "tools", parameters={"tools": [TOOL]})
                runs = got["runs"]
                assert [one["rejected"] for one in runs] == [None] * 3
                assert got["warnings"] == []
                assert text_of(runs[-1]["messages"]) == "I look.Noon."
                asked = [request.body for request in s.model.requests]
                assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["get_time"]
                last = asked[2]["messages"]
                assert [message["role"] for message in last] == ["user", "assistant", "tool", "assistant", "tool"]
                for calling, answer in ((last[1], last[2]), (last[3], last[4])):
                    assert calling["tool_calls"][0]["id"] == answer["tool_call_id"]
                assert json.loads(last[2]["content"]) == {"got": {"zone": "Europe/Paris"}}
                assert json.loads(last[4]["content"]) == {"got": {"zone": "x"}}

        run(scenario())

    @EACH
    def test_its_abort_stops_the_model(self, tmp_path: Path, version: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                asking = asyncio.ensure_future(their(s, version, "abort", after=3))
                left = await s.model.wait_left(0, timeout=40)
                assert left.cancelled
                got = await asking
                assert text_of(got["messages"]).startswith("word word word ")
                row = await s.site.exchanges.store.exchange_by_key(hashlib.sha256(SECRET.encode()).hexdigest(), "r1")
                assert row is not None
                assert (row.outcome, row.by) == ("stopped", "disconnect")
                assert len(s.model.requests) == 1

        run(scenario())

    @EACH
    def test_a_stop_and_a_failure(self, tmp_path: Path, version: str) -> None:
        async def scenario() -> None:
            broken = [{"say": ["One "]}, {"close": "reset"}]
            async with serving(tmp_path, [broken, HELD]) as s:
                got = await their(s, version)
                assert (got["rejected"], got["warnings"]) == (None, [])
                assert [error["code"] for error in got["errors"]] == ["upstream_cut"]
                assert text_of(got["messages"]) == "One "
                asking = asyncio.ensure_future(their(s, version, parameters={"runId": "r2"}))
                await s.model.wait_gate("more", timeout=40)
                assert (await Visitor(s.port, SECRET).stop("r2")).status == 200
                got = await asking
                assert (got["rejected"], got["errors"], got["warnings"]) == (None, [], [])
                assert text_of(got["messages"]) == "Hello "
                assert got["events"][-2]["value"]["outcome"] == "stopped"
                outcome = {"type": "cancelled"} if version in DECLARING else None
                assert got["events"][-1].get("outcome") == outcome

        run(scenario())

    @EACH
    def test_a_refusal_is_its_error_with_our_words(self, tmp_path: Path, version: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, []) as s:
                got = await their(s, version, messages=[{**USER, "role": "system"}])
                assert "HTTP 400" in got["rejected"]
                assert "messages[0].role" in got["rejected"]

        run(scenario())

    @EACH
    def test_a_model_that_is_silent_for_long(self, tmp_path: Path, version: str) -> None:
        """Comments keep the connection, between any two events."""

        async def scenario() -> None:
            slow = [{"say": "One "}, {"wait": 700}, {"say": "two"}, {"wait": 700}]
            async with serving(tmp_path, [slow], limits=Limits(heartbeat_seconds=0.2)) as s:
                got = await their(s, version)
                assert (got["rejected"], text_of(got["messages"])) == (None, "One two")

        run(scenario())


def test_the_client_in_front_of_motamot_serve(tmp_path: Path) -> None:
    """The command as it is, with nothing set but its model."""

    async def scenario(url: str) -> dict[str, Any]:
        return await client("1.0.0", "run", url=url + PATH, threadId="t1", messages=[USER], parameters={"runId": "r1"})

    with scripted_model([SAID]) as model, serve_process(tmp_path, *upstream(model.url)) as process:
        got = run(scenario(process.url))
        assert (got["rejected"], got["errors"], got["warnings"]) == (None, [], [])
        assert text_of(got["messages"]) == "Bonjour 😀\n"
