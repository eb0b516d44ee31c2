"""How an answer is shown: as text, as the lines of a wire, or as JSON. Pure.

A form is told each event in turn and says what goes to stdout and what is only a note on stderr. In a pipe text is
exact to the byte; on a terminal no control character of a model's gets through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from motamot.answer import AnswerEvent, Cited, Reasoning, Text, ToolCalled, ToolReturned
from motamot.cli.console import harmless, styled

if TYPE_CHECKING:
    from motamot.protocols import Writer

__all__ = ["Form", "JsonForm", "Piece", "RawForm", "TextForm"]

_DIM = "2"


@dataclass(frozen=True, slots=True)
class Piece:
    """Something to show. note: it is for stderr; line: it needs a line of its own."""

    text: str
    note: bool = False
    line: bool = False


class Form(Protocol):
    """One way to show an answer."""

    def show(self, number: int, event: AnswerEvent, /) -> list[Piece]:
        """What is shown for event `number`, in order."""
        ...

    def rest(self) -> str:
        """What was held back, once no event comes any more."""
        ...


class TextForm:
    """The answer's text and nothing else; what goes on beside it as notes."""

    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal
        self._held = ""

    def show(self, _number: int, event: AnswerEvent, /) -> list[Piece]:
        match event:
            case Text():
                text = self._for_terminal(event.text) if self._terminal else event.text
                return [Piece(text)] if text else []
            case Reasoning():
                return [Piece(styled(harmless(event.text), _DIM), note=True)]
            case ToolCalled():
                return [Piece(_note(f"calls {event.name}"), note=True, line=True)]
            case ToolReturned():
                return [Piece(_note(f"{event.name}: {event.status.replace('_', ' ')}"), note=True, line=True)]
            case Cited():
                told = " ".join(word for word in (event.mark, event.title, event.url) if word)
                return [Piece(_note(told), note=True, line=True)]
            case _:
                return []

    def _for_terminal(self, text: str) -> str:
        """CRLF is a line end, any other CR lets text overwrite what stands there: the last one waits for its LF."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        return harmless(text.removesuffix("\r").replace("\r\n", "\n"))

    def rest(self) -> str:
        held, self._held = self._held, ""
        return harmless(held)


def _note(words: str) -> str:
    return styled(harmless(" ".join(f"· {words}".split())), _DIM) + "\n"


class RawForm:
    """The wire as a protocol's writer makes it, line by line: `| data: …`, an empty line as `|`."""

    def __init__(self, writer: Writer, *, terminal: bool) -> None:
        self._writer = writer
        self._terminal = terminal
        self._begun = b""

    def show(self, number: int, event: AnswerEvent, /) -> list[Piece]:
        *lines, self._begun = (self._begun + self._writer.write(number, event)).split(b"\n")
        shown = "".join(map(self._line, lines))
        return [Piece(shown)] if shown else []

    def _line(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        return f"| {harmless(text) if self._terminal else text}\n" if text else "|\n"

    def rest(self) -> str:
        begun, self._begun = self._begun, b""
        return self._line(begun) if begun else ""


class JsonForm:
    """One JSON object a line for each event, as on the native wire."""

    def __init__(self, *, terminal: bool) -> None:
        from motamot.protocols._json import encode_line

        self._encode = encode_line
        self._terminal = terminal

    def show(self, _number: int, event: AnswerEvent, /) -> list[Piece]:
        line = self._encode(event).decode()
        return [Piece((harmless(line) if self._terminal else line) + "\n")]

    def rest(self) -> str:
        return ""
