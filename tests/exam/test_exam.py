"""The examination tells an honest chatbot from each broken one: no false alarm, and no miss, on a busy machine too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from motamot import Assistant
from motamot.exam.case import Case, cases, scripts
from motamot.exam.examiner import ExamError, Examiner
from motamot.exam.judging import Passed, Verdict
from motamot.exam.presets import PRESETS, Preset, template
from motamot.exam.tools import Tool
from motamot.findings import Level, Promise
from motamot.scripted import ScriptedModel, load_scripts
from tests.exam.chatbots import BROKEN, Chatbot, serving, serving_app
from tests.exam.load import busy

KEPT = '{"message": "{{message}}", "conversation": "{{conversation}}"}'
RAW = ("writes one data line", "splits at sentences")


def front(name: str) -> tuple[Preset, str]:
    """How this chatbot is asked, and where."""
    if name in RAW:
        return PRESETS["ga-text"], "/raw"
    if name == "begins anew for who comes back":
        return PRESETS["ui-message"], "/ui-message"
    if name == "remembers errors":
        return template("events", KEPT, read="text"), "/kept"
    return PRESETS["openai"], "/v1/chat/completions"


async def examined(
    make: Callable[[], Chatbot], preset: Preset, path: str, chosen: Sequence[Case], tries: int = 3
) -> list[Verdict]:
    async with ScriptedModel(scripts(tuple(chosen))) as model:
        chatbot = make()
        chatbot.model = model.url
        async with serving(chatbot) as url:
            examiner = Examiner(url + path, preset, model, tries=tries)
            await examiner.warm_up()
            return await examiner.run(chosen)


def told(verdicts: Sequence[Verdict]) -> list[tuple[int, str, tuple[str, ...], str]]:
    return [(one.case.number, str(one.passed), one.problems, one.reason) for one in verdicts]


@pytest.fixture
def loaded() -> Iterator[None]:
    with busy():
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("loaded")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("preset", "path"),
    [
        (PRESETS["openai"], "/v1/chat/completions"),
        (template("events", KEPT, read="text"), "/kept"),
    ],
    ids=["openai", "events"],
)
def test_an_honest_chatbot_passes_every_case_that_can_be_judged(preset: Preset, path: str) -> None:
    verdicts = asyncio.run(examined(Chatbot, preset, path, cases()))
    assert not told([one for one in verdicts if one.passed in (Passed.FAILED, Passed.COULD_NOT_RUN)])
    assert sum(one.passed is Passed.PASSED for one in verdicts) > 80


@pytest.mark.slow
@pytest.mark.usefixtures("loaded")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_chatbot_fails_where_it_is_broken(name: str) -> None:
    make, numbers = BROKEN[name]
    preset, path = front(name)
    chosen = [case for case in cases() if case.number in numbers]
    assert len(chosen) == len(numbers)
    verdicts = asyncio.run(examined(make, preset, path, chosen, tries=1))  # thrice: tests.exam.again
    assert not told([one for one in verdicts if one.passed is not Passed.FAILED])
    assert all(one.problems for one in verdicts)


def of(*numbers: int) -> list[Case]:
    return [case for case in cases() if case.number in numbers]


def test_who_comes_back_to_an_honest_chatbot_misses_nothing_and_costs_nothing() -> None:
    verdicts = asyncio.run(examined(Chatbot, PRESETS["ui-message"], "/ui-message", of(101, 175, 311, 312)))
    assert {one.passed for one in verdicts} == {Passed.PASSED}, told(verdicts)


def test_motamot_itself_goes_on_stops_and_remembers_as_it_says() -> None:
    async def look_up(order: str, parts: int) -> str:
        """Where an order is."""
        return f"{parts} parts of {order} are on their way"

    async def scenario(folder: Path) -> list[Verdict]:
        chosen = of(101, 171, 175, 180, 181, 303, 311, 312, 408, 511, 512, 622, 631)
        async with ScriptedModel(scripts(tuple(chosen))) as model:
            own = Assistant(upstream=model.url, model="m", tools=[look_up], store=folder / "exam.db")
            async with serving_app(own.asgi, "on") as url:
                examiner = Examiner(url + "/api/chat/stream", PRESETS["motamot"], model)
                await examiner.warm_up()
                return await examiner.run(chosen)

    with TemporaryDirectory() as folder:
        verdicts = asyncio.run(scenario(Path(folder)))
    assert {one.passed for one in verdicts} == {Passed.PASSED}, told(verdicts)


def test_what_a_chatbot_has_not_is_not_judged_and_not_asked() -> None:
    async def scenario() -> None:
        chosen = of(101, 175, 180, 311, 631)
        async with ScriptedModel(scripts(tuple(chosen))) as model:
            chatbot = Chatbot(model=model.url, tools=())
            async with serving(chatbot) as url:
                examiner = Examiner(url + "/v1/chat/completions", PRESETS["openai"], model)
                await examiner.warm_up()
                verdicts = await examiner.run(chosen)
        reasons = {one.case.number: one.reason for one in verdicts if one.passed is Passed.NOT_JUDGED}
        assert reasons[180] == reasons[631] == "this chatbot offers the model no tool"
        assert reasons[175] == reasons[311] == "clients of this kind do not come back to an answer"
        assert [one.script for one in model.requests] == ["warmup", "case101"]

    asyncio.run(scenario())


def test_the_tool_that_is_called_can_be_named_or_left_alone() -> None:
    async def scenario() -> None:
        async with ScriptedModel(scripts(())) as model:
            chatbot = Chatbot(model=model.url)
            async with serving(chatbot) as url:
                url += "/v1/chat/completions"
                named = Examiner(url, PRESETS["openai"], model, call="look_up")
                await named.warm_up()
                assert named.tool is not None and named.tool.name == "look_up" and named.calls(of(101, 180)) == 1
                alone = Examiner(url, PRESETS["openai"], model, call="")
                await alone.warm_up()
                assert alone.tool is None and alone.calls(of(180)) == 0
                with pytest.raises(ExamError, match="offers the model no tool 'look_down'"):
                    await Examiner(url, PRESETS["openai"], model, call="look_down").warm_up()

    asyncio.run(scenario())


def test_a_chatbot_that_lets_only_some_of_many_in_is_told_to_raise_its_limits() -> None:
    verdicts = asyncio.run(examined(lambda: Chatbot(guests=20), PRESETS["openai"], "/v1/chat/completions", of(173)))
    (verdict,) = verdicts
    assert verdict.passed is Passed.NOT_JUDGED
    assert "of 50" in verdict.reason and "raise its limits for the exam" in verdict.reason


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("writes one data line", "50 of 50 visitors have the answer to their own question with other white space"),
        ("mixes its visitors' answers", "visitors have not the answer to their own question"),
    ],
)
def test_an_answer_without_its_line_end_is_not_told_as_that_of_another_visitor(name: str, words: str) -> None:
    preset, path = front(name)
    (verdict,) = asyncio.run(examined(BROKEN[name][0], preset, path, of(173), tries=1))
    assert verdict.passed is Passed.FAILED
    assert words in verdict.problems[0]


def test_every_must_is_failed_by_one_of_the_broken() -> None:
    failed = {number for _, numbers in BROKEN.values() for number in numbers}
    assert sorted(case.number for case in cases() if case.level is Level.MUST and case.number not in failed) == []


def test_there_are_a_hundred_cases_in_order_and_each_tells_its_rule_and_remedy() -> None:
    found = cases()
    assert len(found) >= 100 and len({case.number for case in found}) == len(found)
    group = {
        Promise.EXACT: 1,
        Promise.LIVE: 2,
        Promise.ONCE: 3,
        Promise.STOPPABLE: 4,
        Promise.ACCOUNTED: 5,
        Promise.SAFE: 6,
    }
    for case in found:
        assert case.number // 100 == group[case.promise], case.number
        assert case.clause and case.harm and case.remedy and case.title
    assert sum(case.quick for case in found) == 12
    for tool in (None, Tool("look_up", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})):
        load_scripts(scripts(found, tool))


def test_which_end_went_wrong_is_told() -> None:
    async def scenario() -> None:
        async with ScriptedModel(scripts(())) as model, ScriptedModel(scripts(())) as other:
            chatbot = Chatbot(model=other.url)
            async with serving(chatbot) as url:
                for preset, path, words in (
                    (PRESETS["openai"], "/v1/chat/completions", "did not ask the model at"),
                    (PRESETS["openai"], "/nowhere", "is not where the chatbot is asked"),
                    (PRESETS["motamot"], "/", "is not where the chatbot is asked"),
                ):
                    with pytest.raises(ExamError, match=words):
                        await Examiner(url + path, preset, model).warm_up()
            with pytest.raises(ExamError, match="nothing answers at"):
                await Examiner("http://127.0.0.1:9/", PRESETS["openai"], model).warm_up()
            chatbot = Chatbot(model=model.url)
            async with serving(chatbot) as url:
                with pytest.raises(ExamError, match="no text was found"):
                    await Examiner(url + "/kept", template("events", KEPT, read="wrong"), model).warm_up()

    asyncio.run(scenario())


async def _says(text: str) -> Response:
    return StreamingResponse(iter((f"data: {json.dumps({'text': text})}\n\n",)), media_type="text/event-stream")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RedirectResponse("/login?next=/chat", 302), "sends its visitors to /login.next=/chat: if that is a login"),
        (HTMLResponse("<title>Sign in</title>"), "an HTML page came from .*if it is a login, give the header"),
        (PlainTextResponse("Bad Gateway", 502), r"the chatbot failed \(502 Bad Gateway\) and did not ask the model at"),
        (PlainTextResponse("slow down", 429), "lets nobody ask so much"),
        (PlainTextResponse("no", 415), "does not take this kind of question"),
    ],
    ids=["a redirection", "a login page", "a server error", "too many", "another type"],
)
def test_what_stands_before_the_chatbot_is_not_taken_for_a_wrong_model(answer: Response, words: str) -> None:
    async def scenario() -> None:
        async def ask(request: Request) -> Response:
            return answer

        app = Starlette(routes=[Route("/chat", ask, methods=["POST"])])
        async with ScriptedModel(scripts(())) as model, serving_app(app) as url:
            with pytest.raises(ExamError, match=words):
                await Examiner(url + "/chat", template("events", KEPT, read="text"), model).warm_up()

    asyncio.run(scenario())


def test_an_answer_that_another_model_wrote_is_told_though_the_scripted_one_was_asked_for_a_title() -> None:
    async def scenario() -> None:
        async with ScriptedModel(scripts(())) as model, aiohttp.ClientSession() as session:

            async def ask(request: Request) -> Response:
                told = [{"role": "user", "content": f"A title for: {(await request.json())['message']}"}]
                async with session.post(f"{model.url}/chat/completions", json={"model": "small", "messages": told}):
                    return await _says("I am another model.")

            app = Starlette(routes=[Route("/chat", ask, methods=["POST"])])
            async with serving_app(app) as url:
                with pytest.raises(ExamError, match="does another model write its answers"):
                    await Examiner(url + "/chat", template("events", KEPT, read="text"), model).warm_up()

    asyncio.run(scenario())
