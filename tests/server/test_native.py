"""The native routes: ask, follow, resume, stop, the whole answer, the transcript."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from motamot.answer import AnswerEvent, By, Cited, Outcome, Started, Text, ToolCalled, ToolReturned
from motamot.assistant import Assistant, Question
from motamot.limits import Limits
from motamot.scripted.model import ScriptedModel
from tests.scripted.wire import Client
from tests.server.reading import Stream, Visitor, request, run
from tests.server.support import Served, serve_process, serving, upstream

WORDS = [f"w{number} " for number in range(10)]
ANSWER = "".join(WORDS)
HELD = [{"say": WORDS[:5]}, {"gate": "more"}, {"say": WORDS[5:]}]
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]
SILENT = [{"gate": "first"}, {"say": "Hello."}]


async def quiet(s: Served, seconds: float = 3) -> None:
    async with asyncio.timeout(seconds):
        while s.site.exchanges.running:
            await asyncio.sleep(0.005)


async def transcript(v: Visitor, conversation: str) -> list[dict[str, Any]]:
    """The exchanges of a conversation."""
    told = await v.fetch("GET", f"/api/conversations/{conversation}")
    assert told.status == 200
    exchanges: list[dict[str, Any]] = told.json["exchanges"]
    return exchanges


def conversation(stream: Stream) -> str:
    started = stream.events[0]
    assert isinstance(started, Started)
    return started.conversation


class TestFollowing:
    @pytest.mark.parametrize("how", ["Last-Event-ID", "after", "a question under the same key", "by key"])
    def test_an_answer_goes_on_behind_what_was_had(self, tmp_path: Path, how: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                first = await (await v.ask(key="k1", resumable=True)).until("w2 ")
                await first.close()
                path = f"/api/exchanges/{'k1' if how == 'by key' else first.exchange}/events"
                last = {"Last-Event-ID": first.last_id}
                if how == "after":
                    second = await v.open("GET", f"{path}?after={first.last_id.rpartition('.')[2]}")
                elif how == "a question under the same key":
                    second = await v.ask(key="k1", resumable=True, headers=last)
                else:
                    second = await v.open("GET", path, headers=last)
                s.model.release("more")
                await second.to_end()
                assert first.text + second.text == ANSWER
                numbers = [int(block.id.rpartition(".")[2]) for block in [*first.blocks, *second.blocks]]
                assert numbers == list(range(1, len(numbers) + 1))
                assert second.ended is not None
                assert second.ended.outcome is Outcome.COMPLETE
                assert len(s.model.requests) == 1
                await second.close()

        run(scenario())

    def test_any_point_of_an_ended_answer_can_be_read_from(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}]]) as s:
                v = Visitor(s.port)
                first = await (await v.ask()).to_end()
                await first.close()
                for had in range(len(first.blocks)):
                    again = await v.open("GET", f"/api/exchanges/{first.exchange}/events?after={had}")
                    await again.to_end()
                    assert again.blocks == first.blocks[had:]
                    await again.close()

        run(scenario())

    @pytest.mark.parametrize("last", ["", "w.9", "other.5", "9" * 50, "x" * 5_000, "a.b.c", "\xe9.1"])
    def test_what_is_no_id_of_this_answer_means_its_beginning(self, tmp_path: Path, last: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}]]) as s:
                v = Visitor(s.port)
                first = await (await v.ask()).to_end()
                await first.close()
                path = f"/api/exchanges/{first.exchange}/events"
                again = await (await v.open("GET", path, headers={"Last-Event-ID": last})).to_end()
                assert again.blocks == first.blocks
                await again.close()

        run(scenario())

    def test_nothing_is_left_of_an_answer_that_was_had_to_its_end(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}]]) as s:
                v = Visitor(s.port)
                first = await (await v.ask(key="k")).to_end()
                await first.close()
                last = {"Last-Event-ID": first.last_id}
                path = f"/api/exchanges/{first.exchange}/events"
                told = await v.fetch("GET", path, headers=last)
                assert (told.status, told.body) == (204, b"")
                again = await v.fetch("POST", "/api/chat/stream", {"message": "Hello", "key": "k"}, headers=last)
                assert again.status == 204
                beyond = await v.open("GET", f"{path}?after=100000")  # more than there is: only the end can be new
                await beyond.to_end()
                assert [type(event).__name__ for event in beyond.events] == ["Ended"]
                await beyond.close()

        run(scenario())

    @pytest.mark.parametrize("after", ["-1", "x", "1e3", "٣", "1" * 10, "", "1.0"])
    def test_a_place_that_is_no_number_is_refused(self, tmp_path: Path, after: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "Hi"}]]) as s:
                v = Visitor(s.port)
                first = await (await v.ask()).to_end()
                await first.close()
                asked = after.encode().hex("%", 1)
                told = await v.fetch("GET", f"/api/exchanges/{first.exchange}/events?after={asked and '%' + asked}")
                assert told.status == 400
                assert told.json["error"]["field"] == "after"

        run(scenario())

    def test_a_second_tab_sees_the_running_answer(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                first = await (await v.ask()).until("w4 ")
                second = await v.open("GET", f"/api/exchanges/{first.exchange}/events")
                await second.until("w4 ")
                s.model.release("more")
                await first.to_end()
                await second.to_end()
                assert first.events == second.events
                await first.close()
                await second.close()

        run(scenario())

    def test_a_stranger_finds_nothing(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v, stranger = Visitor(s.port), Visitor(s.port)
                first = await (await v.ask(key="mine")).until("w0 ")
                for name in (first.exchange, "mine", "nothing"):
                    told = await stranger.fetch("GET", f"/api/exchanges/{name}/events")
                    assert (told.status, told.json["error"]["code"]) == (404, "not_found")
                assert (await stranger.stop(first.exchange)).status == 202  # remembered for an exchange of theirs
                assert (await stranger.fetch("GET", f"/api/conversations/{conversation(first)}")).status == 404
                assert (await stranger.fetch("DELETE", f"/api/conversations/{conversation(first)}")).status == 404
                assert s.site.exchanges.running
                s.model.release("more")
                assert (await first.to_end()).text == ANSWER
                await first.close()

        run(scenario())


class TestComingBack:
    def test_without_a_key_leaving_is_a_stop_whatever_was_said(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                stream = await (await Visitor(s.port).ask(resumable=True)).until("w1 ")
                await stream.close()
                await s.model.wait_left(0, timeout=1)

        run(scenario())

    def test_the_answer_runs_on_for_one_that_can_come_back(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD], limits=Limits(resume_seconds=5)) as s:
                v = Visitor(s.port)
                stream = await (await v.ask(key="k", resumable=True)).until("w1 ")
                await stream.close()
                await asyncio.sleep(0.3)
                s.model.release("more")
                await quiet(s)
                [one] = await transcript(v, conversation(stream))
                assert (one["text"], one["outcome"]) == (ANSWER, "complete")
                back = await (await v.ask(key="k", resumable=True)).to_end()
                assert back.text == ANSWER
                assert len(s.model.requests) == 1
                await back.close()

        run(scenario())

    def test_one_that_does_not_come_back_abandons_it_and_finds_what_was_sent(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            script = [{"say": WORDS[:3]}, {"gate": "more"}, {"say": WORDS[3:6]}, {"gate": "end"}]
            async with serving(tmp_path, [script], limits=Limits(resume_seconds=0.5)) as s:
                v = Visitor(s.port)
                stream = await (await v.ask(key="k", resumable=True)).until("w2 ")
                await stream.close()
                s.model.release("more")
                await s.model.wait_gate("end")
                await s.model.wait_left(0, timeout=2)
                await quiet(s)
                back = await v.open("GET", "/api/exchanges/k/events")
                await back.to_end()
                assert back.text == stream.text == "w0 w1 w2 "
                assert back.ended is not None
                assert back.ended.outcome is Outcome.ABANDONED
                [one] = await transcript(v, conversation(stream))
                assert (one["text"], one["outcome"]) == ("w0 w1 w2 ", "abandoned")
                await back.close()

        run(scenario())


class TestKeys:
    def test_two_that_ask_at_once_under_one_key_share_one_generation(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}], [{"say": "second"}]]) as s:
                v = Visitor(s.port)
                streams = await asyncio.gather(*(v.ask(key="k") for _ in range(5)))
                for stream in streams:
                    await stream.to_end()
                    assert stream.events == streams[0].events
                    await stream.close()
                assert streams[0].text == ANSWER
                assert len(s.model.requests) == 1

        run(scenario())

    def test_a_key_used_for_another_question_is_a_conflict(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                stream = await (await v.ask(key="k")).until("w0 ")
                for _ in range(2):  # while it runs, and when it has ended
                    other = await v.fetch("POST", "/api/chat/stream", {"message": "Other", "key": "k"})
                    assert (other.status, other.json["error"]["code"]) == (409, "conflict")
                    s.model.release("more")
                    await stream.to_end()
                assert (
                    await Visitor(s.port).fetch("POST", "/api/chat", {"message": "Other", "key": "k"})
                ).status != 409
                await stream.close()

        run(scenario())

    def test_joining_spends_nothing(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            options = {"requests_per_hour": 1}
            async with serving(tmp_path, [[{"say": WORDS}]] * 2, options=options) as s:
                v = Visitor(s.port)
                first = await v.fetch("POST", "/api/chat", {"message": "Hello", "key": "k"})
                again = await v.fetch("POST", "/api/chat", {"message": "Hello", "key": "k"})
                assert (first.status, again.status) == (200, 200)
                assert again.json == first.json
                assert (await v.fetch("POST", "/api/chat", {"message": "Hello", "key": "l"})).status == 429

        run(scenario())

    @pytest.mark.parametrize("key", ["a/b", "stop", "x/events", "é?#%", "a b", "../x", "k" * 200])
    def test_any_key_can_stand_in_an_address(self, tmp_path: Path, key: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                stream = await (await v.ask(key=key)).until("w1 ")
                path = f"/api/exchanges/{quote(key, safe='')}"
                second = await (await v.open("GET", f"{path}/events")).until("w1 ")
                told = await v.fetch("POST", f"{path}/stop", {})
                assert told.json["outcome"] == "stopped"
                await stream.close()
                await second.close()

        run(scenario())


class TestStopping:
    @pytest.mark.parametrize("by", ["id", "key"])
    def test_a_stop_ends_the_model_and_the_transcript_shows_what_was_seen(self, tmp_path: Path, by: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                v = Visitor(s.port)
                stream = await (await v.ask(key="k")).until("word word ")
                seen = [block.id for block in stream.blocks if b"text" in block.data.encode()][1]
                stopped = await v.stop(stream.exchange if by == "id" else "k", int(seen.rpartition(".")[2]))
                assert stopped.status == 200
                assert stopped.json == {"outcome": "stopped", "shown": int(seen.rpartition(".")[2])}
                left = await s.model.wait_left(0, timeout=1)
                assert left.cancelled
                await stream.to_end()
                assert stream.ended is not None
                assert (stream.ended.outcome, stream.ended.by) == (Outcome.STOPPED, By.VISITOR)
                [one] = await transcript(v, conversation(stream))
                assert (one["text"], one["outcome"]) == ("word word ", "stopped")
                again = await v.stop("k", 1)  # changes nothing
                assert (again.status, again.json) == (200, stopped.json)
                await stream.close()

        run(scenario())

    def test_a_stop_may_come_before_its_question(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                v = Visitor(s.port)
                early = await v.stop("k", 0)
                assert (early.status, early.json["outcome"]) == (202, None)
                assert "nothing of this name" in early.json["message"]
                stream = await (await v.ask(key="k")).to_end()
                assert stream.ended is not None
                assert stream.ended.outcome is Outcome.STOPPED
                assert stream.text == ""
                assert not s.model.requests
                await stream.close()

        run(scenario())

    def test_an_empty_body_is_a_stop_too(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                v = Visitor(s.port)
                stream = await (await v.ask()).until("word ")
                path = f"/api/exchanges/{stream.exchange}/stop"
                told = await v.fetch("POST", path, headers={"Content-Type": "application/json"}, raw=b"")
                assert told.json["outcome"] == "stopped"
                for odd in (b"{", b'{"seen": -1}', b'{"seen": "1"}', b"[]"):
                    refused = await v.fetch("POST", path, headers={"Content-Type": "application/json"}, raw=odd)
                    assert refused.status == 400
                await stream.to_end()
                await stream.close()

        run(scenario())

    def test_from_a_stop_to_the_model_s_connection_closed_it_takes_a_tenth_of_a_second(self, tmp_path: Path) -> None:
        """The bar: measured from the request's first byte at the client to the close seen by the model's server."""

        async def scenario() -> list[float]:
            took = []
            async with serving(tmp_path, [ENDLESS] * 9) as s:
                v = Visitor(s.port)
                for number in range(9):
                    stream = await (await v.ask()).until("word word ")
                    at = time.monotonic()
                    stopping = asyncio.ensure_future(v.stop(stream.exchange))
                    left = await s.model.wait_left(number, timeout=2)
                    assert left.left_at is not None
                    took.append(left.left_at - at)
                    await stopping
                    await stream.close()
            return took

        took = run(scenario())
        assert statistics.median(took) < Limits().stop_seconds, took

    def test_the_stop_is_answered_when_the_model_s_connection_is_closed(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                v = Visitor(s.port)
                stream = await v.ask(key="k")
                await s.model.wait_gate("first")
                await v.stop("k")
                assert not s.site.exchanges.running
                await s.model.wait_left(0, timeout=0.2)
                await stream.close()

        run(scenario())


class TestWhole:
    def test_the_whole_answer_is_one_document(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            script = [{"say": WORDS}, {"usage": {"prompt": 7, "completion": 11}}]
            async with serving(tmp_path, [script]) as s:
                told = await Visitor(s.port).fetch("POST", "/api/chat", {"message": "Hello"})
                assert told.status == 200
                assert told.headers["cache-control"] == "no-store"
                answer = told.json
                assert (answer["text"], answer["outcome"], answer["sources"]) == (ANSWER, "complete", [])
                assert answer["usage"]["completion_tokens"] == 11
                assert answer["exchange"] and answer["conversation"]

        run(scenario())

    @pytest.mark.parametrize(
        ("script", "limits", "status", "outcome", "code"),
        [
            ([{"fail": {"status": 400, "message": "secret detail"}}], {}, 502, "failed", "upstream_error"),
            ([{"say": ["One "]}, {"close": "reset"}], {}, 502, "failed", "upstream_cut"),
            ([{"gate": "never"}], {"first_delta_seconds": 0.3}, 504, "failed", "timeout"),
            ([{"gate": "never"}], {"answer_timeout": 0.3}, 504, "failed", "timeout"),
            ([{"say": "One"}, {"finish": "length"}], {}, 200, "truncated", None),
            ([{"say": "One"}, {"finish": "content_filter"}], {}, 200, "filtered", None),
        ],
    )
    def test_its_status_is_true_to_how_the_answer_ended(
        self, tmp_path: Path, script: Any, limits: dict[str, Any], status: int, outcome: str, code: str | None
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [script], limits=Limits(**limits)) as s:
                told = await Visitor(s.port).fetch("POST", "/api/chat", {"message": "Hello"})
                assert told.status == status
                assert (told.json["outcome"], told.json.get("code")) == (outcome, code)
                assert "secret detail" not in told.body.decode()
                assert ("message" in told.json) == (outcome == "failed")

        run(scenario())

    def test_a_server_that_is_told_to_end_says_so(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                asking = asyncio.ensure_future(Visitor(s.port).fetch("POST", "/api/chat", {"message": "Hello"}))
                await s.model.wait_gate("first")
                s.server.end()
                told = await asking
                assert (told.status, told.json["outcome"]) == (503, "interrupted")

        run(scenario())

    def test_leaving_before_it_is_there_is_leaving(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                v = Visitor(s.port)
                client = await Client.to(s.port)
                await client.send(request("POST", "/api/chat", {"message": "Hello", "key": "k"}, headers=v.headers))
                await s.model.wait_pieces(0, 3)
                await client.close()
                assert (await s.model.wait_left(0, timeout=1)).cancelled
                await quiet(s)
                told = await v.fetch("POST", "/api/chat", {"message": "Hello", "key": "k"})
                assert told.json["outcome"] == "stopped"

        run(scenario())


class TestTranscript:
    def test_a_conversation_has_its_exchanges_in_order(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "One."}], [{"say": "Two."}], HELD]) as s:
                v = Visitor(s.port)
                first = await (await v.ask("first?")).to_end()
                second = await (await v.ask("second?", conversation=conversation(first))).to_end()
                third = await (await v.ask("third?", conversation=conversation(first))).until("w0 ")
                shown = await transcript(v, conversation(first))
                assert [(one["question"], one["outcome"]) for one in shown] == [
                    ("first?", "complete"),
                    ("second?", "complete"),
                    ("third?", None),
                ]
                assert [one["text"] for one in shown][:2] == ["One.", "Two."]
                assert "One." in str(s.model.requests[1].body["messages"])
                for stream in (first, second, third):
                    await stream.close()

        run(scenario())

    def test_an_exchange_has_the_sources_and_tools_that_were_shown(self, tmp_path: Path) -> None:
        """After a reload, and a restart; never what a tool was asked or gave, nor what came behind a stop."""

        def chat(_: str) -> list[Assistant]:
            one = Assistant(upstream=None)

            @one.answer
            async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
                yield ToolCalled(id="1", name="search", arguments={"query": "secret"})
                yield ToolReturned(id="1", name="search", status="ok", result="secret")
                yield Text("Here. ")
                yield Cited(title="Hours", url="https://shop.example/hours", quote="nine to five", mark="[1]")
                if question.message == "stopped?":
                    yield ToolCalled(id="2", name="lookup")
                    yield Text("there. ")
                    yield Cited(title="Not shown")
                    await asyncio.sleep(60)

            return [one]

        expected = [{"title": "Hours", "url": "https://shop.example/hours", "quote": "nine to five", "mark": "[1]"}]

        async def scenario() -> None:
            secret = "s" * 22
            async with serving(tmp_path, [], assistants=chat) as s:
                v = Visitor(s.port, secret)
                first = await (await v.ask("whole?")).to_end()
                name = conversation(first)
                second = await (await v.ask("stopped?", conversation=name)).until("there. ")
                seen = next(n for n, event in enumerate(second.events, 1) if isinstance(event, Cited))
                await v.fetch("POST", f"/api/exchanges/{second.exchange}/stop", {"seen": seen})
                for stream in (first, second):
                    await stream.close()
            async with serving(tmp_path, [], assistants=chat) as s:
                whole, stopped = await transcript(Visitor(s.port, secret), name)
                assert (whole["sources"], whole["tools"]) == (expected, [{"name": "search", "status": "ok"}])
                assert (stopped["sources"], stopped["tools"]) == (expected, [{"name": "search", "status": "ok"}])
                assert "secret" not in str(whole) + str(stopped)

        run(scenario())

    def test_a_conversation_is_deleted_though_an_answer_is_running(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "One."}], ENDLESS]) as s:
                v = Visitor(s.port)
                first = await (await v.ask("first?")).to_end()
                name = conversation(first)
                second = await (await v.ask("second?", conversation=name, key="k")).until("word word ")
                gone = await v.fetch("DELETE", f"/api/conversations/{name}")
                assert (gone.status, gone.body) == (204, b"")
                assert (await s.model.wait_left(1, timeout=1)).cancelled
                await second.to_end()
                assert second.ended is not None
                assert second.ended.outcome is Outcome.STOPPED
                assert (await v.fetch("GET", f"/api/conversations/{name}")).status == 404
                assert (await v.fetch("DELETE", f"/api/conversations/{name}")).status == 404
                for exchange in (first.exchange, second.exchange, "k"):
                    assert (await v.fetch("GET", f"/api/exchanges/{exchange}/events")).status == 404
                told = await v.fetch("POST", "/api/chat", {"message": "third?", "conversation": name})
                assert told.status == 404
                store = s.site.exchanges.store
                await store.flush()
                for exchange in (first.exchange, second.exchange):
                    row = await store.exchange(exchange)
                    assert row is not None
                    assert (row.question, row.generated, row.shown) == (None, None, None)
                    assert row.outcome is not None
                    assert await store.completions(exchange=exchange)  # what was spent stays in the books
                await first.close()
                await second.close()

        run(scenario())


class TestRestart:
    def test_an_answer_outlives_the_server(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}]]) as s:
                v = Visitor(s.port)
                first = await (await v.ask(key="k")).to_end()
                await first.close()
            async with serving(tmp_path, []) as s:
                v = Visitor(s.port, v.secret)
                for path in (f"/api/exchanges/{first.exchange}/events", "/api/exchanges/k/events"):
                    again = await (await v.open("GET", path)).to_end()
                    assert again.text == ANSWER
                    assert again.ended is not None
                    assert again.ended.outcome is Outcome.COMPLETE
                    await again.close()
                middle = first.blocks[4].id
                rest = await v.open("GET", "/api/exchanges/k/events", headers={"Last-Event-ID": middle})
                await rest.to_end()
                assert first.text.endswith(rest.text)
                texts = {block.id: block.data for block in first.blocks if '"text"' in block.data}
                assert {block.id: block.data for block in rest.blocks if '"text"' in block.data} == {
                    one: data for one, data in texts.items() if int(one.rpartition(".")[2]) > 5
                }
                await rest.close()
                joined = await v.fetch("POST", "/api/chat", {"message": "Hello", "key": "k"})
                assert joined.json["text"] == ANSWER
                assert not s.model.requests

        run(scenario())

    def test_a_shutdown_ends_a_running_answer_as_interrupted(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                first = await (await v.ask(key="k", resumable=True)).until("w4 ")
                s.server.end()
                await first.to_end()
                assert first.ended is not None
                assert first.ended.outcome is Outcome.INTERRUPTED
                await first.close()
            async with serving(tmp_path, []) as s:
                v = Visitor(s.port, v.secret)
                told = await v.fetch("GET", "/api/exchanges/k/events", headers={"Last-Event-ID": first.last_id})
                assert told.status == 204
                again = await (await v.open("GET", "/api/exchanges/k/events")).to_end()
                assert again.text == first.text == "w0 w1 w2 w3 w4 "
                assert not s.model.requests
                await again.close()

        run(scenario())

    @pytest.mark.parametrize("delay", [0, 0.001, 0.002, 0.003, 0.005, 0.01])
    def test_a_question_on_its_way_in_then_ends_too(self, tmp_path: Path, delay: float) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                client = await Client.to(s.port)
                await client.send(request("POST", "/api/chat", {"message": "Hello"}, headers=Visitor(s.port).headers))
                await asyncio.sleep(delay)
                s.server.end()
                with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):  # it was not yet read
                    told = await asyncio.wait_for(client.response(), 3)
                    assert told.status == 503
                await client.close()
                async with asyncio.timeout(3):
                    while s.site.started:
                        await asyncio.sleep(0.01)

        run(scenario())

    def test_a_killed_server_s_answer_comes_back_as_interrupted(self, tmp_path: Path) -> None:
        """At most the last second of text is lost; the client that had more is told the end."""

        async def scenario() -> None:
            async with ScriptedModel([HELD]) as model:
                with serve_process(tmp_path, *upstream(model.url)) as one:
                    v = Visitor(one.port)
                    stream = await (await v.ask(key="k", resumable=True)).until("w4 ")
                    await asyncio.sleep(1.2)  # a checkpoint is taken every second
                    one.signal(signal.SIGKILL)
                    one.wait()
                    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                        await stream.to_end()
                    await stream.close()
                with serve_process(tmp_path, *upstream(model.url)) as two:
                    v = Visitor(two.port, v.secret)
                    last = {"Last-Event-ID": stream.last_id}
                    back = await v.open("GET", "/api/exchanges/k/events", headers=last)
                    await back.to_end()
                    assert (back.status, back.text) == (200, "")
                    assert back.ended is not None
                    assert back.ended.outcome is Outcome.INTERRUPTED
                    await back.close()
                    whole = await (await v.open("GET", "/api/exchanges/k/events")).to_end()
                    assert whole.text == stream.text
                    await whole.close()
                    far = await v.open("GET", "/api/exchanges/k/events?after=90")  # it had more than was booked
                    await far.to_end()
                    assert [type(event).__name__ for event in far.events] == ["Ended"]
                    await far.close()
                assert len(model.requests) == 1

        run(scenario())


class TestVisitors:
    def test_a_new_visitor_gets_a_cookie_that_makes_them_known(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "Hi"}], [{"say": "Hi"}]]) as s:
                for path in ("/api/chat/stream", "/api/chat"):
                    client = await Client.to(s.port)
                    await client.send(request("POST", path, {"message": "Hello"}))
                    told = await client.response()
                    cookie = told.headers["set-cookie"]
                    assert "HttpOnly" in cookie
                    assert "SameSite=Lax" in cookie
                    await client.close()
                    found = told.body.decode().partition('"conversation":"')[2].partition('"')[0]
                    headers = {"Cookie": cookie.partition(";")[0], "Authorization": "none"}
                    shown = await Visitor(s.port).fetch("GET", f"/api/conversations/{found}", headers=headers)
                    assert shown.json["exchanges"][0]["text"] == "Hi"

        run(scenario())
