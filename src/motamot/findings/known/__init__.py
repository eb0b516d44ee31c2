"""Every protocol an examination knows, one line each, in the order a report lists them.

A new one is a file here and a line below.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from motamot.findings.known import others
from motamot.findings.known.ag_ui import AG_UI
from motamot.findings.known.anthropic import ANTHROPIC
from motamot.findings.known.base import Known
from motamot.findings.known.ga_text import GA_TEXT
from motamot.findings.known.gemini import GEMINI
from motamot.findings.known.morceaux import MORCEAUX
from motamot.findings.known.motamot import MOTAMOT
from motamot.findings.known.ollama import OLLAMA
from motamot.findings.known.openai import OPENAI
from motamot.findings.known.responses import RESPONSES
from motamot.findings.known.ui_message import UI_MESSAGE

__all__ = ["KNOWN", "RAW", "STRICT", "UPSTREAM", "Known"]

KNOWN: Mapping[str, Known] = MappingProxyType(
    {
        known.name: known
        for known in (
            MOTAMOT,
            MORCEAUX,
            GA_TEXT,
            OPENAI,
            RESPONSES,
            ANTHROPIC,
            GEMINI,
            OLLAMA,
            UI_MESSAGE,
            AG_UI,
            others.EVENT_STREAM,
            others.JSON_STRINGS,
            others.JSON_LINES,
            others.JSON,
            others.TEXT,
            others.HTML,
            others.EMPTY,
        )
    }
)
UPSTREAM = frozenset(known.name for known in KNOWN.values() if known.upstream)
STRICT = frozenset(known.name for known in KNOWN.values() if known.strict)
RAW = frozenset(known.name for known in KNOWN.values() if known.raw)
