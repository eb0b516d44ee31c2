"""Chatbots as frameworks make them: the model's other interfaces, text in events, Gradio's queue, ends of processes."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from motamot.answer import Ended, Outcome, Text
from motamot.exam.case import Case, cases, scripts
from motamot.exam.chatbot import Chatbot as Process
from motamot.exam.chatbot import addresses
from motamot.exam.examiner import Examiner
from motamot.exam.gradio import GRADIO
from motamot.exam.judging import Passed, Verdict
from motamot.exam.presets import PRESETS, Preset, Talk, template
from motamot.scripted import ScriptedModel
from motamot.tape import Request as TapeRequest
from tests.exam.chatbots import serving_app

KEPT = template("events", '{"message": "{{message}}", "conversation": "{{conversation}}"}', read="text")
EVENT_TEXT = template("event-text", None, read=None)


def of(*numbers: int) -> list[Case]:
    return [case for case in cases() if case.number in numbers]


async def examined(
    front: Callable[[AsyncOpenAI], Callable[[Request], Awaitable[Response]]], preset: Preset, chosen: Sequence[Case]
) -> dict[int, Verdict]:
    async with (
        ScriptedModel(scripts(tuple(chosen))) as model,
        AsyncOpenAI(base_url=model.url, api_key="k") as client,
        serving_app(Starlette(routes=[Route("/chat", front(client), methods=["POST"])])) as url,
    ):
        examiner = Examiner(url + "/chat", preset, model)
        await examiner.warm_up()
        return {one.case.number: one for one in await examiner.run(chosen)}


def became(verdicts: dict[int, Verdict]) -> dict[int, Passed]:
    return {number: one.passed for number, one in verdicts.items()}


def by_responses(*, forgets: bool = False) -> Callable[[AsyncOpenAI], Callable[[Request], Awaitable[Response]]]:
    """Asks by OpenAI's Responses, keeps its conversations, and tells text in JSON of ASCII."""
    talks: dict[str, list[dict[str, str]]] = {}

    def front(client: AsyncOpenAI) -> Callable[[Request], Awaitable[Response]]:
        async def chat(request: Request) -> Response:
            body = await request.json()
            talk = talks.setdefault(body["conversation"], [])
            talk.append({"role": "user", "content": body["message"]})

            async def events() -> AsyncIterator[str]:
                asked = talk[-1:] if forgets else list(talk)
                said = ""
                stream = await client.responses.create(model="m", input=asked, stream=True)  # type: ignore[call-overload,unused-ignore]
                async for event in stream:
                    if isinstance(event, ResponseTextDeltaEvent):
                        said += event.delta
                        yield f"data: {json.dumps({'text': event.delta})}\n\n"
                talk.append({"role": "assistant", "content": said})

            return StreamingResponse(events(), media_type="text/event-stream")

        return chat

    return front


def test_what_the_model_is_told_is_read_from_the_input_of_responses_too() -> None:
    numbers = of(101, 125, 171, 172)
    assert set(became(asyncio.run(examined(by_responses(), KEPT, numbers))).values()) == {Passed.PASSED}
    forgot = asyncio.run(examined(by_responses(forgets=True), KEPT, numbers))
    assert became(forgot) == {101: Passed.PASSED, 125: Passed.PASSED, 171: Passed.FAILED, 172: Passed.FAILED}
    assert "does not tell the model 'kumquat'" in forgot[171].problems[0]


def test_chunks_of_chat_completions_are_not_sent_to_who_asks_by_another_interface() -> None:
    verdicts = asyncio.run(examined(by_responses(), KEPT, of(101, 150, 151, 164)))
    assert became(verdicts) == {101: Passed.PASSED} | dict.fromkeys((150, 151, 164), Passed.NOT_JUDGED)
    assert verdicts[150].reason == "this chatbot asks the model by another interface, in which this cannot be said"


def raw(write: Callable[[str], str]) -> Callable[[AsyncOpenAI], Callable[[Request], Awaitable[Response]]]:
    """Tells each delta as it is in an event."""

    def front(client: AsyncOpenAI) -> Callable[[Request], Awaitable[Response]]:
        async def chat(request: Request) -> Response:
            message = (await request.json())["message"]

            async def events() -> AsyncIterator[str]:
                half = ""
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": message}], stream=True
                )
                async for chunk in stream:
                    text = half + (chunk.choices[0].delta.content or "" if chunk.choices else "")
                    half = "\r" if text.endswith("\r") and not chunk.choices[0].finish_reason else ""
                    if text := text.removesuffix(half) if half else text:
                        yield write(text)
                yield "data: [DONE]\n\n"

            return StreamingResponse(events(), media_type="text/event-stream")

        return chat

    return front


