"""What is asked of a model's server: its address and the body of one chat completion. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import msgspec

from motamot.answer import SurrogateJoiner
from motamot.errors import SettingsError
from motamot.model.turn import Message, TurnRequest

__all__ = ["body", "check_extra", "check_headers", "endpoint", "redirected"]

_CHAT = "/chat/completions"
_OTHER_INTERFACES = (
    "/api/chat",
    "/api/generate",
    "/completions",
    "/embeddings",
    "/messages",
    "/models",
    "/responses",
)
_OURS = frozenset(
    "max_completion_tokens max_tokens messages model n stream stream_options tool_choice tools".split()  # noqa: SIM905
)
_FIELD_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+")
_FIELD_VALUE = re.compile(r"[ -~\x80-\xff]*")
_OUR_HEADERS = frozenset("accept accept-encoding content-length content-type host transfer-encoding".split())  # noqa: SIM905
_DEFAULT_PORTS = {"http": 80, "https": 443}


def endpoint(url: str) -> str:
    """The address a chat completion is posted to, from whatever form of it a person has at hand.

    url:     the server (`http://localhost:8080`: `/v1` is added), its base with any path (`https://…/v1`,
             `https://…/openai/deployments/x`: taken as it is), or the whole address ending in
             `/chat/completions`; with or without a slash at the end; a query stays.
    Raises:  SettingsError for anything else: no http(s), no host, a user or key inside the address, a fragment,
             the address of another interface (`/messages`, `/api/chat`, …).
    """
    parts = _split(url)
    path = parts.path.rstrip("/")
    if not path:
        path = "/v1"
    if not path.endswith(_CHAT):
        for other in _OTHER_INTERFACES:
            if path.endswith(other):
                raise SettingsError(
                    f"the model's address ends in {other}, which is another interface than {_CHAT}: "
                    "give the address up to /v1 of a server that speaks chat completions"
                )
        path += _CHAT
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _split(url: str) -> SplitResult:
    url = url.strip()
    example = "such as https://api.openai.com/v1 or http://localhost:8080/v1"
    if not url:
        raise SettingsError(f"the model's address is empty: give one {example}")
    if "@" in url.split("://", 1)[-1].split("/", 1)[0]:
        raise SettingsError("the model's address holds a user or a key: give the address alone, and the key as the key")
    if any(character <= " " or character in '\\"<>^`{|}\x7f' for character in url):
        raise SettingsError(f"the model's address {url!r} holds a character that no address has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SettingsError(f"the model's address {url!r} cannot be read: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not url.lower().startswith(("http://", "https://")):
        raise SettingsError(f"the model's address {url!r} does not begin with http:// or https://: give one {example}")
    if not parts.hostname or not parts.hostname.strip(".-"):
        raise SettingsError(f"the model's address {url!r} names no host: give one {example}")
    if port == 0:
        raise SettingsError(f"the model's address {url!r} has port 0, where nothing can listen")
    if parts.fragment or url.endswith("#"):
        raise SettingsError(f"the model's address {url!r} has a part after #, which is never sent: leave it out")
    return parts


def redirected(url: str, location: str) -> tuple[str, bool]:
    """Where a redirection leads, and whether that is the same origin: a key is never taken to another one.

    Source: RFC 9110, 10.2.2; an origin is scheme, host and port (RFC 6454).
    """
    try:
        target = urljoin(url, location)
        same = _origin(urlsplit(target)) == _origin(urlsplit(url))
    except ValueError:
        return location, False
    return target, same


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def body(request: TurnRequest, model: str, *, token_field: str, ask_usage: bool) -> bytes:
    """The JSON body of one streaming completion.

    token_field: `max_tokens`, or `max_completion_tokens` for servers that refuse the older name.
    ask_usage:   send `stream_options.include_usage`; a few servers refuse the field.
    Raises:      SettingsError when `request.extra` sets what is ours to set, or holds what JSON cannot.
    Source:      OpenAI API reference, "Create chat completion".
    """
    check_extra(request.extra)
    asked: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        token_field: request.max_tokens,
        "stream": True,
    }
    if ask_usage:
        asked["stream_options"] = {"include_usage": True}
    if request.tools:
        asked["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
        if request.tool_choice is not None:
            asked["tool_choice"] = request.tool_choice
    asked.update(request.extra)
    try:
        return msgspec.json.encode(asked)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(asked))


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        # What OpenAI's own replies hold beside tool calls, so what every server was tried with.
        said["content"] = message.content or None
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    return said


def _encodable(value: Any) -> Any:
    """`value` with U+FFFD for each half of a surrogate pair, which no UTF-8 can hold."""
    if isinstance(value, str):
        joiner = SurrogateJoiner()
        return joiner.feed(value) + joiner.close()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def check_extra(extra: Mapping[str, Any]) -> None:
    """Refuse further fields of a request that are not an assistant's to set.

    Raises: SettingsError for a field that is ours (`stream`, `messages`, …; `n` would pay for answers that
            nobody sees), or a value that is not JSON.
    """
    for name in extra:
        if name in _OURS:
            raise SettingsError(f"the model's extra field {name!r} is set by motamot itself: leave it out")
    try:
        msgspec.json.encode(extra)
    except UnicodeEncodeError:
        return  # repaired when the body is made
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"the model's extra fields cannot be written as JSON: {error}") from error


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse request headers that cannot be sent, or that describe what only we know.

    Raises: SettingsError naming the header, never its value, which may be a key.
    """
    for name, value in headers.items():
        if not _FIELD_NAME.fullmatch(name):
            raise SettingsError(f"{name!r} is not the name of an HTTP header")
        if not name.isascii() or name.lower() in _OUR_HEADERS:
            raise SettingsError(
                f"the request header {name!r} is set by motamot itself, or cannot be sent: leave it out"
            )
        if not _FIELD_VALUE.fullmatch(value):
            raise SettingsError(
                f"the value of the request header {name!r} holds a line end or another character that no header has"
            )
