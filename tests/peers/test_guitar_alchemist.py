"""Guitar Alchemist's writers, readers and chunkers, against what was measured of the real ones: bytes and tables."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.peers import CHUNKERS, READERS, WRITERS
from motamot.peers.answers import IMPROVISATION, VOICINGS
from motamot.peers.counting import count
from motamot.peers.dotnet import BLANKS, json_text, replace_line_endings, trim
from motamot.peers.readers import course
from motamot.peers.readers.page import kept
from motamot.peers.writers.ag_ui import event
from motamot.sse import Decoder

ROUTING = (
    b'data: {"type":"routing","agentId":"voicing","confidence":1,"routingMethod":"m","trace":null,"grounding":null}\n\n'
)
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error":"Failed to process message. Please try again."}\n\n'
FAILED = "Failed to process message. Please try again."
GOOD = WRITERS["gachatbot-api"].write(CHUNKERS["sentence-lossless"].cut(IMPROVISATION))


def read(name: str, stream: bytes) -> str:
    """What a reader's user is left with, whether the stream comes at once or byte by byte."""
    got = READERS[name].read([stream])
    assert READERS[name].read([stream[at : at + 1] for at in range(len(stream))]).told == got.told
    return got.told


class TestAnswers:
    def test_they_are_the_skills_own(self) -> None:
        assert (len(IMPROVISATION), len(IMPROVISATION.encode()), IMPROVISATION.count("\n")) == (558, 580, 8)
        assert (len(VOICINGS), len(VOICINGS.encode()), VOICINGS.count("\n")) == (199, 199, 9)
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in (IMPROVISATION, VOICINGS)]
        assert digests == [
            "753297c69173c439d291699cb1fcbb3a68ea0dbbff2b127a9f452118e6319702",
            "23516f309696d854308dd3079c3c13e8b81c2b4ba90805b1ec57221f654e5e27",
        ]


class TestStreams:
    @pytest.mark.parametrize(
        ("answer", "chunks", "writer", "size", "digest"),
        [
            (IMPROVISATION, "sentence", "gachatbot-api", 640, "9acf004154fbfbd2"),
            (IMPROVISATION, "sentence", "gaapi", 628, "27f7c5b7ee99f67c"),
            (IMPROVISATION, "sentence-lossless", "gachatbot-api", 682, "4f70650d18837c72"),
            (IMPROVISATION, "sentence-lossless", "gaapi", 634, "0e276235ec27993a"),
            (VOICINGS, "sentence", "gachatbot-api", 275, "116b119a8fccd73e"),
            (VOICINGS, "sentence-lossless", "gachatbot-api", 275, "116b119a8fccd73e"),
            (VOICINGS, "sentence", "gaapi", 221, "278ec888a1f570b5"),
            (VOICINGS, "sentence-lossless", "gaapi", 221, "278ec888a1f570b5"),
        ],
    )
    def test_they_have_the_bytes_measured(self, answer: str, chunks: str, writer: str, size: int, digest: str) -> None:
        stream = WRITERS[writer].write(CHUNKERS[chunks].cut(answer))
        assert (len(stream), hashlib.sha256(stream).hexdigest()[:16]) == (size, digest)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a\n\nb", b"data: a\ndata: \ndata: b\n\n"),
            ("a\n", b"data: a\ndata: \n\n"),
            ("a\rb", b"data: ab\n\n"),
            ("\u2028\x85\v\f\0\ufeff", "data: \u2028\x85\v\f\0\ufeff\n\n".encode()),
            (" \t\n", b""),  # a piece of white space alone is not passed on
        ],
    )
    def test_gachatbot_api_writes(self, text: str, expected: bytes) -> None:
        assert WRITERS["gachatbot-api"].write([text]) == expected + DONE

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a\n\nb", b"data: a\n\nb\n\n"),
            ("a\n", b"data: a\n\n\n"),
            ("a\rb", b"data: a\rb\n\n"),
            ("", b"data: \n\n"),
        ],
    )
    def test_gaapi_writes(self, text: str, expected: bytes) -> None:
        assert WRITERS["gaapi"].write([text]) == expected + DONE