def test_a_stream_that_has_no_way_to_carry_a_carriage_return_may_tell_a_line_end_in_its_place() -> None:
    def lines(text: str) -> str:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"

    verdicts = asyncio.run(examined(raw(lines), EVENT_TEXT, of(101, 111, 113, 114, 115)))
    assert set(became(verdicts).values()) == {Passed.PASSED}, [one.problems for one in verdicts.values()]
    verdicts = asyncio.run(examined(raw(lambda text: f"data: {text}\n\n"), EVENT_TEXT, of(101, 111, 113, 115)))
    assert became(verdicts) == {101: Passed.PASSED} | dict.fromkeys((111, 113, 115), Passed.FAILED)
    assert all("cr" in PRESETS[name].claims for name in PRESETS if name != "ga-text")


def test_text_in_events_ends_with_its_mark_and_tells_errors_by_an_event_of_their_own() -> None:
    stream = b"data: one\ndata: two\n\nevent: status\ndata: x\n\ndata: [DONE]\n\ndata: late\n\n"
    for cut in range(len(stream) + 1):
        hearing = EVENT_TEXT.hear()
        events = [*hearing.feed(stream[:cut]), *hearing.feed(stream[cut:]), *hearing.close()]
        assert events == [Text("one\ntwo"), Ended(outcome=Outcome.COMPLETE)], cut
    failed = EVENT_TEXT.hear().feed(b"event: error\ndata: It did not work.\n\n")
    assert [one.outcome for one in failed if isinstance(one, Ended)] == [Outcome.FAILED]


def slow_to_ask(*, looks: bool) -> Callable[[AsyncOpenAI], Callable[[Request], Awaitable[Response]]]:
    """Takes its time before it asks the model. looks: and then looks whether somebody is still there."""

    def front(client: AsyncOpenAI) -> Callable[[Request], Awaitable[Response]]:
        async def chat(request: Request) -> Response:
            message = (await request.json())["message"]
            await asyncio.sleep(0.3)
            if looks and await request.is_disconnected():
                return Response(status_code=499)
            answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": message}])
            return Response(answer.choices[0].message.content)

        return chat

    return front


@pytest.mark.slow
def test_a_stop_before_the_model_is_asked_is_kept_where_it_is_then_not_asked() -> None:
    plain = template("plain-text", None, read=None)
    kept = asyncio.run(examined(slow_to_ask(looks=True), plain, of(405)))[405]
    assert kept.passed is Passed.PASSED and "it was not asked any more" in kept.notes[0]
    assert asyncio.run(examined(slow_to_ask(looks=False), plain, of(405)))[405].passed is Passed.FAILED


def one_by_one(client: AsyncOpenAI) -> Callable[[Request], Awaitable[Response]]:
    """Answers one question at a time, and goes on for who has left; who leaves the queue is not answered."""
    turn = asyncio.Lock()

    async def chat(request: Request) -> Response:
        message = (await request.json())["message"]
        while turn.locked():
            await asyncio.sleep(0.02)
            if await request.is_disconnected():
                return Response(status_code=499)
        async with turn:
            answer = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": message}], timeout=60
            )
        return Response(answer.choices[0].message.content)

    return chat


def wordy(added: str) -> Callable[[AsyncOpenAI], Callable[[Request], Awaitable[Response]]]:
    """Takes a hundred kilobytes for each piece of the answer. added: to each piece."""

    def front(client: AsyncOpenAI) -> Callable[[Request], Awaitable[Response]]:
        async def chat(request: Request) -> Response:
            message = (await request.json())["message"]

            async def events() -> AsyncIterator[str]:
                asked = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": message}], stream=True
                )
                async for chunk in asked:
                    text = chunk.choices[0].delta.content
                    if text:
                        yield f": {'x' * 100_000}\ndata: {json.dumps({'text': text + added})}\n\n"

            return StreamingResponse(events(), media_type="text/event-stream")

        return chat

    return front


