"""The widget's reader gives the events of `motamot.sse`, for every stream and at every cut, in Node and in Chromium."""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route

from motamot.sse import Decoder
from tests.node import node
from tests.page.support import Chromium, chat, opened

DATA = Path(__file__).parent.parent / "data"
HERE = Path(__file__).parent
WIDGET = HERE.parent.parent / "widget"
READER = WIDGET / "src" / "decoder.ts"
STRIP = """
    import { readFileSync } from "node:fs"
    import { stripTypeScriptTypes } from "node:module"
    process.stdout.write(stripTypeScriptTypes(readFileSync(process.argv[1], "utf-8")))
"""
ALPHABET = [b"data", b"id", b"event", b"retry", b":", b" ", b"\r", b"\n", b"\r\n", b"\n\n", b"0", b"12", b"x", b"\0"]
ALPHABET += [b"\xef\xbb\xbf", b"\xc3\xa9", b"\xf0\x9f\x98\x8a", b"\xf0\x9f", b"\xff", b"\xe2\x80\xa8", b"\xc2\x85"]


def _bytes(given: dict[str, Any]) -> bytes:
    """The stream of a case or of a hazard."""
    if "base64" in given:
        return base64.b64decode(given["base64"])
    text: str = given.get("text", given.get("stream", ""))
    return text.encode()


