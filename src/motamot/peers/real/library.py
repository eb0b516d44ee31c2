"""A client library as it is installed on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from motamot.peers.base import PeerReader
from motamot.peers.libraries.seen import Seen, reading

__all__ = ["Library"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A client library, ready to read.

    name:    for the command line, `real-…`; `…-chat` and `…-events` where a package is read in more than one way.
    package: as its registry has it; version: as installed; home: `PyPI` or `npm`.
    how:     the call that its users make, as this room makes it.
    stream:  what it takes the data for: `text`, `json`, `ag-ui` as in `PeerReader.stream`, `openai` or `anthropic`. All
             but `text` parse the JSON of the data themselves, and what is not JSON is not for them.
    tells:   what it says of an event besides its data: `event`, `id` (the last one, as a reconnection needs it) or
             `own id` (only what stood in the same block).
    read:    reads in, events out, over a real connection. Never raises; within `SECONDS`.
    """

    name: str
    package: str
    version: str
    home: str
    how: str
    stream: str
    tells: frozenset[str]
    read: Callable[[Iterable[bytes]], Seen]

    @property
    def title(self) -> str:
        """As a table heads it."""
        _, _, part = self.name.rpartition("-")
        return f"{self.package} {self.version}{f' ({part})' if part in ('chat', 'events') else ''}"

    @property
    def values(self) -> bool:
        """Whether it hands over what the JSON of the data says, not the data."""
        return self.stream != "text"

    def reader(self) -> PeerReader:
        """This library as a peer."""
        return PeerReader(
            name=self.name,
            title=self.title,
            origin=f"{self.home} {self.package} {self.version}: {self.how}",
            read=reading(self.read, values=self.values),
            stream=self.stream,
        )
