"""All exchanges of one process: beginning, finding, joining and ending them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from functools import partial

import msgspec

from motamot.answer import By, Code, Ended, Outcome, SurrogateJoiner
from motamot.errors import Conflict, InvalidRequest, LimitExceeded, NotFound
from motamot.exchange.checkpoints import Checkpoints
from motamot.exchange.exchange import Answer, Ending, Exchange, Follower, Visible, Wishes
from motamot.exchange.log import Log
from motamot.exchange.loop import ModelAnswer
from motamot.exchange.states import State
from motamot.limits import Limits
from motamot.store.browsing import ended_of, started_of
from motamot.store.records import Begun, ExchangeBegun, ExchangeRow
from motamot.store.redaction import Redact
from motamot.store.store import Store

__all__ = ["Asking", "Exchanges", "new_id", "of_thread"]

_INTERRUPTED = Ending(outcome=Outcome.INTERRUPTED)
_OPENING_SECONDS = 0.005
_TICK_SECONDS = 0.75  # how often what has ended is looked at


_STOPS_OF_ONE = 16  # stops before their begin that one visitor can have remembered


def new_id() -> str:
    """128 random bits, safe in a URL and in an event id (no full stop)."""
    return secrets.token_urlsafe(16)


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A question to an assistant.

    visitor:      who asks, as the store knows them (a hash, or the host's own name for its user).
    conversation: one of this visitor's with this assistant, or None for a new one.
    thread:       the client's own name for one of them, in place of its id: the conversation is made if it is new.
    key:          the client's name for this question: asked again under it, the exchange is joined, not begun.
    brought:      a digest of what else the client brings (its history, its tools), where it keeps that.
    replaces:     the exchange this one is asked again for; it is left out of later history.
    """

    message: str
    visitor: str
    assistant: str = "default"
    conversation: str | None = None
    thread: str | None = None
    key: str | None = None
    replaces: str | None = None
    brought: str = ""
    model: str = ""

    def body_hash(self) -> str:
        """The same key with another one of these is a conflict."""
        parts = [self.message, self.assistant, self.conversation or "", self.replaces or ""]
        if self.thread is not None or self.brought:
            parts += [self.thread or "", self.brought]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Exchanges:
    """The exchanges under way, and those that ended a short while ago. One per process, on one event loop."""

    def __init__(self, store: Store, limits: Limits = Limits()) -> None:
        self.store = store
        self.limits = limits
        self._by_id: dict[str, Exchange] = {}
        self._by_key: dict[tuple[str, str], Exchange] = {}
        self._running: dict[str, Exchange] = {}
        self._running_of: Counter[str] = Counter()  # by visitor
        self._ended: deque[Exchange] = deque()  # in the order of their ends
        self._held = 0  # bytes of all logs, as of the last tick
        self._held_ended = 0  # of those in `_ended`: not counted anew, as there may be very many
        self._opening: dict[tuple[str, str], tuple[str, asyncio.Future[Exchange]]] = {}
        self._stops: dict[tuple[str, str], tuple[float, int | None]] = {}
        self._stops_of: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._tick: asyncio.TimerHandle | None = None
        self._checkpoints = Checkpoints(store, self._running, limits.checkpoint_seconds)
        self._closed = False

    @property
    def running(self) -> list[Exchange]:
        """The exchanges that have not ended."""
        return list(self._running.values())

    async def begin(
        self,
        asking: Asking,
        answer: Answer,
        *,
        limits: Limits | None = None,
        visible: Visible = Visible(),
        wishes: Wishes = Wishes(),
        marks: tuple[str, ...] = (),
        redact: Redact | None = None,
    ) -> Exchange:
        """Admit a question and begin to answer it, or join the exchange that its key already names.

        redact: what its texts go through before they are written.
        Raises: InvalidRequest (empty or too long), Conflict (same key, another question), NotFound (somebody
                else's conversation), LimitExceeded (too many under way), StoreError (it could not be booked).
        """
        limits = limits or self.limits
        asking = _checked(asking, limits)

        def made(begun: ExchangeBegun) -> Exchange:
            return Exchange(
                begun,
                store=self.store,
                limits=limits,
                visible=visible,
                wishes=wishes,
                marks=marks,
                opens=asking.conversation is None and asking.thread is None,
                redact=redact,
            )

        if asking.key is None:
            return await self._open(asking, answer, made)
        name = (asking.visitor, asking.key)
        known = self._by_key.get(name)
        if known is not None:
            return _same(known, asking)
        if name in self._opening:  # twice within a moment: both get the one that is being opened
            body, opening = self._opening[name]
            if body != asking.body_hash():
                raise _conflict()
            return await asyncio.shield(opening)
        future: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
        self._opening[name] = (asking.body_hash(), future)
        try:
            exchange = await self._open(asking, answer, made)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                error = Conflict("the client that asked this left before it was admitted; ask again")
            future.set_exception(error)
            future.exception()  # retrieved: nobody may have joined
            raise
        else:
            future.set_result(exchange)
            return exchange
        finally:
            del self._opening[name]

    async def _open(self, asking: Asking, answer: Answer, made: Callable[[ExchangeBegun], Exchange]) -> Exchange:
        begun = ExchangeBegun(
            id=new_id(),
            conversation=asking.conversation or _of_thread(asking) or new_id(),
            assistant=asking.assistant,
            visitor=asking.visitor,
            question=asking.message,
            started_at=time.time(),
            model=asking.model,
            key=asking.key,
            body_hash=asking.body_hash() if asking.key else None,
            replaces=asking.replaces,
        )
        exchange = made(begun)
        self._admit(asking.visitor, exchange.limits)
        self._count(exchange)  # from here on: opening takes time
        try:
            await self._own_conversation(asking)
            existing = (await self._book(exchange, answer)).existing
        except BaseException:
            self._uncount(exchange)
            raise
        if existing is not None:
            self._uncount(exchange)
            return self._by_id.get(existing.id) or self._replayed(existing)
        self._keep(exchange)
        exchange.at_end(partial(self._has_ended, exchange))
        stopped, seen = self._remembered_stop(begun)
        exchange.start(answer)
        self._checkpoints.keep_on()
        self._keep_ticking()
        self._limit_time(exchange)
        if stopped:
            exchange.seen = seen
            await exchange.stop()
        return exchange

    async def _book(self, exchange: Exchange, answer: Answer) -> Begun:
        """Write the question down, and its first completion with it where that is known: one transaction for both."""
        opened = answer.first(exchange) if isinstance(answer, ModelAnswer) else None
        if opened is None:
            return await self.store.begin(exchange.begun, redact=exchange.redact)
        return await self.store.begin_with_completion(exchange.begun, opened, redact=exchange.redact)

    def _admit(self, visitor: str, limits: Limits) -> None:
        """limits: the assistant's, for what one visitor may have; ours bound what all have together."""
        if self._closed:
            raise LimitExceeded("this server is shutting down", limit="shutdown_seconds", maximum=0, unit="s")
        if len(self._running) >= self.limits.exchanges_running:
            raise LimitExceeded(
                "too many answers are under way; try again in a moment",
                limit="exchanges_running",
                maximum=self.limits.exchanges_running,
                unit="exchanges",
            )
        if self._running_of[visitor] >= limits.exchanges_per_visitor:
            raise LimitExceeded(
                f"you have {limits.exchanges_per_visitor} answers under way; wait for one or stop it",
                limit="exchanges_per_visitor",
                maximum=limits.exchanges_per_visitor,
                unit="exchanges",
            )
        if self._held > self.limits.live_bytes:
            raise LimitExceeded(
                "this server holds as many answers as it can; try again in a moment",
                limit="live_bytes",
                maximum=self.limits.live_bytes,
            )

    def _count(self, exchange: Exchange) -> None:
        self._running[exchange.id] = exchange
        self._running_of[exchange.begun.visitor] += 1
        self.store.underway(len(self._running))

    def _uncount(self, exchange: Exchange) -> None:
        if self._running.pop(exchange.id, None) is not None:
            self.store.underway(len(self._running))
            visitor = exchange.begun.visitor
            self._running_of[visitor] -= 1
            if not self._running_of[visitor]:
                del self._running_of[visitor]

    def _has_ended(self, exchange: Exchange) -> None:
        self._uncount(exchange)
        self._keep_ended(exchange)

    def _keep_ended(self, exchange: Exchange) -> None:
        self._ended.append(exchange)
        self._held_ended += exchange.log.held

    async def _own_conversation(self, asking: Asking) -> None:
        if asking.conversation is None:
            return
        row = await self.store.conversation(asking.conversation)
        if row is None or row.visitor != asking.visitor or row.assistant != asking.assistant or row.deleted_at:
            raise NotFound("there is no such conversation")

    def _remembered_stop(self, begun: ExchangeBegun) -> tuple[bool, int | None]:
        if begun.key is None:
            return False, None
        at, seen = self._stops.pop((begun.visitor, begun.key), (float("-inf"), None))
        return time.monotonic() - at <= self.limits.stop_memory_seconds, seen

    def _limit_time(self, exchange: Exchange) -> None:
        limits = exchange.limits
        seconds = min(limits.exchange_seconds, limits.answer_timeout or limits.exchange_seconds)
        ending = Ending(
            outcome=Outcome.FAILED,
            code=Code.TIMEOUT,
            message="The answer took too long.",
            detail=f"not ended within {seconds:g} s (answer_timeout, exchange_seconds)",
        )
        timer = asyncio.get_running_loop().call_later(seconds, exchange.begin_end, ending)
        exchange.at_end(timer.cancel)

    # Finding

    async def find(self, name: str, visitor: str) -> Exchange:
        """The exchange of this id or key, if it is this visitor's; one that ended long ago comes from the store.

        Raises: NotFound, also for somebody else's.
        """
        known = self._by_id.get(name) or self._by_key.get((visitor, name))
        if known is not None and known.begun.visitor == visitor and known.state is not State.OPENING:
            return known
        if (visitor, name) in self._opening:
            return await asyncio.shield(self._opening[visitor, name][1])
        row = await self.store.exchange(name) or await self.store.exchange_by_key(visitor, name)
        if row is None or row.visitor != visitor or row.question is None:  # None: its conversation was deleted
            raise NotFound("there is no such exchange")
        return self._by_id.get(row.id) or self._replayed(row)

    def named(self, visitor: str, key: str) -> bool:
        """Whether this visitor's key names an exchange that is at hand, so that asking again under it only joins it."""
        return (visitor, key) in self._by_key or (visitor, key) in self._opening

    async def follow(self, name: str, visitor: str, *, after: int = 0, resumable: bool = False) -> Follower:
        """Read an exchange from behind event `after`. Raises NotFound."""
        return (await self.find(name, visitor)).follow(after, resumable=resumable)

    async def stop(self, name: str, visitor: str, *, seen: int | None = None, by: By = By.VISITOR) -> Ended | None:
        """Stop an exchange by its id or key; None where there is none yet: a begin under that key is then stopped.

        Answered after the upstream is closed. Idempotent.
        """
        if not name.isprintable() or len(name.encode("utf-8", "surrogatepass")) > self.limits.key_bytes:
            raise NotFound("there is no such exchange")
        try:
            exchange = await self.find(name, visitor)
        except NotFound:
            self._remember_stop(visitor, name, seen)
            self._keep_ticking()
            return None
        return await exchange.stop(seen=seen, by=by)

    def _remember_stop(self, visitor: str, name: str, seen: int | None) -> None:
        """The visitor's own oldest goes where they have many, the oldest of all where there are too many."""
        self._stops.pop((visitor, name), None)
        own = [key for key in self._stops_of[visitor] if key in self._stops]
        if len(own) >= _STOPS_OF_ONE:
            self._stops.pop(own.pop(0))
        if len(self._stops) >= self.limits.stops_remembered:
            del self._stops[next(iter(self._stops))]
        self._stops[visitor, name] = (time.monotonic(), seen)
        self._stops_of[visitor] = [*own, (visitor, name)]

    def _replayed(self, row: ExchangeRow) -> Exchange:
        """An exchange of an earlier process, or one of another that is still running, as the store has it."""
        begun = ExchangeBegun(
            id=row.id,
            conversation=row.conversation,
            assistant=row.assistant,
            visitor=row.visitor,
            question=row.question or "",
            started_at=row.started_at,
            model=row.model,
            key=row.key,
            body_hash=row.body_hash,
            replaces=row.replaces,
        )
        exchange = Exchange(begun, store=self.store, limits=self.limits, marks=row.marks)
        exchange.ended = ended_of(row)
        exchange.log = Log.rebuilt(row.shown or "", row.boundaries, started_of(row), exchange.ended, row.events)
        exchange.state = State.ENDED
        exchange.sent = exchange.booked_sent = row.sent
        exchange.settle()
        if row.outcome is not None:
            self._keep(exchange)  # for all who read it: each of their own would hold the text once more
            self._keep_ended(exchange)
            self._keep_ticking()
        return exchange

    def _keep(self, exchange: Exchange) -> None:
        self._by_id[exchange.id] = exchange
        if exchange.begun.key is not None:
            self._by_key[exchange.begun.visitor, exchange.begun.key] = exchange

    def _drop(self, exchange: Exchange) -> None:
        del self._by_id[exchange.id]
        if exchange.begun.key is not None:
            self._by_key.pop((exchange.begun.visitor, exchange.begun.key), None)

    # Deleting

    async def delete_conversation(self, conversation: str, visitor: str) -> None:
        """Remove a conversation's text for good, here and in the store; what runs in it is stopped.

        Raises: NotFound, also for somebody else's, StoreError.
        """
        if not await self.store.delete_conversation(conversation, visitor):
            raise NotFound("there is no such conversation")
        # From here on nothing can begin in it.
        theirs = [one for one in self._by_id.values() if one.begun.conversation == conversation]
        await self._let_go(theirs, By.VISITOR)

    async def delete_visitor(self, visitor: str) -> int:
        """Remove all that a visitor asked and was told, here and in the store; what runs is stopped.

        Returns: how many conversations had text. What they ask from here on is a new visitor's. Raises: StoreError.
        """
        deleted = 0
        for _ in range(2):  # what began meanwhile has its text removed with the rest, and is let go then
            theirs = [one for one in self._by_id.values() if one.begun.visitor == visitor]
            await self._let_go(theirs, By.OPERATOR)
            deleted += await self.store.delete_visitor(visitor)
        return deleted

    async def _let_go(self, theirs: list[Exchange], by: By) -> None:
        await asyncio.gather(*(exchange.stop(by=by) for exchange in theirs))
        for exchange in theirs:
            if exchange.id in self._by_id:
                self._drop(exchange)
                self._ended.remove(exchange)
                self._held_ended -= exchange.log.held

    # Housekeeping

    def _keep_ticking(self) -> None:
        if self._tick is None and not self._closed:
            self._tick = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._ticked)

    def _ticked(self) -> None:
        self._tick = None
        self._forget()
        if self._by_id or self._stops:
            self._keep_ticking()

    def _forget(self) -> None:
        """Let ended answers go after a while, and earlier where memory is short; one that is being read stays."""
        now = time.monotonic()
        running = sum(exchange.log.held for exchange in self._running.values())
        kept: list[Exchange] = []
        while self._ended:
            exchange = self._ended[0]
            short = running + self._held_ended > self.limits.live_bytes
            if not short and now - exchange.ended_at <= exchange.limits.replay_seconds:
                break
            self._ended.popleft()
            if exchange.followed:
                kept.append(exchange)
                continue
            self._held_ended -= exchange.log.held
            self._drop(exchange)
        self._ended.extendleft(reversed(kept))
        self._held = running + self._held_ended
        stale = [key for key, (at, _) in self._stops.items() if now - at > self.limits.stop_memory_seconds]
        for key in stale:
            del self._stops[key]
        if stale:
            waiting = {visitor for visitor, _ in self._stops}
            for visitor in [visitor for visitor in self._stops_of if visitor not in waiting]:
                del self._stops_of[visitor]

    async def close(self) -> None:
        """Shut down: running exchanges end as `interrupted` and are booked, within `shutdown_seconds`."""
        self._closed = True
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        self._checkpoints.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.shutdown_seconds):
                while running := self.running:
                    await asyncio.gather(*(exchange.end(_INTERRUPTED) for exchange in running if exchange.started))
                    await asyncio.sleep(_OPENING_SECONDS)  # for those on their way into the books
        await self.store.flush()


