"""Which script answers a request."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from motamot.scripted import bounds
from motamot.scripted.steps import Gate, Script, Turn

__all__ = ["Scripts", "folded"]

_WORD = re.compile(r"\w+(?:[-.]\w+)*")


def folded(text: str) -> str:
    """The form in which names and words are compared: composed, without upper case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """What a scripted model has to say.

    scripts:  by folded name. requests: the n-th completion request gets the n-th, nothing else counts.
    gates:    the names of all gates in them.
    default:  answers where nothing else does. models: the names under /v1/models.
    """

    scripts: Mapping[str, Script] = field(default_factory=dict)
    requests: tuple[Script, ...] | None = None
    default: Script | None = None
    models: tuple[str, ...] = ("scripted",)

    @property
    def gates(self) -> frozenset[str]:
        scripts = [*self.scripts.values(), *(self.requests or ())]
        steps = (step for script in scripts for turn in script.turns for step in turn.flat())
        return frozenset(step.name for step in steps if isinstance(step, Gate))

    def choose(self, question: str, number: int) -> Script | None:
        """The script for the number-th completion request (from 0), or None.

        In this order: by number if there are `requests`; the last word of the question that names a script;
        the first script whose `match` fits; the default.
        """
        if self.requests is not None:
            return self.requests[number] if number < len(self.requests) else None
        question = question[-bounds.QUESTION_CHARACTERS :]
        text = folded(question)
        for word in reversed(_WORD.findall(text)):
            if word in self.scripts:
                return self.scripts[word]
        for script in self.scripts.values():
            if (script.contains or script.pattern) and _fits(script, question, text):
                return script
        return self.default


def _fits(script: Script, question: str, text: str) -> bool:
    if not all(folded(part) in text for part in script.contains):
        return False
    return script.pattern is None or script.pattern.found_in(question)


def turn_of(script: Script, tool_round: int) -> tuple[int, Turn]:
    """The turn for this tool round (from 0), and its number; the last one repeats."""
    number = min(tool_round, len(script.turns) - 1)
    return number, script.turns[number]
