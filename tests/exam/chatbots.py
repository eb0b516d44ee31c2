"""Chatbots for the examination: an honest one, and each of the broken ones that are met in practice."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from motamot.model.assembly import Assembly, assembly_for
from motamot.model.turn import ToolCall
from motamot.sse import Decoder

__all__ = ["Chatbot", "serving", "serving_app"]

Change = Callable[[str], str]
Calls = Callable[[Sequence[dict[str, Any]], Assembly], Sequence[ToolCall]]
TURNS = 8
LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks an order up.",
        "parameters": {
            "type": "object",
            "properties": {
                "order": {"type": "string"},
                "parts": {"type": "integer", "minimum": 1},
                "day": {"type": "string", "format": "date"},
            },
            "required": ["order", "parts"],
        },
    },
}


PAGE = """<!doctype html><meta charset="utf-8"><title>Chat</title>
<main></main><textarea></textarea>
<script>
const broken = %s, talk = [];
document.querySelector("textarea").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  ask(event.target.value);
  event.target.value = "";
});
function add(name) {
  const made = document.createElement("div");
  made.className = name;
  made.style.whiteSpace = "pre-wrap";
  document.querySelector("main").append(made);
  return made;
}
async function ask(question) {
  add("question").textContent = question;
  talk.push({ role: "user", content: question });
  const shown = add("answer");
  let text = "", rest = "", failed = null;
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: talk, stream: true }),
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let read; !(read = await reader.read()).done;) {
    rest += read.value;
    const lines = rest.split("\\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const told = JSON.parse(line.slice(6));
      if (told.error) failed = told;
      const piece = told.choices?.[0]?.delta?.content ?? "";
      text += broken.trims ? piece.trim() : piece;
      shown.textContent = text;
    }
  }
  if (failed && broken.storesErrors) {
    text += JSON.stringify(failed);
    shown.textContent = text;
  } else if (failed) {
    add("error").textContent = "That did not work.";
  }
  if (text) talk.push({ role: "assistant", content: text });
  else talk.pop();
}
</script>
"""


def by_the_whole(_: Sequence[dict[str, Any]], assembly: Assembly) -> Sequence[ToolCall]:
    """The calls to run of a turn, whatever dialect they came in; those with a problem get an error for a result."""
    assembly.close()
    turn = assembly.turn()
    return turn.tool_calls if turn.finish == "tool_calls" else ()


class Failed(Exception):
    """The model failed, or its answer was cut. words: what it said of it."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


