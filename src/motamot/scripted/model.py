"""`ScriptedModel`: the scripted model as an object in a program, in its event loop or in a thread of its own."""

# ruff: noqa: ASYNC109 - a timeout of a test helper is a parameter: callers read `wait_left(0, timeout=2)`

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from motamot.scripted.loading import load_scripts
from motamot.scripted.records import JsonLines, Observer, Received
from motamot.scripted.script import Scripts
from motamot.scripted.server import Connection
from motamot.scripted.service import Service

__all__ = ["ScriptedModel", "ThreadedScriptedModel", "scripted_model"]

_BACKLOG = 1024  # hundreds of clients may come in the same moment
T = TypeVar("T")


class ScriptedModel:
    """A model server that plays scripts, on a real port of this machine.

    ```python
    async with ScriptedModel([[{"say": "Hello, world."}]]) as server:
        ...  # point a client at server.url
        assert server.requests[0].body["stream"] is True
    ```

    scripts:     a path, or what such a file holds: see `load_scripts`. Raises ScriptError.
    port:        0 for a free one. OSError where it is taken, at the start.
    api_key:     what clients must send as `Authorization: Bearer …`; None: nothing is asked.
    record:      a file that gets the record as JSON Lines, or a function that is told each event.
    keep_pieces: keep the bytes sent in memory (256 MiB at most); False for load tests.
    """

    def __init__(
        self,
        scripts: object,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        record: Path | str | Observer | None = None,
        keep_requests: bool = True,
        keep_pieces: bool = True,
    ) -> None:
        self.scripts: Scripts = load_scripts(scripts)
        self.host = host
        self.port = port
        self._record = record
        self._service = Service(
            scripts=self.scripts,
            api_key=api_key,
            keep_requests=keep_requests,
            keep_pieces=keep_pieces and keep_requests,
            changed=self._changed,
        )
        self._server: asyncio.Server | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._connections: set[Connection] = set()
        self._file: IO[bytes] | None = None

    def play(self, scripts: object) -> None:
        """Answer by these scripts from the next request on; what is under way goes on. Raises ScriptError."""
        self.scripts = self._service.scripts = load_scripts(scripts)

    @property
    def url(self) -> str:
        """The base URL for clients: `http://127.0.0.1:PORT/v1`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - to be reached, not bound
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/v1"

    @property
    def requests(self) -> list[Received]:
        """The completion requests, in order of arrival, also those refused or beyond the scripts."""
        return self._service.requests

    @property
    def others(self) -> list[Received]:
        """Every other request: for models, embeddings, gates, and to places that are not there."""
        return self._service.others

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin to listen. Raises OSError where the address, or the record's file, cannot be had."""
        loop = asyncio.get_running_loop()
        # One address, though `localhost` may have two: a free port of one is not free on the other.
        family, _, _, _, address = min(
            await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE),
            key=lambda found: found[0] != socket.AF_INET,
        )
        self._start_record()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._service, self._connections),
                str(address[0]),
                self.port,
                family=family,
                backlog=_BACKLOG,
            )
        except BaseException:
            self._end_record()
            raise
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and cut every connection; scripts under way end as `server-closed`.

        Raises OSError where the record's file could not be written to its end.
        """
        if self._server is not None:
            self._server.close()
        tasks = [task for connection in list(self._connections) if (task := connection.shut()) is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._connections:  # noqa: ASYNC110 - their connection_lost comes with the loop's next round
            await asyncio.sleep(0)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None
        self._end_record()

    def _start_record(self) -> None:
        record = self._record
        if isinstance(record, Path | str):
            self._file = Path(record).open("ab", buffering=0)  # noqa: SIM115 - closed in _end_record
            record = JsonLines(self._file)
        self._service.observer = record
        if isinstance(record, JsonLines):
            self._service.flush = record.flush

    def _end_record(self) -> None:
        observer = self._service.observer
        if self._file is not None and isinstance(observer, JsonLines):
            file, self._file = self._file, None
            with file:
                observer.flush()
            if observer.error is not None:
                raise observer.error

    def release(self, gate: str) -> None:
        """Open a gate for those who wait and those who come. Raises ValueError for a gate that no script has."""
        self._known(gate)
        self._service.gates.release(gate)

    def hold(self, gate: str) -> None:
        """Close a gate again. Raises ValueError for a gate that no script has."""
        self._known(gate)
        self._service.gates.hold(gate)

    async def wait_gate(self, gate: str, timeout: float = 5.0) -> None:
        """Wait until a script stands at the gate. Raises TimeoutError, ValueError for a gate that no script has."""
        self._known(gate)
        await self._until(lambda: self._service.gates.waiting(gate) > 0, timeout, f"no script came to the gate {gate}")

    async def wait_request(self, number: int, timeout: float = 5.0) -> Received:
        """Wait until completion request `number` (from 0) is there. Raises TimeoutError."""
        await self._until(lambda: len(self.requests) > number, timeout, f"request {number} did not come")
        return self.requests[number]

    async def wait_pieces(self, number: int, count: int, timeout: float = 5.0) -> Received:
        """Wait until `count` pieces were sent to completion request `number`. Raises TimeoutError."""
        received = await self.wait_request(number, timeout)
        await self._until(
            lambda: received.sent_pieces >= count, timeout, f"request {number} did not get {count} pieces"
        )
        return received

    async def wait_left(self, number: int, timeout: float = 5.0) -> Received:
        """Wait until the client of completion request `number` has closed the connection. Raises TimeoutError."""
        received = await self.wait_request(number, timeout)
        otherwise = f"the client of request {number} is still there"
        await self._until(lambda: received.left_at is not None, timeout, otherwise)
        return received

    async def wait_ended(self, number: int, timeout: float = 5.0) -> Received:
        """Wait until the answer to completion request `number` has ended, however. Raises TimeoutError."""
        received = await self.wait_request(number, timeout)
        await self._until(lambda: received.ended is not None, timeout, f"the answer to request {number} has not ended")
        return received

    def _known(self, gate: str) -> None:
        if gate not in self.scripts.gates:
            raise ValueError(
                f"no script has a gate {gate!r} (there are: {', '.join(sorted(self.scripts.gates)) or 'none'})"
            )

    def _changed(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _until(self, holds: Callable[[], bool], timeout: float, otherwise: str) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while not holds():
            waiter = loop.create_future()
            self._waiters.add(waiter)
            try:
                await asyncio.wait_for(waiter, max(0.0, until - loop.time()))
            except TimeoutError:
                raise TimeoutError(f"{otherwise} within {timeout} s") from None
            finally:
                self._waiters.discard(waiter)


class ThreadedScriptedModel:
    """The same in a thread of its own, for programs without an event loop: `with scripted_model(…) as server:`.

    What it offers means what it means in `ScriptedModel`.
    """

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return self._model.url

    @property
    def port(self) -> int:
        return self._model.port

    @property
    def requests(self) -> list[Received]:
        return self._model.requests

    @property
    def others(self) -> list[Received]:
        return self._model.others

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-model", daemon=True)
        self._thread.start()
        try:
            self._call(self._model.start())
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        if self._loop is None:
            return
        try:
            self._call(self._model.close())
        finally:
            self._end()

    def release(self, gate: str) -> None:
        self._call(self._soon(self._model.release, gate))

    def hold(self, gate: str) -> None:
        self._call(self._soon(self._model.hold, gate))

    def wait_gate(self, gate: str, timeout: float = 5.0) -> None:
        self._call(self._model.wait_gate(gate, timeout))

    def wait_request(self, number: int, timeout: float = 5.0) -> Received:
        return self._call(self._model.wait_request(number, timeout))

    def wait_pieces(self, number: int, count: int, timeout: float = 5.0) -> Received:
        return self._call(self._model.wait_pieces(number, count, timeout))

    def wait_left(self, number: int, timeout: float = 5.0) -> Received:
        return self._call(self._model.wait_left(number, timeout))

    def wait_ended(self, number: int, timeout: float = 5.0) -> Received:
        return self._call(self._model.wait_ended(number, timeout))

    async def _soon(self, act: Callable[[str], None], gate: str) -> None:
        act(gate)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise RuntimeError("the scripted model is not running: use it inside `with`")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def scripted_model(scripts: object, **options: Any) -> ThreadedScriptedModel:
    """The scripted model for programs without an event loop; the options are those of `ScriptedModel`.

    ```python
    with scripted_model("scripts.yaml") as server:
        client = OpenAI(base_url=server.url, api_key="none")
    ```
    """
    return ThreadedScriptedModel(ScriptedModel(scripts, **options))
