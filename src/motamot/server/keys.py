"""The operator's keys: read from the environment or from files, or made for one run on this machine alone."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from motamot.errors import SettingsError
from motamot.server.operator import OperatorKey
from motamot.settings import ServerSettings

__all__ = ["OPERATOR_KEY", "V1_KEYS", "Keys", "checked", "keys_of"]

V1_KEYS = "MOTAMOT_V1_KEYS"
OPERATOR_KEY = "MOTAMOT_OPERATOR_KEY"
_LEAST, _MOST = 16, 200  # characters of a key: a word is guessed, and a whole file is no key
_FILE_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Keys:
    """v1: what callers of /v1 must hold, any of them. operator: what /dashboard and /metrics want, or its hash.

    made: names of those made here.
    """

    v1: tuple[str, ...]
    operator: str
    made: tuple[str, ...] = ()


def keys_of(server: ServerSettings, environ: Mapping[str, str] = os.environ, *, loopback: bool) -> Keys:
    """The keys that the settings name; where there are none, and nobody else reaches this machine, fresh ones.

    loopback: it listens where only programs on this machine can ask.
    Raises:   SettingsError for keys that cannot be read or are too short, and, elsewhere, for keys that are missing.
    """
    v1 = _given(V1_KEYS, server.v1_keys_env, server.v1_keys_file, environ)
    operator = _given(OPERATOR_KEY, server.operator_key_env, server.operator_key_file, environ)
    if len(operator) > 1:
        raise SettingsError("there is one operator's key, and several are given")
    if operator:
        OperatorKey(operator[0])
    missing = [name for name, given in ((V1_KEYS, v1), (OPERATOR_KEY, operator)) if not given]
    if missing and not loopback:
        fresh = [f"    {name}={_fresh()}" for name in missing]
        raise SettingsError(
            "other machines can reach this server, so its keys must be set: those of /v1, where whoever holds one "
            "spends your money, and the operator's, of /dashboard. Put them into the environment; these are fresh:\n"
            + "\n".join(fresh)
        )
    return Keys(v1 or (_fresh(),), operator[0] if operator else _fresh(), tuple(missing))


def _fresh() -> str:
    return secrets.token_urlsafe(24)


def _given(usual: str, variable: str | None, file: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    if file is not None:
        told, text = f"the file {file}", _read(Path(file))
    else:
        told, text = f"the environment variable {variable or usual}", environ.get(variable or usual, "")
        if variable is not None and not text.strip():
            raise SettingsError(f"a key is to be in {told}, which is not set")
    keys = tuple(text.split())
    if file is not None and not keys:
        raise SettingsError(f"{told} is to hold a key, and is empty")
    return tuple(checked(key, told) for key in keys)


def checked(key: str, told: str) -> str:
    """The key itself. told: where it was found. Raises: SettingsError for what is too short, or no key at all."""
    if not (key.isascii() and key.isprintable() and _LEAST <= len(key) <= _MOST and " " not in key):
        raise SettingsError(f"a key in {told} must have {_LEAST} to {_MOST} printable ASCII characters, no blanks")
    return key


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_FILE_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise SettingsError(f"the key cannot be read from {file}: {why}") from None
