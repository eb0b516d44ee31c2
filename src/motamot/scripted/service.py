"""What the scripted model answers, apart from any connection: routes, keys, scripts, and the list of what was asked."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from motamot.scripted.chat import ChatCompletions
from motamot.scripted.dialects import BadRequest, Dialect, Op, play_stream, play_whole
from motamot.scripted.embeddings import embeddings
from motamot.scripted.gates import Gates
from motamot.scripted.http import HttpRequest
from motamot.scripted.messages import Messages
from motamot.scripted.moderations import moderations
from motamot.scripted.records import Observer, Received, dumped, request_event
from motamot.scripted.responses import Responses
from motamot.scripted.script import Scripts, turn_of
from motamot.scripted.steps import Close, Head, How

__all__ = ["Service", "json_ops"]

DIALECTS: tuple[Dialect, ...] = (ChatCompletions(), Responses(), Messages())
_SHOWN_CHARACTERS = 200  # of a stranger's path or name, in an error


class _Refused(Exception):
    """The request gets an error, in the shape of the interface it was meant for; else in that of chat completions."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.headers = headers


@dataclass(slots=True, kw_only=True, eq=False)
class Service:
    """What all connections share. Belongs to one event loop.

    requests: those to a completion route, in order of arrival; others: the rest. Both empty unless `keep_requests`.
    observer: is told each event of the record; flush: called before the model falls silent.
    changed:  called after anything in `requests` has changed.
    kept:     bytes of pieces held in memory.
    """

    scripts: Scripts
    api_key: str | None = None
    observer: Observer | None = None
    flush: Callable[[], None] = lambda: None
    changed: Callable[[], None] = lambda: None
    keep_requests: bool = True
    keep_pieces: bool = True
    gates: Gates = field(default_factory=Gates)
    requests: list[Received] = field(default_factory=list)
    others: list[Received] = field(default_factory=list)
    kept: int = 0
    _count: int = 0
    _answered: int = 0  # completion requests that a script was looked for

    def received(self, request: HttpRequest) -> Received:
        """Note a request, before anything is answered."""
        self._count += 1
        received = Received(
            number=self._count,
            method=request.method,
            path=request.path,
            headers=request.headers,
            raw=request.body,
            body=_decoded(request.body),
        )
        if self.keep_requests:
            completion = any(_route(request.path) == dialect.path for dialect in DIALECTS)
            (self.requests if completion else self.others).append(received)
        return received

    def answer(self, request: HttpRequest, received: Received) -> Iterable[Op]:
        """What is to be sent for this request. The last op is a `Close`."""
        ops: Iterable[Op]
        try:
            self._allow(request.headers)
            ops = self._routed(request, received)
        except BadRequest as error:
            ops = _refusal(_Refused(400, error.message, param=error.param), request)
        except _Refused as refused:
            ops = _refusal(refused, request)
        if self.observer is not None:
            event = request_event(received)
            if received.script is not None:
                event |= {"script": received.script, "turn": received.turn, "stream": received.stream}
            self.observer(event)
        self.changed()
        return ops

    def tell(self, received: Received, event: str, at: float, fields: dict[str, Any]) -> None:
        """Pass on an event of the record. at: `time.monotonic()`."""
        if self.observer is not None:
            self.observer({"event": event, "request": received.number, "ms": received.ms(at), **fields})

    def _allow(self, headers: Mapping[str, str]) -> None:
        if self.api_key is None:
            return
        bearer = headers.get("authorization", "")
        given = bearer[7:] if bearer[:7].lower() == "bearer " else headers.get("x-api-key", headers.get("api-key", ""))
        if not hmac.compare_digest(given.encode(), self.api_key.encode()):
            raise _Refused(401, "the API key is wrong or missing", code="invalid_api_key")

    def _routed(self, request: HttpRequest, received: Received) -> Iterable[Op]:
        path = _route(request.path)
        for dialect in DIALECTS:
            if path == dialect.path:
                _only(request, "POST")
                return self._completion(dialect, received)
        if path == "/embeddings":
            _only(request, "POST")
            return json_ops(embeddings(_body(received)))
        if path == "/moderations":
            _only(request, "POST")
            return json_ops(moderations(_body(received), received.number))
        if path == "/models" or path.startswith("/models/"):
            _only(request, "GET")
            return json_ops(self._models(path[len("/models/") :]))
        if path.startswith("/scripted/gates/"):
            _only(request, "POST")
            name, _, act = path[len("/scripted/gates/") :].partition("/")
            return json_ops(self._gate(name, act))
        raise _Refused(404, f"there is nothing at {request.path[:_SHOWN_CHARACTERS]}", code="unknown_url")

    def _completion(self, dialect: Dialect, received: Received) -> Iterable[Op]:
        asked = dialect.read(_body(received))
        script = self.scripts.choose(asked.question, self._answered)
        self._answered += 1
        received.stream = asked.stream
        if script is None:
            raise _Refused(500, self._nothing_to_say(), code="no_script")
        received.script = script.name
        received.turn, turn = turn_of(script, asked.round)
        received.cancel_seconds = turn.cancel_seconds
        play = play_stream if asked.stream or turn.raw else play_whole
        return play(turn, dialect, asked, received.number)

    def _nothing_to_say(self) -> str:
        if self.scripts.requests is not None:
            return f"the script has answers for {len(self.scripts.requests)} requests; this is number {self._answered}"
        return "no word of the last user message names a script, none matches, and there is no default"

    def _models(self, name: str) -> dict[str, Any]:
        listed = [{"id": n, "object": "model", "created": 0, "owned_by": "motamot"} for n in self.scripts.models]
        if not name:
            return {"object": "list", "data": listed}
        for model in listed:
            if model["id"] == name:
                return model
        raise _Refused(404, f"there is no model {name[:_SHOWN_CHARACTERS]}", code="model_not_found")

    def _gate(self, name: str, act: str) -> dict[str, Any]:
        """Gates for testers in other languages: POST /scripted/gates/NAME/release, or /hold."""
        if name not in self.scripts.gates:
            raise _Refused(404, f"no script has a gate {name[:_SHOWN_CHARACTERS]}", code="unknown_gate")
        waiting = self.gates.waiting(name)
        if act == "release":
            self.gates.release(name)
        elif act == "hold":
            self.gates.hold(name)
        else:
            raise _Refused(404, "a gate knows release and hold", code="unknown_url")
        return {"gate": name, "open": act == "release", "waiting": waiting}


