"""Folders into a file, again and again: what is there is known, each article keeps its number, nothing is half done."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from motamot.errors import InvalidRequest, MotamotError, SettingsError, StoreError
from motamot.knowledge import bounds, file, library
from motamot.knowledge.file import Kept
from tests.knowledge.support import learned, notes, numbers, write
from tests.store.conftest import make_read_only, tiny_disk

__all__ = ["make_read_only", "tiny_disk"]


def titles(output: Path, query: str) -> list[str]:
    return list(dict.fromkeys(hit.title for hit in library.search(output, query)))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "help.db"


def test_a_folder_is_read_whole(tmp_path: Path, output: Path) -> None:
    told = learned(write(tmp_path), output=output, base="https://bus.example/")
    assert [(one.number, one.article.key, one.article.title, one.article.url) for one in told.articles] == [
        (1, "help/bikes.html", "Bicycles", "https://bus.example/bikes.html"),
        (2, "help/booking.md", "Booking a seat", "https://bus.example/booking"),
        (3, "help/refunds.md", "Getting your money back", "https://bus.example/refunds"),
        (4, "help/fr/annuler.md", "Annuler une réservation", "https://bus.example/fr/annuler"),
    ]
    assert (told.passages, len(told.new), told.written, told.notes) == (6, 4, True, [])


@pytest.mark.parametrize(
    ("base", "name", "url"),
    [
        (None, "a/b.md", None),
        ("https://h.example", "a/b.md", "https://h.example/a/b"),
        ("https://h.example/docs/", "a/b.html", "https://h.example/docs/a/b.html"),
        ("https://h.example", "a/index.md", "https://h.example/a"),
        ("https://h.example", "README.md", "https://h.example/"),
        ("https://h.example/{path}/", "a/b.md", "https://h.example/a/b/"),
        ("https://h.example/{path}/", "index.html", "https://h.example/"),
        ("https://h.example/blob/{file}?plain=1", "a/b.md", "https://h.example/blob/a/b.md?plain=1"),
        ("https://h.example", "réserver ça.md", "https://h.example/r%C3%A9server%20%C3%A7a"),
    ],
)
def test_addresses_come_from_the_base(
    tmp_path: Path, output: Path, base: str | None, name: str, url: str | None
) -> None:
    [one] = learned(write(tmp_path, {name: "# T\n\ntext"}), output=output, base=base).articles
    assert one.article.url == url


def test_run_again_nothing_changes_and_the_file_is_left_alone(tmp_path: Path, output: Path) -> None:
    root = write(tmp_path)
    learned(root, output=output)
    before = output.stat()
    again = learned(f"{root}/../help/", output=output)
    assert (again.written, again.new, again.changed, again.gone) == (False, [], [], [])
    assert output.stat() == before


def test_numbers_stay_with_their_articles_and_are_given_once(tmp_path: Path, output: Path) -> None:
    root = write(tmp_path)
    first = numbers(learned(root, output=output))
    (root / "booking.md").write_text("# Booking a seat\n\nBy telephone now.")
    (root / "bikes.html").unlink()
    (root / "aaa.md").write_text("# First of all\n\nNew.")
    told = learned(root, output=output)
    assert [one.article.key for one in told.changed] == ["help/booking.md"]
    assert [one.article.key for one in told.gone] == ["help/bikes.html"]
    assert numbers(told) == {key: first[key] for key in first if "bikes" not in key} | {"help/aaa.md": 5}
    (root / "aaa.md").unlink()
    learned(root, output=output)
    (root / "bbb.md").write_text("# Later\n\nNew.")
    assert numbers(learned(root, output=output))["help/bbb.md"] == 6
    assert titles(output, "telephone") == ["Booking a seat"] and titles(output, "bicycle") == []


def test_what_another_one_has_written_meanwhile_is_not_overwritten(
    tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path)
    other = write(tmp_path / "other", {"one.md": "# Another page\n\nOther words."})
    for before in (None, root):
        if before is not None:
            learned(before, output=output)
            (root / "new.md").write_text("# New\n\nSince then.")
        read = file.read

        def overtaken(path: Path, read: Callable[[Path], Kept] = read) -> Kept:
            kept = read(path)
            monkeypatch.setattr(file, "read", read)
            one = threading.Thread(target=lambda: learned(other, output=output))
            one.start()
            one.join()
            return kept

        monkeypatch.setattr(file, "read", overtaken)
        with pytest.raises(StoreError, match="written by another `motamot learn` meanwhile; run this one again"):
            learned(root, output=output)
        assert titles(output, "other words") == ["Another page"]
        output.unlink()


def test_the_file_holds_what_the_sources_lead_to_and_nothing_else(tmp_path: Path, output: Path) -> None:
    root = write(tmp_path)
    learned(root, output=output)
    told = learned(root / "fr", root / "booking.md", output=output)
    assert sorted(numbers(told)) == ["fr/annuler.md", "help/booking.md"]


def test_two_folders_of_one_name_are_told_and_one_folder_named_twice_is_not(tmp_path: Path, output: Path) -> None:
    one = write(tmp_path / "one", {"a.md": "# A\n\ntext", "b.md": "# B\n\ntext of b"})
    two = write(tmp_path / "two", {"a.md": "# Another\n\ntext of another"})
    told = learned(one, two, output=output)
    assert [note.why for note in told.notes] == ["is the name of two articles (in two folders?): one is taken"]
    assert told.faults == 1 and sorted(numbers(told)) == ["help/a.md", "help/b.md"]
    assert learned(one, one, output=output).notes == []


def test_whoever_reads_the_old_file_goes_on_and_the_next_one_reads_the_new(tmp_path: Path, output: Path) -> None:
    root = write(tmp_path, {f"{n}.md": f"# Page {n}\n\nAlways perpetual, {n} times." for n in range(50)})
    learned(root, output=output)
    ended = threading.Event()
    found: list[int] = []
    failed: list[BaseException] = []

    def ask() -> None:
        while not ended.is_set():
            try:
                found.append(len(library.search(output, "perpetual")))
            except Exception as error:  # noqa: BLE001 - told by the test's own thread
                failed.append(error)

    with file.connect(output) as connection:
        asking = threading.Thread(target=ask)
        asking.start()
        for round_ in range(5):
            (root / f"new{round_}.md").write_text(f"# New {round_}\n\nAlso perpetual, round {round_}.")
            learned(root, output=output)
        ended.set()
        asking.join()
        assert connection.execute("SELECT count(*) FROM articles").fetchone() == (50,), "the old one, still"
    assert failed == [] and len(found) > 5 and set(found) == {bounds.PASSAGES}
    assert titles(output, "round 4")[0] == "New 4"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []


def test_what_a_killed_run_left_is_removed_later_and_what_another_one_writes_is_not(
    tmp_path: Path, output: Path
) -> None:
    left, fresh, other = (tmp_path / name for name in (".help.db.a1b2.new", ".help.db.c3d4.new", ".other.db.a1b2.new"))
    for path in (left, fresh, other):
        path.write_bytes(b"half a file")
    for path in (left, other):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    learned(write(tmp_path), output=output)
    assert [path.exists() for path in (left, fresh, other, output)] == [False, True, True, True]


def test_a_link_to_the_file_stays_one_and_its_rights_stay_too(tmp_path: Path, output: Path) -> None:
    root = write(tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir()
    output.symlink_to(kept / "real.db")
    learned(root, output=output)
    (kept / "real.db").chmod(0o640)
    (root / "new.md").write_text("# New\n\ntext")
    learned(root, output=output)
    assert output.is_symlink() and (kept / "real.db").stat().st_mode & 0o777 == 0o640


# What is left out


def test_what_is_no_article_is_left_aside_and_what_cannot_be_read_is_told(tmp_path: Path, output: Path) -> None:
    root = write(
        tmp_path,
        {
            "good.md": "# Good\n\ntext",
            "picture.png": b"\x89PNG",
            ".hidden.md": "# Hidden\n\ntext",
            ".git/config.md": "# Hidden\n\ntext",
            "node_modules/x/README.md": "# Not mine\n\ntext",
            "binary.md": bytes(range(256)),
            "huge.md": b"# Huge\n\n" + b"a" * bounds.PAGE_BYTES,
            "empty.md": "",
            "title.md": "# Only a title",
            "draft.md": "---\ndraft: true\n---\n# Draft\n\ntext",
            "twin.md": "# Good\n\ntext",
            "latin.html": "<meta charset=utf-8><p>réservé".encode("latin-1"),
        },
    )
    (root / "secret.txt").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe.md")
    told = learned(root, output=output)
    assert sorted(numbers(told)) == ["help/good.md", "help/latin.html"]
    assert sorted(notes(told)) == [
        "binary.md is no text",
        "draft.md is a draft, as its frontmatter says",
        "empty.md has no text",
        "huge.md has more than 4,000,000 bytes",
        "latin.html says that it is in utf-8, and was read as Windows-1252",
        "pipe.md is no file",
        "secret.txt is a link to another file",
        "title.md has no text",
        "twin.md has the same text as help/good.md",
    ]
    assert told.faults == 4, "what is empty, huge or no text"


def test_a_file_that_is_not_there_names_the_way_out(tmp_path: Path, output: Path) -> None:
    with pytest.raises(InvalidRequest, match="there is no folder or file"):
        learned(tmp_path / "nothing", output=output)
    with pytest.raises(InvalidRequest, match="no article"):
        learned(write(tmp_path, {"a.pdf": b"%PDF"}) / "a.pdf", output=output)
    assert not output.exists()


def test_where_nothing_can_be_read_nothing_is_written(tmp_path: Path, output: Path) -> None:
    root = write(tmp_path)
    learned(root, output=output)
    before = output.read_bytes()
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "binary.md").write_bytes(b"\x00" * 100)
    with pytest.raises(MotamotError, match=r"no article could be read(.|\n)*binary\.md is no text"):
        learned(empty, output=output)
    assert output.read_bytes() == before


def test_more_articles_than_the_bound_are_told(tmp_path: Path, output: Path) -> None:
    with pytest.raises(InvalidRequest, match="more than 3 articles"):
        learned(write(tmp_path), output=output, most=3)


@pytest.mark.parametrize("kind", ["text", "database", "newer"])
def test_another_programs_file_is_never_written_over(tmp_path: Path, output: Path, kind: str) -> None:
    if kind == "text":
        output.write_text("my notes " * 1_000)
    else:
        with sqlite3.connect(output) as connection:
            connection.execute("CREATE TABLE mine (x)")
            if kind == "newer":
                connection.execute("PRAGMA application_id = 1836020844")
                connection.execute("PRAGMA user_version = 99")
        connection.close()
    before = output.read_bytes()
    with pytest.raises(SettingsError):
        learned(write(tmp_path), output=output)
    assert output.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    root = write(tmp_path)
    with pytest.raises(StoreError, match="cannot be written"):
        learned(root, output=tmp_path / "missing" / "help.db")


def test_a_socket_is_no_article(tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, {"a.md": "# A\n\ntext"})
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s.md")
        told = learned(root, output=output)
    assert sorted(numbers(told)) == ["help/a.md"]


# Searching


@pytest.mark.parametrize("query", ["réserver", "reserver", "RÉSERVATION", "re\u0301servations", "réservé"])
def test_french_words_are_found_in_all_their_forms_and_without_accents(
    tmp_path: Path, output: Path, query: str
) -> None:
    learned(write(tmp_path), output=output)
    assert titles(output, query) == ["Annuler une réservation"]


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("refund", "Getting your money back"),
        ("Where are the refunds?", "Getting your money back"),
        ("bicycles", "Bicycles"),
        ("how do I book", "Booking a seat"),
        ("bicyc", "Bicycles"),
        ("rembourser", "Annuler une réservation"),
    ],
)
def test_words_are_found_in_their_forms(tmp_path: Path, output: Path, query: str, title: str) -> None:
    learned(write(tmp_path), output=output)
    assert titles(output, query)[0] == title


@pytest.mark.parametrize(
    "query",
    [
        'AND NEAR( " * ^',
        "NOT",
        '"',
        "title:seat OR -",
        "seat*",
        "(((",
        "a AND (b OR",
        "'; DROP TABLE articles; --",
        "\x00\ud800",
        "{title text}: seat",
        "+",
        "",
        " ",
        "🚌",
        "x" * 100_000,
        "word " * 50_000,
    ],
)
def test_no_query_raises_whatever_it_holds(tmp_path: Path, output: Path, query: str) -> None:
    learned(write(tmp_path), output=output)
    library.search(output, query)


def test_two_passages_of_an_article_are_the_most(tmp_path: Path, output: Path) -> None:
    long = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\nThe word ferry, part {n}." for n in range(20))
    learned(write(tmp_path, {"long.md": long, "short.md": "# Short\n\nOne ferry."}), output=output)
    assert sorted(hit.title for hit in library.search(output, "ferry")) == ["Long", "Long", "Short"]


def test_a_passage_that_two_pages_hold_is_given_once(tmp_path: Path, output: Path) -> None:
    pages = {
        "a.md": "# Ferry\n\nThe ferry sails.",
        "all.md": "# All\n\n## Ferry\n\nThe ferry sails.\n\n## Bus\n\nIt goes.",
    }
    learned(write(tmp_path, pages), output=output)
    assert [hit.title for hit in library.search(output, "ferry")] == ["Ferry"]


def test_the_overview_keeps_its_budget_names_every_section_and_says_what_is_left_out(
    tmp_path: Path, output: Path
) -> None:
    pages = {
        f"en/{section}/{n}.md": f"# {section} page {n}\n\ntext {section} {n}" for section in "abc" for n in range(100)
    }
    learned(write(tmp_path, pages), output=output)
    told = library.Pages(output, overview_tokens=200).instructions()
    overview = told.partition("The pages, by title:")[2]
    assert len(overview) / 4 < 200
    assert all(f"\n{section}:\n- {section} page" in overview for section in "abc")
    shown = overview.count("\n- ")
    assert f"… and {300 - shown} more, which are not listed" in overview
    assert "The pages, by title" not in library.Pages(output, overview_tokens=0).instructions()
    assert "more, which" not in library.Pages(output, overview_tokens=100_000).instructions()
