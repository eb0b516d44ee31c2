"""Fields as httpx-sse reads them, and with it the SDKs whose decoders were made from it."""

from __future__ import annotations

from motamot.peers.libraries.seen import SeenEvent

__all__ = ["HABITS", "Fields"]

HABITS = (
    "Once an id was seen, every blank line is an event: a keep-alive comment gives one with empty data.",
    "A block of `retry`, `event` or `id` alone is an event with empty data.",
    "A byte-order mark at the start makes its first line unknown: the first event is lost.",
)


class Fields:
    """Lines in, events out: a blank line is an event when anything is kept, not only when there was data."""

    __slots__ = ("_data", "_event", "_id", "_retried")

    def __init__(self) -> None:
        self._data: list[str] = []
        self._event = ""
        self._id: str | None = None
        self._retried = False

    def line(self, line: str, at: int) -> SeenEvent | None:
        """Take one line. Returns: the event that it ends, if any."""
        if not line:
            return self._end(at)
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id":
            self._id = self._id if "\0" in value else value
        elif field == "retry":
            self._retried = self._retried or _is_number(value)
        return None

    def _end(self, at: int) -> SeenEvent | None:
        if not (self._data or self._event or self._id or self._retried):
            return None
        event = SeenEvent("\n".join(self._data), self._event or "message", self._id, at)
        self._data, self._event, self._retried = [], "", False
        return event


def _is_number(text: str) -> bool:
    try:
        int(text)  # the decoders take what Python takes: signs, blanks, underscores, digits of any script
    except ValueError:
        return False
    return True
