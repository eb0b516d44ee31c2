"""HTML that is safe by construction: whatever is a string is text, and only `el` makes markup.

No template and no string of markup is ever put together by hand, so what a stranger or a model wrote cannot become any.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

__all__ = ["Child", "Html", "bdi", "el", "join", "written"]

_VOID = frozenset(("br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "polyline", "rect"))
_ADDRESSES = frozenset(("action", "formaction", "href", "src"))
_ADDRESS = re.compile(r"https?://|(?!//)[./A-Za-z0-9_-]?[^:\\?#\x00-\x20]*([?#][^\\]*)?\Z", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")

# What would be obeyed, or not be seen: controls, line separators, zero widths, directions of writing, tags. Joiners
# (U+200C, U+200D) and plain marks of direction stay: scripts and emoji need them, and `dir` keeps them to their place.
_STRANGE = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f])\\1*"
)


class Html:
    """Markup. Made by `el` alone; not a string, so that neither is taken for the other."""

    __slots__ = ("_markup",)

    def __init__(self, markup: str) -> None:
        self._markup = markup

    def __str__(self) -> str:
        return self._markup


Child: TypeAlias = "str | int | Html | Iterable[Child] | None"


def _inside(children: Iterable[Child]) -> str:
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child._markup)
        elif isinstance(child, str):
            parts.append(html.escape(child, quote=False))
        elif isinstance(child, int):
            parts.append(str(child))
        elif child is not None:
            parts.append(_inside(child))
    return "".join(parts)


@cache
def _named(name: str) -> str:
    """An attribute's name in HTML. Names are those of our code: there are only so many."""
    name = name.rstrip("_").replace("_", "-")
    if name == "style" or name.startswith("on") or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no attribute for these pages")
    return name


def _attribute(name: str, value: str | int | bool | None) -> str:
    name = _named(name)
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = str(value)
    if name in _ADDRESSES and not _ADDRESS.match(text):
        raise ValueError(f"{name} is to be a relative address, or one of http or https")
    return f' {name}="{html.escape(text)}"'


def el(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """An element. children: strings become text, whatever is in them; None is nothing.

    attributes: `class_="x"`, `aria_label="x"`; True: without a value; None and False: not at all.
    Raises:     ValueError for a style, an event handler, or an address that a browser might run.
    """
    head = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{head}>" if name in ("br", "hr", "img", "input", "link", "meta") else f"<{name}{head}/>")
    return Html(f"<{name}{head}>{_inside(children)}</{name}>")


def join(*children: Child) -> Html:
    """Several as one, with nothing around."""
    return Html(_inside(children))


def written(text: str, most: int | None = None) -> list[Child]:
    """What a stranger, a model or a tool wrote, as text: what would be obeyed or not be seen is shown by its number.

    most: characters shown; of a longer text, its beginning, and how much is left out.
    """
    shown = text if most is None else text[:most]
    parts: list[Child] = []
    at = 0
    for found in _STRANGE.finditer(shown):
        times = f" ×{len(found[0])}" if len(found[0]) > 1 else ""
        parts += [shown[at : found.start()], el("span", f"U+{ord(found[1]):04X}{times}", class_="sign")]
        at = found.end()
    parts.append(shown[at:])
    if len(shown) < len(text):
        parts.append(el("span", f" … +{len(text) - len(shown):,}", class_="sign"))
    return parts


def bdi(text: str, most: int | None = None) -> Html:
    """`written` within a line: its direction of writing stays within it."""
    return el("bdi", *written(text, most))