class TestMatrix:
    """The lesson's table, and what the facts add to it."""

    BAD = "1 of 6 lines missing, 8 line breaks missing"

    @pytest.mark.parametrize("writer", ["gachatbot-api", "gaapi"])
    @pytest.mark.parametrize("reader", ["standard", "course", "page", "chat-service", "chat-service-course"])
    @pytest.mark.parametrize("chunks", ["sentence", "sentence-lossless"])
    def test_of_the_improvisation(self, writer: str, reader: str, chunks: str) -> None:
        got = read(reader, WRITERS[writer].write(CHUNKERS[chunks].cut(IMPROVISATION)))
        good = writer == "gachatbot-api" and not reader.startswith("chat-service")
        expected = {"sentence": "6 line breaks missing", "sentence-lossless": "exact"}[chunks] if good else self.BAD
        assert count(IMPROVISATION, got).told == expected
        lengths = {"sentence": 552, "sentence-lossless": 558}
        assert (len(got), "\n" in got) == ((lengths[chunks], True) if good else (449, False))

    @pytest.mark.parametrize("chunks", ["sentence", "sentence-lossless"])
    @pytest.mark.parametrize("writer", ["gachatbot-api", "gaapi"])
    @pytest.mark.parametrize("reader", ["standard", "page", "chat-service"])
    def test_of_the_voicings(self, writer: str, reader: str, chunks: str) -> None:
        got = read(reader, WRITERS[writer].write(CHUNKERS[chunks].cut(VOICINGS)))
        good = writer == "gachatbot-api" and reader != "chat-service"
        assert count(VOICINGS, got).told == ("exact" if good else "8 of 9 lines missing, 9 line breaks missing")

    def test_as_the_host_really_sends_it_the_end_is_trimmed(self) -> None:
        sent = trim(IMPROVISATION)
        pieces = CHUNKERS["sentence"].cut(sent)
        got = [read(reader, WRITERS["gachatbot-api"].write(pieces)) for reader in ("standard", "chat-service")]
        assert [count(sent, text).told for text in got] == [
            "5 line breaks missing",
            "1 of 6 lines missing, 7 line breaks missing",
        ]

    def test_chat_api_loses_line_breaks_alone(self) -> None:
        pieces = CHUNKERS["sentence-lossless"].cut(IMPROVISATION)
        good, bad = (read("chat-api", WRITERS[name].write(pieces)) for name in ("gachatbot-api", "gaapi"))
        assert (count(IMPROVISATION, good).told, len(good)) == ("8 line breaks missing", 550)
        assert count(IMPROVISATION, bad).told == self.BAD

    def test_exercise_2_makes_six_pairs_exact(self) -> None:
        for writer in ("gachatbot-api", "gaapi-mended"):
            for reader in ("standard", "page", "chat-service-mended"):
                for chunks, expected in (("sentence-lossless", "exact"), ("sentence", "6 line breaks missing")):
                    got = read(reader, WRITERS[writer].write(CHUNKERS[chunks].cut(IMPROVISATION)))
                    assert count(IMPROVISATION, got).told == expected

    def test_exercise_2_from_windows_is_exact_for_the_standard_alone(self) -> None:
        """The answer comes with CRLF; the rule puts both sides to LF, so the texts themselves are compared."""
        windows = IMPROVISATION.replace("\n", "\r\n")
        stream = WRITERS["gaapi-mended"].write(CHUNKERS["sentence-lossless"].cut(windows))
        assert read("standard", stream) == IMPROVISATION
        assert {read(name, stream) for name in ("page", "chat-service-mended")} == {windows}
        better = WRITERS["gaapi-lines"].write(CHUNKERS["sentence-lossless"].cut(windows))
        assert {read(name, better) for name in ("standard", "page", "chat-service-mended")} == {IMPROVISATION}


