"""The widget's Markdown in Chromium: what a frame costs while an answer grows to 100 kB.

Run: `python -m bench.markdown [SHAPE …]`. It takes Chromium, and npm for the widget's tools.

Each answer comes in 200 deltas a second, and what came is written once a frame, as the widget does. A frame's work is
the CPU time of the page's main thread for one task of it (script, style, layout and paint together), from Chromium's
trace; what the machine does besides does not count. The last column is the median of the tenth of the frames that came
last, over that of the tenth that came first.
"""

from __future__ import annotations

import bisect
import json
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parent.parent
WIDGET = ROOT / "widget"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHARACTERS = 100_000
DELTA = 50  # characters: 10 kB a second

SENTENCE = (
    "The **quick** brown `fox` jumps over the *lazy* dog, 3 times or 5, and goes on to [the next](https://x.example). "
)
PLAIN = "The quick brown fox jumps over the lazy dog, and then it goes on to the next one without a word. "
SHAPES = {
    "one paragraph": PLAIN,
    "one paragraph, formatted": SENTENCE,
    "one paragraph in lines": f"{PLAIN}\n",
    "one fence": ("```python\n", "    for number in range(10): print(number)  # and so on\n"),
    "one fence, one line": ("```\n", '{"name": "value", "list": [1, 2, 3]}, '),
    "one table": ("| Name | Age | City |\n|---|---|---|\n", "| **Ana** Smith | 31 | Paris, in the north |\n"),
    "one list": "- an **item** of the list, with some words\n",
    "one ordered list, nested": "1. an item of the list\n   - with one more in it, and some words\n",
    "paragraphs": f"{SENTENCE}{SENTENCE}\n\n",
    "Chinese, without a space": "敏捷的棕色狐狸跳过了懒惰的狗，然后继续走到下一个。",
    "Arabic, from right to left": "الثعلب البني السريع يقفز فوق الكلب الكسول، ثم يمضي إلى التالي. ",
}  # fmt: skip

PAGE = """<!doctype html><meta charset="utf-8"><style>
.text { white-space: pre-wrap; overflow-wrap: anywhere; font: 16px/1.5 sans-serif; width: 640px }
%s</style><div id="area" style="height: 600px; overflow: auto"><div class="text"></div></div>"""
RUN = """([text, size]) => new Promise((done) => {
  const root = document.querySelector(".text"), area = document.querySelector("#area");
  const writer = markdown(root);
  let at = 0, waiting = "", frame = 0;
  const flush = () => { frame = 0; writer.write(waiting); waiting = ""; area.scrollTop = area.scrollHeight };
  const timer = setInterval(() => {
    waiting += text.slice(at, at += size);
    frame ||= requestAnimationFrame(flush);
    if (at >= text.length) { clearInterval(timer); setTimeout(() => { writer.end(); done() }, 200) }
  }, 5);
})"""
CATEGORIES = ["toplevel", "devtools.timeline"]


def main() -> None:
    """Measure the shapes named, or all."""
    shapes = sys.argv[1:] or list(SHAPES)
    if CHROMIUM is None or (unknown := [shape for shape in shapes if shape not in SHAPES]):
        sys.exit("No Chromium." if CHROMIUM is None else f"Shapes: {', '.join(SHAPES)}; not {unknown[0]}.")
    script = bundled()
    print("| 100 kB as | median ms a frame | p99 | worst | last tenth ÷ first |\n| --- | ---: | ---: | ---: | ---: |")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox"])
        for shape in shapes:
            frames = measured(browser, script, answer(shape))
            tenth = max(len(frames) // 10, 1)
            growth = statistics.median(frames[-tenth:]) / statistics.median(frames[:tenth])
            p99 = statistics.quantiles(frames, n=100)[98]
            row = (statistics.median(frames), p99, max(frames))
            print(f"| {shape} | {' | '.join(f'{ms:.1f}' for ms in row)} | {growth:.1f} |", flush=True)
        browser.close()


def bundled() -> str:
    """The Markdown of the widget, as a script that sets `markdown`."""
    command = [str(WIDGET / "node_modules" / ".bin" / "esbuild"), "--bundle", "--format=iife"]
    source = "import { markdown } from './src/markdown/index.ts'; globalThis.markdown = markdown"
    try:
        return subprocess.run(command, input=source, text=True, cwd=WIDGET, check=True, capture_output=True).stdout
    except FileNotFoundError:
        sys.exit("The widget's tools are missing: make widget")


def styles() -> str:
    """The widget's styles for it."""
    found = re.search(r"`(.*?)`", (WIDGET / "src" / "styles" / "markdown.ts").read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def answer(shape: str) -> str:
    """100,000 characters of a shape."""
    told = SHAPES[shape]
    begin, repeated = ("", told) if isinstance(told, str) else told
    return (begin + repeated * (CHARACTERS // len(repeated) + 1))[:CHARACTERS]


def measured(browser: Browser, script: str, text: str) -> list[float]:
    """Milliseconds of CPU for each frame in which something was written."""
    page = browser.new_page(viewport={"width": 800, "height": 700})
    page.set_content(PAGE % styles())
    page.add_script_tag(content=script)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.evaluate(RUN, [text, DELTA])
    events = json.loads(browser.stop_tracing())["traceEvents"]
    shown = page.evaluate("document.querySelector('.text').textContent.length")
    assert shown > len(text) // 2, shown
    page.close()
    return frames_of(events)


def frames_of(events: list[dict[str, Any]]) -> list[float]:
    """The tasks of the page's main thread that ran a frame's scripts."""
    fired = [event for event in events if event["name"] == "FireAnimationFrame"]
    thread = (fired[0]["pid"], fired[0]["tid"])
    begun = sorted(event["ts"] for event in fired)
    frames = []
    for task in sorted(
        (event for event in events if event["name"].endswith("RunTask")), key=lambda task: float(task["ts"])
    ):
        if (task["pid"], task["tid"]) == thread and "dur" in task:
            first = bisect.bisect_left(begun, task["ts"])
            if first < len(begun) and begun[first] <= task["ts"] + task["dur"]:
                frames.append(task.get("tdur", task["dur"]) / 1000)
    return frames


if __name__ == "__main__":
    main()
