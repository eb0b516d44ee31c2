"""GaApi's `AgUiEventWriter`: the same events as GaChatbot.Api's, in that host's own order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from motamot.peers.base import PeerWriter
from motamot.peers.writers.ag_ui import MESSAGE, RUN, TIMESTAMP, event

__all__ = ["WRITER"]

_STATE: dict[str, Any] = {
    "key": None,
    "mode": None,
    "chords": [],
    "candidates": [],
    "progression": [],
    "analysisPhase": "idle",
    "lastError": None,
}
_CHANGES = [
    {"op": "replace", "path": path, "value": value}
    for path, value in (("/analysisPhase", "complete"), ("/key", None), ("/mode", None))
]


def write(pieces: Sequence[str]) -> bytes:
    """The whole sequence of an answer without chords; the text's frame is there also where no text is."""
    run = {"threadId": "thread_1", "runId": RUN, "timestamp": TIMESTAMP}
    out = [
        event("RUN_STARTED", **run),
        event("STATE_SNAPSHOT", snapshot=_STATE),
        event("TEXT_MESSAGE_START", messageId=MESSAGE, role="assistant"),
        *(event("TEXT_MESSAGE_CONTENT", messageId=MESSAGE, delta=piece) for piece in pieces),
        event("TEXT_MESSAGE_END", messageId=MESSAGE),
        event("STEP_STARTED", stepName="skill.improvisation", runId=RUN),
        event("STATE_DELTA", delta=_CHANGES),
        event("RUN_FINISHED", **run),
    ]
    return b"".join(out)


WRITER = PeerWriter(
    name="ag-ui-gaapi",
    title="AgUiEventWriter (GaApi)",
    origin="GuitarAlchemist/ga at a826864, Apps/ga-server/GaApi, AgUiEventWriter.cs",
    write=write,
    habits=(
        "Everything outside ASCII is escaped, so that no text can end a line or an event.",
        "STEP_STARTED comes behind the text and has no STEP_FINISHED: the official client refuses RUN_FINISHED.",
        "Its pieces come from `tokens`, which is not lossless.",
    ),
    stream="ag-ui",
)
