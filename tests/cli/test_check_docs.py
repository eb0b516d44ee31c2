"""docs/symptoms.md and docs/check.md: the findings they name exist, the commands they show parse."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from motamot.cli.commands import application
from motamot.exam.page_faults import PAGE_FAULTS
from motamot.findings.faults import FAULTS
from tests.cli.support import Place

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = ("symptoms.md", "check.md")
FINDING = re.compile(r"\[`([a-z-]+)`\]\((findings|check)\.md#([a-z-]+)\)")


def commands() -> list[str]:
    found = []
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL):
            found += [line[2:] for line in block.splitlines() if line.startswith("$ motamot ")]
    return found


def headings(page: str) -> set[str]:
    """The places of a page that a link can lead to, as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", (DOCS / page).read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_finding_that_symptoms_name_exists_and_is_explained() -> None:
    named = FINDING.findall((DOCS / "symptoms.md").read_text("utf-8"))
    assert len(named) > 40
    for name, page, place in named:
        assert name == place
        assert name in (FAULTS if page == "findings" else PAGE_FAULTS), name
        assert place in headings(f"{page}.md"), place


def test_symptoms_name_every_finding_that_a_user_may_notice() -> None:
    """Left out is what shows in no symptom of its own, or only to a developer."""
    named = {name for name, _, _ in FINDING.findall((DOCS / "symptoms.md").read_text("utf-8"))}
    unnoticed = {"choices-several", "finish-unknown-word", "legacy-function-call", "tool-call-not-object"}
    assert set(FAULTS) | set(PAGE_FAULTS) == named | unnoticed


def test_every_symptom_of_the_table_leads_to_a_place() -> None:
    text = (DOCS / "symptoms.md").read_text("utf-8")
    for place in re.findall(r"\]\(#([\w-]+)\)", text):
        assert place in headings("symptoms.md"), place
    for place in re.findall(r"\]\(#([\w-]+)\)", (DOCS / "check.md").read_text("utf-8")):
        assert place in headings("check.md"), place


def test_the_first_page_shows_a_finding_as_it_is_printed(place: Place) -> None:
    pieces = ["Four things:\n", "- tea\n- milk", "- bread\n- salt", "[DONE]"]
    (place.folder / "answer.txt").write_text("".join(f"data: {piece}\n\n" for piece in pieces), newline="")
    [shown] = re.findall(r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    done = place.run("check", "answer.txt")
    assert done.status == 1
    assert shown in done.out.decode()


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_parses(command: str) -> None:
    name, *arguments = shlex.split(command, comments=True)[1:]
    group: Any = typer.main.get_command(application([name]))
    with group.make_context("motamot", [name]) as context:
        _, found, _ = group.resolve_command(context, [name])
        found.make_context(name, arguments, parent=context)  # raises for what it does not take
