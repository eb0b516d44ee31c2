"""The wire against the page, without a browser: what each loss is called, and what is none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.exam.compare import Compared, compare
from motamot.exam.page import Heard, Look
from motamot.exam.page_faults import PAGE_FAULTS
from motamot.findings import Promise
from motamot.tape import Piece, Request, Tape
from tests.exam.support import ANSWER, writes

BEGAN = 1_000.0
RENDERED = (
    "Over Am – F – C – G, for each chord:\n\n"
    "Am → arpeggio Am, play A Aeolian.\nF → arpeggio F, play F Ionian.\n"
    "C → arpeggio C, play C Ionian.\nG → arpeggio G, play G Ionian.\n\n"
    "Each arpeggio spells the chord tones; the scale adds the notes between them."
)
MARKS = (
    *(
        "word ",
        "é",
        "中文 ",
        "🎸",
        "\n",
        "\n\n",
        "    ",
        "- ",
        "1. ",
        "- [ ] ",
        "# ",
        "> ",
        "| a | b |\n",
        "|---|---|\n",
    ),
    *("**", "_", "~~", "`", "```", "```py\n", "```mermaid\n", "[a](b)", "![x](y)", "[^1]", "[^1]: ", "[a]: http://h/ "),
    *(
        "$$",
        "$x^2$",
        "$",
        "\\(",
        "\\)",
        "<b>",
        "</b>",
        "<!-- ",
        " -->",
        "3 < 4 > 2 ",
        "&amp;",
        "& ",
        "---",
        '"q"',
        "\\",
    ),
)
ITEMS = "- one apple\n- two pears\n- three plums"


def looks(*texts: str) -> tuple[Look, ...]:
    return tuple(Look(f"div#{number}", text, ((BEGAN + 1, len(text)),)) for number, text in enumerate(texts))


def compared(text: str, *shown: str, wire: bytes = b"", asked: int = 1, named: bool = False) -> Compared:
    tape = Tape(pieces=(Piece(0.5, wire or writes(text)),), request=Request(url="http://h/stream"))
    return compare(Heard(tape=tape, began=BEGAN, looks=looks(*shown), asked=asked, named=named), text)


def found(text: str, *shown: str, wire: bytes = b"") -> list[str]:
    return [finding.id for finding in compared(text, *shown, wire=wire).findings]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ANSWER, RENDERED),
        (ANSWER, ANSWER),  # a page that shows Markdown as it is written
        (ANSWER, ANSWER.replace("\n", "\r\n")),
        ("a [link](http://example.org/some/page) here", "a link here"),
        ("![a picture](x.png) and words", "and words"),
        ("1. first\n2. second", "first\nsecond"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("a [link](http://example.org/page) here\n\nand more", "a [link](http://example.org/page) here\n\nand more"),
        ("```python\nprint('x')\n```\nand so on", "print('x')\nand so on"),
        ("```mermaid\ngraph TD; A-->B\n```\nis a graph", "is a graph"),
        ("| a | b |\n|---|---|\n| c | d |", "a\tb\nc\td"),
        ("a soft\nline break", "a soft line break"),
        ("Energy is $E = m c^2$ of course", "Energy is E=mc2E = m c^2 of course"),
        ("it costs $5 and $6", "it costs $5 and $6"),
        ("fish &amp; chips", "fish & chips"),
        ("- [x] done\n- [ ] open", "done\nopen"),
        ("**bold**text and <b>markup</b>", "boldtext and markup"),
        ("the word undefined is a word", "the word undefined is a word"),
        ("Say `data: x` and [DONE]", "Say data: x and [DONE]"),
        ("ha ha ha ha ha ha ha ha ha ha ha ha", "ha ha ha ha ha ha ha ha ha ha ha ha"),
        ('![a](x.png) and &copy; &amp; "quotes"', '![a](x.png) and &copy; &amp; "quotes"'),
        ('a [link](http://h/a_b(c)?x=1 "title") here', "a link here"),
        ("So:\n\n> quoted one\n> quoted two", "So:\n\nquoted one quoted two"),
        ("So:\n\n> quoted\n>\n> - one\n> - two", "So:\n\nquoted\n\none\ntwo"),
    ],
)
def test_what_markdown_and_pages_leave_out_by_right_is_no_loss(text: str, shown: str) -> None:
    assert found(text, shown) == []


@pytest.mark.parametrize(
    ("text", "shown", "names"),
    [
        (ANSWER, RENDERED.replace("F → arpeggio F, play F Ionian.\n", ""), ["page-text-missing"]),
        (ANSWER, RENDERED[:120], ["page-text-missing"]),
        (ITEMS, "one apple two pears three plums", ["page-lines-joined"]),
        (ITEMS, ITEMS.replace("\n", " "), ["page-lines-joined"]),
        ("1. first\n2. second", "1. first 2. second", ["page-lines-joined"]),
        ("One paragraph.\n\nAnother one.", "One paragraph. Another one.", ["page-lines-joined"]),
        ("| a | b |\n|---|---|\n| c | d |", "a b c d", ["page-lines-joined"]),
        ("the note Q. To create it", "the note Q.To create it", ["page-words-glued"]),
        ("all the spaces are gone", "allthespacesaregone", ["page-words-glued"]),
        ("So:\n\n> - one\n> - two", "So:\n\none two", ["page-lines-joined"]),
        ("So:\n\n> quoted\n>\n> more", "So:\n\nquoted more", ["page-lines-joined"]),
        ("```py\nx = 1\ny = 2\n```", "```py x = 1 y = 2 ```", ["page-lines-joined"]),
        ("an answer of some length", "an answer of some lengthan answer of some length", ["page-text-doubled"]),
        ("Hello there you all", "undefinedHello there you all", ["page-placeholder-shown"]),
        ("a café and a crème", "a caf\ufffd\ufffd and a crème", ["page-text-missing", "page-broken-characters"]),
    ],
)
def test_each_loss_has_a_name(text: str, shown: str, names: list[str]) -> None:
    assert found(text, shown) == names


def test_items_that_stand_in_one_line_are_counted() -> None:
    [finding] = compared(ANSWER, RENDERED.replace("\n", " ")).findings
    assert finding.message == (
        "5 breaks between lines of the answer are not on the page: of 4 list items 0 begin a line there"
    )
    assert (
        finding.evidence[1].quote
        == "**Am** → arpeggio **Am**, play **A Aeolian**. **F** → arpeggio **F**, play **F Ionian**."
    )


@given(st.lists(st.integers(1, len(ANSWER) - 1), max_size=80))
def test_an_answer_each_piece_of_which_is_appended_twice_is_doubled_and_not_missing(cuts: list[int]) -> None:
    text = ANSWER.replace("**", "")
    ends = [*sorted(set(cuts)), len(text)]
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    shown = "You asked: and? " + "".join(piece + piece for piece in pieces) + " Copy"
    assert found(text, shown) == ["page-text-doubled"]


def test_half_of_an_answer_doubled_is_not_taken_for_all_of_it() -> None:
    words = ["It", "left", "the", "warehouse", "this", "morning", "and", "comes", "tomorrow"]
    shown = " ".join(f"{word} {word}" for word in words[:4]) + " this morning"
    assert "page-text-missing" in found(" ".join(words), shown)


def test_a_text_of_one_letter_does_not_hold_up_the_comparison() -> None:
    began = time.monotonic()
    found("a" * 100_000 + "b", "a" * 200_001)
    found("ab" * 50_000 + "c", "ab" * 100_000 + "cd")
    assert time.monotonic() - began < 10


def test_what_is_missing_is_quoted_from_its_first_word() -> None:
    [finding] = compared("It left the warehouse this morning", "It left the").findings
    assert finding.evidence[0].quote == "warehouse this morning"


class TestTheWireOnThePage:
    ERROR = '{"error":"Failed to process message."}'

    def test_an_error_object_in_a_bubble_is_an_error_shown(self) -> None:
        got = compared("", "chat " + self.ERROR, self.ERROR, wire=writes(self.ERROR))
        [finding] = got.findings
        assert (finding.id, finding.fault.promise, finding.message.split()[-3]) == (
            "page-error-shown",
            Promise.SAFE,
            "div#1",
        )

    def test_an_error_that_is_said_in_words_is_none(self) -> None:
        assert found("", "Request failed: Failed to process message.", wire=writes(self.ERROR)) == []

    def test_an_answer_that_is_json_is_no_error(self) -> None:
        assert found(self.ERROR, self.ERROR, wire=writes(self.ERROR)) == []

    @pytest.mark.parametrize(
        ("shown", "what"),
        [
            ("Hello you [DONE]", "[DONE]"),
            ("Hello you\ndata: Hello", "data:"),
            ('{"choices":[{"delta":{"content":"Hello you"}}]}', "the JSON of an event"),
        ],
    )
    def test_what_is_for_the_reader_alone_is_named(self, shown: str, what: str) -> None:
        wire = b'data: {"choices":[{"delta":{"content":"Hello you"}}]}\n\ndata: [DONE]\n\n'
        [finding] = compared("Hello you", shown, wire=wire).findings
        assert finding.id == "page-wire-shown"
        assert finding.message.startswith(what)


class TestThePlace:
    def test_the_smallest_element_that_holds_the_answer_is_read(self) -> None:
        assert compared("word for word", "You: hi\nword for word\nSend", "word for word").where == "div#1"

    def test_a_question_that_holds_the_answers_words_does_not_mislead(self) -> None:
        got = compared("the sky is blue because of light", "why is the sky blue", "the sky is blue because of light")
        assert (got.where, got.findings) == ("div#1", ())

    def test_where_nothing_is_like_it_that_is_said_and_nothing_judged(self) -> None:
        got = compared("word for word", "Loading", "Menu")
        assert (got.where, got.findings) == ("", ())
        assert "--answer SELECTOR" in got.reasons[0]

    def test_a_named_place_is_read_whatever_it_holds(self) -> None:
        assert [one.id for one in compared("word for word", "Loading", named=True).findings] == ["page-text-missing"]

    @pytest.mark.parametrize(
        ("ended_at", "named", "why"),
        [
            (1.0, False, "the page was gone when the answer had ended, or did not respond"),
            (1.0, True, "no element fits --answer"),
            (None, False, "the answer had not ended when the visit did"),
        ],
    )
    def test_what_was_not_seen_is_not_judged(self, ended_at: float | None, named: bool, why: str) -> None:
        tape = Tape(pieces=(Piece(0.5, writes("word for word")),), ended_at=ended_at)
        got = compare(Heard(tape=tape, began=BEGAN, named=named), "word for word")
        assert (got.findings, got.reasons) == ((), (f"what the page shows: {why}",))


def test_a_page_that_asks_twice_is_told() -> None:
    [finding] = compared("hello", "hello", asked=3).findings
    assert (finding.id, finding.times) == ("page-asked-twice", 2)


def test_news_without_an_answer_may_be_asked_for_again() -> None:
    assert compared("", "hello", wire=b": nothing new\n\n", asked=3).findings == ()


class TestAtOnce:
    """Ten reads over nine seconds."""

    TEXT = "one two three four five six seven eight nine ten"

    def live(self, *samples: tuple[float, int], totals: tuple[tuple[float, int], ...] = ()) -> Compared:
        pieces = tuple(Piece(float(at), writes(word)) for at, word in enumerate(self.TEXT.split()))
        look = Look("div", self.TEXT, tuple((BEGAN + at, length) for at, length in samples))
        heard = Heard(
            tape=Tape(pieces=pieces), began=BEGAN, looks=(look,), totals=tuple((BEGAN + at, n) for at, n in totals)
        )
        return compare(heard, self.TEXT)

    def test_what_grows_as_the_wire_does_is_live(self) -> None:
        got = self.live(*((at + 0.1, 5 * (at + 1)) for at in range(10)))
        assert (got.findings, got.reasons) == ((), ())

    def test_what_comes_when_all_is_there_is_at_once(self) -> None:
        [finding] = self.live((9.2, 48)).findings
        assert finding.id == "page-shown-at-once"
        assert "10 reads over 9.0 s; at 7.2 s" in finding.message
        assert finding.evidence[0].at == pytest.approx(9.2)

    def test_an_element_that_replaces_one_that_grew_is_live(self) -> None:
        got = self.live((9.2, 48), totals=((-1.0, 100), (2.0, 110), (6.0, 140), (9.2, 148)))
        assert got.findings == ()

    def test_the_question_that_appears_before_is_not_the_answer(self) -> None:
        got = self.live((9.2, 48), totals=((-1.0, 100), (-0.1, 300), (9.2, 348)))
        assert [finding.id for finding in got.findings] == ["page-shown-at-once"]

    def test_a_wire_that_was_not_live_judges_no_page(self) -> None:
        got = compared("hello you", "hello you")
        assert got.findings == ()
        assert got.reasons[0].startswith("whether the page shows text as it comes")


@given(st.lists(st.sampled_from(MARKS), max_size=20).map("".join))
def test_a_page_that_shows_what_was_written_loses_nothing(text: str) -> None:
    assert found(f"Begin here.\n\n{text}\n\nThe end.", f"Begin here.\n\n{text}\n\nThe end.") == []


@pytest.mark.parametrize(
    "text",
    [
        "a\\(" * 60_000,
        "<!--" * 60_000,
        "[" * 200_000,
        "$$x" * 60_000,
        "\n" * 200_000,
        "a " * 200_000,
        "> " * 100_000,
        "[a](" * 60_000,
        "[a]((" * 40_000,
    ],
)
def test_no_text_is_slow_to_compare(text: str) -> None:
    begun = time.monotonic()
    compared(text, text)
    assert time.monotonic() - begun < 10


def test_every_fault_of_a_page_is_whole() -> None:
    for name, fault in PAGE_FAULTS.items():
        assert name == fault.id
        assert "https://" in fault.clause
        assert fault.remedy.endswith(".")
        assert fault.harm.endswith(".")
