"""The course's port of ga-client's chatService (`ChatService` in Lesson6.cs), which is not quite the real one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.dotnet import trim

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """The whole body as one text; each event's first `data:` line, trimmed as .NET does, up to `[DONE]`."""
    got = list(reads)
    built, at = Building(), len(got)
    *blocks, _ = b"".join(got).decode("utf-8", "replace").removeprefix("\ufeff").split("\n\n")
    for block in blocks:
        line = next((line for line in block.split("\n") if line.startswith("data:")), "data:")
        payload = trim(line[5:])
        if payload == "[DONE]":
            built.other("done", payload, at)
            break
        if payload.startswith("{"):
            try:
                value = _parsed(payload)
            except ValueError:
                return built.got(threw="JsonException: not JSON")
            if "error" in value:
                message = value["error"]
                if message is not None and not isinstance(message, str):
                    return built.got(threw="InvalidOperationException: the error is not a string")
                built.other("error", message or "", at)
                return built.got(threw=message or "")
            built.other("routing" if value.get("type") == "routing" else "other", payload, at)
        elif payload:
            built.text(payload, at)
    return built.got()


def _parsed(payload: str) -> dict[str, Any]:
    """JsonDocument.Parse, which refuses what nests more than 64 deep; Python does so a little later."""
    try:
        value: dict[str, Any] = json.loads(payload, parse_int=float, parse_constant=_refused)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


READER = PeerReader(
    name="chat-service-course",
    title="ga-client chatService (course)",
    origin="spareilleux/learn, code/ga-ai/GaAi/Lesson6.cs, ChatService",
    read=read,
    habits=(
        "It reads the whole body at once, and ends at the first `[DONE]`.",
        "What no LF LF has ended is dropped, where the real one appends it as it stands.",
        "Any `error` member throws, also null or empty, where the real one wants a true value.",
        "It trims as .NET does: U+0085 goes and U+FEFF stays, where JavaScript does the reverse.",
        "The rest as the real one: the first `data:` line alone, trimmed; nothing that begins with `{` is text.",
    ),
)