def json_ops(value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Iterator[Op]:
    """The ops of a JSON answer."""
    return _json(dumped(value), status, headers)


def _json(body: bytes, status: int, headers: tuple[tuple[str, str], ...]) -> Iterator[Op]:
    yield Head(status, (("content-type", "application/json"), ("content-length", str(len(body))), *headers))
    yield body
    yield Close(How.CLEAN)


def _refusal(refused: _Refused, request: HttpRequest) -> Iterator[Op]:
    path = _route(request.path)
    dialect = next((one for one in DIALECTS if one.path == path), DIALECTS[0])
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    told = dialect.error(refused.message, kind=kind, code=refused.code, param=refused.param)
    return _json(told, refused.status, refused.headers)


def _only(request: HttpRequest, method: str) -> None:
    if request.method != method:
        message = f"{request.path[:_SHOWN_CHARACTERS]} takes {method} only"
        raise _Refused(405, message, headers=(("allow", method),))


def _route(target: str) -> str:
    """A request's path without its query, a slash at its end or the /v1 before it."""
    path = target.partition("?")[0].rstrip("/")
    return path.removeprefix("/v1") if path.startswith("/v1/") else path


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _body(received: Received) -> Any:
    if received.body is None:
        raise BadRequest("the body is not JSON")
    return received.body
