"""The lesson "an answer on the wire", section by section: the course's program, against a `ga-text` host of our own.

What it prints are the course's sections to the letter (spareilleux/learn, code/ga-ai, `-- l6`), made anew: by a server
that is started for it and asked over a socket, and by the ports of `motamot.peers`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from motamot.answer import AnswerEvent, Routed, Text
from motamot.assistant import Assistant, Question
from motamot.cli.matrix_forms import columns
from motamot.errors import MotamotError, UpstreamError
from motamot.peers import CHUNKERS, READERS, WRITERS
from motamot.peers.answers import IMPROVISATION, VOICINGS
from motamot.peers.counting import count
from motamot.peers.dotnet import blank
from motamot.peers.matrix import Split, cells
from motamot.peers.readers.course import events as course_events
from motamot.peers.writers.gachatbot_api import write as written

__all__ = ["run"]

VOICING_QUESTION = "Show me Cmaj7 voicings"
ARPEGGIO_QUESTION = "which arpeggio fits Am F C G"
_FAILED = "Failed to process message. Please try again."
_CHAT, _STREAM = "/api/chatbot/chat", "/api/chatbot/chat/stream"
_SECONDS = 20  # for the host to start, and for each of its answers
_LONG = 100  # characters; a longer line is cut after a member: the routing holds a trace that changes with each run
_KEPT = 50
_TITLES = {  # as the course's table heads its ports
    "course": "HTML standard",
    "page": "GaChatbot page",
    "chat-service-course": "ga-client chatService",
}


def run() -> str:
    """All sections. Raises: MotamotError where the host does not start or answer."""
    try:
        asked = asyncio.run(_ask())
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        raise MotamotError(f"the lesson's host does not answer: {type(error).__name__} {error}") from error
    sections = [_stream(asked), _standard(asked), _failure(asked), _sentences(), _after_743(), _pairs()]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


class _Asked:
    """What the host answered: status and body of each route, for the question that works and the one that fails."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, str]] = {}

    def stream(self, question: str) -> tuple[int, str]:
        return self.answers[_STREAM, question]

    def whole(self, question: str) -> tuple[int, str]:
        return self.answers[_CHAT, question]


async def _ask() -> _Asked:
    asked = _Asked()
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with _host() as url, aiohttp.ClientSession(timeout=timeout) as session:
        for question in (VOICING_QUESTION, ARPEGGIO_QUESTION):
            for path in (_STREAM, _CHAT):
                async with session.post(url + path, json={"message": question}) as response:
                    asked.answers[path, question] = (response.status, (await response.read()).decode())
    return asked


