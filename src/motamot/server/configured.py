"""From settings to what a server is told."""

from __future__ import annotations

import ipaddress
from itertools import pairwise

from motamot.errors import SettingsError
from motamot.limits import Limits
from motamot.server.keys import Keys
from motamot.server.options import Options
from motamot.settings import ServerSettings, Settings, limits

__all__ = ["is_loopback", "limits_of", "options_of"]

_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(address: str) -> bool:
    """Whether only programs on this machine reach this address, which is one that is listened on."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def options_of(server: ServerSettings, keys: Keys, address: str) -> Options:
    """The operator's choices. address: what is listened on.

    A browser on this machine calls a loopback address by one of three names. Elsewhere any address is a Host as good as
    a listed name: only a name can be made to mean another machine by whoever owns it (DNS rebinding).
    """
    names = frozenset() if "*" in server.hosts else frozenset((*_THIS_MACHINE, *server.hosts))
    return Options(
        hosts=names,
        any_address=not is_loopback(address),
        v1_keys=keys.v1,
        operator_key=keys.operator,
        requests_per_hour=server.requests_per_hour,
        tokens_per_hour=server.tokens_per_hour,
        address_factor=server.address_factor,
        money_per_day=server.money_per_day,
    )


_WITHIN = ("message_bytes", "body_bytes", "bodies_address_bytes", "bodies_bytes")
"""Each must have room in the next: what never fits would be refused with "try again in a moment", for ever."""


def limits_of(settings: Settings) -> Limits:
    """The limits of all that is not one assistant's: `[server.limits]`, else those of the first assistant.

    Raises: SettingsError for those that contradict each other.
    """
    if settings.server.limits is not None:
        found = Limits(**settings.server.limits.model_dump(exclude_unset=True))
    else:
        first = next(iter(settings.assistants.values()), None)
        found = limits(first) if first is not None else Limits()
    for one, around in pairwise(_WITHIN):
        if getattr(found, one) > getattr(found, around):
            raise SettingsError(
                f"the limit {one} ({getattr(found, one)}) is more than {around} ({getattr(found, around)}), "
                "which it has to fit in"
            )
    return found
