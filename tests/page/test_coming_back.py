"""Coming back to an answer: after a reload, a lost network, a restarted server, and in another tab."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from motamot.limits import Limits
from motamot.scripted.model import ScriptedModel
from motamot.server.run import listen
from tests.page.network import network
from tests.page.support import NO_STORAGE, Chromium, chat, deliver, opened

GATED = [{"say": ["First ", "piece."]}, {"gate": "curtain"}, {"say": [" And", " the rest."]}]
WHOLE = "First piece. And the rest."
FAST = "const wait = window.setTimeout; window.setTimeout = (call, ms) => wait(call, ms / 60)"  # minutes in seconds


def test_a_reload_in_the_middle_goes_on_with_the_answer(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Before."}], GATED]) as served, opened(browser, served.url) as reader:
            await reader.ask("One")
            await reader.ended("complete")
            await reader.ask("Two")
            await reader.shows("First piece.")
            for _ in range(3):
                await reader.page.reload()
                await reader.shows("First piece.")
                assert await reader.questions() == ["One", "Two"]
            await expect(reader.page.get_by_role("button", name="Stop")).to_be_visible()
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.answers() == ["Before.", WHOLE]
            assert len(served.model.requests) == 2 and len(reader.asked) == 2

    chromium.run(scenario)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("earlier", [[], ["Before"]])
def test_a_reload_before_anything_has_come_asks_nothing_twice(
    chromium: Chromium, tmp_path: Path, earlier: list[str], ended: bool
) -> None:
    """The question may have arrived or not: posted again under its key, it is answered once."""

    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "Before."}] for _ in earlier] + [GATED]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            for question in earlier:
                await reader.ask(question)
                await reader.ended("complete")
            reader.asked.clear()

            async def deliver_but_answer_nothing(route: Route) -> None:
                if len(reader.asked) > 1:
                    await route.continue_()
                else:
                    deliver(reader, route)

            await reader.page.route("**/api/chat/stream", deliver_but_answer_nothing)
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            if ended:
                served.model.release("curtain")
                await served.outcomes()
            await reader.page.reload()
            await reader.shows(WHOLE if ended else "First piece.")
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.questions() == [*earlier, "Hello"]
            assert (await reader.answers())[-1] == WHOLE
            assert len(served.model.requests) == len(scripts)

    chromium.run(scenario)


def test_a_question_that_was_never_sent_waits_for_its_reader(chromium: Chromium, tmp_path: Path) -> None:
    """A page that is opened a day later does not ask by itself."""

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:
            await reader.page.route("**/api/chat/stream", lambda route: None)
            await reader.ask("Hello")
            await reader.page.evaluate("""() => {
                const name = Object.keys(sessionStorage).find((key) => key.includes("unsent"))
                const kept = JSON.parse(sessionStorage.getItem(name))
                sessionStorage.setItem(name, JSON.stringify({ ...kept, at: kept.at - 86400000 }))
            }""")
            await reader.page.reload()
            await reader.ended("failed")
            assert "This question was not sent." in await reader.mark()
            await reader.page.unroute("**/api/chat/stream")
            await asyncio.sleep(0.3)
            assert len(reader.asked) == 1 and await reader.questions() == ["Hello"]
            await reader.page.get_by_role("button", name="Try again").click()
            await reader.shows("Yes.")
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_lost_network_loses_nothing(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [GATED]) as served,
            network(served.port) as between,
            opened(browser, between.url) as reader,
        ):
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.context.set_offline(True)
            between.cut()
            await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
            served.model.release("curtain")
            assert await served.outcomes() == ["complete"], "the answer goes on without its reader"
            await asyncio.sleep(2)  # by now the next try is some seconds away
            between.mend()
            began = asyncio.get_running_loop().time()
            await reader.page.context.set_offline(False)
            await reader.ended("complete")
            assert asyncio.get_running_loop().time() - began < 1.2, "the page does not wait when the network is back"
            assert await reader.text() == WHOLE
            assert len(served.model.requests) == 1 and len(reader.asked) == 1
            followed = [url for url in reader.requests if "/events?" in url]
            assert followed and all(re.search(r"after=[1-9]", url) for url in followed), "nothing is sent twice"

    chromium.run(scenario)


def test_a_network_that_breaks_again_and_again_is_borne_as_long_as_text_comes(
    chromium: Chromium, tmp_path: Path
) -> None:
    times = 12  # more than there are tries in a row

    async def scenario(browser: Browser) -> None:
        script: list[dict[str, str]] = []
        for number in range(times):
            script += [{"say": f"Piece {number}. "}, {"gate": f"gate-{number}"}]
        async with (
            chat(tmp_path, [script]) as served,
            network(served.port) as between,
            opened(browser, between.url, before=FAST) as reader,
        ):
            await reader.ask("Hello")
            for number in range(times):
                await reader.shows(re.compile(f"Piece {number}. $"))
                between.cut()
                await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
                between.mend()
                await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_hidden()
                served.model.release(f"gate-{number}")
            await reader.ended("complete")
            assert await reader.text() == "".join(f"Piece {number}. " for number in range(times))
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_when_the_network_is_back_a_connection_that_died_with_it_is_not_waited_for(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [GATED]) as served,
            network(served.port) as between,
            opened(browser, between.url) as reader,
        ):
            between.die_after(b"piece.")
            await reader.ask("Hello")
            await reader.shows("First piece.")
            served.model.release("curtain")
            await reader.page.context.set_offline(True)
            await reader.page.context.set_offline(False)
            await reader.ended("complete")
            assert await reader.text() == WHOLE
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_network_that_comes_and_goes_while_nothing_has_come_yet_is_not_given_up(
    chromium: Chromium, tmp_path: Path
) -> None:
    """A slow model, and a train with tunnels: more of them than there are tries in a row."""

    async def scenario(browser: Browser) -> None:
        script = [{"gate": "curtain"}, {"say": WHOLE}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url, before=FAST) as reader:
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            while len([url for url in reader.requests if "/events?" in url]) < 12:
                await reader.page.context.set_offline(True)
                await reader.page.context.set_offline(False)
                await asyncio.sleep(0.1)
                assert await reader.answer().get_attribute("data-outcome") is None
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.text() == WHOLE and len(served.model.requests) == 1

    chromium.run(scenario)


def test_tries_grow_further_apart_and_come_to_an_end(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [GATED]) as served,
            network(served.port) as between,
            opened(browser, between.url, before=FAST) as reader,
        ):
            times: list[float] = []
            reader.page.on("requestfailed", lambda _: times.append(asyncio.get_running_loop().time()))
            await reader.ask("Hello")
            await reader.shows("First piece.")
            between.cut()
            await reader.ended("failed", seconds=10)
            assert "trying again did not help" in await reader.mark()
            pauses = [later - earlier for earlier, later in pairwise(times)][-4:]
            assert pauses == sorted(pauses) and len(times) < 12
            between.mend()
            served.model.release("curtain")
            await served.outcomes()
            await reader.page.get_by_role("button", name="Try again").click()
            await reader.shows(WHOLE)
            assert len(served.model.requests) == 1 and await reader.questions() == ["Hello"]

    chromium.run(scenario)


def test_a_stop_while_the_connection_is_lost_is_delivered_when_it_is_back(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [GATED]) as served,
            network(served.port) as between,
            opened(browser, between.url) as reader,
        ):
            await reader.ask("Hello")
            await reader.shows("First piece.")
            between.cut()
            await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
            await reader.page.keyboard.press("Escape")
            await reader.ended("stopped")
            assert len(served.site.exchanges.running) == 1
            between.mend()
            await served.model.wait_left(0, timeout=5)
            assert await served.outcomes() == ["stopped"]
            assert await reader.text() == "First piece." and await reader.mark() == "Stopped."

    chromium.run(scenario)


def test_a_connection_that_died_without_a_word_is_noticed(chromium: Chromium, tmp_path: Path) -> None:
    """No bytes for two and a half heartbeats: the stream is dead, whatever the browser thinks."""

    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [GATED], limits=Limits(heartbeat_seconds=0.4)) as served,
            network(served.port) as between,
            opened(browser, between.url) as reader,
        ):
            between.die_after(b"piece.")
            await reader.ask("Hello")
            await reader.shows("First piece.")
            served.model.release("curtain")
            await reader.ended("complete", seconds=8)
            assert await reader.text() == WHOLE
            assert len(served.model.requests) == 1 and len(reader.asked) == 1

    chromium.run(scenario)


def test_a_second_tab_sees_the_answer_and_can_stop_it(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "Before."}], GATED, [{"say": "After."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as one:
            await one.ask("One")
            await one.ended("complete")
            async with opened(one.page.context, served.url) as two:
                await two.ended("complete")
                await one.ask("Two")
                await two.shows("First piece.")
                assert await two.questions() == ["One", "Two"] and not two.asked
                await two.page.get_by_role("button", name="Stop").click()
                for tab in (one, two):
                    await tab.ended("stopped")
                    assert await tab.answers() == ["Before.", "First piece."]
                await two.ask("Three")
                for tab in (one, two):
                    await tab.ended("complete")
                    assert await tab.answers() == ["Before.", "First piece.", "After."]
                    assert await tab.questions() == ["One", "Two", "Three"]
            assert len(served.model.requests) == 3

    chromium.run(scenario)


def test_a_tab_that_is_opened_in_the_middle_sees_the_answer_from_its_start(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url) as one:
            await one.ask("Hello")
            await one.shows("First piece.")
            async with opened(one.page.context, served.url) as two:
                await two.shows("First piece.")
                served.model.release("curtain")
                for tab in (one, two):
                    await tab.ended("complete")
                    assert await tab.answers() == [WHOLE]
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_retry_in_one_tab_takes_the_answers_place_in_the_other(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "Bro"}, {"close": "reset"}], [{"say": "Whole."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as one:
            await one.ask("Hello")
            await one.ended("failed")
            async with opened(one.page.context, served.url) as two:
                await two.ended("failed")
                await two.page.get_by_role("button", name="Try again").click()
                for tab in (one, two):
                    await tab.shows("Whole.")
                    assert await tab.questions() == ["Hello"]
            assert len(served.model.requests) == 2

    chromium.run(scenario)


@pytest.mark.parametrize("named", ["", "hidden"])
def test_a_tab_that_slept_catches_up_when_it_is_looked_at(chromium: Chromium, tmp_path: Path, named: str) -> None:
    """A page that was frozen heard nothing of what other tabs did; an image of its is named like what tells so."""
    deaf = "BroadcastChannel.prototype.addEventListener = () => {}"

    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "Before."}], [{"say": "After."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url, before=deaf) as one:
            await one.ask("One")
            await one.ended("complete")
            async with opened(one.page.context, served.url) as two:
                await two.ended("complete")
                await two.ask("Two")
                await two.shows("After.")
            assert await one.questions() == ["One"]
            await one.page.evaluate(
                "(name) => document.body.appendChild(new Image()).setAttribute('name', name)", named
            )
            await one.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await one.shows("After.")
            assert await one.questions() == ["One", "Two"]

    chromium.run(scenario)


@pytest.mark.parametrize("resumed", ["while the page waits", "by a reload"])
def test_a_restart_ends_the_answer_as_interrupted(chromium: Chromium, tmp_path: Path, resumed: str) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED, [{"say": "Again."}]]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await served.stop()
            await served.start()
            if resumed == "by a reload":
                await reader.page.reload()
            await reader.ended("interrupted")
            assert await reader.text() == "First piece."
            assert "The server was stopped before the answer's end." in await reader.mark()
            assert len(served.model.requests) == 1, "a restart asks nothing by itself"
            await reader.page.get_by_role("button", name="Try again").click()
            await reader.shows("Again.")
            assert await reader.questions() == ["Hello"]
            assert len(served.model.requests) == 2

    chromium.run(scenario)


@pytest.mark.parametrize("pieces", [["First piece."], ["First ", "piece."], ["F", "irst ", "piece."]])
def test_a_killed_server_is_followed_into_its_next_life(chromium: Chromium, tmp_path: Path, pieces: list[str]) -> None:
    """What it had shown in its last second is in no book, so that its events end before the page's number."""

    async def scenario(browser: Browser) -> None:
        listening = listen("127.0.0.1", 0)
        port = listening.getsockname()[1]
        listening.close()
        async with ScriptedModel([[{"say": pieces}, *GATED[1:]], [{"say": "Again."}]]) as model:
            process = await serve(port, model.url, tmp_path)
            try:
                async with opened(browser, f"http://127.0.0.1:{port}/") as reader:
                    await reader.ask("Hello")
                    await reader.shows("First piece.")
                    process.send_signal(signal.SIGKILL)
                    await process.wait()
                    await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
                    process = await serve(port, model.url, tmp_path)
                    await reader.ended("interrupted", seconds=20)
                    assert await reader.text() == "First piece.", "what was shown stays"
                    assert len(model.requests) == 1 and len(reader.asked) == 1
                    await reader.page.get_by_role("button", name="Try again").click()
                    await reader.shows("Again.")
                    assert len(model.requests) == 2 and await reader.questions() == ["Hello"]
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()

    chromium.run(scenario)


