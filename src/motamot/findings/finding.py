"""The words of an examination: what can be wrong (a fault), and where it was seen (a finding)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Evidence", "Fault", "Finding", "Level", "Promise"]


class Promise(StrEnum):
    """The promise that a fault breaks, in the order of a report."""

    EXACT = "exact"
    LIVE = "live"
    ONCE = "once"
    STOPPABLE = "stoppable"
    ACCOUNTED = "accounted"
    SAFE = "safe"


class Level(StrEnum):
    """How bad it is: `must` loses something for somebody; `should` works by luck or for most; `note` is to know."""

    MUST = "must"
    SHOULD = "should"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of fault, as the documentation tells it.

    id:     its name, kebab-case, for ever.
    title:  what is wrong, in a few words.
    clause: the rule it breaks: standard and section, or the provider's page, with a link.
    remedy: what to change, one or two sentences, for whoever wrote the server.
    harm:   what a visitor or an owner sees of it.
    """

    id: str
    promise: Promise
    level: Level
    title: str
    clause: str
    remedy: str
    harm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where something was seen.

    offset: bytes from the start of the body, or None where it is not in the body (headers, times).
    at:     seconds since the request, or None where the tape has no times.
    quote:  the bytes there, decoded, at most 200 characters; "" for none.
    """

    offset: int | None = None
    at: float | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault that was seen.

    message:  what was seen here, one sentence with its figures.
    evidence: the first places (at most five); times: how often in all.
    """

    fault: Fault
    message: str
    evidence: tuple[Evidence, ...] = ()
    times: int = 1

    @property
    def id(self) -> str:
        """The fault's name."""
        return self.fault.id
