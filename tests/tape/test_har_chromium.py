"""A HAR that a real Chromium writes, of our own server: what is in it is what was on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page

from motamot.errors import TapeError
from motamot.protocols import PROTOCOLS
from motamot.scripted.model import ScriptedModel
from motamot.tape import Tape, load
from tests.page.support import Chromium, chat

ANSWER = "Prêt à partir ? Un œuf à 3 €.\n\n- premièrement\n- ensuite « çà et là »"

POSTED = """async ({path, body, whole, leave}) => {
  const control = new AbortController();
  const response = await fetch(path, {method: "POST", headers: {"content-type": "application/json"},
                                      body: JSON.stringify(body), signal: control.signal});
  if (whole) return [...new TextEncoder().encode(await response.text())];
  const reader = response.body.getReader();
  const parts = [];
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    parts.push(...value);
    if (leave) { control.abort(); break; }
  }
  return parts;
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    browser = Chromium()
    browser.start()
    yield browser
    browser.close()


async def recorded(browser: Browser, folder: Path, url: str) -> tuple[BrowserContext, Page, Path]:
    """A page of the site, whose traffic goes into a HAR once its context is closed."""
    har = folder / "traffic.har"
    context = await browser.new_context(record_har_path=har, record_har_content="embed")
    page = await context.new_page()
    await page.goto(f"{url}healthz")
    return context, page, har


async def posted(page: Page, path: str, body: dict[str, Any], *, whole: bool = False, leave: bool = False) -> bytes:
    """What a page's fetch reads of a response: piece by piece, whole, or only the first piece."""
    return bytes(await page.evaluate(POSTED, {"path": path, "body": body, "whole": whole, "leave": leave}))


def text_of(tape: Tape, protocol: str) -> str:
    reader = PROTOCOLS[protocol].reader()
    events = [event for data in tape.reads() for event in reader.feed(data)]
    return "".join(event.text for event in events if hasattr(event, "text"))


def test_every_answer_of_our_server_is_on_a_tape_byte_for_byte(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> dict[str, bytes]:
        said = [{"say": ANSWER}, {"usage": {"prompt": 3, "completion": 5}}]
        async with chat(tmp_path, [said] * 3) as served:
            context, page, _ = await recorded(browser, tmp_path, served.url)
            read = {
                path: await posted(page, path, {"message": "Où ?"}, whole=path == "/api/chat")
                for path in ("/api/chat/stream", "/api/chatbot/chat/stream", "/api/chat")
            }
            await page.evaluate("fetch('/openapi.json').then(response => response.text())")
            await context.close()
            return read

    read = chromium.run(scenario)
    tapes = load(tmp_path / "traffic.har")
    assert [tape.request.url.partition("/api")[2] for tape in tapes if tape.request] == [
        "/chat/stream",
        "/chatbot/chat/stream",
        "/chat",
    ]
    assert [tape.body for tape in tapes] == list(read.values())
    assert [text_of(tapes[0], "motamot"), text_of(tapes[1], "ga-text")] == [ANSWER, ANSWER]
    assert json.loads(tapes[2].body)["text"] == ANSWER
    for tape in tapes:
        assert (tape.status, tape.end, tape.source, tape.timed) == (200, "closed", "har", False)
        assert tape.request is not None
        assert (tape.request.method, json.loads(tape.request.body)) == ("POST", {"message": "Où ?"})
        assert "times of pieces" in tape.notes[0]
        assert tape.head_at is not None and tape.ended_at is not None and 0 <= tape.head_at <= tape.ended_at
        secrets = {value for name, value in tape.headers + tape.request.headers if "cookie" in name.lower()}
        assert secrets <= {"[removed]"}


@pytest.mark.parametrize(
    "kind", ["text/event-stream", "text/plain", "text/event-stream; charset=utf-8", "application/x-ndjson"]
)
def test_utf8_without_a_charset_is_as_it_was_on_the_wire(chromium: Chromium, tmp_path: Path, kind: str) -> None:
    """Chromium stores such a text as windows-1252, and what it knows no text in as base64."""
    body = f"data: {ANSWER}".replace("\n", "\ndata: ") + "\n\n"
    script = [{"status": 200, "headers": {"content-type": kind}}, {"send": body}]

    async def scenario(browser: Browser) -> bytes:
        async with ScriptedModel({"requests": [script, script]}) as model:
            context, page, _ = await recorded(browser, tmp_path, model.url.removesuffix("v1"))
            read = await posted(page, "/v1/chat/completions", {"messages": [{"role": "user", "content": "?"}]})
            await context.close()
            return read

    assert chromium.run(scenario) == body.encode()
    [tape] = load(tmp_path / "traffic.har", select="completions")
    assert tape.body == body.encode()
    assert ("windows-1252" in " ".join(tape.notes)) == (kind in ("text/event-stream", "text/plain"))


@pytest.mark.parametrize("how", ["left", "reset"])
def test_a_stream_that_did_not_reach_its_end_has_no_body_and_the_way_out_is_told(
    chromium: Chromium, tmp_path: Path, how: str
) -> None:
    script: list[dict[str, Any]] = [{"say": "Hello"}, {"wait_ms": 300}]
    script += [{"close": "reset"}] if how == "reset" else [{"hold_open_ms": 3_000}]

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [script]) as served:
            context, page, _ = await recorded(browser, tmp_path, served.url)
            if how == "left":
                await posted(page, "/api/chat/stream", {"message": "Hi"}, leave=True)
            else:
                url = served.model.url + "/chat/completions"
                await page.goto(served.model.url)
                with pytest.raises(Exception, match=r"network error|Failed to fetch|evaluate"):
                    await posted(page, url, {"messages": [{"role": "user", "content": "Hi"}], "stream": True})
            await context.close()

    chromium.run(scenario)
    with pytest.raises(TapeError, match=r"without a body.*keep the panel open.*motamot record") as caught:
        load(tmp_path / "traffic.har")
    assert str(tmp_path / "traffic.har") in caught.value.message