@asynccontextmanager
async def _host() -> AsyncIterator[str]:
    """A server of ours on a port of this machine, with the two skills of the lesson and no model. Gives its address."""
    from motamot.server.options import Options
    from motamot.server.run import Server, listen
    from motamot.server.site import Site

    chat = Assistant(name="ga")
    chat.answer(_skills)
    failures = logging.getLogger("motamot")
    level = failures.level
    failures.setLevel(logging.CRITICAL)  # that a question fails is what the lesson is about
    listening = listen("127.0.0.1", 0)
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = Options(ga_whole_pieces=True)  # as the course's host writes
            site = Site([chat], store=Path(folder) / "lesson.sqlite3", options=options)
            ready = asyncio.Event()
            server = Server(site, ready=ready.set)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                waiting = asyncio.create_task(ready.wait())
                await asyncio.wait({waiting, serving}, timeout=_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if not ready.is_set():
                    raise MotamotError("the lesson's host did not start")
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.end()
                await serving
    finally:
        listening.close()
        failures.setLevel(level)


async def _skills(question: Question) -> AsyncIterator[AnswerEvent]:
    """The voicing skill needs no model. Every other question does, and there is none."""
    if question.message != VOICING_QUESTION:
        raise UpstreamError(_FAILED, detail="no model server")
    yield Routed(agent="voicing", confidence=1.0, method="keyword")
    yield Text(VOICINGS)


def _stream(asked: _Asked) -> list[str]:
    status, body = asked.stream(VOICING_QUESTION)
    head = f'== POST {_STREAM} "{VOICING_QUESTION}"'
    return [head, f"HTTP {status}", *_wire(body)]


def _wire(body: str) -> list[str]:
    """The lines of a stream as they went over the wire; the blank at the end of `data: ` is not shown."""
    lines = []
    for line in body.split("\n")[:-1]:
        shown = f"{line[: line.rindex(',', 0, _KEPT) + 1]}…" if len(line) > _LONG else line
        lines.append(f"  | {shown}".rstrip())
    return lines


def _standard(asked: _Asked) -> list[str]:
    _, body = asked.stream(VOICING_QUESTION)
    lines = ["== The same stream, read as the HTML standard says"]
    events = course_events(body)
    for number, data in enumerate(events, 1):
        lines.append(f"event {number}  {_kind(data):8} {data.count(chr(10)) + 1} line(s)")
    status, whole = asked.whole(VOICING_QUESTION)
    answer = json.loads(whole)["naturalLanguageAnswer"]
    text = "".join(data for data in events if _kind(data) == "text")
    ours = body.encode().endswith(written(CHUNKERS["sentence"].cut(answer)))
    return [
        *lines,
        "",
        f"POST {_CHAT}               HTTP {status}, answer of {len(answer)} characters",
        f"text events joined, equal to it      {_yes(text == answer)} (line breaks as LF)",
        f"the course's copy of the host's writer gives the host's bytes  {_yes(ours)}",
    ]


def _failure(asked: _Asked) -> list[str]:
    (whole_status, _), (status, body) = asked.whole(ARPEGGIO_QUESTION), asked.stream(ARPEGGIO_QUESTION)
    rows = [("reader", "what the user gets")]
    rows += [(title, READERS[name].read([body.encode()]).told) for name, title in _TITLES.items()]
    return [
        f'== "{ARPEGGIO_QUESTION}" with no model server',
        f"POST {_CHAT}         HTTP {whole_status}",
        f"POST {_STREAM}  HTTP {status}",
        *_wire(body),
        "",
        *columns(rows),
    ]


def _sentences() -> list[str]:
    pieces = CHUNKERS["sentence"].cut(IMPROVISATION)
    joined = "".join(pieces)
    lines = sum(not blank(line) for line in IMPROVISATION.split("\n"))
    breaks = IMPROVISATION.count("\n")
    return [
        "== SseChunker.SplitIntoChunks on the improvisation skill's answer (GA at a826864)",
        f"answer: {lines} lines of text, {breaks} line breaks, {len(IMPROVISATION)} characters",
        *_pieces(pieces),
        f"joined: {len(joined)} characters, {count(IMPROVISATION, joined).told}",
        "joined, as the page renders it:",
        *(f"  | {line}".rstrip() for line in joined.split("\n")),
    ]


def _after_743() -> list[str]:
    pieces = CHUNKERS["sentence-lossless"].cut(IMPROVISATION)
    joined = "".join(pieces)
    return [
        r"== The same answer split by #743's expression (?<=[.!?]\s+)(?=\S)",
        *_pieces(pieces),
        f"joined: {len(joined)} characters, {count(IMPROVISATION, joined).told}",
    ]


def _pieces(pieces: list[str]) -> list[str]:
    return [f"chunk {number}  {_quoted(piece)}" for number, piece in enumerate(pieces, 1)]


def _pairs() -> list[str]:
    splits = [
        Split(title=cut.title, pieces=tuple(cut.cut(IMPROVISATION)))
        for cut in (CHUNKERS["sentence"], CHUNKERS["sentence-lossless"])
    ]
    writers = [WRITERS["gachatbot-api"], WRITERS["gaapi"]]
    rows = [("writer", "reader", *(split.title for split in splits))]
    rows += [
        (row[0].writer.title, _TITLES[row[0].reader.name], *(cell.count.told for cell in row))
        for row in cells(IMPROVISATION, splits, writers, [READERS[name] for name in _TITLES])
    ]
    return ["== Each writer with each reader, on the improvisation answer", *columns(rows)]


def _kind(data: str) -> str:
    if data == "[DONE]":
        return data
    return "routing" if data.startswith('{"type":"routing"') else "error" if data.startswith('{"error"') else "text"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'


def _yes(so: bool) -> str:
    return "yes" if so else "no"
