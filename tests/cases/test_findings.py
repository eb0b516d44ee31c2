"""Every case from practice that names faults of the wire, of any kind (tests/data/cases.jsonl)."""

from __future__ import annotations

from typing import Any

import pytest

from motamot.findings import examine
from tests.findings.tapes import CASES, JUDGED, of_case

UPSTREAM = ("stream", "timed_stream", "upstream")


def names(case: dict[str, Any], *, protocol: bool) -> set[str]:
    """What is found in the tapes of a case, with the protocol given or recognised."""
    return {
        finding.id
        for dialect, tape in of_case(case)
        for finding in examine(tape, protocol=dialect if protocol else None).findings
    }


def test_the_cases_with_findings_are_of_the_kinds_played_here() -> None:
    assert {case["given"]["type"] for case in JUDGED} <= set(UPSTREAM)
    assert len(JUDGED) >= 26


@pytest.mark.parametrize("given", [True, False], ids=["protocol given", "protocol recognised"])
@pytest.mark.parametrize("case", JUDGED, ids=lambda case: str(case["id"]))
def test_a_case_names_what_is_wrong_and_nothing_else(case: dict[str, Any], given: bool) -> None:
    found = names(case, protocol=given)
    assert set(case["expect"].get("findings", ())) <= found
    assert not set(case["expect"].get("no_findings", ())) & found


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["given"]["type"] in ("stream", "timed_stream") and "text" in case["expect"]],
    ids=lambda case: str(case["id"]),
)
def test_the_text_of_a_case_is_what_a_right_reader_has(case: dict[str, Any]) -> None:
    ((_, tape),) = of_case(case)
    expected = case["expect"]["text"].encode("utf-16", "surrogatepass").decode("utf-16")
    assert examine(tape).text == expected
