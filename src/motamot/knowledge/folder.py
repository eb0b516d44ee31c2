"""Articles in a folder: Markdown and HTML files, wherever in it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from motamot.errors import InvalidRequest
from motamot.knowledge import bounds, html, markdown
from motamot.knowledge.article import Article, Page, Unreadable, address
from motamot.knowledge.charset import decode

__all__ = ["KINDS", "files", "read"]

_MARKDOWN = frozenset((".md", ".markdown", ".mdx", ".mdown", ".txt"))
_HTML = frozenset((".html", ".htm", ".xhtml"))
KINDS = _MARKDOWN | _HTML
_NOT_ENTERED = frozenset(("node_modules", "__pycache__", "venv"))
_INDEX = frozenset(("index", "readme", "_index"))


def files(folder: Path) -> Iterator[Path]:
    """The articles' files, in order. Hidden files and folders are left aside, and so are links.

    Raises: InvalidRequest where there is no such folder, or one with too many files.
    """
    if folder.is_file():
        if folder.suffix.lower() not in KINDS:
            raise InvalidRequest(f"{folder} is no article: Markdown ({', '.join(sorted(_MARKDOWN))}) or HTML is")
        yield folder
        return
    if not folder.is_dir():
        raise InvalidRequest(f"there is no folder or file {folder}; an address begins with https://")
    seen = 0
    for above, folders, names in os.walk(folder):
        here = Path(above)
        deep = len(here.relative_to(folder).parts)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _NOT_ENTERED and deep < bounds.FOLDERS_DEEP
        )
        seen += len(names)
        if seen > bounds.FILES:
            raise InvalidRequest(f"{folder} holds more than {bounds.FILES:,} files; name the folder of the articles")
        for name in sorted(names):
            file = here / name
            if file.suffix.lower() in KINDS and not name.startswith("."):
                yield file


def read(file: Path, root: Path, base: str | None) -> tuple[Article, tuple[str, ...]]:
    """The article in `file`, and what was odd about it.

    root: the folder that was named. base: see `url_of`. Raises: Unreadable.
    """
    body = _bytes(file)
    text, odd = decode(body)
    page = html.read(text) if file.suffix.lower() in _HTML else markdown.read(text)
    if not page.passages:
        raise Unreadable("has no text")
    under = PurePosixPath(file.relative_to(root).as_posix()) if file != root else PurePosixPath(file.name)
    article = Article(
        key=key_of(file, root),
        title=page.title or under.stem.replace("-", " ").replace("_", " "),
        url=_url(page, under, base),
        section="/".join(_name(part) for part in under.parent.parts),
        passages=page.passages,
        version=hashlib.sha256(body).hexdigest(),
    )
    return article, (*page.notes, *((odd,) if odd else ()))


def key_of(file: Path, root: Path) -> str:
    """`docs/booking.md`, however the folder was written."""
    above = root.resolve().parent if root.is_dir() else root.resolve().parent.parent
    try:
        return _name(file.resolve().relative_to(above).as_posix())
    except ValueError:  # the folder itself lies behind a link
        return _name(file.as_posix())


def _bytes(file: Path) -> bytes:
    try:
        # A pipe or a device is no article, and would never end.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("is no file", fault=False)
            body = opened.read(bounds.PAGE_BYTES + 1)
    except OSError as error:
        if file.is_symlink():
            raise Unreadable("is a link to another file", fault=False) from None
        raise Unreadable(f"cannot be read: {error.strerror or error}") from None
    if len(body) > bounds.PAGE_BYTES:
        raise Unreadable(f"has more than {bounds.PAGE_BYTES:,} bytes")
    return body


def _url(page: Page, under: PurePosixPath, base: str | None) -> str | None:
    """As the page itself says, else by `base`: `{path}` and `{file}` in it, or the path put behind it."""
    if page.url is not None or base is None:
        return page.url
    is_index = under.stem.lower() in _INDEX
    file = quote(_name(under.as_posix()))
    path = quote(_name((under.parent if is_index else under.with_suffix("")).as_posix())).removeprefix(".")
    if "{path}" in base or "{file}" in base:
        made = base.replace("{path}", path).replace("{file}", file)
        return address(made.replace("//", "/").replace(":/", "://", 1))
    behind = path if under.suffix.lower() in _MARKDOWN or is_index else file
    return address(f"{base.rstrip('/')}/{behind}")


def _name(text: str) -> str:
    """A file's name as text: one that is not UTF-8 has halves of characters in it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