class TestOutcomes:
    """What each reader makes of streams that are not a plain answer."""

    @pytest.mark.parametrize(
        ("stream", "standard", "page", "service", "api"),
        [
            (ERROR, ERROR[6:-2].decode(), ERROR[6:-2].decode(), f"(throws) {FAILED}", f"(throws) {FAILED}"),
            (
                ROUTING + b"data: partial answer\n\n" + ERROR,
                "partial answer" + ERROR[6:-2].decode(),
                "partial answer" + ERROR[6:-2].decode(),
                f"(throws) {FAILED}",
                f"(throws) {FAILED}",
            ),
            (b"", "", "", "", ""),
            (ROUTING + b"data: text\n\n", "text", "text", "text", "text"),
            (b"data: a\n\ndata: b\n", "a", "a", "adata: b", "ab"),
            (b'data: {"x":1}\n\n' + DONE, '{"x":1}', '{"x":1}', "", ""),
            (b"data: {x}\n\n" + DONE, "{x}", "{x}", "(throws) SyntaxError: not JSON", "(throws) SyntaxError: not JSON"),
            (b"data: a\n\ndata: [DONE]\n\n", "a", "a", "a", "a"),
            (
                b"data: a\r\n\r\ndata: [DONE]\r\n\r\n",
                "a",
                "",
                "data: a\r\n\r\ndata: [DONE]",
                "a\r[DONE]\r",
            ),
        ],
        ids=["error", "late error", "nothing", "no end mark", "unended", "JSON", "no JSON", "done", "CRLF"],
    )
    def test_table(self, stream: bytes, standard: str, page: str, service: str, api: str) -> None:
        names = ("standard", "page", "chat-service", "chat-api")
        assert [read(name, stream) for name in names] == [standard, page, service, api]

    def test_what_was_shown_stays_where_a_reader_throws(self) -> None:
        got = READERS["chat-service"].read([ROUTING + b"data: partial answer\n\n" + ERROR])
        assert (got.text, got.threw, got.complete) == ("partial answer", FAILED, False)

    def test_the_page_keeps_errors_cut_answers_and_nothing_in_its_history(self) -> None:
        history = [kept(READERS["page"].read([stream])) for stream in (ERROR, b"", b"data: half\n\nda")]
        assert history == [ERROR[6:-2].decode(), "(empty response)", "half"]
        assert [kept(READERS["page-mended"].read([stream])) for stream in (ERROR, b"data: a\n\n" + ERROR)] == [
            None,
            None,
        ]

    def test_the_mended_page_keeps_an_answer_that_merely_is_json(self) -> None:
        for text in ('{"x":1}', '{"error":1}', '{"error":"a","code":2}', '{"error"', "[1]"):
            assert read("page-mended", f"data: {text}\n\n".encode() + DONE) == text

    def test_only_a_first_routing_event_is_consumed_by_the_page(self) -> None:
        assert read("page", ROUTING + ROUTING + DONE) == ROUTING[6:-2].decode()

    def test_done_in_the_text_ends_the_page_and_is_skipped_by_chat_api(self) -> None:
        stream = WRITERS["gaapi"].write(["a", "[DONE]", "b"])
        assert [read(name, stream) for name in ("page", "chat-api")] == ["a", "ab"]

    def test_chat_service_reads_on_behind_done_within_one_read(self) -> None:
        stream = b"data: a\n\n" + DONE + b"data: b\n\n"
        assert READERS["chat-service"].read([stream]).text == "ab"
        assert READERS["chat-service"].read([stream[:-9], stream[-9:]]).text == "a"
        assert READERS["chat-service-course"].read([stream]).text == "a"

    @pytest.mark.parametrize(
        ("stream", "real", "port"),
        [
            (b"data: a\n\ndata: b", "adata: b", "a"),
            (b'data: {"error":null}\n\ndata: a\n\n', "a", "(throws) "),
            ("data: \x85a\n\n".encode(), "\x85a", "a"),
            ("data: \ufeffa\n\n".encode(), "a", "\ufeffa"),
        ],
        ids=["tail", "null", "U+0085", "U+FEFF"],
    )
    def test_the_courses_port_of_chat_service_is_not_the_real_one(self, stream: bytes, real: str, port: str) -> None:
        assert [read(name, stream) for name in ("chat-service", "chat-service-course")] == [real, port]

    def test_text_can_make_events_behind_gaapi(self) -> None:
        for text, expected in (
            ("a\ndata: b", "a\nb"),
            ("a\n\ndata: [DONE]\n\nb", "a"),
            ('a\n\ndata: {"error":"x"}\n\n', "(throws) x"),
        ):
            reader = "chat-service" if "error" in text else "page"
            assert read(reader, WRITERS["gaapi"].write([text])) == expected