def test_an_answer_that_the_exam_does_not_read_to_its_end_is_not_judged_where_it_was_right_so_far() -> None:
    verdicts = asyncio.run(examined(wordy(""), KEPT, of(101, 143)))
    assert became(verdicts) == {101: Passed.PASSED, 143: Passed.NOT_JUDGED}
    assert "bytes came for the first" in verdicts[143].reason
    assert became(asyncio.run(examined(wordy("!"), KEPT, of(143)))) == {143: Passed.FAILED}


@pytest.mark.slow
def test_a_stop_that_only_left_a_queue_is_tried_again_when_the_queue_is_empty() -> None:
    plain = template("plain-text", None, read=None)
    assert became(asyncio.run(examined(one_by_one, plain, of(405)))) == {405: Passed.FAILED}


def test_who_leaves_at_once_has_asked_before_however_late_the_question_left(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = aiohttp.TCPConnector.connect

    async def late(self: aiohttp.TCPConnector, *given: Any, **named: Any) -> Any:
        await asyncio.sleep(0.4)  # as on a busy machine
        return await connect(self, *given, **named)

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", late)
    plain = template("plain-text", None, read=None)
    assert became(asyncio.run(examined(one_by_one, plain, of(405)))) == {405: Passed.FAILED}


def busy_with_many(client: AsyncOpenAI) -> Callable[[Request], Awaitable[Response]]:
    """Stands still for four seconds while more than one answer is under way."""
    under_way = 0

    async def chat(request: Request) -> Response:
        message = (await request.json())["message"]

        async def text() -> AsyncIterator[str]:
            nonlocal under_way
            under_way += 1
            asked = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": message}], stream=True
            )
            await asyncio.sleep(0.2)  # the other comes in the same moment
            if under_way > 1:
                await asyncio.sleep(4)
            async for chunk in asked:
                yield chunk.choices[0].delta.content or ""
            under_way -= 1

        return StreamingResponse(text(), media_type="text/plain")

    return chat


def test_text_that_came_late_beside_other_answers_is_waited_for_once_more_alone() -> None:
    plain = template("plain-text", None, read=None)
    assert set(became(asyncio.run(examined(busy_with_many, plain, of(201, 204)))).values()) == {Passed.PASSED}


def test_a_case_that_ends_the_chatbot_has_failed_alone_and_the_chatbot_is_started_again(free_port: int) -> None:
    async def scenario() -> dict[int, Verdict]:
        chosen = of(101, 102, 103, 301, 302, 304, 401, 608)
        url = f"http://127.0.0.1:{free_port}/v1/chat/completions"
        async with ScriptedModel(scripts(tuple(chosen))) as model:
            command = f"{sys.executable} -m tests.exam.crashing {free_port}"
            async with Process(command, url, environ=addresses(model.url)) as started:
                examiner = Examiner(url, PRESETS["openai"], model, started=started)
                await examiner.warm_up()
                return {one.case.number: one for one in await examiner.run(chosen)}

    verdicts = asyncio.run(scenario())
    failed = {number for number, passed in became(verdicts).items() if passed is Passed.FAILED}
    assert failed == {304, 608}, [one.problems for one in verdicts.values()]
    assert verdicts[304].problems[0].startswith("the chatbot ended by itself (status 3)")
    assert {passed for number, passed in became(verdicts).items() if number not in failed} == {Passed.PASSED}


GRADIOS = (
    b'event: generating\ndata: ["", null]\n\n'
    b'event: generating\ndata: ["One ", null]\n\n'
    b"event: heartbeat\ndata: null\n\n"
    b'event: generating\ndata: ["One \xef\xbf\xbd", null]\n\n'
    b'event: generating\ndata: ["One \\ud83d", null]\n\n'
    b'event: generating\ndata: ["One \xf0\x9f\x98\x80", null]\n\n'
    b'event: complete\ndata: ["One \xf0\x9f\x98\x80", null]\n\n'
)


def test_gradios_answer_so_far_is_read_as_what_it_adds() -> None:
    for cut in range(len(GRADIOS) + 1):
        hearing = GRADIO.hear()
        events = [*hearing.feed(GRADIOS[:cut]), *hearing.feed(GRADIOS[cut:]), *hearing.close()]
        assert events == [Text("One "), Text("😀"), Ended(outcome=Outcome.COMPLETE)], cut
    cut_off = GRADIO.hear()
    cut_off.feed(GRADIOS[:60])
    assert [one.outcome for one in cut_off.close() if isinstance(one, Ended)] == [Outcome.FAILED]
    failed = GRADIO.hear().feed(b'event: error\ndata: {"error": null}\n\n')
    assert [one.outcome for one in failed if isinstance(one, Ended)] == [Outcome.FAILED]