@dataclass
class Chatbot:
    """Speaks chat completions to its visitors (`/v1/chat/completions`), raw text (`/raw`, as Guitar Alchemist's), JSON
    events with a history of its own (`/kept`) and the AI SDK's stream, to which one can come back (`/ui-message`).

    As it stands it is honest. Each field breaks one thing:

    change:     what happens to each delta. reads: how the model's bytes become lines. splits: of raw text.
    calls:      which calls of a turn are run, from its chunks and what is made of them. rounds: of tools, at most.
    page_…:     what its page does wrong. tools: that it offers the model. guests: requests that it takes in all.
    """

    model: str = ""
    change: Change = lambda delta: delta
    lines: Callable[[AsyncIterator[bytes]], AsyncIterator[str]] | None = None
    limit: int | None = None
    probes: bool = False
    retries: int = 0
    retries_text: bool = False
    runs_on: bool = False
    gathers: bool = False
    keepalive_inside: bool = False
    sums_usage: bool = False
    swallows: bool = False
    tells_all: bool = False
    as_text: bool = False
    never_cut: bool = False
    believes_html: bool = False
    ends_at_done_in_text: bool = False
    forgets: bool = False
    raw: Callable[[str], bytes] = lambda text: (
        b"".join(b"data: " + line.encode() + b"\n" for line in text.replace("\r", "").split("\n")) + b"\n"
    )
    splits: Callable[[str], list[str]] = lambda text: [text]
    remembers_errors: bool = False
    calls: Calls = by_the_whole
    rounds: int = TURNS
    last_turn_only: bool = False
    mixes: bool = False
    seats: asyncio.Semaphore | None = None
    drops_when_full: bool = False
    begins_anew: bool = False
    tools: Sequence[Mapping[str, Any]] = (LOOK_UP,)
    guests: int | None = None
    page_stores_errors: bool = False
    page_trims: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    talks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    under_way: dict[str, _Kept] = field(default_factory=dict)
    mixed: str = ""

    # The model

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        """The answer's deltas, over all its turns. told: gets `finish` and `usage`. Raises: Failed."""
        messages = list(messages)
        shown = ""
        for _ in range(self.rounds + 1):
            texts: list[str] = []
            told.pop("finish", None)
            async for delta in self.turn(messages, told):
                texts.append(delta)
                if self.last_turn_only:
                    continue
                if shown and len(texts) == 1:
                    yield "\n\n"
                yield delta
            if not (calls := told.pop("calls", ())):
                if self.last_turn_only:
                    yield "".join(texts)
                return
            shown = shown or "".join(texts)
            messages.append(
                {"role": "assistant", "content": "".join(texts), "tool_calls": [_sent_back(c) for c in calls]}
            )
            results = await asyncio.gather(*map(self.run, calls))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": result}
                for call, result in zip(calls, results, strict=True)
            ]

    async def run(self, call: ToolCall) -> str:
        """A call's result, as the model is told it."""
        if call.name != "look_up" or call.arguments is None:
            return f"error: {call.problem or 'there is no such tool'}"
        await asyncio.sleep(0.2)
        return f"order {call.arguments.get('order')} is on its way"

    async def turn(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        """One turn's deltas. told: gets `calls`, too. Raises: Failed."""
        async with aiohttp.ClientSession() as session:
            body: dict[str, Any] = {"model": "m", "messages": messages} | ({"tools": self.tools} if self.tools else {})
            if self.probes:
                async with session.post(f"{self.model}/chat/completions", json=body) as probe:
                    await probe.read()
            body |= {"stream": True, "stream_options": {"include_usage": True}}
            tries = self.retries + 1
            sent = False
            for left in range(tries - 1, -1, -1):
                try:
                    async for delta in self._one(session, body, told):
                        sent = True
                        yield delta
                    return
                except Failed:
                    if not left or (sent and not self.retries_text):
                        raise

    async def _one(
        self, session: aiohttp.ClientSession, body: dict[str, Any], told: dict[str, Any]
    ) -> AsyncIterator[str]:
        try:
            async with session.post(f"{self.model}/chat/completions", json=body) as response:
                if response.status >= 400 and not self.believes_html:
                    raise Failed((await response.text())[:500])
                if "json" in response.content_type:
                    whole = await response.json()
                    told["finish"] = whole["choices"][0]["finish_reason"]
                    yield whole["choices"][0]["message"]["content"]
                    return
                if "html" in response.content_type:
                    yield await response.text()
                    told["finish"] = "stop"
                    return
                chunks: list[dict[str, Any]] = []
                assembly = assembly_for("openai-chat")
                async for data in self._datas(response):
                    assembly.feed(b"data: " + data.encode("utf-8", "replace") + b"\n\n")
                    if '"tool_calls"' in data:
                        chunks.append(json.loads(data))
                    if self.ends_at_done_in_text and "[DONE]" in data:
                        told["finish"] = told.get("finish") or "stop"
                        return
                    if data == "[DONE]":
                        told["calls"] = self.calls(chunks, assembly)
                        return
                    if (delta := self._delta(data, told)) is not None:
                        yield delta
        except (aiohttp.ClientError, ConnectionError) as error:
            raise Failed(str(error) or "the connection broke") from error

    async def _datas(self, response: aiohttp.ClientResponse) -> AsyncIterator[str]:
        if self.lines is not None:
            async for line in self.lines(response.content.iter_any()):
                if line.startswith("data: "):
                    yield line[6:]
                elif line.startswith("error:"):
                    yield '{"error": "field"}'
            return
        decoder = Decoder(max_event_bytes=8 << 20)
        async for chunk in response.content.iter_any():
            for event in decoder.feed(chunk):
                if event.event == "error":
                    yield json.dumps({"error": json.loads(event.data)})
                else:
                    yield event.data

    def _delta(self, data: str, told: dict[str, Any]) -> str | None:
        try:
            chunk = json.loads(data)
        except ValueError:
            return None
        if chunk.get("error"):
            raise Failed(json.dumps(chunk["error"]))
        usage = chunk.get("usage")
        for choice in chunk.get("choices") or ():
            told["finish"] = choice.get("finish_reason") or told.get("finish")
            usage = usage or choice.get("usage")
        if usage:
            before = told.get("usage") or {}
            told["usage"] = {
                name: usage[name] + (before.get(name, 0) if self.sums_usage else 0)
                for name in ("prompt_tokens", "completion_tokens")
            }
        for choice in chunk.get("choices") or ():
            if isinstance(content := (choice.get("delta") or {}).get("content"), str) and content:
                return content
        return None

    # The visitor

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions, a stream of chunks."""
        body = await request.json()
        if self.guests is not None:
            self.guests -= 1
            if self.guests < 0:
                return JSONResponse({"error": {"message": "Too many questions."}}, 429)
        return self._response(request, self._chunks(body["messages"][-1:] if self.forgets else body["messages"]))

    async def plain(self, request: Request) -> Response:
        """POST /raw: text in events, as Guitar Alchemist's hosts write it."""
        body = await request.json()
        past = [{"role": one["role"], "content": one["content"]} for one in body.get("conversationHistory", ())]
        return self._response(request, self._raw([*past, {"role": "user", "content": body["message"]}]))

    async def kept(self, request: Request) -> Response:
        """POST /kept: JSON events; the history is the server's."""
        body = await request.json()
        talk = self.talks.setdefault(body["conversation"], [])
        talk.append({"role": "user", "content": body["message"]})
        return self._response(request, self._kept(talk))

    async def ui_message(self, request: Request) -> Response:
        """POST /ui-message, and GET /ui-message/{chat}/stream: the answer goes on while nobody reads it."""
        if request.method == "GET":
            chat = request.path_params["chat"]
            kept = self.under_way.get(chat)
            if kept is None:
                return Response(status_code=204)
            if self.begins_anew:
                kept = self._keep(kept.messages)
        else:
            body = await request.json()
            messages = [
                {"role": one["role"], "content": "".join(part["text"] for part in one["parts"])}
                for one in body["messages"]
            ]
            kept = self.under_way[body["id"]] = self._keep(messages)
        return StreamingResponse(kept.follow(), media_type="text/event-stream")

    async def page(self, _: Request) -> Response:
        """GET /page: a page that keeps the talk itself, and sends all of it each time."""
        return HTMLResponse(PAGE % json.dumps({"storesErrors": self.page_stores_errors, "trims": self.page_trims}))

    def _keep(self, messages: list[dict[str, Any]]) -> _Kept:
        kept = _Kept(messages)
        task = asyncio.create_task(kept.fill(self._texts(list(messages), {})))
        self.tasks.add(task)
        return kept

    def _response(self, request: Request, chunks: AsyncIterator[bytes]) -> Response:
        if self.seats is not None:
            chunks = _seated(chunks, self.seats)
        if not (self.runs_on or self.drops_when_full):
            return StreamingResponse(chunks, media_type="text/event-stream")
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()

        async def run() -> None:
            with suppress(Exception):
                async for chunk in chunks:
                    if not (self.drops_when_full and queue.qsize() > 64):
                        queue.put_nowait(chunk)
            queue.put_nowait(None)

        task = asyncio.create_task(run())
        self.tasks.add(task)

        async def read() -> AsyncIterator[bytes]:
            while (chunk := await queue.get()) is not None:
                yield chunk

        del request
        return StreamingResponse(read(), media_type="text/event-stream")

    async def _texts(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        """The deltas as this chatbot passes them on; an error is raised, or told as it tells them."""
        held: list[str] = []
        size = 0
        half = ""
        try:
            async for delta in self.deltas(messages, told):
                delta = half + delta
                half = delta[-1] if "\ud800" <= delta[-1] <= "\udbff" else ""
                delta = self.change(delta.removesuffix(half) if half else delta)
                delta = delta.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
                if self.mixes:  # what everybody writes to one place, and then sends from there
                    self.mixed = delta
                    await asyncio.sleep(0)
                    delta = self.mixed
                size += len(delta)
                if self.limit is not None and size > self.limit:
                    break
                if self.gathers:
                    held.append(delta)
                elif delta:
                    yield delta
        except Failed as failed:
            if held:
                yield "".join(held)
            if self.as_text:
                yield json.dumps({"error": failed.words})
            elif not self.swallows:
                raise
            return
        if held:
            yield "".join(held)

    async def _chunks(self, messages: list[dict[str, Any]]) -> AsyncIterator[bytes]:
        told: dict[str, Any] = {}
        try:
            number = 0
            async for text in self._texts(messages, told):
                number += 1
                data = _sse({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})
                if self.keepalive_inside and number % 2 == 0:
                    data = data.replace(b'"delta"', b'\n: keep-alive\n\ndata: "delta"', 1)
                yield data
        except Failed as failed:
            yield _sse({"error": {"message": failed.words if self.tells_all else "It did not work.", "type": "x"}})
            return
        finish = told.get("finish")
        if finish is None and not (self.never_cut or self.swallows or self.as_text):
            yield _sse({"error": {"message": "It broke off.", "type": "cut"}})
            return
        reason = "stop" if self.never_cut else finish or "stop"
        yield _sse({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if told.get("usage"):
            yield _sse({"choices": [], "usage": told["usage"]})
        yield b"data: [DONE]\n\n"

    async def _raw(self, messages: list[dict[str, Any]]) -> AsyncIterator[bytes]:
        told: dict[str, Any] = {}
        try:
            whole = ""
            async for text in self._texts(messages, told):
                whole += text
            for piece in self.splits(whole):
                yield self.raw(piece)
        except Failed:
            yield _sse({"error": "Failed to process message. Please try again."})
            return
        yield b"data: [DONE]\n\n"

    async def _kept(self, talk: list[dict[str, str]]) -> AsyncIterator[bytes]:
        told: dict[str, Any] = {}
        answer = ""
        try:
            async for text in self._texts(list(talk), told):
                answer += text
                yield _sse({"text": text})
        except Failed as failed:
            if self.remembers_errors:
                talk.append({"role": "assistant", "content": json.dumps({"error": failed.words})})
                yield _sse({"text": json.dumps({"error": failed.words})})
            else:
                talk.pop()
                yield _sse({"error": "It did not work."})
            return
        finally:
            if answer:
                talk.append({"role": "assistant", "content": answer})
            elif self.remembers_errors:
                talk.append({"role": "assistant", "content": "(empty response)"})

    def app(self) -> Starlette:
        """The ASGI app."""

        async def alive(_: Request) -> Response:
            return JSONResponse({})

        return Starlette(
            routes=[
                Route("/", alive),
                Route("/page", self.page),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/raw", self.plain, methods=["POST"]),
                Route("/kept", self.kept, methods=["POST"]),
                Route("/ui-message", self.ui_message, methods=["POST"]),
                Route("/ui-message/{chat}/stream", self.ui_message, methods=["GET"]),
            ]
        )


@dataclass
class _Kept:
    """An answer that is kept whole, and read by whoever comes."""

    messages: list[dict[str, Any]]
    parts: list[bytes] = field(default_factory=list)
    over: bool = False
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def fill(self, texts: AsyncIterator[str]) -> None:
        self.parts += [_sse({"type": "start", "messageId": "m"}), _sse({"type": "text-start", "id": "t"})]
        try:
            async for text in texts:
                self.parts.append(_sse({"type": "text-delta", "id": "t", "delta": text}))
                self.grown.set()
            self.parts += [_sse({"type": "text-end", "id": "t"}), _sse({"type": "finish", "finishReason": "stop"})]
        except Failed:
            self.parts.append(_sse({"type": "error", "errorText": "It did not work."}))
        self.parts.append(b"data: [DONE]\n\n")
        self.over = True
        self.grown.set()

    async def follow(self) -> AsyncIterator[bytes]:
        at = 0
        while True:
            self.grown.clear()
            parts, at = self.parts[at:], len(self.parts)
            for part in parts:
                yield part
            if self.over and at == len(self.parts):
                return
            if at == len(self.parts):
                await asyncio.wait_for(self.grown.wait(), 30)


async def _seated(chunks: AsyncIterator[bytes], seats: asyncio.Semaphore) -> AsyncIterator[bytes]:
    async with seats:
        async for chunk in chunks:
            yield chunk


def _sent_back(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}


def _sse(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


@asynccontextmanager
async def serving(chatbot: Chatbot) -> AsyncIterator[str]:
    """The chatbot on a free port, in this loop. Yields: its base URL."""
    async with serving_app(chatbot.app()) as url:
        try:
            yield url
        finally:
            for one in chatbot.tasks:
                one.cancel()
            await asyncio.gather(*chatbot.tasks, return_exceptions=True)


@asynccontextmanager
async def serving_app(app: Any, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[str]:
    """Any ASGI app on a free port, in this loop. Yields: its base URL."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan=lifespan, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined, unused-ignore]
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


# How others read lines, clean text and so on


async def _by_splitlines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """As httpx's `iter_lines` does: at every line end that Python knows."""
    waiting = ""
    async for chunk in chunks:
        waiting += chunk.decode("utf-8", "replace")
        *lines, waiting = waiting.splitlines(keepends=True) or [""]
        for line in lines:
            yield line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
    for line in waiting.splitlines():
        yield line


async def _by_read(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Each network read by itself, which loses what a read cuts."""
    async for chunk in chunks:
        for line in chunk.decode("utf-8", "replace").split("\n"):
            yield line


async def _latin(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """As ISO 8859-1, which HTTP once took text for."""
    waiting = ""
    async for chunk in chunks:
        waiting += chunk.decode("latin-1")
        *lines, waiting = waiting.split("\n")
        for line in lines:
            yield line


def _parsed(delta: str) -> str:
    """What looks like JSON is no text."""
    try:
        json.loads(delta)
    except ValueError:
        return "" if delta.lstrip().startswith("{") else delta
    return ""


def _pinned(text: str) -> list[str]:
    """Guitar Alchemist's splitter before #743."""
    return [piece for piece in re.split(r"(?<=[.!?])\s+", text) if piece.strip()]


def _by_index(chunks: Sequence[dict[str, Any]], _: Assembly) -> Sequence[ToolCall]:
    """By the book alone: an index on each fragment. What has none is taken for the first call's."""
    found: dict[int, dict[str, str]] = {}
    for chunk in chunks:
        for one in chunk["choices"][0]["delta"].get("tool_calls", ()):
            call = found.setdefault(one.get("index", 0), {"id": "", "name": "", "raw": ""})
            function = one.get("function") or {}
            call["id"] = call["id"] or one.get("id", "")
            call["name"] += function.get("name") or ""
            call["raw"] += function.get("arguments") or ""
    return [_made(call) for _, call in sorted(found.items())]


def _made(call: Mapping[str, str]) -> ToolCall:
    try:
        return ToolCall(**call, arguments=json.loads(call["raw"]))
    except ValueError:
        return ToolCall(**call, arguments=None, problem="no JSON")


def _first(_: Sequence[dict[str, Any]], assembly: Assembly) -> Sequence[ToolCall]:
    return by_the_whole(_, assembly)[:1]


def _mended(_: Sequence[dict[str, Any]], assembly: Assembly) -> Sequence[ToolCall]:
    """As those parsers of half JSON do that were made to show arguments while they come."""
    assembly.close()
    mended = []
    for call in assembly.turn().tool_calls:
        raw = call.raw if call.arguments is not None else '{"order": "fi", "parts": 1}'
        mended.append(ToolCall(id=call.id, name=call.name, raw=raw, arguments=json.loads(raw)))
    return mended


BROKEN: Mapping[str, tuple[Callable[[], Chatbot], tuple[int, ...]]] = {
    "probes first, then streams": (lambda: Chatbot(probes=True), (201, 301, 302, 305, 309)),
    "trims each delta": (
        lambda: Chatbot(change=str.strip),
        (101, 103, 104, 105, 106, 107, 108, 109, 110, 112, 129, 143, 144, 145, 146, 147, 149, 151),
    ),
    "collapses white space": (lambda: Chatbot(change=lambda text: re.sub(r"\s+", " ", text)), (111, 113, 137, 206)),
    "drops blank deltas": (lambda: Chatbot(change=lambda text: text if text.strip() else ""), (109, 110, 121)),
    "loses the first delta": (lambda: _Late(), (102, 134)),
    "reads lines by splitlines": (lambda: Chatbot(lines=_by_splitlines), (116, 117)),
    "reads each network read by itself": (lambda: Chatbot(lines=_by_read), (148,)),
    "reads ISO 8859-1": (lambda: Chatbot(lines=_latin), (122, 123, 124, 127, 128)),
    "parses text as JSON": (lambda: Chatbot(change=_parsed), (132, 133, 134, 141)),
    "ends at [DONE] in the text": (lambda: Chatbot(ends_at_done_in_text=True), (130,)),
    "decodes escapes twice": (
        lambda: Chatbot(change=lambda text: text.replace("\\n", "\n").replace("\\\\", "\\")),
        (135,),
    ),
    "cleans HTML": (lambda: Chatbot(change=lambda text: re.sub(r"<[^>]*>", "", text).replace("&amp;", "&")), (136,)),
    "normalises characters": (lambda: Chatbot(change=lambda text: unicodedata.normalize("NFKC", text)), (121, 126)),
    "knows ASCII only": (lambda: Chatbot(change=lambda text: text.encode("ascii", "replace").decode()), (122, 128)),
    "cuts at 10,000 characters": (lambda: Chatbot(limit=10_000), (142, 143)),
    "cleans byte-order marks": (lambda: Chatbot(change=lambda text: text.replace("\ufeff", "")), (120,)),
    "cleans control characters": (
        lambda: Chatbot(change=lambda text: re.sub("[\x00-\x08\x0b-\x1f]", "", text)),
        (118, 119),
    ),
    "removes what repeats": (lambda: _Once(), (138,)),
    "takes deltas for totals": (lambda: _Totals(), (139,)),
    "takes an empty delta for the end": (lambda: _EndsAtEmpty(), (140, 150)),
    "writes one data line": (
        lambda: Chatbot(raw=lambda text: b"data: " + text.encode() + b"\n\n"),
        (103, 105, 106, 108, 111, 112, 129, 137, 146),
    ),
    "splits at sentences": (lambda: Chatbot(splits=_pinned), (104, 143)),
    "gathers the whole answer": (lambda: Chatbot(gathers=True), (205, 207, 208)),
    "runs on without its visitor": (lambda: Chatbot(runs_on=True), (401, 402, 403, 404, 406, 407, 408)),
    "puts keep-alives into events": (lambda: Chatbot(keepalive_inside=True), (101, 149, 151)),
    "sums usage": (lambda: Chatbot(sums_usage=True), (502, 503, 504)),
    "reports no usage": (lambda: _Uncounted(), (501, 502, 503, 504, 505)),
    "asks again after text": (lambda: Chatbot(retries=1, retries_text=True), (304, 305)),
    "asks again after a silence": (lambda: _Impatient(), (302,)),
    "swallows errors": (lambda: Chatbot(swallows=True), (161, 601, 602, 608, 610, 615)),
    "shows errors as text": (lambda: Chatbot(as_text=True), (601, 602, 606, 607)),
    "tells all of an error": (lambda: Chatbot(tells_all=True), (606, 607, 618)),
    "never says that it was cut": (lambda: Chatbot(never_cut=True, swallows=True), (161, 162, 163)),
    "shows web pages": (lambda: Chatbot(believes_html=True), (615,)),
    "forgets": (lambda: Chatbot(forgets=True), (171,)),
    "puts calls together by index": (lambda: Chatbot(calls=_by_index), (183, 184, 185, 186, 188, 190, 193, 194)),
    "runs the first call only": (lambda: Chatbot(calls=_first), (181, 182)),
    "knows one round of tools": (lambda: Chatbot(rounds=1), (199,)),
    "runs no tool": (lambda: Chatbot(rounds=0), (180, 198)),
    "shows the last turn only": (lambda: Chatbot(last_turn_only=True), (152, 209)),
    "mends cut arguments": (lambda: Chatbot(calls=_mended), (631, 635)),
    "runs calls of a broken turn": (lambda: _Hasty(), (633,)),
    "is silent about calls that it cannot run": (lambda: _Silent(), (634, 635)),
    "mixes its visitors' answers": (lambda: Chatbot(mixes=True), (173,)),
    "serves ten at once": (lambda: Chatbot(seats=asyncio.Semaphore(10)), (210,)),
    "drops what a slow reader has not read": (lambda: Chatbot(drops_when_full=True), (174,)),
    "begins anew for who comes back": (lambda: Chatbot(begins_anew=True), (175, 311, 312)),
    "remembers errors": (lambda: Chatbot(remembers_errors=True), (621, 622, 623)),
}
"""The broken chatbots by what they do, each with cases that must fail."""


class _Late(Chatbot):
    """Loses the first delta, as those do who look at the first chunk for something else."""

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        late = "warmup" not in json.dumps(messages)
        async for delta in super().deltas(messages, told):
            if not late:
                yield delta
            late = False


class _EndsAtEmpty(Chatbot):
    """Takes a delta without content for the end."""

    def _delta(self, data: str, told: dict[str, Any]) -> str | None:
        if data.startswith("{"):
            delta = (json.loads(data).get("choices") or [{}])[0].get("delta") or {}
            if self._said and not delta.get("content"):
                raise Failed("it ended")
            self._said = self._said or bool(delta.get("content"))
        return super()._delta(data, told)

    _said = False


class _Uncounted(Chatbot):
    """Reports no usage."""

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        async for delta in super().deltas(messages, told):
            yield delta
        told.pop("usage", None)


class _Once(Chatbot):
    """Drops a delta that is the same as the one before."""

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        before = ""
        async for delta in super().deltas(messages, told):
            if delta != before:
                yield delta
            before = delta


class _Totals(Chatbot):
    """Takes a delta that begins with the text so far for the whole text."""

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        text = ""
        async for delta in super().deltas(messages, told):
            if text and delta.startswith(text):
                delta = delta[len(text) :]
            text += delta
            yield delta


class _Impatient(Chatbot):
    """Asks again where the first word takes more than a second, as client libraries with short time-outs do."""

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        for seconds in (1.0, 30.0):
            answer = super().deltas(messages, told)
            try:
                first = await asyncio.wait_for(anext(answer), seconds)
            except TimeoutError:
                continue
            except StopAsyncIteration:
                return
            yield first
            async for delta in answer:
                yield delta
            return


class _Hasty(Chatbot):
    """Runs a call as soon as its arguments are whole, and does not ask whether its turn came to an end."""

    async def turn(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        try:
            async for delta in super().turn(messages, told):
                yield delta
        except Failed:
            raw = '{"order": "first", "parts": 1}'
            told["calls"] = [ToolCall(id="c", name="look_up", raw=raw, arguments=json.loads(raw))]


class _Silent(Chatbot):
    """Ends an answer without a word at a call that it cannot run."""

    async def deltas(self, messages: list[dict[str, Any]], told: dict[str, Any]) -> AsyncIterator[str]:
        try:
            async for delta in super().deltas(messages, told):
                yield delta
        except LookupError:
            told["finish"] = "stop"

    async def run(self, call: ToolCall) -> str:
        if call.name != "look_up" or call.arguments is None:
            raise LookupError(call.name)
        return await super().run(call)