class TestCutStreams:
    """The good stream behind a routing event, 771 characters, cut at every position."""

    STREAM = (
        b'data: {"type":"routing","agentId":"' + b"skill.improvisation".ljust(35, b".") + b'","confidence":0.85,'
        b'"routingMethod":""}\n\n' + GOOD
    ).decode()

    def test_it_has_the_length_measured(self) -> None:
        assert len(self.STREAM) == 771

    def test_the_course_dispatches_an_event_that_one_line_end_ends(self) -> None:
        assert course.events("data: x\n") == ["x"]
        assert READERS["course"].read([b"data: x\n"]).text == "x"
        assert READERS["standard"].read([b"data: x\n"]).text == ""

    def test_fourteen_cuts_give_the_course_an_event_that_the_standard_drops(self) -> None:
        differ = 0
        for at in range(len(self.STREAM)):
            standard = [event.data for event in Decoder().feed(self.STREAM[:at].encode())]
            extra = course.events(self.STREAM[:at])[len(standard) :]
            differ += extra not in ([], ["[DONE]"])
        assert differ == 14

    def test_chat_service_shows_the_wire_at_736_cuts(self) -> None:
        shown = [READERS["chat-service"].read([self.STREAM[:at].encode()]).text for at in range(len(self.STREAM))]
        assert sum("data:" in text for text in shown) == 736

    def test_a_byte_order_mark_spoils_the_courses_first_field(self) -> None:
        stream = b"\xef\xbb\xbfdata: a\n\n"
        assert [READERS[name].read([stream]).text for name in ("standard", "course")] == ["a", ""]


class TestExercise1:
    """Chunks with line ends, through each writer and reader."""

    @pytest.mark.parametrize(
        ("writer", "stream", "standard", "page", "service", "api"),
        [
            ("gachatbot-api", b"data: a\ndata: b\n\n", "a\nb", "a\nb", "a", "ab"),
            ("gaapi", b"data: a\r\nb\n\n", "a", "a\r", "a", "a\r"),
            ("gaapi-mended", b"data: a\r\ndata: b\n\n", "a\nb", "a\r\nb", "a", "a\rb"),
            ("gaapi-lines", b"data: a\ndata: b\n\n", "a\nb", "a\nb", "a", "ab"),
        ],
    )
    def test_of_a_crlf(self, writer: str, stream: bytes, standard: str, page: str, service: str, api: str) -> None:
        assert WRITERS[writer].write(["a\r\nb"]) == stream + DONE
        names = ("standard", "page", "chat-service", "chat-api")
        assert [read(name, stream + DONE) for name in names] == [standard, page, service, api]

    def test_the_mended_chat_service_keeps_the_cr(self) -> None:
        assert read("chat-service-mended", WRITERS["gaapi-mended"].write(["a\r\nb"])) == "a\r\nb"

    @pytest.mark.parametrize(
        ("chunk", "gachatbot", "gaapi"),
        [
            ("a\nb", ("a\nb", "a\nb", "a"), ("a", "a", "a")),
            ("a\rb", ("ab", "ab", "ab"), ("a", "a\rb", "a\rb")),
            ("a\n\nb", ("a\n\nb", "a\n\nb", "a"), ("a", "a", "a")),
            ("a\r\n\r\nb", ("a\n\nb", "a\n\nb", "a"), ("a", "a\r", "a")),
            ("a\n", ("a\n", "a\n", "a"), ("a", "a", "a")),
            ("\na", ("\na", "\na", ""), ("", "", "")),
            (" a ", (" a ", " a ", "a"), (" a ", " a ", "a")),
            ("a\ndata: b", ("a\ndata: b", "a\ndata: b", "a"), ("a\nb", "a\nb", "a")),
        ],
    )
    def test_of_other_chunks(self, chunk: str, gachatbot: tuple[str, ...], gaapi: tuple[str, ...]) -> None:
        for writer, expected in (("gachatbot-api", gachatbot), ("gaapi", gaapi)):
            stream = WRITERS[writer].write([chunk])
            assert tuple(read(name, stream) for name in ("standard", "page", "chat-service")) == expected


