"""A case of the examination: what the scripted model says, what the visitor does, and what must then hold.

Each case is one file in `cases/`. Its number stays: reports and people refer to it. Its word, `case` and the number,
stands in the question and picks the script.
"""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from motamot.exam.tools import Tool
from motamot.findings import Level, Promise

__all__ = ["Act", "Case", "Expect", "cases", "scripts"]

LATE_SECONDS = 3.0
"""How long the model holds back a later piece for a visitor who has not got an earlier one."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something the visitor does. what: `ask`, `until`, `end`, `stop`, `leave`, `resume`, `wait`, `turn`, `said`.

    on: of `ask` the ending of the case's word ("" for its first question), of `until` the text to wait for,
        of `stop` the text that was seen last, where the client can say so.
    times: of `ask`: so often at the same moment, the very same request. resumable: of `ask`: it can come back.
    seconds: of `wait`. number: of `turn` the request that the model has got, of `said` the one it has answered, from 1.
    """

    what: str
    on: str = ""
    times: int = 1
    seconds: float = 0.0
    number: int = 0
    resumable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What must hold; None where it is free.

    text:        the text the visitor has at the end, exactly; a file says `said: true` for all that its script says.
    own:         each of several visitors has all that the script says to it, exactly.
    starts:      the text begins with this, and holds no more than the model had said.
    holds:       the text holds these, in this order.
    whole:       True: the visitor takes it for complete; False: the visitor can see that it is not.
    error:       an error is told, and apart from the text.
    told:        text is there, or an error is told. never: texts that may not be in the answer's text.
    secret:      texts that may not reach the visitor at all.
    live:        the gates at which later pieces waited: the visitor has the text before each.
    completions: requests to the model with the same messages.
    cancelled:   seconds within which the model must see that nobody reads it any more.
    following:   of the request for the next question: `has`, `has_not` (texts), `alternates`.
    usage:       prompt and completion tokens that the visitor is told.
    calls:       so many calls of the chatbot's tool reach the model again, each with its arguments and a result; 0:
                 none has been run.
    asked:       requests to the model, for all of the answer's turns.
    """

    text: str | None = None
    own: bool = False
    starts: str | None = None
    holds: tuple[str, ...] = ()
    whole: bool | None = None
    error: bool = False
    told: bool = False
    never: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    live: bool = False
    completions: int | None = None
    cancelled: float | None = None
    following: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[int, int] | None = None
    calls: int | None = None
    asked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. See docs/exam.md for what each field means to its reader.

    scripts: by the ending of the word: "" for the first question's, others for later ones.
    gates:   of the first script, and the text after which the visitor opens each.
    needs:   what a chatbot must have for it to be judged: see `Preset.claims`; `tool`: it offers the model one, and
             runs it; `upstream-chat`: it asks the model for chat completions.
    alone:   it measures time, and runs by itself.
    visitors: so many come at once; `{n}` and `{own}` in the script are a number and a word of each.
    slow:    bytes a second that the visitor reads.
    page:    it can be asked in a page, too: see `exam/on_page.py`.
    """

    number: int
    promise: Promise
    level: Level
    title: str
    clause: str
    harm: str
    remedy: str
    scripts: Mapping[str, Any]
    visit: tuple[Act, ...]
    expect: Expect
    gates: Mapping[str, str]
    needs: frozenset[str] = frozenset()
    quick: bool = False
    alone: bool = False
    visitors: int = 1
    slow: int | None = None
    page: bool = False

    @property
    def word(self) -> str:
        """What names it in a question."""
        return f"case{self.number}"

    def question(self, ending: str = "") -> str:
        """What the visitor says."""
        return f"Please say {self.word}{ending}"

    def played(self, tool: Tool | None = None) -> Mapping[str, Any]:
        """The scripts by the ending of their word, each visitor's own, with the names of `tool` in them."""
        fills = tool.fills() if tool is not None else {}
        if self.visitors == 1:
            return {ending: _filled(script, fills) for ending, script in self.scripts.items()}
        each = self.scripts[""]
        return {
            f"n{n}": _filled(each, {"{n}": str(n), "{own}": own_word(n)} | fills) for n in range(1, self.visitors + 1)
        }

    def said(self, ending: str) -> str:
        """All that the script says to the visitor of this ending."""
        return _said(self.played()[ending])


