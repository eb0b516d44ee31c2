"""Regular expressions of scripts, matched in time linear in the text.

Python's own matcher needs exponential time for some patterns and cannot be stopped; a stranger's question would hold
up every answer. This one follows all alternatives at once (Thompson's construction). It knows characters, `.`,
`[…]`, `\\d \\w \\s` and their opposites, `\\b`, `^`, `$`, groups, `|`, `* + ?` and `{m,n}`; upper and lower case are
not told apart. It has no look-around, no references to groups and no flags.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["Pattern", "PatternError", "compiled"]

PATTERN_CHARACTERS: Final = 500
PATTERN_STATES: Final = 500  # after `{m,n}` is written out
TEXT_CHARACTERS: Final = 2000  # of the text, its end: with so many states half a second at the very worst

_BUILT_NODES: Final = 10_000

_COUNT = re.compile(r"\{([0-9]{1,4})(,?)([0-9]{0,4})\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_EDGES: Final = {"^": "start", "$": "end", "\\b": "edge", "\\B": "inside"}


class PatternError(ValueError):
    """A pattern that is not understood; the message says why."""


class _State(NamedTuple):
    """One character to be read (`one`), a condition on the place (`edge`), or neither: then on to all of `then`."""

    then: tuple[int, ...]
    one: re.Pattern[str] | None = None
    edge: str | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern ready for use."""

    _states: list[_State]
    _start: int

    def found_in(self, text: str) -> bool:
        """Whether it matches somewhere in the last 2,000 characters of the text."""
        text = text[-TEXT_CHARACTERS:]
        reading: set[int] = set()  # states that wait for the character at `at`
        for at in range(len(text) + 1):
            reached = self._reached({*reading, self._start}, text, at)
            if _MATCHED in reached:
                return True
            if at == len(text):
                return False
            reading = {
                state.then[0]
                for number in reached
                if (state := self._states[number]).one is not None and state.one.fullmatch(text, at, at + 1)
            }
        return False

    def _reached(self, entered: set[int], text: str, at: int) -> set[int]:
        """Every state that is reached from these without reading a character."""
        reached: set[int] = set()
        waiting = list(entered)
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.one is None and (state.edge is None or _holds(state.edge, text, at)):
                waiting.extend(state.then)
        return reached


_MATCHED: Final = 0  # the number of the last state


def _holds(edge: str, text: str, at: int) -> bool:
    if edge == "start":
        return at == 0
    if edge == "end":
        return at == len(text)
    before = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
    after = at < len(text) and (text[at].isalnum() or text[at] == "_")
    return (before != after) == (edge == "edge")


@lru_cache(maxsize=1024)
def compiled(source: str) -> Pattern:
    """Make a pattern. Raises PatternError."""
    if len(source) > PATTERN_CHARACTERS:
        raise PatternError(f"a regular expression has at most {PATTERN_CHARACTERS} characters here")
    parser = _Parser(source)
    try:
        whole = parser.alternatives()
    except RecursionError:
        raise PatternError("the groups are nested too deep") from None
    if parser.at < len(source):
        raise PatternError(f"the parenthesis at position {parser.at} was never opened")
    builder = _Builder()
    return Pattern(builder.states, builder.build(whole, _MATCHED))


