"""An operator's own function between what was said and what is written: names, numbers, whatever it takes out.

It runs in the writer's thread, over every text of a conversation before that reaches the disk. Where it raises, or
gives no text, nothing of that text is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from motamot.store.booking import Record
from motamot.store.cleaning import clean
from motamot.store.details import AnyEvent, mapped
from motamot.store.records import Checkpoint, CompletionClosed, ExchangeBegun, ExchangeEnded, Noted

__all__ = ["NOT_KEPT", "REDACTED", "Redact", "Redactions", "common_characters"]

_logger = logging.getLogger("motamot.store")

Redact = Callable[[str], str]
"""A text of a conversation, as it is to be kept. Called in one thread of its own."""

REDACTED = "redacted"
"""Mark of an exchange of which something was changed on the way into the books."""

NOT_KEPT = "not_kept"
"""Mark of an exchange of which something was not written, as the function failed."""

REMEMBERED = 10_000  # exchanges: what was refused has no end

_WORDS = frozenset(
    ("type", "id", "name", "status", "finish", "agent", "method", "usage", "outcome", "code", "by", "exchange")
)
"""Fields of events that hold words of ours or of the protocol, or figures, and no text of a conversation."""


class Redactions:
    """Applies the function to records, and remembers until an exchange's end what became of its texts."""

    def __init__(self) -> None:
        self._marks: dict[str, set[str]] = {}

    def of(self, record: Record, redact: Redact) -> Record:
        """The record as it may be written. Never raises."""
        match record:
            case ExchangeBegun():
                return replace(record, question=self._text(record.id, redact, record.question))
            case CompletionClosed() if record.detail:
                detail = self._text(record.id, redact, record.detail)
                self._marks.pop(record.id, None)
                return replace(record, detail=detail)
            case Checkpoint():
                text = self._text(record.exchange, redact, record.text)
                return replace(record, text=text, boundaries=_fitting(record.boundaries, record.text, text))
            case ExchangeEnded():
                return self._ended(record, redact)
            case _:
                return record

    def _ended(self, record: ExchangeEnded, redact: Redact) -> ExchangeEnded:
        def text(value: str) -> str:
            return self._text(record.id, redact, value)

        generated = text(record.generated)
        shown = generated if record.shown == record.generated else text(record.shown)
        noted = tuple(one for one in (self._noted(record.id, one, text) for one in record.noted) if one is not None)
        detail = text(record.detail) if record.detail else record.detail
        marks = self._marks.pop(record.id, set())
        return replace(
            record,
            generated=generated,
            shown=shown,
            detail=detail,
            noted=noted,
            omitted=record.omitted + len(record.noted) - len(noted),
            boundaries=_fitting(record.boundaries, record.generated, generated),
            marks=(*record.marks, *sorted(marks)),
        )

    def _text(self, exchange: str, redact: Redact, text: str) -> str:
        if not text:
            return text
        try:
            changed = _text_of(redact(text))
        except BaseException as error:  # noqa: BLE001 - SystemExit too: the text may not be written, and the thread lives
            self._failed(exchange, error)
            return ""
        if changed != text:
            self._marked(exchange).add(REDACTED)
        return changed

    def _noted(self, exchange: str, noted: Noted, change: Callable[[str], str]) -> Noted | None:
        """None where nothing that can be written became of it."""
        try:
            return _noted(noted, change)
        except Exception as error:  # noqa: BLE001 - objects that an answer of one's own put there
            self._failed(exchange, error)
            return None

    def _marked(self, exchange: str) -> set[str]:
        if exchange not in self._marks and len(self._marks) >= REMEMBERED:
            del self._marks[next(iter(self._marks))]
        return self._marks.setdefault(exchange, set())

    def _failed(self, exchange: str, error: BaseException) -> None:
        marks = self._marked(exchange)
        if NOT_KEPT not in marks:  # not for each checkpoint
            # Neither the error's own words nor the trace: they may quote the text, which is to be nowhere.
            _logger.error(
                "the redact function failed (%s%s): a text of exchange %s is not kept",
                type(error).__name__,
                _place(error),
                exchange,
            )
        marks.add(NOT_KEPT)


def _text_of(changed: Any) -> str:
    if type(changed) is not str:
        raise TypeError("not a text")
    return clean(changed)


def _noted(noted: Noted, change: Callable[[str], str]) -> Noted:
    plain = msgspec.to_builtins(noted.event, enc_hook=repr)
    kept = {key: value if key in _WORDS else mapped(value, change) for key, value in plain.items()}
    return replace(noted, event=msgspec.convert(kept, AnyEvent))


def _fitting(pairs: tuple[tuple[int, int], ...], text: str, redacted: str) -> tuple[tuple[int, int], ...]:
    """Boundaries of `text` as boundaries of what became of it: those before the first change, and the end."""
    if text == redacted or not pairs:
        return pairs
    same = common_characters(text, redacted)
    kept = [pair for pair in pairs if pair[1] <= same and pair[0] != pairs[-1][0]]
    return (*kept, (pairs[-1][0], len(redacted)))


def common_characters(one: str, other: str) -> int:
    """How many characters both begin with. By halves: texts may have millions."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
