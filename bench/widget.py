"""The widget in Chromium: how soon after its bytes a first text is painted, and what 200 answers leave behind.

    python -m bench.widget

A real server with a scripted model, the page at `/`. *First text*: from when the page's reader has the bytes to after
the frame that paints them. *Left behind*: JavaScript's heap and the page's nodes, after the collector has run, with
each answer in a conversation of its own (nothing may grow but Chromium's memory of what was typed, two nodes a
question), and with all in one (what is shown is kept).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from playwright.async_api import Browser, CDPSession
from tests.page.support import Chromium, Reader, chat, opened

from motamot.server.options import Options

ANSWERS = 200
BOUNDLESS = Options(requests_per_hour=100_000, tokens_per_hour=1_000_000_000)
WATCH = """
    window.painted = []
    let came = NaN
    const read = ReadableStreamDefaultReader.prototype.read
    const decoder = new TextDecoder()
    ReadableStreamDefaultReader.prototype.read = async function () {
        const got = await read.call(this)
        const first = Number.isNaN(came) && got.value && decoder.decode(got.value).includes('"type":"text"')
        if (first) came = performance.now()
        return got
    }
    const frame = requestAnimationFrame
    window.requestAnimationFrame = (call) => frame((now) => {
        call(now)
        if (!Number.isFinite(came)) return
        const began = came
        came = Infinity // until the next answer
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => window.painted.push(performance.now() - began) // after this frame was painted
        port2.postMessage(0)
    })
    window.next = () => { came = NaN }
"""


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is there after so many answers. heap: bytes."""

    answers: int
    heap: int
    nodes: int
    listeners: int


def answer(number: int) -> list[dict[str, object]]:
    """An answer of some 2 kB with what answers have in them."""
    rows = "".join(f"| {row} | {number} |\n" for row in range(8))
    code = "".join(f"    value_{row} = {number}\n" for row in range(8))
    text = "Some words of *emphasis*, `code` and a [link](https://shop.example/). " * 12
    fence = f"```python\ndef f():\n{code}```"
    whole = f"## Answer {number}\n\n{text}\n\n- one\n- two\n\n{fence}\n\n| a | b |\n|---|---|\n{rows}"
    return [{"say": [whole[at : at + 40] for at in range(0, len(whole), 40)], "pace": "3ms"}]


async def ask(reader: Reader, number: int) -> None:
    """Ask, and wait for the end."""
    await reader.page.evaluate("next()")
    await reader.ask(f"Question {number}")
    await reader.page.wait_for_function(
        "(text) => { const root = document.querySelector('motamot-chat').shadowRoot;"
        "const all = root.querySelectorAll('.exchange'), last = all[all.length - 1];"
        "return last?.querySelector('.asked').textContent === text"
        " && last.querySelector('.answer').dataset.outcome === 'complete' }",
        arg=f"Question {number}",
    )


async def left(devtools: CDPSession, answers: int) -> Left:
    """What is there, once the collector has run."""
    for _ in range(3):
        await devtools.send("HeapProfiler.collectGarbage")
    heap = await devtools.send("Runtime.getHeapUsage")
    dom = await devtools.send("Memory.getDOMCounters")
    return Left(answers=answers, heap=heap["usedSize"], nodes=dom["nodes"], listeners=dom["jsEventListeners"])


def scenario(
    folder: Path, answers: int, every: int, *, fresh: bool
) -> Callable[[Browser], Awaitable[tuple[list[Left], list[float]]]]:
    """Ask so many questions, and look `every` so many. fresh: each in a conversation of its own."""

    async def play(browser: Browser) -> tuple[list[Left], list[float]]:
        scripts = [answer(number) for number in range(answers)]
        async with (
            chat(folder, scripts, options=BOUNDLESS) as served,
            opened(browser, served.url, before=WATCH) as reader,
        ):
            devtools = await reader.page.context.new_cdp_session(reader.page)
            found = []
            for number in range(1, answers + 1):
                await ask(reader, number)
                if fresh:
                    await reader.page.locator("#fresh").click()
                if number % every == 0:
                    found.append(await left(devtools, number))
            return found, await reader.page.evaluate("painted")

    return play


def main() -> None:
    """Measure, and say it as JSON lines."""
    chromium = Chromium()
    chromium.start()
    try:
        for fresh in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                found, painted = chromium.run(scenario(Path(folder), ANSWERS, ANSWERS // 4, fresh=fresh), seconds=600)
            painted.sort()
            told = {
                "conversations": "one each" if fresh else "one for all",
                "first_text_ms": {
                    "p50": round(median(painted), 1),
                    "p95": round(painted[len(painted) * 95 // 100], 1),
                    "max": round(painted[-1], 1),
                },
                "left": [[one.answers, round(one.heap / 1000), one.nodes, one.listeners] for one in found],
            }
            sys.stdout.write(json.dumps(told) + "\n")
    finally:
        chromium.close()


if __name__ == "__main__":
    main()
