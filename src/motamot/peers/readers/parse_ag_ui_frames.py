"""ga-client's `parseAgUiFrames` (src/services/agUiChatService.ts) by itself, over a whole body."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import decoded, shown
from motamot.peers.readers._ag_ui import frames

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """The deltas of all text events in it; it gives events, and knows of no end."""
    built, text, count = Building(), [], 0
    for at, piece in decoded(reads):
        count = at + 1
        text.append(piece)
    for payload, value in frames("".join(text)):
        told = value if isinstance(value, dict) else {}
        if told.get("type") == "TEXT_MESSAGE_CONTENT":
            built.text(shown(told.get("delta", "")), count)
        elif told.get("type") == "RUN_ERROR":
            built.other("error", shown(told.get("message", "")), count)
        else:
            built.other("done" if told.get("type") == "RUN_FINISHED" else "other", payload, count)
    return built.got()


READER = PeerReader(
    name="parse-ag-ui-frames",
    title="ga-client parseAgUiFrames",
    origin="GuitarAlchemist/ga at a826864, Apps/ga-client/src/services/agUiChatService.ts 57-70",
    read=read,
    habits=(
        "Only LF LF ends a frame; the first `data:` line of it counts, trimmed.",
        "A frame that is not JSON is skipped without a word.",
        "The last frame counts also where nothing has ended it.",
    ),
    stream="ag-ui",
)
