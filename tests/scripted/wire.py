"""A hand-written HTTP client, and a reader of chat completion streams: buffered clients would hide what is tested."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from motamot.sse import Decoder


def ask(
    question: str = "hello",
    *,
    stream: bool = True,
    path: str = "/v1/chat/completions",
    headers: str = "",
    version: str = "1.1",
    **more: Any,
) -> bytes:
    """The bytes of a completion request."""
    body = json.dumps({"messages": [{"role": "user", "content": question}], "stream": stream, **more}).encode()
    head = f"POST {path} HTTP/{version}\r\nHost: x\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(path: str, headers: str = "", method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode()


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool  # the body ended as HTTP says, not by the end of the connection
    error: type[BaseException] | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = raw.rstrip("\r\n").split("\r\n")
        return int(first.split(" ")[1]), {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}

    async def chunk(self) -> bytes:
        """One HTTP chunk, as the server cut it; b"" at the end of the body."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size)
        assert await self.reader.readexactly(2) == b"\r\n"
        return data

    async def response(self, *, bodiless: bool = False) -> Response:
        """A whole response, however it ends."""
        status, headers = await self.head()
        found = Response(status, headers, b"", True)
        try:
            if bodiless or status in (204, 304):
                return found
            if headers.get("transfer-encoding") == "chunked":
                while data := await self.chunk():
                    found.body += data
            elif "content-length" in headers:
                found.body = await self.reader.readexactly(int(headers["content-length"]))
            else:
                found.body = await self.reader.read()
        except asyncio.IncompleteReadError as error:
            found.complete, found.error = False, type(error)
            if "content-length" in headers:
                found.body += error.partial
        except ConnectionError as error:
            found.complete, found.error = False, type(error)
        return found

    async def ended(self) -> bool:
        """The server closes the connection, in order, without another byte."""
        return await self.reader.read(1) == b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):  # the server's reset, which was read before
            await self.writer.wait_closed()

    def reset(self) -> None:
        """Leave without a word: TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def fetch(port: int, request: bytes, *, bodiless: bool = False) -> Response:
    """One request on a connection of its own."""
    client = await Client.to(port)
    try:
        await client.send(request)
        return await client.response(bodiless=bodiless)
    finally:
        await client.close()


def data_of(body: bytes) -> list[str]:
    """The data of every event of a stream, by the standard."""
    decoder = Decoder()
    found = [event.data for event in decoder.feed(body)]
    residue = decoder.close()
    assert not residue.data and not residue.line, residue
    return found


def chunks_of(body: bytes) -> list[dict[str, Any]]:
    """The chunks of a chat completion stream, which ends with [DONE]."""
    *data, last = data_of(body)
    assert last == "[DONE]"
    return [json.loads(item) for item in data]


def deltas_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def text_of(body: bytes) -> str:
    """The answer text of a stream; halves of surrogate pairs that meet are one character."""
    text = "".join(delta.get("content") or "" for delta in deltas_of(chunks_of(body)))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
