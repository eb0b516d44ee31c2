"""Answers over HTTP: what is asked, and how what comes back is read."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from motamot.answer import AnswerEvent, Source, Text, Usage
from motamot.errors import SettingsError
from motamot.model.assembly import assembly_for
from motamot.model.http import HttpModel
from motamot.model.turn import Message, ToolCall, ToolSpec, TurnRequest
from tests.model.wire import (
    ANSWER,
    DONE,
    FINISH,
    HEAD,
    LAST,
    QUESTION,
    UNTIL_CLOSE,
    USAGE,
    Peer,
    Upstream,
    ask,
    ask_once,
    chunk,
    reply,
    run,
    said,
    sends,
)

REAL = Path(__file__).parents[1] / "data" / "real-streams"
PLAIN = {
    "id": "c1",
    "model": "m-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}


def test_an_answer_is_read_delta_by_delta_with_its_reason_and_its_usage() -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream:
            answer = await ask_once(upstream)
        assert answer.events == [Text("Hel"), Text("lo")]
        assert answer.turn.finish == "stop"
        assert answer.turn.usage == Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
        assert answer.turn.error is None
        assert answer.turn.started

    run(main())


def test_each_delta_is_passed_on_before_the_next_one_is_sent() -> None:
    async def main() -> None:
        seen: list[str] = []
        read = asyncio.Event()

        def emit(events: Sequence[AnswerEvent]) -> None:
            seen.extend(event.text for event in events if isinstance(event, Text))
            read.set()

        async def script(peer: Peer) -> None:
            await peer.send(HEAD)
            for word in ("one ", "two ", "three "):
                await peer.send(chunk(said(word)))
                await asyncio.wait_for(read.wait(), 2)
                assert seen.pop() == word
                read.clear()
            await peer.send(chunk(FINISH), chunk(DONE), LAST)

        async with Upstream(script) as upstream:
            model = HttpModel(upstream.url, "m")
            turn = await model.attempt(QUESTION).run(emit)
            await model.close()
        assert turn.text == "one two three "

    run(main())


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("ends", ["chunked", "length", "close"])
def test_how_the_body_is_cut_and_delimited_changes_nothing(size: int, ends: str) -> None:
    body = said("Hé") + said("lo 🚌") + FINISH + USAGE + DONE
    wire = {
        "chunked": HEAD + b"".join(chunk(body[at : at + 5]) for at in range(0, len(body), 5)) + LAST,
        "length": reply(200, body, Content_Type="text/event-stream"),
        "close": UNTIL_CLOSE + body,
    }[ends]
    pieces = [wire[at : at + size] for at in range(0, len(wire), size)]

    async def script(peer: Peer) -> None:
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0)
        if ends == "close":
            peer.writer.close()

    async def main() -> None:
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        assert answer.text == "Hélo 🚌"
        assert answer.turn.finish == "stop"
        assert answer.turn.error is None

    run(main())


@pytest.mark.parametrize("recording", sorted(REAL.glob("*.sse")), ids=lambda path: path.stem)
def test_a_real_servers_stream_gives_the_same_turn_over_a_socket_as_in_memory(recording: Path) -> None:
    body = recording.read_bytes()
    whole = assembly_for("openai-chat")
    whole.feed(body)
    whole.close()
    expected = whole.turn()

    async def main() -> None:
        pieces = [chunk(body[at : at + 97]) for at in range(0, len(body), 97)]
        async with Upstream(sends(HEAD, *pieces, LAST)) as upstream:
            turn = (await ask_once(upstream)).turn
        assert (turn.text, turn.reasoning, turn.finish) == (expected.text, expected.reasoning, expected.finish)
        assert (turn.tool_calls, turn.usage, turn.model) == (expected.tool_calls, expected.usage, expected.model)
        assert (turn.error and turn.error.code) == (expected.error and expected.error.code)

    run(main())


def test_the_question_is_one_streaming_request_that_asks_for_usage_and_bounds_the_tokens() -> None:
    call = ToolCall(id="t1", name="weather", raw='{"city":"Lyon"}', arguments={"city": "Lyon"})
    request = TurnRequest(
        messages=[
            Message(role="system", content="Be kind."),
            Message(role="user", content="Météo ?"),
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content="12 °C", tool_call_id="t1"),
        ],
        max_tokens=77,
        tools=[ToolSpec(name="weather", description="The weather", parameters={"type": "object", "properties": {}})],
        tool_choice="auto",
        extra={"temperature": 0.2},
        headers={"X-Client-Request-Id": "completion-1"},
    )

    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m-1", api_key=" sk-secret\n", headers={"X-Team": "bus"})
            await ask(model, request)
            await model.close()
            (asked,) = upstream.requests
        assert asked.line == "POST /v1/chat/completions HTTP/1.1"
        assert asked.headers["authorization"] == "Bearer sk-secret"
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["accept-encoding"] == "identity"
        assert asked.headers["user-agent"].startswith("motamot/")
        assert asked.headers["x-team"] == "bus"
        assert asked.headers["x-client-request-id"] == "completion-1"
        assert asked.json == {
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "Météo ?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "t1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city":"Lyon"}'},
                        }
                    ],
                },
                {"role": "tool", "content": "12 °C", "tool_call_id": "t1"},
            ],
            "max_tokens": 77,
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "weather",
                        "description": "The weather",
                        "parameters": {"type": "object", "properties": {}},
                    },
                }
            ],
            "tool_choice": "auto",
            "temperature": 0.2,
        }

    run(main())


def test_servers_that_refuse_a_field_are_asked_with_another_by_a_setting() -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream:
            await ask_once(upstream, token_field="max_completion_tokens", ask_usage=False)
            asked = upstream.requests[0].json
        assert asked["max_completion_tokens"] == 50
        assert "max_tokens" not in asked
        assert "stream_options" not in asked

    run(main())


def test_a_question_of_several_megabytes_is_sent_whole() -> None:
    request = TurnRequest(messages=[Message(role="user", content="x" * 3_000_000)], max_tokens=50)

    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m")
            answer = await ask(model, request)
            await model.close()
            assert len(upstream.requests[0].json["messages"][0]["content"]) == 3_000_000
        assert answer.text == "Hello"

    run(main())


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "text/event-stream"])
def test_a_plain_json_reply_is_one_delta_and_is_reported(content_type: str) -> None:
    async def main() -> None:
        async with Upstream(sends(reply(200, json.dumps(PLAIN).encode(), Content_Type=content_type))) as upstream:
            answer = await ask_once(upstream)
        assert answer.events == [Text("Hello")]
        assert answer.turn.finish == "stop"
        assert answer.turn.model == "m-1"
        assert answer.turn.usage is not None
        assert answer.turn.usage.completion_tokens == 3
        assert answer.turn.deviations

    run(main())


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", "TEXT/EVENT-STREAM;charset=x"])
def test_a_stream_under_another_name_is_still_a_stream(content_type: str) -> None:
    body = b"\n\n" + said("Hello") + FINISH + DONE

    async def main() -> None:
        async with Upstream(sends(reply(200, body, Content_Type=content_type))) as upstream:
            answer = await ask_once(upstream)
        assert (answer.text, answer.turn.finish) == ("Hello", "stop")

    run(main())


def test_ollamas_own_lines_are_read() -> None:
    lines = b'{"model":"m","message":{"role":"assistant","content":"Hel"},"done":false}\n'
    last = (
        b'{"model":"m","message":{"role":"assistant","content":"lo"},"done":true,"done_reason":"stop",'
        b'"prompt_eval_count":9,"eval_count":3}\n'
    )

    async def main() -> None:
        async with Upstream(sends(reply(200, lines + last, Content_Type="application/x-ndjson"))) as upstream:
            answer = await ask_once(upstream)
        assert (answer.text, answer.turn.finish) == ("Hello", "stop")

    run(main())


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
def test_a_body_compressed_against_our_asking_is_read_as_it_comes(encoding: str) -> None:
    window = 15 if encoding == "deflate" else 31
    press = zlib.compressobj(wbits=window)

    def pressed(data: bytes) -> bytes:
        return chunk(press.compress(data) + press.flush(zlib.Z_SYNC_FLUSH))

    head = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: " + encoding.encode() + b"\r\n\r\n")

    async def main() -> None:
        seen = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.send(head, pressed(said("Hel")))
            await asyncio.wait_for(seen.wait(), 2)
            await peer.send(pressed(said("lo") + FINISH + DONE), chunk(press.flush()), LAST)

        async with Upstream(script) as upstream:
            model = HttpModel(upstream.url, "m")
            turn = await model.attempt(QUESTION).run(lambda _: seen.set())
            await model.close()
        assert (turn.text, turn.finish) == ("Hello", "stop")

    run(main())


def test_a_compressed_bomb_ends_at_the_limit_of_an_answer() -> None:
    bomb = gzip.compress(said("x" * 60_000) * 500)  # 30 MB of text in 30 kB

    async def main() -> None:
        script = sends(reply(200, bomb, Content_Type="text/event-stream", Content_Encoding="gzip"))
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        assert answer.turn.error is not None
        assert answer.turn.error.code == "limit"
        assert len(answer.text) <= 4 << 20

    run(main())


def test_others_go_on_while_a_few_bytes_are_inflated_to_many() -> None:
    few = gzip.compress((b": " + b"x" * 50_000 + b"\n\n") * 600 + said("Hello") + FINISH + DONE)
    assert len(few) < 100_000
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    async def main() -> None:
        script = sends(reply(200, few, Content_Type="text/event-stream", Content_Encoding="gzip"))
        async with Upstream(script) as upstream:
            model = HttpModel(upstream.url, "m")
            counting = asyncio.create_task(count())
            seen: list[int] = []
            attempt = model.attempt(QUESTION)
            turn = await attempt.run(lambda _: seen.append(rounds))
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
            await model.close()
        assert turn.text == "Hello"
        assert seen[0] > 300, "30 MB were inflated in a few rounds of the loop"

    run(main())


def test_a_compression_that_nobody_asked_for_and_we_cannot_read_is_an_error() -> None:
    async def main() -> None:
        script = sends(reply(200, b"\x0b\x02\x80", Content_Type="text/event-stream", Content_Encoding="br"))
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        error = answer.turn.error
        assert error is not None
        assert error.code == "upstream_error"
        assert "'br'" in (error.detail or "")

    run(main())


def test_a_kept_connection_is_used_again_also_when_the_body_ends_just_after_the_end_mark() -> None:
    async def late_end(peer: Peer) -> None:
        await peer.send(ANSWER.removesuffix(LAST))
        await asyncio.sleep(0.05)
        await peer.send(LAST)

    async def main() -> None:
        async with Upstream(late_end, sends(ANSWER), sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m")
            for _ in range(3):
                began = time.monotonic()
                assert (await ask(model)).text == "Hello"
                assert time.monotonic() - began < 1
                await asyncio.sleep(0.15)
            await model.close()
            assert len(upstream.peers) == 1
            assert len(upstream.requests) == 3

    run(main())


def test_nobody_waits_for_a_body_that_does_not_end_after_the_end_mark() -> None:
    async def holds(peer: Peer) -> None:
        await peer.send(ANSWER.removesuffix(LAST))
        await peer.gone()

    async def main() -> None:
        async with Upstream(holds) as upstream:
            model = HttpModel(upstream.url, "m")
            began = time.monotonic()
            assert (await ask(model)).turn.error is None
            assert time.monotonic() - began < 0.4
            gone = await asyncio.wait_for(upstream.peers[0].gone(), 3)
            assert 0.4 < gone - began < 1.5, "the connection is closed when the body does not end in time"
            await model.close()

    run(main())


def test_what_is_sent_after_the_end_mark_is_neither_read_nor_kept() -> None:
    async def goes_on(peer: Peer) -> None:
        await peer.send(ANSWER.removesuffix(LAST))
        for _ in range(3000):
            await peer.send(chunk(said("more" * 1000)))

    async def main() -> None:
        async with Upstream(goes_on) as upstream:
            model = HttpModel(upstream.url, "m")
            assert (await ask(model)).text == "Hello"
            await asyncio.wait_for(upstream.peers[0].gone(), 3)
            await model.close()

    run(main())


def test_a_flood_of_comments_is_read_without_being_kept() -> None:
    comments = chunk(b": " + b"x" * 60_000 + b"\n\n")

    async def floods(peer: Peer) -> None:
        await peer.send(HEAD)
        for _ in range(500):
            await peer.send(comments)
        await peer.send(chunk(said("Hello") + FINISH + DONE), LAST)

    async def main() -> None:
        async with Upstream(floods) as upstream:
            tracemalloc.start()
            answer = await ask_once(upstream)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert answer.text == "Hello"
        assert peak < 5_000_000, f"30 MB of comments were held in {peak} bytes"

    run(main())


def test_hundreds_of_answers_run_side_by_side() -> None:
    async def main() -> None:
        count = 300
        async with Upstream(*[sends(HEAD, chunk(said("Hel")), chunk(said("lo") + FINISH + DONE), LAST)] * count) as up:
            model = HttpModel(up.url, "m")
            answers = await asyncio.gather(*(ask(model) for _ in range(count)))
            await model.close()
            assert len(up.requests) == count
        assert {answer.text for answer in answers} == {"Hello"}

    run(main())


def test_an_attempt_is_one_request_and_cannot_be_run_again() -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m")
            attempt = model.attempt(QUESTION)
            assert attempt.snapshot().finish == "incomplete"
            before = attempt.first_delta_at
            assert before is None
            await attempt.run(lambda _: None)
            assert attempt.first_delta_at is not None
            with pytest.raises(RuntimeError, match="one request"):
                await attempt.run(lambda _: None)
            await model.close()
            assert len(upstream.requests) == 1

    run(main())


def test_a_snapshot_shows_how_far_an_answer_has_come() -> None:
    async def main() -> None:
        seen = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.send(HEAD, chunk(said("Hel")))
            await peer.gone()

        async with Upstream(script) as upstream:
            model = HttpModel(upstream.url, "m")
            attempt = model.attempt(QUESTION)
            task = asyncio.create_task(attempt.run(lambda _: seen.set()))
            await seen.wait()
            turn = attempt.snapshot()
            assert (turn.text, turn.finish, turn.started) == ("Hel", "incomplete", True)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert attempt.snapshot().text == "Hel"
            await model.close()

    run(main())


def test_no_connection_is_made_before_an_attempt_runs_and_closing_twice_is_harmless() -> None:
    async def main() -> None:
        async with Upstream() as upstream:
            model = HttpModel(upstream.url, "m")
            model.attempt(QUESTION)
            await asyncio.sleep(0.05)
            assert not upstream.peers
            await model.close()
            await model.close()

    run(main())


def test_a_model_can_be_used_by_one_loop_after_another() -> None:
    async def main(model: HttpModel) -> str:
        answer = await ask(model)
        await model.close()
        return answer.text

    async def serve(model_of: list[HttpModel]) -> None:
        async with Upstream(sends(ANSWER), sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m")
            model_of.append(model)
            assert await asyncio.to_thread(asyncio.run, main(model)) == "Hello"
            assert await asyncio.to_thread(asyncio.run, main(model)) == "Hello"

    run(serve([]))


def test_the_model_says_what_it_is_without_its_key() -> None:
    model = HttpModel("http://localhost:1", "m", api_key="sk-secret", marks=("test_model",), origin="local")
    assert (model.name, model.origin, model.marks) == ("m", "local", ("test_model",))
    assert "sk-secret" not in repr(model)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": ""}, "name"),
        ({"model": "a\nb"}, "name"),
        ({"api_key": "a b"}, "key"),
        ({"api_key": "clé"}, "key"),
        ({"api_key": "k", "headers": {"authorization": "Basic x"}}, "not both"),
        ({"headers": {"X-Bad": "a\r\nHost: evil"}}, "X-Bad"),
        ({"headers": {"Content-Length": "3"}}, "Content-Length"),
        ({"headers": {"X Bad": "a"}}, "X Bad"),
        ({"user_agent": "a\nb"}, "User-Agent"),
        ({"token_field": "tokens"}, "token_field"),
        ({"proxy": "socks5://localhost:1080"}, "proxy"),
        ({"proxy": "http://"}, "proxy"),
        ({"proxy": "http://[::1"}, "proxy"),
        ({"ca_file": "/nowhere/ca.pem"}, "/nowhere/ca.pem"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_a_sentence(settings: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        HttpModel(**{"url": "http://localhost:1", "model": "m", **settings})  # type: ignore[arg-type]
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize(
    ("extra", "headers"),
    [
        ({"stream": False}, {}),
        ({"n": 2}, {}),
        ({"messages": []}, {}),
        ({"temperature": object()}, {}),
        ({}, {"X": "a\nb"}),
    ],
)
def test_what_cannot_be_sent_fails_without_being_asked_and_without_spending(
    extra: dict[str, object], headers: dict[str, str]
) -> None:
    async def main() -> None:
        async with Upstream() as upstream:
            model = HttpModel(upstream.url, "m")
            answer = await ask(model, TurnRequest(messages=[], max_tokens=1, extra=extra, headers=headers))
            await model.close()
            assert not upstream.peers
        assert answer.turn.error is not None
        assert "cannot be sent" in answer.turn.error.message
        assert "extra field" in (answer.turn.error.detail or "") or "header" in (answer.turn.error.detail or "")
        assert not answer.turn.error.safe_to_retry
        assert answer.turn.usage == Usage(source=Source.REPORTED)

    run(main())


def test_the_newer_name_of_the_token_limit_is_used_where_it_is_known_to_be_wanted() -> None:
    assert HttpModel("https://api.openai.com/v1", "m")._token_field == "max_completion_tokens"
    assert HttpModel("https://example.test/v1", "m")._token_field == "max_tokens"
