"""The operator's key: given as it is or as its hash, compared in constant time, and guessed at only a few times.

A hash is `sha256:<64 hex digits>` or, for a key that a human made up, `scrypt:<n>:<r>:<p>:<salt>:<hash>` (RFC 7914;
salt and hash in base64url without padding). `motamot serve --hash-key` makes the latter.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request

from motamot.errors import LimitExceeded, SettingsError
from motamot.limits import Limits
from motamot.server import guards
from motamot.server.signing import Signer

__all__ = ["DEVICE", "Operator", "OperatorKey", "hashed"]

_N, _R, _P = 1 << 14, 8, 1  # 16 MiB and some 40 ms: RFC 7914's own choice for a sign-in
_MOST_BYTES = 128 << 20  # of one comparison
_SALT_BYTES, _HASH_BYTES = 16, 32

DEVICE = "motamot_device"
"""The cookie of a browser that has signed in before: strangers' guesses do not keep it out."""


def hashed(key: str) -> str:
    """A key as what may stand in its place: whoever reads it can't sign in with it."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return ":".join(("scrypt", str(_N), str(_R), str(_P), _to_text(salt), _to_text(_scrypt(key, salt, _N, _R, _P))))


def _scrypt(key: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(key.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MOST_BYTES * 2, dklen=_HASH_BYTES)


def _to_text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _to_bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


class OperatorKey:
    """What the settings say of the key: it itself, or its hash. Raises: SettingsError for what is meant as a hash."""

    def __init__(self, given: str) -> None:
        self.given = given
        kind, _, rest = given.partition(":")
        self._scrypt: tuple[bytes, int, int, int] | None = None
        self._right = b""  # what proved right, under a secret of this process: /metrics asks every few seconds
        self._salt = secrets.token_bytes(_SALT_BYTES)
        try:
            if kind == "sha256":
                self._hash = binascii.unhexlify(rest)
            elif kind == "scrypt":
                n, r, p, salt, of = rest.split(":")
                self._hash, self._scrypt = _to_bytes(of), (_to_bytes(salt), int(n), int(r), int(p))
            else:
                self._hash = hashlib.sha256(given.encode()).digest()
        except ValueError:
            raise _no_hash() from None
        if len(self._hash) != _HASH_BYTES:
            raise _no_hash()
        if self._scrypt is not None:
            _check_cost(*self._scrypt[1:])

    def matches(self, key: str) -> bool:
        """Whether it is this key, in constant time. Blocks for some 40 ms where it is kept by scrypt."""
        if not self.given or not key:
            return False
        seen = hmac.digest(self._salt, key.encode("utf-8", "surrogatepass"), "sha256")
        if self._right and hmac.compare_digest(seen, self._right):
            return True
        if self._scrypt is None:
            of = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        else:
            of = _scrypt(key.encode("utf-8", "replace").decode(), *self._scrypt)
        if not hmac.compare_digest(of, self._hash):
            return False
        self._right = seen
        return True


def _check_cost(n: int, r: int, p: int) -> None:
    if n < 2 or n & (n - 1) or not 1 <= r <= 64 or not 1 <= p <= 16 or 128 * n * r > _MOST_BYTES:
        raise SettingsError(
            f"the operator's key is hashed with scrypt:{n}:{r}:{p}: n is a power of two, and a comparison "
            f"may take {_MOST_BYTES >> 20} MiB at most"
        )


def _no_hash() -> SettingsError:
    return SettingsError(
        "the operator's key begins like a hash and is none: `motamot serve --hash-key` makes one (scrypt:…); "
        "sha256: is followed by 64 hex digits"
    )


class Operator:
    """Who may see what the operator sees: whoever holds the key, and does not guess it.

    Guesses are counted by address and in all; a browser that has signed in before is counted by itself alone, so that
    nobody else's guesses keep its owner out.
    """

    def __init__(self, key: str, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = OperatorKey(key)
        self._limits = limits
        self._now = clock
        self._guesses: deque[tuple[float, str]] = deque()
        # One guess at a time, whose memory and processor time are strangers'; and never behind tools that hang.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="motamot-operator")
        self._devices = Signer(hashlib.sha256(b"motamot device\0" + key.encode()).digest())

    @property
    def is_set(self) -> bool:
        """Whether there is a key at all."""
        return bool(self._key.given)

    async def check(self, request: Request) -> None:
        """For tools: the key as a Bearer. Raises: Refused (401), LimitExceeded (429)."""
        given = guards.bearer(request)
        if given is None or not self.is_set or not await self.holds(request, given):
            raise guards.no_key()

    async def holds(self, request: Request, key: str, device: str = "") -> bool:
        """Whether this is the key. device: the cookie of a browser that has signed in before.

        Raises: LimitExceeded where too many wrong ones came: then not even the right one is looked at.
        """
        known = device if self._devices.is_ours(device) else ""
        guess = (self._now(), f"device:{known}" if known else f"address:{guards.client_address(request)}")
        self._admit(guess, known=bool(known))
        right = await asyncio.get_running_loop().run_in_executor(self._thread, self._key.matches, key)
        if right and guess in self._guesses:
            self._guesses.remove(guess)
        return right

    def _admit(self, guess: tuple[float, str], *, known: bool) -> None:
        """Count a guess before it is looked at: many at once can't all see the same room left."""
        limits, (now, name) = self._limits, guess
        while self._guesses and now - self._guesses[0][0] >= limits.sign_in_seconds:
            self._guesses.popleft()
        own = [at for at, of in self._guesses if of == name]
        if len(own) >= limits.sign_in_failures:
            raise self._too_many("sign_in_failures", limits.sign_in_failures, now - own[0])
        if not known and len(self._guesses) >= limits.sign_in_failures_all:
            raise self._too_many("sign_in_failures_all", limits.sign_in_failures_all, now - self._guesses[0][0])
        self._guesses.append(guess)

    def _too_many(self, limit: str, maximum: int, since: float) -> LimitExceeded:
        wait = max(1.0, self._limits.sign_in_seconds - since)
        return LimitExceeded(
            f"too many wrong keys; try again in {max(1, -int(-wait // 60))} min",
            limit=limit,
            maximum=maximum,
            unit="keys",
            retry_after=wait,
        )

    def device(self) -> str:
        """A new value of the cookie `DEVICE`; it means something for as long as the key is the same."""
        return self._devices.token()
