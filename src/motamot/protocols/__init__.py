"""One file per protocol: how its clients ask, the writer, the reader, and what it cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from motamot.protocols import ag_ui, ga_text, morceaux, native, openai, ui_message
from motamot.protocols.base import Asked, Loss, Protocol, Reader, Writer

__all__ = ["PROTOCOLS", "Asked", "Loss", "Protocol", "Reader", "Writer"]

PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        protocol.name: protocol
        for protocol in (
            native.PROTOCOL,
            morceaux.PROTOCOL,
            ga_text.PROTOCOL,
            openai.PROTOCOL,
            ag_ui.PROTOCOL,
            ui_message.PROTOCOL,
        )
    }
)
"""Every protocol by its name, as settings and the command line give it."""
