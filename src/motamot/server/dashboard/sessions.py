"""Who is signed in: random tokens of which only hashes are kept, in memory, for a while."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from motamot.limits import Limits
from motamot.server.signing import Signer

__all__ = ["Session", "Sessions"]


@dataclass(slots=True)
class Session:
    """One browser's. forms: its own tokens, another one in each form: a compressed page gives none away (BREACH)."""

    began: float
    used: float
    forms: Signer = field(default_factory=lambda: Signer(secrets.token_bytes(32)), repr=False)


class Sessions:
    """Those of this process: another worker, or a restart, asks for the key again."""

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now = clock
        self._by_hash: dict[bytes, Session] = {}  # the one used longest ago first

    def open(self) -> str:
        """A new session. Returns: its token, which nobody can have known before."""
        token = secrets.token_urlsafe(32)
        while len(self._by_hash) >= self._limits.sessions:
            del self._by_hash[next(iter(self._by_hash))]
        now = self._now()
        self._by_hash[_hash(token)] = Session(now, now)
        return token

    def find(self, token: str) -> Session | None:
        """The session of this token, used now; None where there is none, or it is over."""
        name = _hash(token)
        session = self._by_hash.pop(name, None)
        now = self._now()
        if (
            session is None
            or now - session.used >= self._limits.session_idle_seconds
            or now - session.began >= self._limits.session_seconds
        ):
            return None
        session.used = now
        self._by_hash[name] = session
        return session

    def close(self, token: str) -> None:
        """Sign out."""
        self._by_hash.pop(_hash(token), None)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
