"""The languages of the dashboard, and which one a browser asks for."""

from __future__ import annotations

from collections.abc import Mapping

from motamot.server.dashboard.english import ENGLISH
from motamot.server.dashboard.french import FRENCH
from motamot.server.dashboard.words import Words

__all__ = ["LANGUAGES", "language_of"]

LANGUAGES: Mapping[str, Words] = {words.language: words for words in (ENGLISH, FRENCH)}


def language_of(accepted: str) -> Words:
    """The words for an `Accept-Language` header (RFC 9110, 12.5.4); English where none of its languages is ours."""
    best, found = 0.0, ENGLISH
    for item in accepted[:1000].split(","):
        tag, _, quality = item.partition(";")
        words = LANGUAGES.get(tag.strip().lower().partition("-")[0])
        name, _, value = quality.partition("=")
        try:
            weight = float(value) if name.strip().lower() == "q" else 1.0
        except ValueError:
            weight = 0.0
        if words is not None and best < weight <= 1:
            best, found = weight, words
    return found
