"""The examination tells an honest chatbot from each broken one: no false alarm, and no miss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from motamot.exam.case import Case, cases, scripts
from motamot.exam.examiner import ExamError, Examiner
from motamot.exam.judging import Passed, Verdict
from motamot.exam.presets import PRESETS, Preset, template
from motamot.findings import Level, Promise
from motamot.scripted import ScriptedModel, load_scripts
from tests.exam.chatbots import BROKEN, Chatbot, serving

KEPT = '{"message": "{{message}}", "conversation": "{{conversation}}"}'
RAW = ("writes one data line", "splits at sentences")


def front(name: str) -> tuple[Preset, str]:
    """How this chatbot is asked, and where."""
    if name in RAW:
        return PRESETS["ga-text"], "/raw"
    if name == "remembers errors":
        return template("events", KEPT, read="text"), "/kept"
    return PRESETS["openai"], "/v1/chat/completions"


async def examined(make: Callable[[], Chatbot], preset: Preset, path: str, chosen: Sequence[Case]) -> list[Verdict]:
    async with ScriptedModel(scripts(tuple(chosen))) as model:
        chatbot = make()
        chatbot.model = model.url
        async with serving(chatbot) as url:
            examiner = Examiner(url + path, preset, model)
            await examiner.warm_up()
            return await examiner.run(chosen)


def told(verdicts: Sequence[Verdict]) -> list[tuple[int, str, tuple[str, ...], str]]:
    return [(one.case.number, str(one.passed), one.problems, one.reason) for one in verdicts]


@pytest.mark.slow
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
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_chatbot_fails_where_it_is_broken(name: str) -> None:
    make, numbers = BROKEN[name]
    preset, path = front(name)
    chosen = [case for case in cases() if case.number in numbers]
    assert len(chosen) == len(numbers)
    verdicts = asyncio.run(examined(make, preset, path, chosen))
    assert not told([one for one in verdicts if one.passed is not Passed.FAILED])
    assert all(one.problems for one in verdicts)


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
    load_scripts(scripts(found))


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
