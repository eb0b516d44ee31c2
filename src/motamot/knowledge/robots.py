"""What a site lets programs read: its robots.txt. Pure. Source: RFC 9309."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

__all__ = ["AGENT", "Robots"]

AGENT = "motamot"
_RULES = 10_000  # of one file; more are left aside
_RULE_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Robots:
    """rules: (pattern, whether it allows). sitemaps: those that the file names."""

    rules: Sequence[tuple[str, bool]] = ()
    sitemaps: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Robots:
        """The rules of the group that names us, else of the one for all."""
        groups: dict[str, list[tuple[str, bool]]] = {}
        agents: list[str] = []
        sitemaps: list[str] = []
        naming = False
        for written in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
            name, colon, value = written.partition("#")[0].partition(":")
            name, value = name.strip().lower(), value.strip()[:_RULE_CHARACTERS]
            if not colon:
                continue
            if name == "user-agent":
                agents = [*(agents if naming else ()), value.lower()][-100:]
                for agent in agents:
                    groups.setdefault(agent, [])
                naming = True
            elif name in ("allow", "disallow"):
                naming = False
                for agent in agents:
                    if value and len(groups[agent]) < _RULES:
                        groups[agent].append((_normal(value), name == "allow"))
            elif name == "sitemap" and len(sitemaps) < _RULES:
                sitemaps.append(value)
        return cls(tuple(groups.get(AGENT, groups.get("*", ()))), tuple(sitemaps))

    def allows(self, url: str) -> bool:
        """The longest rule that fits decides; of two as long, the one that allows."""
        parts = urlsplit(url)
        path = _normal((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        fitting = [(len(pattern), allow) for pattern, allow in self.rules if _fits(pattern, path)]
        return max(fitting)[1] if fitting else True


def _normal(path: str) -> str:
    return quote(unquote(path), safe="/?&=*$:@!+,;~-._'()")


def _fits(pattern: str, path: str) -> bool:
    """`*` stands for anything, `$` at the end for the end; without backtracking, as the patterns are a stranger's."""
    to_end = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for number, part in enumerate(others, 1):
        if to_end and number == len(others):
            return len(path) - len(part) >= at and path.endswith(part)
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not to_end or at == len(path)
