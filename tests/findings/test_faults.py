"""Every fault: documented, shown by a tape, and not named where something only looks like it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from motamot.findings import Level, examine
from motamot.findings.faults import FAULTS, RULES
from motamot.findings.finder import EVIDENCE_MOST, QUOTE_CHARS
from motamot.model import anthropic, arguments, base, fragments, ollama, openai, words
from motamot.model import events as event_streams
from motamot.tape.tape import Tape
from tests.findings.examples import EXAMPLES

# tests/data/cases.jsonl calls faults of the wire by these names.
NAMES = (
    *("missing-blank-line", "unterminated-last-event", "unknown-field", "error-field", "event-without-data"),
    *("comment-as-data", "keepalive-inside-event", "json-parse", "replacement-character", "cumulative-deltas"),
    *("repeated-full-text", "burst-delivery", "late-first-text", "batched-delivery", "compressed-stream"),
    *("content-length-on-stream", "not-an-event-stream", "tool-index-missing", "tool-index-reused"),
    *("tool-name-repeated", "tool-id-missing", "tool-args-not-string", "tool-args-duplicated"),
    *("tool-args-invalid-json", "tool-args-truncated", "finish-mismatch", "finish-repeated", "finish-empty-string"),
    *("finish-missing", "done-missing", "content-after-finish", "usage-missing", "usage-in-every-chunk"),
    *("usage-nonstandard-place", "choices-missing", "delta-missing", "content-not-string", "error-in-stream"),
)
INTERNAL = {"cumulative-broken"}  # of a dialect that only an assistant's settings switch on


def test_every_name_of_the_cases_is_a_fault() -> None:
    assert set(NAMES) <= FAULTS.keys()


def test_every_deviation_that_an_assembly_names_is_a_fault() -> None:
    modules = (anthropic, arguments, base, event_streams, fragments, ollama, openai, words)
    noted = {kind for module in modules for kind in re.findall(r"note\(\s*\"([a-z-]+)\"", inspect.getsource(module))}
    assert len(noted) > 25
    assert noted - INTERNAL <= FAULTS.keys()


def test_no_name_is_given_twice() -> None:
    assert len(FAULTS) == len(RULES)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_what_it_is_and_what_to_do(name: str) -> None:
    fault = FAULTS[name]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+|bom|mojibake", name)
    assert "](" in fault.clause, "a clause has a link"
    for sentence in (fault.remedy, fault.harm):
        assert sentence[-1] in ".»" and len(sentence) > 10
    assert fault.title[-1] != "." and len(fault.title) < 90


def test_every_fault_has_an_example_and_every_example_a_fault() -> None:
    assert EXAMPLES.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fault_is_found_where_it_is(name: str) -> None:
    example = EXAMPLES[name]
    examined = examine(example.shows, protocol=example.protocol, whole=example.whole)
    (finding,) = [finding for finding in examined.findings if finding.id == name]
    assert finding.message.endswith(".") and "\n" not in finding.message
    assert finding.times >= 1 and len(finding.evidence) <= EVIDENCE_MOST
    for place in finding.evidence:
        assert len(place.quote) <= QUOTE_CHARS
        assert place.offset is None or 0 <= place.offset <= len(example.shows.body)
    if FAULTS[name].level is not Level.NOTE:
        assert examined.judged[FAULTS[name].promise] == "lost"


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fault_is_not_found_where_something_looks_alike(name: str) -> None:
    example = EXAMPLES[name]
    assert name not in example.names(example.alike)
    assert example.why.endswith(".")


@pytest.mark.parametrize("name", EXAMPLES)
def test_how_the_body_was_read_changes_nothing(name: str) -> None:
    """Byte by byte: what is found, how often, and where."""
    example = EXAMPLES[name]
    for tape, whole in ((example.shows, example.whole), (example.alike, example.whole_alike)):
        if tape.timed:
            continue
        singly = bytewise(tape)
        one = examine(tape, protocol=example.protocol, whole=whole)
        other = examine(singly, protocol=example.protocol, whole=whole)
        assert [(f.id, f.message, f.times, [e.offset for e in f.evidence]) for f in one.findings] == [
            (f.id, f.message, f.times, [e.offset for e in f.evidence]) for f in other.findings
        ]
        assert (one.text, one.events, one.comments, one.deltas) == (
            other.text,
            other.events,
            other.comments,
            other.deltas,
        )


def bytewise(tape: Tape) -> Tape:
    """The same tape in reads of one byte."""
    pieces = [type(tape.pieces[0])(None, tape.body[at : at + 1]) for at in range(len(tape.body))]
    return Tape(
        pieces=tuple(pieces),
        status=tape.status,
        headers=tape.headers,
        request=tape.request,
        end=tape.end,
        source=tape.source,
    )


def test_the_faults_are_files_of_their_own() -> None:
    """A new one touches its file and one line of the table."""
    files = {path.stem for path in Path(inspect.getfile(base)).parents[1].glob("findings/faults/*.py")}
    assert {"__init__", "clauses"} < files
    assert len(files) >= 15
