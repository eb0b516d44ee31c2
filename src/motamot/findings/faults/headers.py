"""What the head of the response says, and what kind of body comes."""

from __future__ import annotations

import json

from motamot.findings.faults.clauses import CACHE, HTTP, HTTP_TYPE, NGINX, SSE_AUTHORING, SSE_PROCESS
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Evidence, Fault, Level, Promise
from motamot.findings.recognise import Shape, content_type

__all__ = ["BUFFERING_HEADERS", "COMPRESSED_STREAM", "CONTENT_LENGTH_ON_STREAM", "NOT_AN_EVENT_STREAM"]

_STREAM_TYPES = {"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"}
_ENCODINGS = {"", "identity"}
_LINES = ("ollama", "json-lines")
_ERROR_STATUS = 400


class _Head(Finder):
    """Looks at the headers of what is a stream, by its body or by its type."""

    def at_end(self) -> None:
        scene = self.scene
        if scene.tape.headers and (
            scene.shape in (Shape.EVENTS, Shape.LINES) or content_type(scene.tape) in _STREAM_TYPES
        ):
            self.look()

    def look(self) -> None:
        """Look at the headers of a stream."""
        raise NotImplementedError

    def report(self, message: str, quote: str) -> None:
        """Seen in the head."""
        self.saw(message, Evidence(at=self.scene.tape.head_at, quote=quote))


class _CompressedStream(_Head):
    def look(self) -> None:
        encoding = self.scene.tape.header("content-encoding") or ""
        if encoding.strip().lower() not in _ENCODINGS:
            self.report(f"The stream is compressed ({encoding[:40]}).", f"content-encoding: {encoding[:80]}")


COMPRESSED_STREAM = Rule(
    Fault(
        id="compressed-stream",
        promise=Promise.LIVE,
        level=Level.SHOULD,
        title="the stream is compressed",
        clause=f"{HTTP}, section 8.4; a compressor that is not flushed after each event holds the stream back",
        remedy="Leave event streams out of compression, in the application and in each proxy; `no-transform` says so.",
        harm="Pieces wait in the compressor until it has enough: the answer comes in lumps, or at its end.",
    ),
    _CompressedStream,
)


class _ContentLengthOnStream(_Head):
    def look(self) -> None:
        length = self.scene.tape.header("content-length")
        if length is not None and self.scene.tape.status not in (204, 304):
            self.report(f"The head names the body's length, {length[:20]} bytes.", f"content-length: {length[:80]}")


CONTENT_LENGTH_ON_STREAM = Rule(
    Fault(
        id="content-length-on-stream",
        promise=Promise.LIVE,
        level=Level.MUST,
        title="a stream with a Content-Length",
        clause=f"{HTTP}, section 8.6: whoever names the length has the whole body",
        remedy="Stream the body (chunked in HTTP/1.1); find the layer that gathers it.",
        harm="The whole answer was there before its first byte was sent: nothing of it was live.",
    ),
    _ContentLengthOnStream,
)


class _NotAnEventStream(Finder):
    """A stream was asked, or nothing says that it was not; an error's own status and document are right."""

    def at_end(self) -> None:
        scene, kind = self.scene, content_type(self.scene.tape)
        if scene.tape.status in (204, 304):
            return
        if scene.shape is Shape.EVENTS:
            if kind and kind != "text/event-stream" and scene.protocol not in _LINES:
                self._report(f"An event stream came with the content type {kind[:60]!r}, which no EventSource takes.")
            return
        if scene.shape is Shape.LINES:
            if scene.protocol not in _LINES:
                self._report("JSON lines came where an event stream was asked.")
            return
        if scene.shape is Shape.EMPTY:
            return
        failed = (scene.tape.status or 200) >= _ERROR_STATUS
        if scene.shape is Shape.HTML:
            self._report("An HTML page came where a stream was asked.")
        elif not failed and (_was_asked(self) if scene.shape is Shape.JSON else _was_surely_asked(self)):
            what = "One JSON document" if scene.shape is Shape.JSON else "Plain text"
            self._report(f"{what} came where a stream was asked.")

    def _report(self, message: str) -> None:
        scene = self.scene
        scene.offset = 0
        quote = f"content-type: {(scene.tape.header('content-type') or '')[:80]}"
        self.saw(message, Evidence(offset=0, at=scene.tape.head_at, quote=quote))


def _was_asked(finder: Finder) -> bool:
    """Whether a stream was asked; where the request is not known, a recording of a chat is taken for it."""
    request = finder.scene.tape.request
    if request is None or finder.scene.recognised.sure == "given":
        return True
    return _was_surely_asked(finder)


def _was_surely_asked(finder: Finder) -> bool:
    scene = finder.scene
    request = scene.tape.request
    if content_type(scene.tape) == "text/event-stream":
        return True
    if scene.recognised.sure == "given" and scene.protocol not in ("text", "json", *_LINES):
        return True
    if request is None:
        return False
    accept = next((value for name, value in request.headers if name.lower() == "accept"), "")
    if "text/event-stream" in accept:
        return True
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("stream") is True


NOT_AN_EVENT_STREAM = Rule(
    Fault(
        id="not-an-event-stream",
        promise=Promise.LIVE,
        level=Level.MUST,
        title="a stream was asked, and something else came",
        clause=f"{SSE_PROCESS}: another type than `text/event-stream` fails the connection; {HTTP_TYPE}",
        remedy="Answer with `Content-Type: text/event-stream`; look whether a proxy, a login page or declared tools "
        "made the server answer otherwise.",
        harm="An EventSource gives up for good; other clients show nothing, or the whole answer at its end.",
    ),
    _NotAnEventStream,
)


class _BufferingHeaders(_Head):
    """Behind nginx `X-Accel-Buffering` is not to be seen, so that its absence says nothing."""

    def look(self) -> None:
        tape = self.scene.tape
        if self.scene.shape is not Shape.EVENTS:
            return
        cache = (tape.header("cache-control") or "").lower()
        if (tape.header("x-accel-buffering") or "").strip().lower() == "yes":
            self.report("The head asks proxies to buffer.", "x-accel-buffering: yes")
        elif "no-cache" not in cache and "no-store" not in cache:
            self.report("Cache-Control names neither no-cache nor no-store.", f"cache-control: {cache[:80]}")


BUFFERING_HEADERS = Rule(
    Fault(
        id="buffering-headers",
        promise=Promise.LIVE,
        level=Level.NOTE,
        title="the head does not keep proxies from holding the stream back",
        clause=f"{CACHE}; {NGINX}; {SSE_AUTHORING}",
        remedy="Send `Cache-Control: no-cache, no-transform` and `X-Accel-Buffering: no`.",
        harm="Proxies of the way may store, compress or buffer the answer.",
    ),
    _BufferingHeaders,
)
