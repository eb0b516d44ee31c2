"""Learning: pages into a file, and what has changed since the last time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from motamot.errors import InvalidRequest, MotamotError
from motamot.knowledge import bounds, file, folder, site
from motamot.knowledge.article import Article, Unreadable
from motamot.knowledge.file import Kept, Numbered
from motamot.knowledge.site import Note, Read

__all__ = ["Learned", "learn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a file holds now, and how that differs from before. written: it does."""

    articles: Sequence[Numbered]
    new: Sequence[Numbered]
    changed: Sequence[Numbered]
    gone: Sequence[Numbered]
    notes: Sequence[Note]
    written: bool

    @property
    def passages(self) -> int:
        """How many all articles have together."""
        return sum(len(one.article.passages) for one in self.articles)

    @property
    def faults(self) -> int:
        """Of the notes, how many tell of something that is wrong."""
        return sum(note.fault for note in self.notes)


async def learn(
    sources: Sequence[str],
    output: Path,
    *,
    base: str | None = None,
    hosts: Sequence[str] = (),
    most: int = bounds.ARTICLES,
    seconds: float = bounds.SITE_SECONDS,
) -> Learned:
    """Read `sources` into `output`: afterwards it holds what they lead to, and nothing else.

    sources: folders, files, and addresses of pages or sitemaps. base: the address of a folder's articles, as
             `folder.read` takes it. hosts: further ones that may be read. most: articles. seconds: for all sites.
    Raises:  InvalidRequest for sources that there are not, MotamotError where nothing could be read: `output` is then
             as it was. SettingsError where `output` is another program's file, StoreError where it cannot be written.
    """
    before = file.read(output)
    addresses = [source for source in sources if "://" in source]
    found = Read()
    for source in sources:
        if "://" not in source:
            _read_folder(Path(source), base, most, found)
    if addresses:
        known = {one.article.key: one.article for one in before.articles}
        if not before.current:  # an older reader took them apart: they are fetched, and read, again
            known = {key: replace(article, version="", etag="", modified="") for key, article in known.items()}
        room = max(most - len(found.articles), 0)
        read = await site.read(addresses, hosts=hosts, known=known, most=room, seconds=seconds)
        found.articles += read.articles
        found.notes += read.notes
        found.unsure |= read.unsure
        found.gone |= read.gone
    _keep_unseen(found, before)
    chosen = _chosen(found)
    if not chosen:
        raise MotamotError("\n".join(["no article could be read; nothing was written", *_lines(found.notes)]))
    return _written(output, before, chosen, found.notes)


def _lines(notes: Sequence[Note]) -> list[str]:
    return [f"{note.what[:200]} {note.why}" for note in notes[:20]]


def _read_folder(path: Path, base: str | None, most: int, found: Read) -> None:
    root = folder.key_of(path, path) if path.is_file() else path.resolve().name
    for number, one in enumerate(folder.files(path)):
        if len(found.articles) >= most:
            raise InvalidRequest(f"there are more than {most:,} articles (--max-pages); file {number + 1} is {one}")
        try:
            article, notes = folder.read(one, path, base)
        except Unreadable as error:
            found.notes.append(Note(str(one), error.why, error.fault))
            continue
        found.articles.append((article, root))
        found.notes += [Note(str(one), why, fault=False) for why in notes]


def _keep_unseen(found: Read, before: Kept) -> None:
    """What was known of a source that could not be read whole may still be there: it stays."""
    seen = {article.key for article, _ in found.articles} | found.gone
    for one in before.articles:
        if one.root in found.unsure and one.article.key not in seen:
            found.articles.append((one.article, one.root))


def _chosen(found: Read) -> Mapping[str, tuple[Article, str]]:
    """Each article once: the same key, or the same text at another address, is told and left out."""
    chosen: dict[str, tuple[Article, str]] = {}
    texts: dict[str, str] = {}
    size = 0
    for article, root in found.articles:
        twin = texts.setdefault(article.text_digest, article.key)
        if article.key in chosen:
            if chosen[article.key][0].text_digest != article.text_digest:
                found.notes.append(Note(article.key, "is the name of two articles (in two folders?): one is taken"))
            continue
        if twin != article.key:
            found.notes.append(Note(article.key, f"has the same text as {twin}", fault=False))
            continue
        size += sum(len(one.text) for one in article.passages)
        if size > bounds.TEXT_CHARACTERS:
            found.notes.append(Note("the rest", f"was left out: {bounds.TEXT_CHARACTERS:,} characters are the most"))
            break
        chosen[article.key] = (article, root)
    return chosen


def _written(output: Path, before: Kept, chosen: Mapping[str, tuple[Article, str]], notes: Sequence[Note]) -> Learned:
    known = {one.article.key: one for one in before.articles}
    articles: list[Numbered] = []
    new: list[Numbered] = []
    changed: list[Numbered] = []
    following = before.next
    for key, (article, root) in chosen.items():
        if (old := known.get(key)) is None:
            numbered = Numbered(following, article, root)
            following += 1
            new.append(numbered)
        else:
            numbered = Numbered(old.number, article, root)
            if article.digest != old.article.digest:
                changed.append(numbered)
        articles.append(numbered)
    articles.sort(key=lambda one: one.number)
    gone = [one for one in before.articles if one.article.key not in chosen]
    written = list(before.articles) != articles or not before.current or not output.exists()
    if written:
        file.write(output, Kept(articles, following, file=before.file))
    return Learned(articles=articles, new=new, changed=changed, gone=gone, notes=notes, written=written)
