"""The watchdog of time limits."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from motamot.model.watchdog import Watch, Watchdog


class Clock:
    """Notes when each callback ran, in seconds since the clock was made."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.rang: dict[str, float] = {}

    def ring(self, name: str) -> None:
        assert name not in self.rang, f"{name} expired twice"
        self.rang[name] = time.monotonic() - self.began


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


def timers() -> int:
    """Timers of the running loop that are not cancelled."""
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return sum(not handle.cancelled() for handle in scheduled)


def test_a_limit_expires_once_and_never_early() -> None:
    async def main() -> None:
        clock = Clock()
        watch = Watchdog.here().watch(0.2, lambda: clock.ring("a"))
        await asyncio.sleep(0.6)
        assert 0.2 <= clock.rang["a"] < 0.45
        assert watch.expired
        assert not watch.active

    run(main())


def test_a_touched_limit_runs_from_the_last_touch() -> None:
    async def main() -> None:
        clock = Clock()
        watch = Watchdog.here().watch(0.2, lambda: clock.ring("a"))
        for _ in range(10):
            await asyncio.sleep(0.05)
            watch.at = time.monotonic()
        assert not clock.rang
        last = time.monotonic() - clock.began
        await asyncio.sleep(0.5)
        assert last + 0.2 <= clock.rang["a"] < last + 0.45

    run(main())


def test_a_limit_can_be_made_shorter_and_longer() -> None:
    async def main() -> None:
        clock = Clock()
        shorter = Watchdog.here().watch(60, lambda: clock.ring("shorter"))
        longer = Watchdog.here().watch(0.1, lambda: clock.ring("longer"))
        shorter.rearm(0.2)
        longer.rearm(0.4)
        await asyncio.sleep(0.8)
        assert 0.2 <= clock.rang["shorter"] < 0.39
        assert 0.4 <= clock.rang["longer"] < 0.65

    run(main())


def test_a_cancelled_limit_never_expires_and_may_be_cancelled_again() -> None:
    async def main() -> None:
        clock = Clock()
        watch = Watchdog.here().watch(0.05, lambda: clock.ring("a"))
        watch.cancel()
        watch.cancel()
        watch.rearm(0.01)
        await asyncio.sleep(0.2)
        assert not clock.rang
        assert not watch.expired
        assert len(Watchdog.here()) == 0

    run(main())


def test_limits_expire_in_the_order_of_their_times_not_of_their_making() -> None:
    async def main() -> None:
        clock = Clock()
        watchdog = Watchdog.here()
        for seconds in (0.4, 0.1, 0.3, 0.2):
            watchdog.watch(seconds, lambda seconds=seconds: clock.ring(str(seconds)))  # type: ignore[misc]
        await asyncio.sleep(0.8)
        assert list(clock.rang) == ["0.1", "0.2", "0.3", "0.4"]

    run(main())


def test_one_timer_runs_however_many_limits_are_watched_and_none_when_none_is() -> None:
    async def main() -> None:
        watchdog = Watchdog.here()
        before = timers()
        watches = [watchdog.watch(60 - number / 100, print) for number in range(1000)]
        assert timers() == before + 1
        for watch in watches:
            watch.touch()
        assert timers() == before + 1
        for watch in watches:
            watch.cancel()
        assert timers() == before
        watchdog.watch(0.01, lambda: None)
        watchdog.watch(60, lambda: None).cancel()
        await asyncio.sleep(0.2)
        assert len(watchdog) == 0
        assert timers() == before

    run(main())


def test_cancelled_limits_are_not_kept_until_they_would_have_been_due() -> None:
    async def main() -> None:
        watchdog = Watchdog.here()
        kept = watchdog.watch(600, print)
        for _ in range(10_000):
            watchdog.watch(600, print).cancel()
        gc.collect()
        assert sum(isinstance(thing, Watch) for thing in gc.get_objects()) < 200
        assert kept.active
        kept.cancel()

    run(main())


def test_a_blocked_loop_does_not_expire_a_limit_whose_bytes_were_waiting() -> None:
    """After a block the timers run before the readers' tasks: what arrived in the meantime still counts."""

    async def main() -> None:
        clock = Clock()
        reader, writer = await asyncio.open_connection(*await talker(0.05))
        watch = Watchdog.here().watch(0.3, lambda: clock.ring("silence"))

        async def read() -> None:
            while await reader.read(100):
                watch.at = time.monotonic()

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.1)
        time.sleep(0.5)  # the block is the point
        await asyncio.sleep(0.15)
        assert not clock.rang
        watch.cancel()
        writer.close()
        await reading

    run(main())


async def talker(pause: float) -> tuple[str, int]:
    """A thread that accepts one connection and sends a byte every `pause` seconds until it is closed."""
    import socket

    listening = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        peer, _ = listening.accept()
        with listening, peer:
            try:
                while True:
                    peer.sendall(b".")
                    time.sleep(pause)
            except OSError:
                return

    threading.Thread(target=talk, daemon=True).start()
    host, port = listening.getsockname()
    return host, port


def test_a_busy_loop_does_not_make_limits_drift() -> None:
    async def main() -> None:
        clock = Clock()
        for number in range(1, 11):
            Watchdog.here().watch(number / 10, lambda number=number: clock.ring(str(number)))  # type: ignore[misc]
        while len(clock.rang) < 10:
            time.sleep(0.02)  # the block is the point
            await asyncio.sleep(0)
        late = [clock.rang[str(number)] - number / 10 for number in range(1, 11)]
        assert min(late) >= 0
        assert max(late) < 0.25

    run(main())


def test_a_failing_callback_is_reported_and_the_others_still_expire() -> None:
    async def main() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        clock = Clock()
        Watchdog.here().watch(0.05, lambda: int("x"))
        Watchdog.here().watch(0.1, lambda: clock.ring("b"))
        await asyncio.sleep(0.3)
        assert isinstance(told[0]["exception"], ValueError)
        assert "b" in clock.rang

    run(main())


def test_a_callback_may_cancel_and_make_limits() -> None:
    async def main() -> None:
        clock = Clock()
        other = Watchdog.here().watch(0.3, lambda: clock.ring("other"))

        def first() -> None:
            other.cancel()
            Watchdog.here().watch(0.05, lambda: clock.ring("second"))

        Watchdog.here().watch(0.05, first)
        await asyncio.sleep(0.5)
        assert list(clock.rang) == ["second"]

    run(main())


def test_an_infinite_limit_never_expires_and_a_very_long_one_is_taken() -> None:
    async def main() -> None:
        for seconds in (float("inf"), 1e12):
            watch = Watchdog.here().watch(seconds, print)
            await asyncio.sleep(0.01)
            assert watch.active
            watch.cancel()

    run(main())


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_limit_that_is_no_length_of_time_is_refused(seconds: float) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="0 seconds or more"):
            Watchdog.here().watch(seconds, print)

    run(main())


def test_each_loop_has_one_watchdog_of_its_own() -> None:
    async def here() -> Watchdog:
        assert Watchdog.here() is Watchdog.here()
        return Watchdog.here()

    assert asyncio.run(here()) is not asyncio.run(here())
    with pytest.raises(RuntimeError):
        Watchdog.here()


def test_a_limit_may_be_cancelled_after_its_loop_has_ended() -> None:
    async def main() -> list[Watch]:
        return [Watchdog.here().watch(60, print) for _ in range(3)]

    for watch in asyncio.run(main()):
        watch.cancel()
        assert not watch.active
