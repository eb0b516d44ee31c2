"""On which line of a TOML file each key stands: `tomllib` gives values and forgets where they were.

Works on text that `tomllib` has accepted, so that it only has to find its way, not to judge.
"""

from __future__ import annotations

import re
import tomllib

__all__ = ["Lost", "Path", "lines_of"]

Path = tuple[str | int, ...]
"""Keys from the top of the file down; a number is a place in a list, from 0."""

_SPACE = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\[\s\S]|""?(?!"))*"""(?:"{0,2})'
    r"|'''(?:[^']|''?(?!'))*'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
)
_OTHER_VALUE = re.compile(r"[^,\]}#\n'\"]+")  # a date may hold a space


class Lost(ValueError):
    """The document is not TOML on this line, or from there on."""

    def __init__(self, line: int) -> None:
        super().__init__(f"not TOML at line {line}")
        self.line = line


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, of every key, table and list item of a TOML document.

    text:    what `tomllib.loads` takes. A key that several lines speak of (a table and its parts) has the first.
    Raises:  Lost for what is not TOML, as far as that is noticed.
    """
    return _Scanner(text.replace("\r\n", "\n")).scan()


class _Scanner:
    """Walks over a document once; recursion is as deep as the document nests, as in `tomllib` itself."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0  # the place up to which lines were counted
        self._found: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}  # how many [[tables]] a list of them has so far

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while True:
            self._skip(_BETWEEN)
            if self._at >= len(self._text):
                return self._found
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        many = self._text.startswith("[[", self._at)
        self._at += 2 if many else 1
        path: Path = ()
        names = self._key()
        for depth, name in enumerate(names, 1):
            path = (*path, name)
            self._note(path)
            if many and depth == len(names):
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:  # `[fruit.size]` under `[[fruit]]` is about the last fruit
                path = (*path, self._tables[path] - 1)
                self._note(path)
        self._expect("]]" if many else "]")
        return path

    def _pair(self, path: Path) -> None:
        for name in self._key():
            path = (*path, name)
            self._note(path)
        self._expect("=")
        self._value(path)

    def _key(self) -> list[str]:
        """A dotted key; it stands on one line."""
        names = []
        while True:
            self._skip(_SPACE)
            if found := _BARE_KEY.match(self._text, self._at):
                names.append(found[0])
            elif found := _STRING.match(self._text, self._at):
                names.append(str(tomllib.loads(f"name = {found[0]}")["name"]))
            else:
                raise Lost(self._here())
            self._at = found.end()
            self._skip(_SPACE)
            if self._peek() != ".":
                return names
            self._at += 1

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        if self._peek() == "[":
            self._list(path)
        elif self._peek() == "{":
            self._inline_table(path)
        elif found := _STRING.match(self._text, self._at) or _OTHER_VALUE.match(self._text, self._at):
            self._at = found.end()
        else:
            raise Lost(self._here())

    def _list(self, path: Path) -> None:
        self._at += 1
        number = 0
        while not self._closed("]"):
            item = (*path, number)
            self._note(item)
            self._value(item)
            number += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while not self._closed("}"):
            self._pair(path)

    def _closed(self, bracket: str) -> bool:
        """Past the comma, blanks and comments before the next item; True past the closing bracket."""
        self._skip(_BETWEEN)
        if self._peek() == ",":
            self._at += 1
            self._skip(_BETWEEN)
        if self._peek() == bracket:
            self._at += 1
            return True
        return False

    def _note(self, path: Path) -> None:
        self._found.setdefault(path, self._here())

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        assert found is not None  # both patterns match nothing, too
        self._at = found.end()

    def _expect(self, sign: str) -> None:
        self._skip(_SPACE)
        if not self._text.startswith(sign, self._at):
            raise Lost(self._here())
        self._at += len(sign)

    def _here(self) -> int:
        if self._at > self._counted:
            self._line += self._text.count("\n", self._counted, self._at)
            self._counted = self._at
        return self._line
