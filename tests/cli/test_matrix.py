"""`motamot matrix`, as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from motamot.peers import CHUNKERS, READERS, WRITERS, Chunker, PeerReader, PeerWriter
from motamot.peers.answers import IMPROVISATION
from tests.cli.support import Place

MISSING = "1 of 6 lines missing, 8 line breaks missing"
GLUED = (
    r'"r — fits most i chords).\n- **F** → arpeggio **F**" came as "r — fits most i chords).- **F** → arpeggio **F**"'
)
LESSON = Path(__file__).parents[1] / "data" / "lesson.txt"


class TestLesson:
    def test_it_prints_the_seeds_blocks_to_the_letter(self, place: Place) -> None:
        """The page that the blocks are from shows each blank line between two others twice."""
        done = place.run("matrix", "--lesson")
        assert (done.status, done.err) == (0, "")
        printed = done.out.decode()
        blocks = LESSON.read_text("utf-8").removesuffix("\n").replace("\n\n\n", "\n\n").split("\n%\n")
        assert len(blocks) == 7
        at = 0
        for block in blocks:
            found = printed.find(f"{block}\n", at)
            assert found >= 0, block
            assert not printed[at:found].strip(), "nothing else stands between"
            at = found + len(block) + 1
        assert not printed[at:].strip()

    def test_two_of_six_pairs_are_exact(self, place: Place) -> None:
        table = place.run("matrix", "--lesson").out.decode().rpartition("== ")[2].splitlines()[2:]
        assert [line.endswith("exact") for line in table] == [True, True, False, False, False, False]

    def test_it_leaves_nothing_behind(self, place: Place) -> None:
        place.run("matrix", "--lesson")
        assert not list(place.folder.iterdir())


class TestTable:
    def test_it_tells_what_became_of_the_answer_below(self, place: Place) -> None:
        done = place.run("matrix", "--writers", "gachatbot-api,gaapi", "--readers", "page,chat-service")
        assert (done.status, done.err) == (0, "")
        lines = done.out.decode().splitlines()
        assert lines[0] == "answer: 6 lines of text, 8 line breaks, 558 characters"
        assert lines[2:7] == [
            "writer         reader                 chunks at a826864                                chunks after #743",
            "GaChatbot.Api  GaChatbot page         6 line breaks missing [a]                        exact",
            *(
                f"{pair}  {MISSING} [b]  {MISSING} [b]"
                for pair in (
                    "GaChatbot.Api  ga-client chatService",
                    "GaApi          GaChatbot page       ",
                    "GaApi          ga-client chatService",
                )
            ),
        ]
        assert lines[8:11] == [
            "[a] 4 line ends glued, white space changed in 1 place",
            "    on a page: 2 paragraphs → 1, 4 bullets → 1",
            f"    glued: {GLUED}",
        ]
        assert "[b] 4 line ends glued, 101 characters lost in 1 place, white space changed in 1 place" in lines

    def test_every_pair_of_a_kind_is_there_by_default(self, place: Place) -> None:
        lines = place.run("matrix").out.decode().partition("\n\n[")[0].splitlines()[3:]
        assert len(lines) == sum(w.stream == r.stream for w in WRITERS.values() for r in READERS.values())

    def test_an_answer_and_chunks_of_ones_own(self, place: Place) -> None:
        (place.folder / "answer.md").write_bytes(b"Un.\r\n\r\n- deux\r\n")
        (place.folder / "pieces.json").write_text(json.dumps(["Un.\r\n", "\r\n- deux\r\n"]))
        options = ("--writers", "gaapi-lines,gaapi-mended", "--readers", "standard,page", "--json")
        whole = place.run("matrix", "--answer", "answer.md", "--chunks", "whole", *options)
        cut = place.run("matrix", "--chunks", "pieces.json", *options)
        texts = [[cell["text"] for cell in json.loads(done.out)["cells"]] for done in (whole, cut)]
        assert (
            texts[0] == texts[1] == ["Un.\n\n- deux\n", "Un.\n\n- deux\n", "Un.\n\n- deux\n", "Un.\r\n\r\n- deux\r\n"]
        )
        piped = place.run("matrix", "--answer", "-", "--chunks", "whole", *options, stdin=b"Un.\r\n\r\n- deux\r\n")
        assert piped.out == whole.out

    def test_json_says_all(self, place: Place) -> None:
        done = place.run("matrix", "--writers", "gachatbot-api", "--readers", "page", "--json")
        told = json.loads(done.out)
        assert told["answer"] == {"characters": 558, "line_breaks": 8, "shown": {"paragraphs": 2, "bullets": 4}}
        assert told["splits"][0]["pieces"] == CHUNKERS["sentence"].cut(IMPROVISATION)
        pinned, after = told["cells"]
        assert (pinned["writer"], pinned["reader"], pinned["split"]) == ("gachatbot-api", "page", 0)
        assert pinned["counted"] == {"told": "6 line breaks missing", "missing": 0, "lines": 6, "breaks": 6}
        assert (pinned["difference"]["glued"]["times"], len(pinned["difference"]["glued"]["places"])) == (4, 4)
        assert pinned["shown"] == {"paragraphs": 1, "bullets": 1, "changes": ["2 paragraphs → 1", "4 bullets → 1"]}
        assert (after["counted"]["told"], after["text"]) == ("exact", IMPROVISATION)

    def test_the_size_of_a_read_can_be_told(self, place: Place) -> None:
        options = ("--writers", "json", "--readers", "naive-json-per-read", "--chunks", "sentence-lossless")
        events, pieces = (place.run("matrix", *options, *more).out.decode() for more in ((), ("--read-bytes", "9")))
        assert "exact" in events
        assert 'throws [a]\n\n[a] throws "SyntaxError: not JSON"\n' in pieces

    def test_nothing_of_an_answer_controls_the_terminal(self, place: Place) -> None:
        (place.folder / "answer").write_bytes("a\x1b[31m\n\x9b2J\u202eb\n".encode())
        done = place.run("matrix", "--answer", "answer", "--chunks", "whole", "--writers", "gaapi")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.out.decode())
        assert "␛[31m" in done.out.decode()

    def test_list_names_every_peer_with_its_habits(self, place: Place) -> None:
        listed = place.run("matrix", "--list").out.decode()
        peers: list[PeerWriter | PeerReader | Chunker] = [*WRITERS.values(), *READERS.values(), *CHUNKERS.values()]
        for peer in peers:
            assert f"  {peer.name}: {peer.title} (" in listed
            assert all(f"    - {habit}" in listed for habit in peer.habits)


class TestReal:
    def test_a_library_of_this_machine_reads(self, place: Place) -> None:
        pytest.importorskip("httpx_sse")
        options = (
            "--real",
            "--writers",
            "gachatbot-api",
            "--readers",
            "real-httpx-sse",
            "--chunks",
            "sentence-lossless",
        )
        done = place.run("matrix", *options)
        assert (done.status, done.err) == (0, "")
        assert re.search(r"httpx-sse.* exact$", done.out.decode(), re.MULTILINE), done.out

    def test_what_is_not_installed_is_told_and_the_rest_reads(self, place: Place) -> None:
        options = ("--real", "--writers", "gachatbot-api", "--chunks", "sentence-lossless")
        done = place.run("matrix", *options, "--node-modules", str(place.folder))
        assert done.status == 0
        assert "GaChatbot.Api  HTML standard" in done.out.decode()
        assert all(line.startswith("motamot: ") for line in done.err.splitlines())
        assert "npm install" in done.err


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--writers", "gaapi,nobody"), "--writers: there is no 'nobody'; there are gachatbot-api, gaapi, "),
            (("--readers", ""), "--readers: there is no ''"),
            (("--chunks", "nothing"), "--chunks: 'nothing' is no file, and none of sentence, sentence-lossless, "),
            (("--chunks", "text"), "--chunks: text is not JSON: "),
            (("--chunks", "number.json"), '--chunks: number.json must be a list of texts, as ["One. ", "Two."]'),
            (("--answer", "missing"), "--answer: missing cannot be read: No such file or directory"),
            (("--answer", "latin"), "--answer: latin is not UTF-8: byte 1 cannot be read"),
            (("--answer", "large"), "--answer: large has more than 262,144 bytes"),
            (("--lesson", "--json"), "--lesson stands alone: "),
            (("--answer", "."), "--answer: . cannot be read: Is a directory"),
            (("--answer", "/dev/null"), "the answer is empty: nothing of it can get lost"),
            (("--chunks", "none.json"), "the answer is empty: nothing of it can get lost"),
        ],
    )
    def test_is_told_in_a_sentence(self, place: Place, arguments: tuple[str, ...], words: str) -> None:
        (place.folder / "text").write_text("a")
        (place.folder / "number.json").write_text('["a", 1]')
        (place.folder / "none.json").write_text('["", ""]')
        (place.folder / "latin").write_bytes(b"a\xe9b")
        (place.folder / "large").write_bytes(b"a" * (1 << 18) + b"b")
        done = place.run("matrix", *arguments)
        assert (done.status, done.out) == (2, b"")
        assert done.err.startswith(f"motamot: {words}")
        assert "Traceback" not in done.err