def streams() -> dict[str, bytes]:
    """Everything there is to read: cases from practice, the hazards of the standard, real streams, hostile bytes."""
    found: dict[str, bytes] = {}
    with (DATA / "cases.jsonl").open(encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            if case["given"]["type"] == "stream" and case["given"]["dialect"] != "ollama-ndjson":
                found[case["id"]] = _bytes(case["given"])
    for hazard in json.loads((DATA / "sse_hazards.json").read_text("utf-8")):
        found[hazard["name"]] = _bytes(hazard)
    for path in sorted((DATA / "real-streams").glob("*.sse")):
        found[path.name] = path.read_bytes()[:3_000]
    dice = random.Random(7)
    for number in range(300):
        found[f"hostile {number}"] = b"".join(dice.choices(ALPHABET, k=dice.randint(1, 40)))
    return found


def expected(stream: bytes) -> dict[str, Any]:
    """What `motamot.sse` makes of it."""
    decoder = Decoder()
    events = [{"event": event.event, "data": event.data, "id": event.id} for event in decoder.feed(stream)]
    told = {"events": events, "lastEventId": decoder.last_event_id, "retry": decoder.retry, "over": False}
    return {**told, "differing": []}


def cases(found: dict[str, bytes]) -> list[dict[str, Any]]:
    """For the reader's side: with some cuts into many pieces beside every cut into two."""
    dice = random.Random(11)
    return [
        {
            "base64": base64.b64encode(stream).decode(),
            "random": [sorted(dice.choices(range(len(stream) + 1), k=dice.randint(2, 9))) for _ in range(20)],
        }
        for stream in found.values()
    ]


def in_node(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(node()), str(HERE / "node_reader.mjs"), str(READER)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def compare(found: dict[str, bytes], got: list[dict[str, Any]]) -> None:
    assert len(found) == len(got) > 300
    for (name, stream), reading in zip(found.items(), got, strict=True):
        assert reading == expected(stream), name


def test_in_node_the_reader_gives_the_same_events_at_every_cut() -> None:
    found = streams()
    compare(found, in_node(cases(found)))


def test_in_chromium_the_reader_gives_the_same_events_at_every_cut(chromium: Chromium, tmp_path: Path) -> None:
    found = streams()
    source = (HERE / "every_cut.js").read_text("utf-8").replace("export ", "")
    command = [str(node()), "--input-type=module", "--eval", STRIP, str(READER)]
    script = subprocess.run(command, capture_output=True, text=True, timeout=40, check=True).stdout

    async def give(route: Route) -> None:
        await route.fulfill(status=200, content_type="text/javascript", body=script)

    async def scenario(browser: Browser) -> list[dict[str, Any]]:
        async with chat(tmp_path, []) as served, opened(browser, served.url) as reader:
            await reader.page.route("**/decoder.js", give)
            return await reader.page.evaluate(  # type: ignore[no-any-return]
                f"""async (cases) => {{
                    const {{ Decoder }} = await import("./decoder.js")
                    {source}
                    return everyCut(Decoder, cases)
                }}""",
                cases(found),
            )

    compare(found, chromium.run(scenario))


@pytest.mark.parametrize(
    ("stream", "given"),
    [
        (b"data: 123456789\n\n", ["123456789", "after"]),
        (b"data: 1234567890\n\n", []),
        (b"data: 1234567\ndata:\n\n", ["1234567\n", "after"]),
        (b"data: 123456789\ndata: 1\n\n", []),
        (b": 123456789012345678\n\n", []),
        (b": 123456789012\n: 123456789012\n: 123456789012\ndata: 1\n\n", ["1", "after"]),
        (b"data: 1\n\n" * 20, ["1"] * 20 + ["after"]),
        (b"event: 1234567\ndata: 1\n\n", ["1", "after"]),
        (b"event: 12345678\ndata: 12\n\n", []),
        (b"data: 1\n\ndata: 1234567890\n\ndata: 1\n\n", ["1"]),
        (b"1234567890123456", []),
    ],
)
def test_a_block_that_is_too_long_is_never_given_nor_what_follows(stream: bytes, given: list[str]) -> None:
    """Counted in characters, with the names of fields: 15 here."""
    whole = stream + b"data: after\n\n"
    [reading] = in_node([{"base64": base64.b64encode(whole).decode(), "most": 15}])
    assert [event["data"] for event in reading["events"]] == given
    assert reading["over"] is False, "the call that meets it gives the events before it"
    if given[-1:] == ["after"]:
        assert reading["differing"] == []
    else:
        [cut] = in_node([{"base64": base64.b64encode(whole).decode(), "most": 15, "random": [[len(stream)]]}])
        assert [event["data"] for event in cut["events"]] == given
        assert "bytes" in cut["differing"], "a later call says so"


def test_long_events_are_read_in_time_in_proportion_to_their_length() -> None:
    """A megabyte byte by byte, and an event of 200,000 lines: seconds, not minutes."""
    script = f"""
        import {{ Decoder }} from {json.dumps(READER.as_uri())}
        const one = Uint8Array.of(97), start = new TextEncoder().encode("data: ")
        const decoder = new Decoder()
        decoder.feed(start)
        for (let n = 0; n < 1_000_000; n++) decoder.feed(one)
        const [event] = decoder.feed(new TextEncoder().encode("\\n\\n"))
        const lines = new TextEncoder().encode("data: x\\n".repeat(200_000) + "\\n")
        const [many] = new Decoder().feed(lines)
        console.log(event.data.length, many.data.length)
    """
    command = [str(node()), "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert done.stdout.split() == ["1000000", "399999"], done.stderr


def test_the_widget_asks_nobody_else_and_holds_no_markup_from_text() -> None:
    """A look at the sources and at what is made of them: what the browser would refuse is not even tried."""
    served = HERE.parent.parent / "src" / "motamot" / "server"
    for path in sorted(
        [*(WIDGET / "src").rglob("*.ts"), *(served / "widget").iterdir(), served / "page" / "index.html"]
    ):
        text = path.read_text("utf-8")
        told = text if path.suffix != ".ts" else re.sub(r"^\s*(//|\*|/\*\*).*$", "", text, flags=re.MULTILINE)
        hosts = set(re.findall(r"https?://[\w.-]+\.[\w.-]+[^\s\"'`)]*", told))
        assert hosts <= {"http://www.w3.org/2000/svg"}, path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", told)
        if path.suffix == ".html":
            assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", text)