@dataclass(frozen=True, slots=True)
class _Node:
    """`one`: a character, `edge`: a condition, `all`: one after the other, `any`: alternatives, `times`: repeated."""

    kind: str
    inner: tuple[_Node, ...] = ()
    text: str = ""
    least: int = 1
    most: int | None = 1  # None: no end


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self.at = 0

    def alternatives(self) -> _Node:
        options = [self._sequence()]
        while self._source[self.at : self.at + 1] == "|":
            self.at += 1
            options.append(self._sequence())
        return _Node("any", tuple(options)) if len(options) > 1 else options[0]

    def _sequence(self) -> _Node:
        items: list[_Node] = []
        while self.at < len(self._source) and self._source[self.at] not in "|)":
            items.append(self._repeated(self._atom()))
        return _Node("all", tuple(items))

    def _atom(self) -> _Node:
        at, char = self.at, self._source[self.at]
        if char == "(":
            return self._group()
        if char in "*+?" or (char == "{" and _COUNT.match(self._source, at)):
            raise PatternError(f"there is nothing to repeat at position {at}")
        if char == "[":
            match = _CLASS.match(self._source, at)
            if match is None:
                raise PatternError(f"the bracket at position {at} is not closed")
            text = match[0]
        else:
            text = self._source[at : at + 2] if char == "\\" else char
        if text == "\\":
            raise PatternError("nothing follows the backslash at the end")
        self.at += len(text)
        if text in _EDGES:
            return _Node("edge", text=_EDGES[text])
        if re.fullmatch(r"\\[0-9A-Za-z]", text) and text[1] not in "dDwWsSnrt":
            raise PatternError(f"{text} is not understood here (position {at})")
        return _Node("one", text=text if len(text) > 1 or text == "." else re.escape(text))

    def _group(self) -> _Node:
        opened = self.at
        self.at += 1
        if self._source.startswith("?", self.at):
            if not self._source.startswith("?:", self.at):
                raise PatternError(f"of the groups with (? only (?: is understood here (position {opened})")
            self.at += 2
        inner = self.alternatives()
        if not self._source.startswith(")", self.at):
            raise PatternError(f"the parenthesis at position {opened} is not closed")
        self.at += 1
        return inner

    def _repeated(self, item: _Node) -> _Node:
        source, at = self._source, self.at
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        least: int
        most: int | None
        if source[at : at + 1] in simple:
            least, most = simple[source[at]]
            self.at += 1
        elif match := _COUNT.match(source, at):
            least = int(match[1])
            most = int(match[3]) if match[3] else None if match[2] else least
            if most is not None and most < least:
                raise PatternError(f"the repeat at position {at} ends before it begins")
            self.at = match.end()
        else:
            return item
        if source.startswith("?", self.at):  # as few as possible: whether it is found is the same
            self.at += 1
        return _Node("times", (item,), least=least, most=most)


@dataclass(slots=True)
class _Builder:
    """Makes states from the end to the beginning: each node is built knowing the state that follows it."""

    states: list[_State] = field(default_factory=lambda: [_State(())])
    _built: int = 0  # nodes, also those that make no state: `((){9999}){9999}` is short to write

    def build(self, node: _Node, then: int) -> int:
        """The state with which the node begins."""
        self._built += 1
        if self._built > _BUILT_NODES:
            raise PatternError("the pattern is too large when its repeats are written out")
        match node.kind:
            case "one":
                return self._state(_State((then,), one=_one(node.text)))
            case "edge":
                return self._state(_State((then,), edge=node.text))
            case "all":
                for item in reversed(node.inner):
                    then = self.build(item, then)
                return then
            case "any":
                return self._state(_State(tuple(self.build(item, then) for item in node.inner)))
        (item,) = node.inner
        if node.most is None:
            loop = self._state(_State(()))
            self.states[loop] = _State((self.build(item, loop), then))
            then = loop
        else:
            after = then
            for _ in range(node.most - node.least):
                then = self._state(_State((self.build(item, then), after)))
        for _ in range(node.least):
            then = self.build(item, then)
        return then

    def _state(self, state: _State) -> int:
        if len(self.states) >= PATTERN_STATES:
            raise PatternError(f"the pattern is too large: its repeats written out make over {PATTERN_STATES} parts")
        self.states.append(state)
        return len(self.states) - 1


def _one(text: str) -> re.Pattern[str]:
    """A pattern for one character: these, Python's own matcher tells in no time."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "possible nested set": not what was meant
            return re.compile(text, re.IGNORECASE)
    except (re.error, Warning) as error:
        raise PatternError(f"{text} is not a set of characters: {error}") from error
