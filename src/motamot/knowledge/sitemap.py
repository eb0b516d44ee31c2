"""A site's list of its pages (sitemaps.org), or of such lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from motamot.knowledge import bounds
from motamot.knowledge.article import Unreadable

__all__ = ["Sitemap", "looks_like_one", "parse"]

_LISTED = 50_000  # addresses: the protocol's own bound


@dataclass(frozen=True, slots=True)
class Sitemap:
    """pages or sitemaps: addresses as they stand in it, in order."""

    pages: Sequence[str] = ()
    sitemaps: Sequence[str] = ()


def looks_like_one(body: bytes) -> bool:
    """Whether this is meant as a sitemap: by its first element, not by the type or the name it came under."""
    head = body[:2_048].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"<") and (b"<urlset" in head or b"<sitemapindex" in head or b":urlset" in head)


def parse(body: bytes) -> Sitemap:
    """Raises: Unreadable where it is no XML, or declares entities, which no sitemap needs and attacks do."""
    reading = _Reading()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = reading.doctype
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.data
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise Unreadable(f"is no whole sitemap: {expat.ErrorString(error.code)}, line {error.lineno}") from None
    except (ValueError, LookupError):  # an encoding that there is not
        raise Unreadable("is a sitemap in an encoding that cannot be read") from None
    return Sitemap(reading.pages, reading.sitemaps)


@dataclass(slots=True)
class _Reading:
    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    text: str = ""

    def doctype(self, *_: object) -> None:
        raise Unreadable("is a sitemap with a document type of its own, which is not read")

    def start(self, name: str, _: object) -> None:
        if len(self.path) > bounds.OPEN_TAGS:
            raise Unreadable("is a sitemap that is nested too deep")
        self.path.append(name.rpartition(" ")[2] if "image" not in name and "video" not in name else "")
        self.text = ""

    def data(self, text: str) -> None:
        if self.path and self.path[-1] == "loc" and len(self.text) <= bounds.ADDRESS_CHARACTERS:
            self.text += text

    def end(self, _: str) -> None:
        if self.path[-2:] == ["url", "loc"] and len(self.pages) < _LISTED:
            self.pages.append(self.text.strip())
        elif self.path[-2:] == ["sitemap", "loc"] and len(self.sitemaps) < bounds.SITEMAPS:
            self.sitemaps.append(self.text.strip())
        self.path.pop()
