"""GaChatbot.Api's `AgUiEventWriter`: AG-UI events as System.Text.Json writes them, one `data: ` line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import blank, json_text

__all__ = ["MESSAGE", "RUN", "TIMESTAMP", "WRITER", "event"]

RUN = "run_0123456789abcdef0123456789abcdef"
MESSAGE = "msg_" + RUN[:8]
TIMESTAMP = 1790640000000  # any will do: 2026-09-29


def event(kind: str, **fields: Any) -> bytes:
    """One event, its type first."""
    return f"data: {json_text({'type': kind, **fields})}\n\n".encode("ascii")


def write(pieces: Sequence[str]) -> bytes:
    """The whole sequence of an answer in that host; a piece of white space alone is left out."""
    said = [piece for piece in pieces if not blank(piece)]
    run = {"threadId": "thread_1", "runId": RUN, "timestamp": TIMESTAMP}
    out = [event("RUN_STARTED", **run), event("STEP_STARTED", stepName="skill.improvisation", runId=RUN)]
    if said:
        out.append(event("TEXT_MESSAGE_START", messageId=MESSAGE, role="assistant"))
        out += [event("TEXT_MESSAGE_CONTENT", messageId=MESSAGE, delta=piece) for piece in said]
        out.append(event("TEXT_MESSAGE_END", messageId=MESSAGE))
    out.append(event("RUN_FINISHED", **run))
    return b"".join(out)


WRITER = PeerWriter(
    name="ag-ui",
    title="AgUiEventWriter",
    origin="GuitarAlchemist/ga at a826864, Apps/GaChatbot.Api, AgUiEventWriter.cs",
    write=write,
    habits=(
        "Everything outside ASCII is escaped, so that no text can end a line or an event.",
        "STEP_STARTED has no STEP_FINISHED: the official client refuses RUN_FINISHED.",
    ),
    stream="ag-ui",
)
