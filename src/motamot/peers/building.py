"""How a port puts together what its reader hands on."""

from __future__ import annotations

from motamot.peers.base import Got, Step
from motamot.peers.javascript import joined

__all__ = ["Building"]


class Building:
    """The steps so far; the answer is the text of those of kind `text`."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def text(self, text: str, at: int) -> None:
        """A piece of the answer."""
        self._steps.append(Step("text", text, at))

    def other(self, kind: str, text: str, at: int) -> None:
        """Something that is not part of the answer."""
        self._steps.append(Step(kind, text, at))

    def got(self, *, threw: str | None = None, complete: bool = True) -> Got:
        """What the user has at the end; what was thrown does not take back what was shown."""
        text = joined("".join(step.text for step in self._steps if step.kind == "text"))
        return Got(text=text, steps=tuple(self._steps), threw=threw, complete=complete and threw is None)
