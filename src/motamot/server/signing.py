"""Tokens that are known again without being kept."""

from __future__ import annotations

import hmac
import secrets

__all__ = ["Signer"]


class Signer:
    """Makes tokens, `<random>.<its HMAC-SHA256>` in hex, and knows which are its own.

    secret: who has it can make them; another secret knows none of them.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self) -> str:
        """A new one, never twice the same."""
        once = secrets.token_hex(16)
        return f"{once}.{self._signed(once)}"

    def is_ours(self, token: str) -> bool:
        """Whether it was made with this secret, in constant time."""
        once, _, signed = token.partition(".")
        return hmac.compare_digest(signed.encode("utf-8", "replace"), self._signed(once).encode())

    def _signed(self, once: str) -> str:
        return hmac.digest(self._secret, once.encode("utf-8", "replace"), "sha256").hex()