class TestChunkers:
    @pytest.mark.parametrize(
        ("text", "pinned", "lossless"),
        [
            ("One. Two! Three?", ["One.", "Two!", "Three?"], ["One. ", "Two! ", "Three?"]),
            ("e.g. x", ["e.g.", "x"], ["e.g. ", "x"]),
            ("3. item", ["3.", "item"], ["3. ", "item"]),
            ("What?! Yes... no", ["What?!", "Yes...", "no"], ["What?! ", "Yes... ", "no"]),
            ('He said "hi." Then', ['He said "hi." Then'], ['He said "hi." Then']),
            ("**Bold.** Next", ["**Bold.** Next"], ["**Bold.** Next"]),
            ("(score 0.369)", ["(score 0.369)"], ["(score 0.369)"]),
            ("一。 二", ["一。 二"], ["一。 二"]),
            ("a.\xa0b.\x85c", ["a.", "b.", "c"], ["a.\xa0", "b.\x85", "c"]),
            ("a.\ufeffb.\x1cc", ["a.\ufeffb.\x1cc"], ["a.\ufeffb.\x1cc"]),
            ("  a. b", ["  a.", "b"], ["  a. ", "b"]),
            ("a. ", ["a."], ["a. "]),
            ("", [], []),
            (" \n\x85", [], []),
        ],
    )
    def test_sentences(self, text: str, pinned: list[str], lossless: list[str]) -> None:
        assert [CHUNKERS[name].cut(text) for name in ("sentence", "sentence-lossless")] == [pinned, lossless]

    @pytest.mark.parametrize(
        "text", [IMPROVISATION, "First sentence. Second one! Third? Done.", "Ends with spaces.   Next.\t\tLast."]
    )
    def test_after_743_the_pieces_make_the_answer(self, text: str) -> None:
        assert "".join(CHUNKERS["sentence-lossless"].cut(text)) == text

    @given(st.text(alphabet=st.sampled_from("a.!?, \n\t\x85\xa0\ufeff\x1c")))
    def test_after_743_nothing_is_lost_and_no_piece_is_blank(self, text: str) -> None:
        pieces = CHUNKERS["sentence-lossless"].cut(text)
        assert "".join(pieces) == (text if trim(text) else "")
        assert all(trim(piece) for piece in pieces)
        pinned = CHUNKERS["sentence"].cut(text)
        assert "".join("".join(pinned).split()) == "".join(text.split())

    def test_the_improvisation_has_five_runs_of_white_space_after_sentences(self) -> None:
        """The seed says six: one run is two line breaks, and six are lost."""
        pieces = CHUNKERS["sentence"].cut(IMPROVISATION)
        assert (len(pieces), len(IMPROVISATION) - len("".join(pieces))) == (5, 6)

    def test_space_tokens_collapse_spaces_and_add_one(self) -> None:
        assert "".join(CHUNKERS["tokens"].cut("Tab:\n    e|--0--|")) == "Tab:\n e|--0--| "
        joined = "".join(CHUNKERS["tokens"].cut(IMPROVISATION))
        assert (len(joined), count(IMPROVISATION, joined).told) == (559, "differs")


