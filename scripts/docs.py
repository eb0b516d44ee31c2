"""Make the generated pages of docs/ from the code; `--check` fails where one is stale."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from motamot import answer
from motamot.exchange.states import diagram
from motamot.limits import Limits

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # tests/protocols and bench/chatbots write pages of theirs
DOCS = ROOT / "docs"
NOTE = "<!-- Made by `make docs`; edit the code it comes from. -->\n\n"


def limits_page() -> str:
    """docs/limits.md, from motamot.limits."""
    lines = [
        "# Limits",
        "",
        "Every buffer, queue and wait has a name, a unit, a default and a reason. Change any of them for an assistant:",
        "`Assistant(limits=Limits(tool_seconds=5))`, or in `motamot.toml` under `[assistants.<name>.limits]`.",
        "Sizes are bytes of UTF-8, kB = 1000.",
        "",
        "| limit | default | why |",
        "| --- | ---: | --- |",
    ]
    for field in dataclasses.fields(Limits):
        value = "none" if field.default is None else f"{field.default:,} {field.metadata['unit']}"
        lines.append(f"| `{field.name}` | {value} | {field.metadata['why']} |")
    return NOTE + "\n".join(lines) + "\n"


def events_page() -> str:
    """docs/reference/events.md, from motamot.answer."""
    lines = ["# Answer events", "", inspect.getdoc(answer) or "", ""]
    kinds: list[type[msgspec.Struct]] = [
        value for value in vars(answer).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    for kind in [kind for kind in kinds if kind not in (msgspec.Struct, answer.AnswerEvent)]:
        config = kind.__struct_config__
        lines += [f"## {kind.__name__}", "", inspect.getdoc(kind) or "", ""]
        if config.tag:
            lines += [f'On the native wire: `"type": "{config.tag}"`.', ""]
        lines += ["| field | type | default |", "| --- | --- | --- |"]
        for field in msgspec.structs.fields(kind):
            default = "required" if field.required else f"`{field.default!r}`"
            shown = inspect.formatannotation(field.type).replace("motamot.answer.", "").replace("|", "\\|")
            lines.append(f"| `{field.name}` | `{shown}` | {default} |")
        lines.append("")
    return NOTE + "\n".join(lines).rstrip() + "\n"


def commands_page() -> str:
    """docs/reference/commands.md, from the command line's own help."""
    general = _help()
    lines = ["# Commands", "", "What `motamot --help` and the help of each command say.", ""]
    lines += ["```text", general, "```", ""]
    listed = general.partition("Commands:\n")[2].splitlines()
    for name in [line.split()[0] for line in listed if re.match(r"  [a-z]", line)]:
        lines += [f"## motamot {name}", "", "```text", _help(name), "```", ""]
    return NOTE + "\n".join(lines).rstrip() + "\n"


def _help(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "motamot", *command, "--help"],
        env={**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def architecture_page() -> str:
    """docs/architecture.md is written by hand; the diagram in it is made from the table of states."""
    text = (DOCS / "architecture.md").read_text("utf-8")
    before, _, rest = text.partition("<!-- states -->\n")
    _, _, after = rest.partition("<!-- /states -->")
    return f"{before}<!-- states -->\n```mermaid\n{diagram()}\n```\n<!-- /states -->{after}"


def protocols_page() -> str:
    """docs/protocols.md, from the protocols and what they write."""
    from tests.protocols.make_docs import page

    return page()


def findings_page() -> str:
    """docs/findings.md, from the faults and the tapes that show them."""
    from tests.findings.make_docs import page

    return page()


def check_page() -> str:
    """docs/check.md is written by hand; what can be wrong with a page is told from the faults."""
    from motamot.exam.page_faults import PAGE_FAULTS

    text = (DOCS / "check.md").read_text("utf-8")
    before, _, rest = text.partition("<!-- findings of pages -->\n")
    _, _, after = rest.partition("<!-- /findings of pages -->")
    lines = []
    for fault in PAGE_FAULTS.values():
        title = f"{fault.title[0].upper()}{fault.title[1:]}"
        lines += [f"#### {fault.id}", "", f"{title} ({fault.promise}, {fault.level})."]
        lines += [f"{fault.harm} {fault.remedy}", "", f"Rule: {fault.clause}.", ""]
    told = "\n".join(lines)
    return f"{before}<!-- findings of pages -->\n\n{told}\n<!-- /findings of pages -->{after}"


def cases_page() -> str:
    """docs/exam-cases.md, from the cases of the examination."""
    from motamot.exam.case import cases
    from motamot.findings import Promise

    lines = ["# The cases of the examination", ""]
    lines += ["What [`motamot exam`](exam.md) holds a chatbot to. A number stays with its case.", ""]
    for promise in Promise:
        lines += [
            f"## {promise}",
            "",
            "| | case | level | rule | what is seen of it | remedy |",
            "| ---: | --- | --- | --- | --- | --- |",
        ]
        for case in cases():
            if case.promise is promise:
                told = (case.title, str(case.level), case.clause, case.harm, case.remedy)
                lines.append(f"| {case.number} | " + " | ".join(word.replace("|", "\\|") for word in told) + " |")
        lines.append("")
    return NOTE + "\n".join(lines)


def chatbots_page() -> str:
    """docs/peers/chatbots.md, from what the last examinations found and what is said of it."""
    from bench.chatbots.page import page

    return page()


PAGES: dict[str, Callable[[], str]] = {
    "limits.md": limits_page,
    "protocols.md": protocols_page,
    "findings.md": findings_page,
    "check.md": check_page,
    "exam-cases.md": cases_page,
    "peers/chatbots.md": chatbots_page,
    "architecture.md": architecture_page,
    "reference/events.md": events_page,
    "reference/commands.md": commands_page,
}


def main() -> int:
    """Write the pages, or compare them."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path = DOCS / name
        text = make()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if check and stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
