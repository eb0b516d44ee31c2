"""How a chatbot's URL is asked by hand: the request of each protocol's clients, and the same answer as JSON.

Pure: nothing here opens a connection. The shapes are those the protocols' own clients send (docs/clients.md; for
`ui-message` AI SDK 7's `DefaultChatTransport`, for `ag-ui` the `RunAgentInput` of @ag-ui/client 1.0).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from motamot.errors import InvalidRequest
from motamot.protocols._json import encodable
from motamot.tape import Request

__all__ = ["ANSWER_PATHS", "WAYS", "Answer", "Way", "answer_in", "ask_whole", "question", "way_of"]

_JSON = "application/json"
_STREAM = "text/event-stream"
_PATHS_TOLD = 12  # strings of a document that an error names


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the clients of one protocol ask.

    paths:  ends of a URL's path by which it is recognised, the stream's and then those of the same answer as JSON.
    body:   the JSON of a request from the message and the model's name ("" for none); None: the message goes into
            the query, as an `EventSource` has no other place for it.
    model:  a model must be named.
    """

    protocol: str
    paths: tuple[str, ...]
    body: Callable[[str, str], dict[str, Any]] | None
    model: bool = False


def _message(message: str, _: str) -> dict[str, Any]:
    return {"message": message}


def _openai(message: str, model: str) -> dict[str, Any]:
    # include_usage: without it no stream of this protocol says what it cost, and `usage-missing` would be our fault.
    asked = [{"role": "user", "content": message}]
    return {"model": model, "messages": asked, "stream": True, "stream_options": {"include_usage": True}}


def _ui_message(message: str, _: str) -> dict[str, Any]:
    asked = {"id": _name("msg"), "role": "user", "parts": [{"type": "text", "text": message}]}
    return {"id": _name("chat"), "messages": [asked], "trigger": "submit-message"}


def _ag_ui(message: str, _: str) -> dict[str, Any]:
    return {
        "threadId": _name("thread"),
        "runId": _name("run"),
        "state": {},
        "messages": [{"id": _name("msg"), "role": "user", "content": message}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


def _name(kind: str) -> str:
    return f"{kind}-{secrets.token_urlsafe(12)}"


WAYS: Mapping[str, Way] = MappingProxyType(
    {
        way.protocol: way
        for way in (
            # The longer path first: `…/chatbot/chat/stream` ends with `/chat/stream`, too.
            Way(protocol="ga-text", paths=("/chatbot/chat/stream", "/chatbot/chat"), body=_message),
            Way(protocol="openai", paths=("/chat/completions",), body=_openai, model=True),
            Way(protocol="motamot", paths=("/api/chat/stream", "/api/chat"), body=_message),
            Way(protocol="morceaux", paths=("/flux",), body=None),
            Way(protocol="ui-message", paths=("/ui-message",), body=_ui_message),
            Way(protocol="ag-ui", paths=("/ag-ui", "/agui"), body=_ag_ui),
        )
    }
)
"""The protocols whose questions can be built from a message."""


def way_of(url: str) -> Way | None:
    """The protocol that a URL's path names, or None: a path proves nothing, it only spares typing `--protocol`."""
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError:  # no address: whoever asks it says so
        return None
    return next((way for way in WAYS.values() if path.endswith(way.paths)), None)


def question(
    url: str,
    *,
    message: str | None = None,
    body: bytes | None = None,
    headers: Sequence[tuple[str, str]] = (),
    protocol: str | None = None,
    model: str = "",
) -> Request:
    """The request that asks `url` once: with `body` as it stands, or with one built from `message`.

    headers:  go with it as they are, and in the place of ours of the same name.
    protocol: of `WAYS`; None to tell by the URL's path. model: where the protocol wants one named.
    Returns:  a GET where neither is given and the URL is not one that wants a body: a plain event stream.
    Raises:   InvalidRequest where nothing says what to ask, or the protocol is not known.
    """
    if body is not None:
        return _with(Request(method="POST", url=url, headers=_typed(body), body=body), headers)
    if message is None:
        way = WAYS.get(protocol or "") or way_of(url)
        if way is not None and way.body is not None:
            raise InvalidRequest(f"say what {url} is to be asked: --message TEXT, or its body with -d", field="message")
        return _with(Request(method="GET", url=url, headers=(("Accept", _STREAM),)), headers)
    way = _way(url, protocol)
    if way.model and not model:
        raise InvalidRequest(f"the protocol {way.protocol} wants a model named: --model NAME", field="model")
    if way.body is None:
        return _with(Request(method="GET", url=_queried(url, message), headers=(("Accept", _STREAM),)), headers)
    built = json.dumps(way.body(message, model)).encode()
    asked = Request(method="POST", url=url, headers=(("Content-Type", _JSON),), body=built)
    return _with(asked, headers)


def ask_whole(
    url: str, asked: Request, *, message: str | None = None, model: str = "", headers: Sequence[tuple[str, str]] = ()
) -> Request:
    """The request for the same answer as one JSON document: the same question, not as a stream.

    asked:   the request of the stream; its body is used again where no message was given, or `url` names no protocol.
    message, model, headers: as in `question`.
    """
    way = way_of(url)
    if message is not None and way is not None and way.body is not None and (model or not way.model):
        asked = question(url, message=message, protocol=way.protocol, model=model)
    kept = tuple((name, value) for name, value in asked.headers if name.lower() != "accept")
    whole = replace(asked, url=url, headers=(("Accept", _JSON), *kept), body=_unstreamed(asked.body))
    return _with(whole, headers)


def _way(url: str, protocol: str | None) -> Way:
    if protocol is not None and protocol not in WAYS:
        raise InvalidRequest(
            f"--message cannot build a question of the protocol {protocol!r}, only of {', '.join(WAYS)}: "
            "give the body with -d",
            field="protocol",
        )
    way = WAYS[protocol] if protocol is not None else way_of(url)
    if way is None:
        raise InvalidRequest(
            f"the path of {url} does not say how this chatbot is asked: give the body with -d, or name the protocol "
            f"with --protocol ({', '.join(WAYS)})",
            field="protocol",
        )
    return way


def _typed(body: bytes) -> tuple[tuple[str, str], ...]:
    """A body is JSON unless it plainly is not: then whoever gives it says what it is with -H."""
    return (("Content-Type", _JSON),) if body.lstrip()[:1] in (b"{", b"[") else ()


def _with(asked: Request, headers: Sequence[tuple[str, str]]) -> Request:
    given = {name.lower() for name, _ in headers}
    ours = tuple((name, value) for name, value in asked.headers if name.lower() not in given)
    return replace(asked, headers=(*ours, *headers))


def _queried(url: str, message: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidRequest(f"{url!r} is no address", field="url") from None
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "message"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("message", message)])))