def own_word(number: int) -> str:
    """A word for a visitor that is part of no other's."""
    return hashlib.sha256(str(number).encode()).hexdigest()[:8]


@cache
def cases() -> tuple[Case, ...]:
    """All cases, by number. Raises: ValueError naming the file that is not in order."""
    folder = importlib.resources.files("motamot.exam") / "cases"
    found = []
    for file in folder.iterdir():
        if file.name.endswith(".yaml"):
            try:
                found.append(_case(yaml.load(file.read_text("utf-8"), Loader=_Loader)))  # noqa: S506 - a safe one
            except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
                raise ValueError(f"{file.name}: {error}") from error
    return tuple(sorted(found, key=lambda case: case.number))


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built


def _case(told: dict[str, Any]) -> Case:
    script = told.pop("script", None)
    endings = dict(told.pop("scripts", {}))
    if script is not None:
        endings[""] = script
    expect = told.pop("expect", {})
    if expect.pop("said", False):
        expect["text"] = _said(endings[""])
    if "usage" in expect:
        expect["usage"] = tuple(expect["usage"])
    for name in ("never", "secret", "holds"):
        expect[name] = tuple(expect.get(name, ()))
    needs = set(told.pop("needs", ()))
    return Case(
        promise=Promise(told.pop("promise")),
        level=Level(told.pop("level")),
        scripts=endings,
        visit=tuple(_acts(told.pop("visit", ["ask", "end"]))),
        expect=Expect(**expect),
        gates=told.pop("gates", {}),
        needs=frozenset(needs | {"tool-run"} if "tool" in needs else needs),
        **told,
    )


def _said(steps: Any) -> str:
    """All that a script says."""
    if isinstance(steps, list):
        return "".join(map(_said, steps))
    if "repeat" in steps:
        return int(steps["repeat"]) * _said(steps["steps"])
    if "turns" in steps:
        return _said(steps["turns"])
    said = steps.get("say", "")
    return said if isinstance(said, str) else "".join(said)


def _acts(told: list[Any]) -> Iterator[Act]:
    for one in told:
        if isinstance(one, str):
            yield Act(one)
            continue
        ((what, value),) = one.items()
        if what == "ask" and isinstance(value, dict):
            yield Act("ask", value.get("on", ""), value.get("times", 1), resumable=value.get("resumable", False))
        elif what == "wait":
            yield Act("wait", seconds=float(value))
        elif what in ("turn", "said"):
            yield Act(what, number=int(value))
        else:
            yield Act(what, str(value))


def scripts(chosen: tuple[Case, ...], tool: Tool | None = None) -> dict[str, Any]:
    """The scripted model's file for these cases: a script for each word, gates named by their cases.

    tool: of the chatbot's, which the model calls; without one, the cases that need it are not in the file.
    """
    found: dict[str, Any] = {
        "motamot-unknown": "I could not tell what to say.",
        "warmup": "Ready.",
    }
    if tool is not None:
        found["warmuptool"] = _filled(
            {"turns": [[{"call": {"name": "{tool}", "arguments": "{arguments}"}}], [{"say": "Ready."}]]}, tool.fills()
        )
    for case in chosen:
        if tool is None and "tool" in case.needs:
            continue
        for ending, script in case.played(tool).items():
            found[case.word + ending] = _gated(script, case.word)
    return {"default": "motamot-unknown", "scripts": found}


def _filled(script: Any, fills: Mapping[str, str]) -> Any:
    """A copy of the script with what stands for `fills` put in."""
    if isinstance(script, dict):
        return {name: _filled(value, fills) for name, value in script.items()}
    if isinstance(script, list):
        return [_filled(step, fills) for step in script]
    if isinstance(script, str):
        for name, value in fills.items():
            script = script.replace(name, value)
    return script


def _gated(script: Any, word: str) -> Any:
    """A copy of the script whose gates have the case's name."""
    if isinstance(script, dict):
        return {
            name: f"{word}.{value}" if name == "gate" else _gated(value, word) for name, value in script.items()
        } | ({"timeout": "20s"} if "gate" in script else {})
    if isinstance(script, list):
        return [_gated(step, word) for step in script]
    return script
