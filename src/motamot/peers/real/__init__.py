"""Client libraries as they are installed on this machine, reading over real connections: Python's here, npm's in Node.

Nothing of it is needed: each library that is not there is told in a sentence, and the rest reads.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from motamot.peers.base import PeerReader
from motamot.peers.libraries.seen import Seen
from motamot.peers.real.library import Library
from motamot.peers.real.node import NODE_MODULES, PACKAGES, Node, folders
from motamot.peers.real.python import python_libraries
from motamot.peers.real.wire import Wire

__all__ = ["NODE_MODULES", "PACKAGES", "Library", "RealLibraries", "real_readers"]


class RealLibraries:
    """The libraries of this machine, until closed: a local server, and a Node process. Use as a context manager.

    libraries: ready to read, Python's first; one after the other, from one thread.
    missing:   a sentence for each that is not there, with what to install.
    node:      the version of Node, "" where there is none.
    """

    def __init__(self, node_modules: Sequence[str | Path] = ()) -> None:
        """Look for them.

        node_modules: folders with npm packages (that hold, or are, a `node_modules`); none: those of the environment
                      variable `MOTAMOT_NODE_MODULES`, else the working directory.
        """
        self._wire = Wire()
        self._node = Node(self._wire, folders(node_modules))
        found, self.missing = python_libraries(self._wire)
        self.libraries = [*found, *self._node.libraries()]
        self.missing += self._node.missing
        self.node = self._node.version

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read_all(self, name: str, streams: Sequence[Sequence[bytes]]) -> list[Seen]:
        """Let a library from npm read many streams without a network, each read given as one: some 10,000 a second.

        Raises: RuntimeError when Node does not answer.
        """
        return self._node.read_all(name.removeprefix("real-"), streams)

    def close(self) -> None:
        """End the Node process and the server."""
        self._node.close()
        self._wire.close()


def real_readers(node_modules: Sequence[str | Path] = ()) -> tuple[dict[str, PeerReader], list[str]]:
    """The libraries of this machine as peers, by name, and a sentence for each that is missing.

    node_modules: as of `RealLibraries`. What was found stays until the program ends; read from one thread.
    """
    libraries = _kept(tuple(str(folder) for folder in node_modules))
    return {library.name: library.reader() for library in libraries.libraries}, list(libraries.missing)


@cache
def _kept(node_modules: tuple[str, ...]) -> RealLibraries:
    libraries = RealLibraries(node_modules)
    atexit.register(libraries.close)
    return libraries