def _unstreamed(body: bytes) -> bytes:
    try:
        told = json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body
    if not isinstance(told, dict) or told.get("stream") is not True:
        return body
    told = {name: value for name, value in told.items() if name != "stream_options"}
    return json.dumps({**told, "stream": False}).encode()


# --- the same answer as JSON

ANSWER_PATHS = (
    "naturalLanguageAnswer",
    "choices.0.message.content",
    "message.content",
    "text",
    "answer",
    "response",
    "reply",
    "output_text",
    "content.0.text",
)
"""Where an answer stands in the JSON of chatbots that are known, most telling first: Guitar Alchemist, OpenAI chat
completions, Ollama `/api/chat`, motamot, common habits, Ollama `/api/generate`, Anthropic messages."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of a whole answer. path: where in the document it stood; "" where the document is the text."""

    text: str
    path: str


def answer_in(document: bytes, path: str | None = None) -> Answer:
    """The answer's text in a document.

    document: JSON, or plain text, which then is the answer.
    path:     names and indexes joined by dots; None to look in the places of `ANSWER_PATHS`.
    Raises:   InvalidRequest naming the strings that are there, where none is found.
    """
    try:
        told = json.loads(document)
    except (ValueError, RecursionError):
        if path is None and document.lstrip()[:1] not in (b"{", b"[", b"<"):
            return Answer(document.decode("utf-8", "replace"), "")  # text/plain
        what = "an HTML page" if document.lstrip()[:1] == b"<" else "no JSON"
        raise InvalidRequest(f"the whole answer (--whole) is {what}", field="whole") from None
    if isinstance(told, str) and path is None:
        return Answer(encodable(told), "")
    for tried in ANSWER_PATHS if path is None else (path,):
        found = _at(told, tried)
        if isinstance(found, str):
            return Answer(encodable(found), tried)
    if isinstance(told, dict) and told.get("error"):
        raise InvalidRequest(f"the whole answer (--whole) is an error: {_short(told['error'])}", field="whole")
    there = ", ".join(name for name, _ in zip(_strings(told), range(_PATHS_TOLD), strict=False)) or "none"
    wanted = f"no text at {path!r}" if path is not None else "no text where answers are known to stand"
    raise InvalidRequest(
        f"the whole answer (--whole) has {wanted}: name the place with --whole-path; texts there: {there}",
        field="whole-path",
    )


def _at(told: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(told, dict) and step in told:
            told = told[step]
        elif isinstance(told, list) and len(step) < 10 and step.isdecimal() and int(step) < len(told):
            told = told[int(step)]
        else:
            return None
    return told


def _strings(told: Any, path: str = "", depth: int = 8) -> Iterator[str]:
    if isinstance(told, str) and path:
        yield path
    elif depth and isinstance(told, dict | list):
        for name, value in told.items() if isinstance(told, dict) else enumerate(told):
            yield from _strings(value, f"{path}.{name}" if path else str(name), depth - 1)


def _short(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        value = value["message"]
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else text[:199] + "…"
