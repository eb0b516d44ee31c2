"""ga-client's `sendChatMessageStream` with its `parseSseBuffer` (src/services/chatService.ts)."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.readers._ga_client import first_data_line, read_as_chat_service

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Each event's first `data:` line, trimmed."""
    return read_as_chat_service(reads, first_data_line)


READER = PeerReader(
    name="chat-service",
    title="ga-client chatService",
    origin="GuitarAlchemist/ga at a826864, Apps/ga-client/src/services/chatService.ts 29-164",
    read=read,
    habits=(
        "Only the first `data:` line of an event counts, trimmed: no line break and no blank at a cut survives.",
        "A payload that begins with `{` is never text: it is skipped, or throws where it is not JSON.",
        "A true `error` in it throws; what was shown before stays.",
        "`[DONE]` ends the reading only after the other events of the same read.",
        "What no LF LF has ended is appended as it stands, `data: ` included: of a stream with CRLF, all of it.",
    ),
)