def test_gradio_is_asked_in_two_steps() -> None:
    waiting: dict[str, str] = {}

    def app(client: AsyncOpenAI) -> Starlette:
        async def call(request: Request) -> Response:
            (message,) = (await request.json())["data"]
            waiting["e/1"] = message
            return JSONResponse({"event_id": "e/1"})

        async def read(request: Request) -> Response:
            message = waiting.pop(request.path_params["event"])

            async def events() -> AsyncIterator[str]:
                said = ""
                asked = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": message}], stream=True
                )
                async for chunk in asked:
                    said += chunk.choices[0].delta.content or ""
                    yield f"event: generating\ndata: {json.dumps([said, None])}\n\n"
                yield f"event: complete\ndata: {json.dumps([said, None])}\n\n"

            return StreamingResponse(events(), media_type="text/event-stream")

        routes = [Route("/call/chat", call, methods=["POST"]), Route("/call/chat/{event:path}", read)]
        return Starlette(routes=routes)

    async def scenario() -> list[Verdict]:
        chosen = of(101, 103, 201)
        async with (
            ScriptedModel(scripts(tuple(chosen))) as model,
            AsyncOpenAI(base_url=model.url, api_key="k") as client,
            serving_app(app(client)) as url,
        ):
            examiner = Examiner(url + "/call/chat", GRADIO, model)
            await examiner.warm_up()
            return await examiner.run(chosen, serial=True)

    verdicts = asyncio.run(scenario())
    assert {one.passed for one in verdicts} == {Passed.PASSED}, [one.problems for one in verdicts]
    asked = GRADIO.ask("http://h/call/chat", Talk(), "hello")
    assert GRADIO.then(asked, b"not json") is None and GRADIO.then(asked, b"[]") is None


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_route_that_stops_is_called_by_the_conversations_name() -> None:
    """The chatbot writes on when it is left, and stops when its route is asked."""

    async def scenario(*, told: bool) -> Verdict:
        writing: dict[str, asyncio.Task[None]] = {}
        (case,) = of(401)
        async with (
            ScriptedModel(scripts((case,))) as model,
            AsyncOpenAI(base_url=model.url, api_key="k") as client,
        ):

            async def chat(request: Request) -> Response:
                body = await request.json()
                queue: asyncio.Queue[str | None] = asyncio.Queue()

                async def write() -> None:
                    try:
                        asked = [{"role": "user", "content": body["message"]}]
                        async for chunk in await client.chat.completions.create(
                            model="m",
                            messages=asked,  # type: ignore[arg-type, unused-ignore]
                            stream=True,
                        ):
                            if chunk.choices and chunk.choices[0].delta.content:
                                queue.put_nowait(chunk.choices[0].delta.content)
                    finally:
                        queue.put_nowait(None)

                async def read() -> AsyncIterator[str]:
                    while (text := await queue.get()) is not None:
                        yield f"data: {json.dumps({'text': text})}\n\n"

                writing[body["conversation"]] = asyncio.create_task(write())
                return StreamingResponse(read(), media_type="text/event-stream")

            async def stop(request: Request) -> Response:
                assert (await request.json())["talk"] == request.path_params["talk"]
                writing[request.path_params["talk"]].cancel()
                return JSONResponse({})

            routes = [Route("/chat", chat, methods=["POST"]), Route("/stop/{talk}", stop, methods=["POST"])]
            async with serving_app(Starlette(routes=routes)) as url:
                route = TapeRequest(
                    method="POST",
                    url=url + "/stop/{{conversation}}",
                    headers=(("Content-Type", "application/json"),),
                    body=b'{"talk": "{{conversation}}"}',
                )
                examiner = Examiner(url + "/chat", KEPT, model, stop=route if told else None)
                await examiner.warm_up()
                (verdict,) = await examiner.run([case])
            for task in writing.values():
                task.cancel()
            await asyncio.gather(*writing.values(), return_exceptions=True)
            return verdict

    assert asyncio.run(scenario(told=True)).passed is Passed.PASSED
    assert asyncio.run(scenario(told=False)).passed is Passed.FAILED
