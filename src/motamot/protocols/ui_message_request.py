"""What a client of the AI SDK's chat transport may ask, checked field by field.

It sends its whole list of messages each time. Of those before the question only the ids are read: what was said under
them is in our own books, so that no page can put words into an assistant's mouth. The question is the last message.

Source: npm `ai` 7.0.173, `src/ui/http-chat-transport.ts` and `src/ui/ui-messages.ts`; `@assistant-ui/ai-sdk` 0.0.7,
`src/transport/AssistantChatTransport.ts`, for `system` and `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols._json import kind, request_object
from motamot.protocols.base import Asked, bounded, flag_field, name_field

__all__ = ["Named", "UIAsked", "UIStop", "parse_request", "parse_stop"]

MESSAGES = 2_000  # in one list; a body of 1 MB holds some 15,000 of them
SAME = 8  # messages that say the same are looked at: a button is pressed twice, not a hundred times
_SUBMIT, _REGENERATE = "submit-message", "regenerate-message"
# What would change who speaks to the model, or what it can do: the operator's business.
_REFUSED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("system", ("",), "the server has its own instructions"),
    ("tools", ({}, []), "the server's own tools are used, and a page's are not run"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A message before the question, as the client names it. role: `user` or `assistant`."""

    id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UIAsked(Asked):
    """A question of `useChat`. `thread` is the chat's id.

    question:   the id of the message that asks.
    same:       it, and the ids of the messages directly before it that say the same: a button pressed twice.
    earlier:    the messages before the question.
    again:      the client has an answer to this question, or had one, and wants another: it regenerates, or has edited.
    instead_of: the id of the answer to be replaced, where the client names it.
    comes_back: whether the client says that it can come back after a lost connection; None where it does not say.
    """

    question: str = ""
    same: tuple[str, ...] = ()
    earlier: tuple[Named, ...] = field(default=(), repr=False)
    again: bool = False
    instead_of: str | None = None
    comes_back: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UIStop:
    """A stop of `useChat`'s application.

    answer:   the id of the answer that is to be stopped, where the client names it: never a later one.
    text:     the answer's text as far as the page has shown it; None where it does not say.
    question: the id of the message that asked, where the client names it: a stop may overtake its question.
    """

    answer: str | None = None
    text: str | None = None
    question: str | None = None


def parse_request(body: bytes | Mapping[str, Any], limits: Limits) -> UIAsked:
    """The request as a question. Raises InvalidRequest; `field` names the place, as in `messages[2].parts`."""
    asked = request_object(body, limits)
    for name, nothing, why in _REFUSED:
        value = asked.get(name)
        if value is not None and not any(value == one and type(value) is type(one) for one in nothing):
            raise InvalidRequest(f"The field `{name}` is not taken here: {why}.", field=name)
    trigger = asked.get("trigger")
    if trigger not in (None, _SUBMIT, _REGENERATE):
        raise InvalidRequest(f"The field `trigger` must be `{_SUBMIT}` or `{_REGENERATE}`.", field="trigger")
    messages = _messages(asked.get("messages"))
    named = [_named(message, place, limits) for place, message in enumerate(messages)]
    last = len(named) - 1
    if named[last].role != "user":
        raise InvalidRequest(
            "The last message must be the user's: an answer is not gone on with, it is asked for again "
            f"(`{_REGENERATE}`).",
            field=f"messages[{last}].role",
        )
    text = _question(messages[last], f"messages[{last}]", limits)
    message_id = _id(asked, "messageId", limits)
    comes_back = None if asked.get("resumable") is None else flag_field(asked, "resumable")
    again = trigger == _REGENERATE or message_id == named[last].id
    return UIAsked(
        message=text,
        thread=_required(asked, "id", limits),
        assistant=name_field(asked, "assistant", limits),
        resumable=bool(comes_back),
        question=named[last].id,
        same=_same(messages, named, text),
        earlier=tuple(named[:last]),
        again=again,
        instead_of=message_id if again and message_id != named[last].id else None,
        comes_back=comes_back,
    )


