"""What a peer is: a writer, a reader or a chunker that exists in the world, with its habits kept to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Chunker", "Got", "PeerReader", "PeerWriter", "Step"]


class Step(NamedTuple):
    """One thing a reader handed to its user. kind: `text`, `routing`, `error`, `done` or `other`; text: its content.

    at: the number of the read (from 0) that completed it; the number of reads for what came at the end of the body.
    """

    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """What one reader makes of one stream.

    text:     the answer as its user has it at the end.
    steps:    what it handed on, in order.
    threw:    the message of what it threw, or None.
    complete: it believes that the answer is whole (also where it cannot know).
    """

    text: str
    steps: tuple[Step, ...] = ()
    threw: str | None = None
    complete: bool = True

    @property
    def told(self) -> str:
        """The text, or `(throws) …`: what the user is left with, as one line of a table compares it."""
        return self.text if self.threw is None else f"(throws) {self.threw}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerReader:
    """A reader of event streams as it exists in the world.

    name:   for the command line (`page`, `chat-service`).
    title:  as tables head it (`GaChatbot page`).
    origin: where it lives: project, file, version; read: reads in, what its user has out. Never raises, whatever
            the bytes.
    habits: what it does otherwise than the standard, one sentence each; () for a right one.
    stream: what it takes the data for: `text` (the answer itself), `json` (`{"text": …}`), `ag-ui` or `motamot`.
    """

    name: str
    title: str
    origin: str
    read: Callable[[Iterable[bytes]], Got]
    habits: tuple[str, ...] = ()
    stream: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerWriter:
    """A writer of event streams as it exists in the world.

    write: the pieces of an answer in, the bytes of the whole stream with its end mark out (no routing event).
    stream: what it puts into the data, in the words of `PeerReader.stream`.
    """

    name: str
    title: str
    origin: str
    write: Callable[[Sequence[str]], bytes]
    habits: tuple[str, ...] = ()
    stream: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunker:
    """What cuts a whole answer into pieces. title: as the column of a table is headed."""

    name: str
    title: str
    origin: str
    cut: Callable[[str], list[str]]
    habits: tuple[str, ...] = ()
