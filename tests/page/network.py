"""A network between browser and server that can be taken away: cut in the open, or gone dead without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Network", "network"]


class Network:
    """Carries bytes between its own port and the server's."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open: set[asyncio.StreamWriter] = set()
        self._up = True
        self._dying: bytes | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def cut(self) -> None:
        """Reset every connection, and every one that is tried from here on."""
        self._up = False
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self._up = True

    def die_after(self, text: bytes) -> None:
        """Let the next connection that carries this text downwards carry nothing more, without being closed."""
        self._dying = text

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._up:
            writer.transport.abort()
            return
        there, towards = await asyncio.open_connection("127.0.0.1", self._to)
        ends = {writer, towards}
        self._open |= ends

        async def down() -> None:
            dead = False
            while data := await there.read(65_536):
                if not dead:
                    writer.write(data)
                if self._dying is not None and self._dying in data:
                    self._dying = None
                    dead = True
            if dead:
                await asyncio.Event().wait()

        both = {asyncio.ensure_future(down()), asyncio.ensure_future(_copy(reader, towards))}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open -= ends
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            for end in ends:
                end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)


@asynccontextmanager
async def network(port: int) -> AsyncIterator[Network]:
    """A network in front of the server at `port`."""
    between = Network(port)
    server = await asyncio.start_server(between.carry, "127.0.0.1", 0)
    between.port = server.sockets[0].getsockname()[1]
    try:
        yield between
    finally:
        server.close()
        between.cut()
