"""ga-client's `streamAgUiChat` (src/services/agUiChatService.ts)."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import Undefined, decoded, member, shown
from motamot.peers.readers._ag_ui import frames

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """The deltas until RUN_FINISHED, RUN_ERROR, or the end of the body, which is taken for an end like another."""
    built = Building()
    rest: list[str] = []
    for at, text in decoded(reads):
        crosses = bool(rest) and rest[-1].endswith("\n") and text.startswith("\n")
        if text:
            rest.append(text)
        if "\n\n" not in text and not crosses:
            continue
        ready, _, last = "".join(rest).rpartition("\n\n")
        rest = [last] if last else []
        for payload, value in frames(ready):
            try:
                kind = member(value, "type")
            except TypeError as error:
                return built.got(threw=str(error))
            if kind == "TEXT_MESSAGE_CONTENT":
                built.text(shown(member(value, "delta")), at)
            elif kind == "RUN_FINISHED":
                built.other("done", payload, at)
                return built.got()
            elif kind == "RUN_ERROR":
                message = member(value, "message")
                built.other("error", "" if message is Undefined else shown(message), at)
                return built.got(complete=False)
            else:
                built.other("other", payload, at)
    return built.got()


READER = PeerReader(
    name="stream-ag-ui-chat",
    title="ga-client streamAgUiChat",
    origin="GuitarAlchemist/ga at a826864, Apps/ga-client/src/services/agUiChatService.ts 74-145",
    read=read,
    habits=(
        "Only LF LF ends a frame: of a stream with CRLF nothing is read, and it looks finished.",
        "A body that ends without RUN_FINISHED is taken for complete.",
        "A frame that is not JSON is skipped without a word.",
    ),
    stream="ag-ui",
)