async def serve(port: int, upstream: str, folder: Path) -> asyncio.subprocess.Process:
    """`motamot serve`, once it listens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MOTAMOT_", "OPENAI_"))}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "motamot", "serve", "--upstream", upstream, "--model", "scripted"),
        *("--port", str(port), "--database", str(folder / "books.sqlite3")),
        cwd=folder,
        env=kept,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                assert process.returncode is None, "it did not start"
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return process


def test_an_answer_that_was_left_is_shown_as_ended_then(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        limits = Limits(resume_seconds=0.3)
        async with chat(tmp_path, [GATED], limits=limits) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.goto("about:blank")
            await served.model.wait_left(0, timeout=3)
            await reader.page.goto(served.url)
            await reader.ended("abandoned")
            assert await reader.text() == "First piece."
            assert "Ended because nobody was reading it." in await reader.mark()

    chromium.run(scenario)


def test_a_new_conversation_leaves_the_old_one_alone(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED, [{"say": "New."}]]) as served, opened(browser, served.url) as reader:
            await reader.ask("Old")
            await reader.shows("First piece.")
            await reader.page.get_by_role("button", name="New conversation").click()
            await served.model.wait_left(0, timeout=2)
            assert await reader.questions() == []
            await reader.page.reload()
            await expect(reader.page.get_by_text("What would you like to know?")).to_be_visible()
            await reader.ask("New")
            await reader.shows("New.")
            assert [message["content"] for message in served.model.requests[1].body["messages"]] == ["New"]

    chromium.run(scenario)


def test_what_becomes_of_an_answer_does_not_reach_into_the_next_conversation(
    chromium: Chromium, tmp_path: Path
) -> None:
    """Its first event, and with it its conversation, is heard of only after another was begun."""

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED, [{"say": "New."}]]) as served, opened(browser, served.url) as reader:

            async def deliver_but_answer_nothing(route: Route) -> None:
                if len(reader.asked) > 1:
                    await route.continue_()
                else:
                    deliver(reader, route)

            await reader.page.route("**/api/chat/stream", deliver_but_answer_nothing)
            await reader.ask("Old")
            await served.model.wait_gate("curtain")
            await reader.page.get_by_role("button", name="New conversation").click()
            await served.model.wait_left(0, timeout=2)
            await asyncio.sleep(0.3)
            await reader.ask("New")
            await reader.shows("New.")
            assert await reader.questions() == ["New"]
            assert [message["content"] for message in served.model.requests[1].body["messages"]] == ["New"]

    chromium.run(scenario)


@pytest.mark.parametrize("what", ["loaded", "deleted"])
def test_a_conversation_that_could_not_be_loaded_or_deleted_can_be_tried_again(
    chromium: Chromium, tmp_path: Path, what: str
) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.route("**/api/conversations/**", lambda route: route.fulfill(status=503))
            if what == "loaded":
                await reader.page.reload()
            else:
                await reader.page.get_by_role("button", name="Delete").click()
                await reader.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            trouble = reader.page.locator("#trouble")
            await expect(trouble).to_contain_text(f"could not be {what}")
            await reader.page.get_by_role("button", name="Français").click()
            await expect(trouble).to_contain_text("n’a pas pu être")
            await reader.page.unroute("**/api/conversations/**")
            await trouble.get_by_role("button", name="Réessayer").click()
            await expect(reader.page.locator(".exchange")).to_have_count(1 if what == "loaded" else 0)
            await expect(trouble).to_have_text("Réessayer")
            await expect(trouble.get_by_role("button")).to_be_hidden()
            assert await reader.focused() == "question"

    chromium.run(scenario)


def test_deleting_asks_first_and_deletes_in_every_tab(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url) as one:
            await expect(one.page.get_by_role("button", name="Delete")).to_be_hidden()
            await one.ask("Hello")
            await one.shows("First piece.")
            [row] = await one.transcript()
            async with opened(one.page.context, served.url) as two:
                await two.shows("First piece.")
                await one.page.get_by_role("button", name="Delete").click()
                await one.page.keyboard.press("Escape")  # leaves the question, and does not stop the answer
                assert len(served.site.exchanges.running) == 1
                await one.page.get_by_role("button", name="Delete").click()
                await one.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
                for tab in (one, two):
                    await expect(tab.page.locator(".exchange")).to_have_count(0)
                await served.model.wait_left(0, timeout=2)
            assert await one.focused() == "question"
            kept = await served.site.exchanges.store.exchange(row["exchange"])
            assert kept is not None and kept.question is None and not kept.shown
            await one.page.reload()
            await expect(one.page.get_by_text("What would you like to know?")).to_be_visible()

    chromium.run(scenario)


def test_where_the_browser_keeps_nothing_the_page_still_answers(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "One."}], [{"say": "Two."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url, before=NO_STORAGE) as reader:
            await reader.ask("1")
            await reader.ended("complete")
            await reader.ask("2")
            await reader.shows("Two.")
            assert len(served.model.requests[1].body["messages"]) == 3, "in the same conversation"

    chromium.run(scenario)


@pytest.mark.parametrize(
    "left", ['{"a": 1}', "[]", "7", '"<img>"', "true", '{"body": 1, "at": 1}', '{"body": {}, "at": 1}']
)
def test_what_others_left_in_the_browsers_storage_does_not_keep_the_page_from_working(
    chromium: Chromium, tmp_path: Path, left: str
) -> None:
    poison = f"""
        if (!sessionStorage.poisoned)
            for (const storage of [localStorage, sessionStorage])
                for (const name of ["conversation default", "unsent default", "language"])
                    storage.setItem(`motamot / ${{name}}`, {left!r})
        sessionStorage.poisoned = "once"
    """

    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [[{"say": "Yes."}]]) as served,
            opened(browser, served.url, before=poison) as reader,
        ):
            await reader.ask("Hello")
            await reader.ended("complete")
            assert await reader.questions() == ["Hello"]
            await reader.page.reload()
            await reader.shows("Yes.")
            assert len(served.model.requests) == 1

    chromium.run(scenario)
