"""Little chatbots over real sockets: pages with the readers that everybody writes, and the wires they read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

__all__ = ["ANSWER", "Bot", "Wire", "bot", "page", "writes"]

ANSWER = (
    "Over **Am – F – C – G**, for each chord:\n\n"
    "- **Am** → arpeggio **Am**, play **A Aeolian**.\n"
    "- **F** → arpeggio **F**, play **F Ionian**.\n"
    "- **C** → arpeggio **C**, play **C Ionian**.\n"
    "- **G** → arpeggio **G**, play **G Ionian**.\n\n"
    "Each arpeggio spells the chord tones; the scale adds the notes between them."
)
"""An answer such as seed 1 puts through everything: a paragraph, a list, a paragraph."""


def writes(text: str) -> bytes:
    """One event, as the standard wants it: a data line per line of text."""
    return "".join(f"data: {line}\n" for line in text.split("\n")).encode() + b"\n"


@dataclass(frozen=True)
class Wire:
    """What the stream's route sends: the pieces, `every` seconds apart."""

    pieces: Sequence[bytes]
    every: float = 0.0
    content_type: str = "text/event-stream"
    status: str = "200 OK"
    reset: bool = False


@dataclass
class Bot:
    """A chatbot that runs. requests: method and path of what was asked, with the body; heads: their heads."""

    url: str
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return sum(path.startswith("/stream") for _, path, _ in self.requests)


@asynccontextmanager
async def bot(wire: Wire, html: str = "", whole: str | None = None) -> AsyncIterator[Bot]:
    """A chatbot on a free port: its page at `/`, its stream at `/stream`, the whole answer at `/whole`.

    A question to `/push` is answered on the streams that are open at `/news`.
    """
    served = Bot("")
    tasks: set[asyncio.Task[None]] = set()
    readers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split(" ", 2)
            length = next(
                (int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:")), 0
            )
            served.heads.append(head)
            served.requests.append((method, path, await reader.readexactly(length)))
            if path.startswith("/stream"):
                await _stream(writer, wire)
            elif path.startswith("/news"):
                writer.write(_HEAD.format("200 OK", "text/event-stream").encode())
                readers.append(writer)
                await writer.drain()
                await reader.read()  # until the page leaves
            elif path.startswith("/push"):
                _document(writer, b"{}", "application/json", "202 Accepted")
                for open_one in readers:
                    await _pieces(open_one, wire)
            elif path.startswith("/whole"):
                _document(writer, json.dumps({"text": whole}).encode(), "application/json")
            elif path == "/":
                _document(writer, html.encode(), "text/html; charset=utf-8")
            else:
                _document(writer, b"nothing here", "text/plain", "404 Not Found")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_HEAD = (
    "HTTP/1.1 {}\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\nCache-Control: no-cache\r\n"
    "Connection: close\r\n\r\n"
)


async def _stream(writer: asyncio.StreamWriter, wire: Wire) -> None:
    writer.write(_HEAD.format(wire.status, wire.content_type).encode())
    await _pieces(writer, wire)
    if wire.reset:
        writer.transport.abort()
    else:
        writer.write(b"0\r\n\r\n")


async def _pieces(writer: asyncio.StreamWriter, wire: Wire) -> None:
    for number, piece in enumerate(wire.pieces):
        if number and wire.every:
            await asyncio.sleep(wire.every)
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()


def _document(writer: asyncio.StreamWriter, body: bytes, media: str, status: str = "200 OK") -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)


RIGHT = """
  let rest = "", event = [];
  const decoder = new TextDecoder();
  for (let read; !(read = await reader.read()).done;) {
    rest += decoder.decode(read.value, {stream: true});
    for (let at; (at = rest.indexOf("\\n")) >= 0; rest = rest.slice(at + 1)) {
      const line = rest.slice(0, at);
      if (line === "") { if (event.length) take(event.join("\\n")); event = []; }
      else if (line.startsWith("data:")) event.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
"""
"""A reader that does as the standard says, for streams with LF."""

TAKE = """
  const take = (data) => { if (data !== "[DONE]" && !data.startsWith("{")) { text += data; show(text); } };
"""

PLAIN = "const show = (text) => { bubble.textContent = text; };"
"""The answer as plain text; the page's style says whether line breaks stay."""

MARKDOWN = """
const show = (text) => {
  bubble.replaceChildren();
  let list = null;
  for (const line of text.split("\\n")) {
    const words = line.replaceAll("**", "");
    if (line.startsWith("- ")) {
      if (!list) bubble.append(list = document.createElement("ul"));
      list.append(Object.assign(document.createElement("li"), {textContent: words.slice(2)}));
    } else {
      list = null;
      if (line) bubble.append(Object.assign(document.createElement("p"), {textContent: words}));
    }
  }
};
"""
"""As much of Markdown as the answer has: paragraphs, list items, bold."""


def page(
    *, read: str = RIGHT, take: str = TAKE, show: str = MARKDOWN, style: str = "", before: str = "", after: str = ""
) -> str:
    """A chat page. read: reads `reader` and gives data to `take`, which adds to `text` and shows it with `show`.

    before, after: run before the request, and at its end.
    """
    return f"""<!doctype html><meta charset="utf-8"><title>chat</title><style>{style}</style>
<main id="log"></main><form><textarea id="question"></textarea><button>Send</button></form>
<script>
const log = document.getElementById("log"), question = document.getElementById("question");
question.addEventListener("keydown", (event) => {{
  if (event.key === "Enter") {{ event.preventDefault(); ask(question.value); question.value = ""; }}
}});
async function ask(message) {{
  log.append(Object.assign(document.createElement("div"), {{className: "asked", textContent: message}}));
  const bubble = Object.assign(document.createElement("div"), {{className: "answer"}});
  log.append(bubble);
  {show}
  let text = "";
  {take}
  {before}
  const body = JSON.stringify({{message}});
  const response = await fetch("stream", {{method: "POST", headers: {{"content-type": "application/json"}}, body}});
  const reader = response.body.getReader();
  {read}
  {after}
}}
</script>"""