class TestAgUi:
    def test_each_character_outside_ascii_and_of_markup_is_escaped_in_upper_case(self) -> None:
        assert json_text("é–🙂\"&'+<>`\x7f\\/\n\r\t\b\f\x01\u2028") == (
            r'"\u00E9\u2013\uD83D\uDE42\u0022\u0026\u0027\u002B\u003C\u003E\u0060\u007F\\/\n\r\t\b\f\u0001\u2028"'
        )
        assert json_text({"a": [0.85, 0, None, True, "\ud83d"]}) == r'{"a":[0.85,0,null,true,"\uFFFD"]}'
        assert json_text('\\"\\u00e9') == r'"\\\u0022\\u00e9"'  # text that looks like an escape stays text

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("ag-ui", "RUN_STARTED STEP_STARTED START CONTENT CONTENT END RUN_FINISHED"),
            (
                "ag-ui-gaapi",
                "RUN_STARTED STATE_SNAPSHOT START CONTENT CONTENT END STEP_STARTED STATE_DELTA RUN_FINISHED",
            ),
        ],
    )
    def test_the_sequence_is_the_hosts(self, name: str, expected: str) -> None:
        stream = WRITERS[name].write(["a\n", "b"])
        lines = [line for line in stream.split(b"\n") if line]
        kinds = [json.loads(line.removeprefix(b"data: "))["type"].removeprefix("TEXT_MESSAGE_") for line in lines]
        assert kinds == expected.split()
        assert stream.isascii()
        assert stream.count(b"\n") == 2 * len(lines)

    def test_without_text_one_host_frames_it_and_the_other_does_not(self) -> None:
        assert b"TEXT_MESSAGE" not in WRITERS["ag-ui"].write([])
        assert WRITERS["ag-ui-gaapi"].write([]).count(b"TEXT_MESSAGE") == 2

    @given(st.lists(st.text(), max_size=5))
    def test_any_text_comes_through_but_pieces_of_blanks(self, pieces: list[str]) -> None:
        stream = WRITERS["ag-ui"].write(pieces)
        expected = "".join(piece for piece in pieces if trim(piece))
        assert read("stream-ag-ui-chat", stream) == read("parse-ag-ui-frames", stream) == expected

    def test_a_cut_or_crlf_stream_looks_finished(self) -> None:
        stream = WRITERS["ag-ui"].write(["a", "b"])
        cut = READERS["stream-ag-ui-chat"].read([stream[: stream.index(b'"b"')]])
        assert (cut.text, cut.complete) == ("a", True)
        crlf = READERS["stream-ag-ui-chat"].read([stream.replace(b"\n", b"\r\n")])
        assert (crlf.text, crlf.complete) == ("", True)

    def test_an_error_ends_the_run_and_is_no_text(self) -> None:
        stream = event("TEXT_MESSAGE_CONTENT", messageId="m", delta="a") + event("RUN_ERROR", message="busy", code="x")
        got = READERS["stream-ag-ui-chat"].read([stream + event("TEXT_MESSAGE_CONTENT", messageId="m", delta="b")])
        assert (got.text, got.complete, got.steps[-1].kind, got.steps[-1].text) == ("a", False, "error", "busy")

    def test_what_is_no_json_is_skipped_and_the_last_frame_needs_no_end(self) -> None:
        stream = b'data: {"type"\n\n' + event("TEXT_MESSAGE_CONTENT", messageId="m", delta="a").rstrip()
        assert READERS["parse-ag-ui-frames"].read([stream]).text == "a"
        assert READERS["stream-ag-ui-chat"].read([stream]).text == ""


class TestDotNet:
    def test_white_space_is_dotnets(self) -> None:
        """Char.IsWhiteSpace: the separators, U+0009 to U+000D, and U+0085."""
        points = [
            *range(9, 14),
            0x20,
            0x85,
            0xA0,
            0x1680,
            *range(0x2000, 0x200B),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x3000,
        ]
        assert sorted(map(ord, BLANKS)) == points

    def test_replace_line_endings_takes_all_but_vt(self) -> None:
        assert replace_line_endings("a\r\nb\rc\x85d\u2028e\u2029f\fg\vh\n") == "a\nb\nc\nd\ne\nf\ng\vh\n"


def test_steps_say_at_which_read_they_came() -> None:
    stream = ROUTING + b"data: a\n\n" + DONE
    marks = [0, len(ROUTING), len(ROUTING) + 4, len(ROUTING) + 9, len(stream)]
    reads = [stream[start:end] for start, end in pairwise(marks)]
    for name in ("standard", "page", "chat-service", "chat-api", "ga-text"):
        steps = READERS[name].read(reads).steps
        assert [(step.kind, step.at) for step in steps] == [("routing", 0), ("text", 2), ("done", 3)], name
