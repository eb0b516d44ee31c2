"""The examination of a page: a browser is the visitor, and the model sees what the page sends back."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from motamot.exam.case import cases, scripts
from motamot.exam.examiner import ExamError
from motamot.exam.judging import Passed, Verdict
from motamot.exam.on_page import PageExaminer
from motamot.scripted import ScriptedModel
from tests.exam.chatbots import Chatbot, serving
from tests.need import need


@pytest.fixture(autouse=True)
def _browser() -> None:
    there = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    need(any(map(shutil.which, there)), "Chromium: apt-get install chromium")


async def examined(chatbot: Chatbot, numbers: tuple[int, ...]) -> list[Verdict]:
    chosen = tuple(case for case in cases() if case.number in numbers)
    async with ScriptedModel(scripts(chosen)) as model:
        chatbot.model = model.url
        async with serving(chatbot) as url:
            examiner = PageExaminer(url + "/page", model)
            await examiner.warm_up()
            return await examiner.run(chosen)


def told(verdicts: list[Verdict]) -> list[tuple[int, str, tuple[str, ...], str]]:
    return [(one.case.number, str(one.passed), one.problems, one.reason) for one in verdicts]


@pytest.mark.slow
def test_an_honest_page_passes() -> None:
    numbers = (103, 171, 618, 622)
    verdicts = asyncio.run(examined(Chatbot(), numbers))
    assert [one.case.number for one in verdicts] == list(numbers)
    assert {one.passed for one in verdicts} == {Passed.PASSED}, told(verdicts)


def test_what_a_page_cannot_show_is_not_asked_of_it() -> None:
    asked = [case for case in cases() if case.page]
    assert len(asked) >= 25 and all({act.what for act in case.visit} == {"ask", "end"} for case in asked)
    assert not [case.number for case in asked if case.gates or case.alone or case.visitors > 1 or "tool" in case.needs]


@pytest.mark.slow
def test_what_a_page_shows_and_stores_is_told() -> None:
    verdicts = asyncio.run(examined(Chatbot(page_stores_errors=True, tells_all=True), (101, 618, 622)))
    by_number = {one.case.number: one for one in verdicts}
    assert by_number[101].passed is Passed.PASSED
    assert by_number[618].passed is Passed.FAILED and by_number[622].passed is Passed.FAILED
    assert "the next question tells the model" in by_number[622].problems[-1]
    trimmed = asyncio.run(examined(Chatbot(page_trims=True), (103, 110)))
    assert {one.passed for one in trimmed} == {Passed.FAILED}, told(trimmed)


def test_which_end_of_a_page_went_wrong_is_told() -> None:
    async def scenario() -> None:
        nothing = scripts(())
        async with (
            ScriptedModel(nothing) as model,
            ScriptedModel(nothing) as other,
            serving(Chatbot(model=other.url)) as url,
        ):
            with pytest.raises(ExamError, match="did not ask the model at"):
                await PageExaminer(url + "/page", model).warm_up()

    asyncio.run(scenario())


def test_a_page_that_is_gone_is_not_asked_for_all_cases() -> None:
    async def scenario() -> list[Verdict]:
        chosen = [case for case in cases() if case.page][:8]
        async with ScriptedModel(scripts(tuple(chosen))) as model:
            async with serving(Chatbot(model=model.url)) as url:
                examiner = PageExaminer(url + "/page", model)
                await examiner.warm_up()
            return await examiner.run(chosen)

    verdicts = asyncio.run(scenario())
    assert {one.passed for one in verdicts} == {Passed.COULD_NOT_RUN}
    reasons = [one.reason for one in verdicts]
    assert all("cannot be opened" in reason for reason in reasons[:3])
    assert set(reasons[3:]) == {"not asked: the 3 before it could not be, either"}
