"""Ending a store as a kill would, without ending the process that tests it."""

from __future__ import annotations

from motamot.store import writer
from motamot.store.store import Store


def crash(store: Store) -> None:
    """End the writer thread where it stands, as a kill would: nothing waiting is written, nobody is told."""

    def die(_connection: object) -> None:
        raise SystemExit

    store._writer.submit(writer.Job(call=die))
    store._writer._thread.join()
    store._writer._disconnect()
    store._writer._owners_lock.release()
    writer.here.discard(store._writer.owner.id)
    store._finalizer.detach()
