"""Reasoning that a model writes into its answer, between `<think>` and `</think>`."""

from __future__ import annotations

__all__ = ["ThinkSplitter"]

_OPEN = "<think>"
_CLOSE = "</think>"


class ThinkSplitter:
    """Parts a text that begins with a `<think>` block into reasoning and answer, however it was cut.

    Only a block at the start counts (white space may stand before it): a tag further on is the model speaking
    about tags. What may yet become a tag is held back, at most seven characters; everything else goes on at once.
    The tags themselves are dropped.
    """

    __slots__ = ("_held", "_state")

    def __init__(self) -> None:
        self._held = ""
        self._state = "before"  # then "inside", then "after"

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """Pieces in order, none empty: `(is reasoning, text)`."""
        if self._state == "after":
            return [(False, text)] if text else []
        pieces: list[tuple[bool, str]] = []
        text = self._held + text
        self._held = ""
        if self._state == "before":
            text = self._before(text, pieces)
        if self._state == "inside":
            self._inside(text, pieces)
        return pieces

    def close(self) -> list[tuple[bool, str]]:
        """What was held back and did not become a tag."""
        held, self._held = self._held, ""
        return [(self._state == "inside", held)] if held else []

    def _before(self, text: str, pieces: list[tuple[bool, str]]) -> str:
        """Look for the opening tag; gives what stands behind it."""
        body = text.lstrip()
        blank = text[: len(text) - len(body)]
        if blank:
            pieces.append((False, blank))
        if body.startswith(_OPEN):
            self._state = "inside"
            return body[len(_OPEN) :]
        if _OPEN.startswith(body):  # also for "": nothing has come yet
            self._held = body
            return ""
        self._state = "after"
        pieces.append((False, body))
        return ""

    def _inside(self, text: str, pieces: list[tuple[bool, str]]) -> None:
        thought, tag, rest = text.partition(_CLOSE)
        if not tag:
            keep = _tag_start(thought)
            thought, self._held = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            pieces.append((True, thought))
        if tag:
            self._state = "after"
            if rest:
                pieces.append((False, rest))


def _tag_start(text: str) -> int:
    """How many characters at the end of `text` may be the start of a closing tag."""
    for length in range(min(len(text), len(_CLOSE) - 1), 0, -1):
        if _CLOSE.startswith(text[-length:]):
            return length
    return 0