def _checked(asking: Asking, limits: Limits) -> Asking:
    if not isinstance(asking.message, str):
        raise InvalidRequest("message must be text", field="message")
    joiner = SurrogateJoiner()  # halves of characters can be neither stored nor sent on
    message = joiner.feed(asking.message) + joiner.close()
    if not message.strip():
        raise InvalidRequest("message is empty; say something", field="message")
    size = len(message.encode())
    if size > limits.message_bytes:
        raise InvalidRequest(
            f"message has {size} bytes; at most {limits.message_bytes} are taken",
            field="message",
            limit=limits.message_bytes,
        )
    if asking.key is not None and not 1 <= len(asking.key.encode("utf-8", "surrogatepass")) <= limits.key_bytes:
        raise InvalidRequest(f"key must have 1 to {limits.key_bytes} bytes", field="key", limit=limits.key_bytes)
    return asking if message == asking.message else msgspec.structs.replace(asking, message=message)


def _of_thread(asking: Asking) -> str | None:
    return None if asking.thread is None else of_thread(asking.visitor, asking.assistant, asking.thread)


def of_thread(visitor: str, assistant: str, thread: str) -> str:
    """The id of the conversation that a client has a name of its own for: its own for each visitor and assistant.

    It can be made out by whoever knows all three, as no id is a permission.
    """
    parts = "\0".join((visitor, assistant, thread))
    digest = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).digest()[:16]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _conflict() -> Conflict:
    return Conflict("this key was used for another question; a new question needs a new key")


def _same(exchange: Exchange, asking: Asking) -> Exchange:
    if exchange.begun.body_hash != asking.body_hash():
        raise _conflict()
    return exchange
