"""Articles in Markdown: title, address and passages, whoever wrote them."""

from __future__ import annotations

import time

import pytest

from motamot.knowledge import bounds, markdown
from motamot.knowledge.article import Page, Passage, Unreadable


def read(text: str) -> Page:
    return markdown.read(text)


def shown(text: str) -> list[tuple[str, str]]:
    return [(one.headings, one.text) for one in read(text).passages]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: From the front\n---\n# First\n\ntext", "From the front"),
        ("+++\ntitle = 'From TOML'\n+++\n# First\n\ntext", "From TOML"),
        ("\ufeff---\r\ntitle: With a mark\r\n---\r\ntext", "With a mark"),
        ("Some words.\n\n# First\n\ntext\n\n# Second\n\ntext", "First"),
        ("First\n=====\n\ntext", "First"),
        ("## Only a second level\n\ntext", "Only a second level"),
        ("# The `code` and [a *link*](https://x.example) ##\n\ntext", "The code and a link"),
        ("# Réserver {#reserver}\n\ntext", "Réserver"),
        ("```sh\n# no title\n```\n\n# Title\n\ntext", "Title"),
        ("---\ntitle: [not, text]\n---\n# First\n\ntext", "First"),
        ("---\nno frontmatter: [\n---\n# First\n\ntext", "First"),
        ("text alone", ""),
    ],
)
def test_the_title_is_the_frontmatters_else_the_first_heading(text: str, title: str) -> None:
    assert read(text).title == title


@pytest.mark.parametrize(
    ("front", "url"),
    [
        ("url: https://help.example/a", "https://help.example/a"),
        ("permalink: https://help.example/b", "https://help.example/b"),
        ("url: /relative", None),
        ("url: javascript:alert(1)", None),
        ("url: https://user:secret@help.example/", None),
        ("url: 7", None),
    ],
)
def test_an_absolute_address_in_the_frontmatter_counts(front: str, url: str | None) -> None:
    assert read(f"---\n{front}\n---\ntext").url == url


@pytest.mark.parametrize("front", ["draft: true", "published: false"])
def test_a_draft_is_not_read_and_that_is_no_fault(front: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(f"---\n{front}\n---\n# Secret plans\n\ntext")
    assert not caught.value.fault


@pytest.mark.parametrize(
    "front",
    ["title: [", "a: !!bool x", "a: !!timestamp x", "a: !!int ''", "a: !!float ''", "a: 2001-02-30", "? [1]\n: x"],
)
def test_a_frontmatter_that_cannot_be_read_is_said_and_costs_nothing_else(front: str) -> None:
    page = read(f"---\n{front}\n---\n# Title\n\ntext")
    assert (page.title, len(page.passages), len(page.notes)) == ("Title", 1, 1)


def test_passages_are_sections_with_the_path_to_them() -> None:
    text = "# Guide\n\nHello.\n\n## Install\n\nOne.\n\nTwo.\n\n### On Windows\n\nThree.\n\n## Use\n\nFour."
    assert shown(text) == [
        ("", "Hello."),
        ("Install", "One.\n\nTwo."),
        ("Install › On Windows", "Three."),
        ("Use", "Four."),
    ]


def test_a_rule_is_no_heading_and_neither_is_a_list_above_one() -> None:
    assert shown("# T\n\nOne.\n\n---\n\n- item\n---\nTwo.") == [("", "One.\n\n---\n\n- item\n---\nTwo.")]


def test_code_stays_as_it_is() -> None:
    text = "# T\n\n```python\n# no heading\n\n<b>x</b>  # and no tag taken out\n```"
    assert shown(text) == [("", "```python\n# no heading\n\n<b>x</b>  # and no tag taken out\n```")]


def test_tags_and_comments_are_no_text_of_the_article() -> None:
    text = '# T\n\n<p align="center">Hello <b>you</b></p>\n\nA List<String>, 1 < 2. <!-- note\nto self --> End `<!--`.'
    assert shown(text) == [("", "Hello you\n\nA List<String>, 1 < 2. \n End `<!--`.")]


def test_a_long_section_is_cut_between_paragraphs_and_no_passage_is_longer_than_the_bound() -> None:
    paragraphs = [f"Paragraph {number}. " + "word " * 80 for number in range(20)]
    found = read("# T\n\n" + "\n\n".join(paragraphs)).passages
    assert len(found) > 5 and all(len(one.text) <= bounds.PASSAGE_CHARACTERS for one in found)
    joined = "\n\n".join(one.text for one in found)
    assert [line for line in joined.split("\n") if line] == [paragraph.rstrip() for paragraph in paragraphs] or all(
        paragraph.split(".")[0] in joined for paragraph in paragraphs
    )


def test_a_paragraph_without_end_is_cut_at_its_sentences_and_loses_no_word() -> None:
    words = [f"word{number}" + ("." if number % 12 == 0 else "") for number in range(2_000)]
    found = read(" ".join(words)).passages
    assert " ".join(one.text for one in found).split() == words
    assert found[0].text.endswith(".")


def test_headings_without_text_make_no_passage() -> None:
    assert read("# One\n\n## Two\n\n### Three\n").passages == ()


@pytest.mark.parametrize(
    "text",
    [
        "#" * 1_000_000,
        "[" * 1_000_000,
        "`" * 1_000_000,
        "<!--" * 250_000,
        "<" * 1_000_000,
        "* " * 500_000,
        "# [a](" * 150_000,
        "---\n" * 250_000,
        "```\n" * 250_000,
        "a\n=\n" * 250_000,
        "<!---->" * 150_000,
        "# " + " " * 1_000_000 + "x",
        "# " + " #" * 500_000 + "x",
        "---\n" + "a: &a [" * 5_000 + "\n---\ntext",
        "---\na: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n" * 3 + "---\ntext",
    ],
    ids=range(15),
)
def test_hostile_files_take_no_long_time(text: str) -> None:
    began = time.thread_time()
    try:
        read(text)
    except Unreadable as error:
        assert "seconds" in error.why
    assert time.thread_time() - began < bounds.PAGE_CPU_SECONDS + 5


def test_what_nobody_sees_is_taken_out() -> None:
    assert read("# T\n\na\u202eb\u200bc\x07d").passages == (Passage("", "abcd"),)