def parse_stop(body: bytes | Mapping[str, Any], limits: Limits) -> UIStop:
    """What a stop says: `{"assistantMessage"?, "activeStreamId"?, "messageId"?}`, or nothing at all.

    Raises: InvalidRequest.
    """
    if not isinstance(body, Mapping) and not body.strip():
        return UIStop()
    asked = request_object(body, limits)
    answer, text = _id(asked, "activeStreamId", limits), None
    if (message := asked.get("assistantMessage")) is not None:
        shown = _mapping(message, "assistantMessage")
        answer = answer or _required(shown, "id", limits, "assistantMessage.")
        parts = _parts(shown, "assistantMessage")
        text = "".join(text for part in parts if (text := _text(part)) is not None)
    return UIStop(answer=answer, text=text, question=_id(asked, "messageId", limits))


def _messages(given: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(given, list) or not given:
        raise InvalidRequest("The field `messages` must be a list with at least one message.", field="messages")
    if len(given) > MESSAGES:
        raise InvalidRequest(f"There may be {MESSAGES} messages at most.", field="messages", limit=MESSAGES)
    return [_mapping(message, f"messages[{place}]") for place, message in enumerate(given)]


def _named(message: Mapping[str, Any], place: int, limits: Limits) -> Named:
    where = f"messages[{place}]."
    role = message.get("role")
    if role == "system":
        raise InvalidRequest(
            "A system message is not taken here: the server has its own instructions.", field=f"{where}role"
        )
    if role not in ("user", "assistant"):
        raise InvalidRequest("A role must be `user` or `assistant`.", field=f"{where}role")
    _parts(message, f"messages[{place}]")
    return Named(id=_required(message, "id", limits, where), role=role)


def _same(messages: Sequence[Mapping[str, Any]], named: Sequence[Named], text: str) -> tuple[str, ...]:
    """The ids of the last messages that are the user's and say `text`."""
    ids: list[str] = []
    for message, name in zip(reversed(messages), reversed(named), strict=True):
        if len(ids) == SAME or name.role != "user" or _joined(message["parts"]) != text:
            break
        ids.append(name.id)
    return tuple(ids)


def _question(message: Mapping[str, Any], where: str, limits: Limits) -> str:
    """The words of the message that asks: its parts of text, on lines of their own.

    A page's own data parts mean nothing to the model. What is left out of a question in silence would be answered
    as if it had not been there, so files and all else are refused.
    """
    for place, part in enumerate(message["parts"]):
        sort = part["type"]
        if sort.startswith("data-") or sort == "step-start":
            continue
        if sort == "file":
            raise InvalidRequest("Files are not taken here, only text.", field=f"{where}.parts[{place}]")
        if _text(part) is None:
            raise InvalidRequest("Only parts of text are taken here.", field=f"{where}.parts[{place}]")
    text = _joined(message["parts"])
    if not text.strip():
        raise InvalidRequest("Message cannot be empty.", field=f"{where}.parts")
    bounded(text, f"{where}.parts", limits.message_bytes)
    return text


def _parts(message: Mapping[str, Any], where: str) -> Sequence[Mapping[str, Any]]:
    parts = message.get("parts")
    if not isinstance(parts, list):
        raise InvalidRequest(f"The parts of a message must be a list, not {kind(parts)}.", field=f"{where}.parts")
    for place, part in enumerate(parts):
        sort = _mapping(part, f"{where}.parts[{place}]").get("type")
        if not isinstance(sort, str):
            raise InvalidRequest("A part must have a type.", field=f"{where}.parts[{place}].type")
        if sort == "text" and _text(part) is None:
            raise InvalidRequest("A part of text must have a text.", field=f"{where}.parts[{place}].text")
    return parts


def _joined(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(text for part in parts if (text := _text(part)) is not None)


def _text(part: Mapping[str, Any]) -> str | None:
    """The text of a part of text."""
    text = part.get("text")
    return text if part.get("type") == "text" and isinstance(text, str) else None


def _id(given: Mapping[str, Any], name: str, limits: Limits, where: str = "") -> str | None:
    """An optional id of the client's: any text, as it is only compared."""
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        found = "be empty" if value == "" else f"be {kind(value)}"
        raise InvalidRequest(f"The field `{name}` must be a string, and may not {found}.", field=f"{where}{name}")
    bounded(value, f"{where}{name}", limits.key_bytes)
    return value


def _required(given: Mapping[str, Any], name: str, limits: Limits, where: str = "") -> str:
    found = _id(given, name, limits, where)
    if found is None:
        raise InvalidRequest(f"The field `{name}` is missing.", field=f"{where}{name}")
    return found


def _mapping(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"This must be an object, not {kind(given)}.", field=where)
    return given
