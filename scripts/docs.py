"""Make the generated pages of docs/ from the code; `--check` fails where one is stale."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec
import typer.main

from motamot import answer
from motamot.exchange.states import diagram
from motamot.limits import Limits

ROOT = Path(__file__).parent.parent
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
    kinds = [value for value in vars(answer).values() if isinstance(value, type)]
    events = [kind for kind in kinds if issubclass(kind, answer.AnswerEvent) and kind is not answer.AnswerEvent]
    for kind in [*events, answer.Usage]:
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
    from motamot.cli import app

    command = typer.main.get_command(app)
    lines = ["# Commands", "", "What `motamot --help` and the help of each command say.", ""]
    for path, each in _commands("motamot", command):
        context = click.Context(each, info_name=path, terminal_width=100, max_content_width=100, color=False)
        lines += [f"## {path}", "", "```text", _help(each, context), "```", ""]
    return NOTE + "\n".join(lines).rstrip() + "\n"


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(f"{path} {name}", child)


def _help(command: click.Command, context: click.Context) -> str:
    """Plain help: what click writes, without the terminal's boxes."""
    formatter = context.make_formatter()
    click.Command.format_usage(command, context, formatter)
    click.Command.format_help_text(command, context, formatter)
    click.Command.format_options(command, context, formatter)
    if isinstance(command, click.Group):
        click.Group.format_commands(command, context, formatter)
    return "\n".join(line.rstrip() for line in formatter.getvalue().rstrip().splitlines())


def architecture_page() -> str:
    """docs/architecture.md is written by hand; the diagram in it is made from the table of states."""
    text = (DOCS / "architecture.md").read_text("utf-8")
    before, _, rest = text.partition("<!-- states -->\n")
    _, _, after = rest.partition("<!-- /states -->")
    return f"{before}<!-- states -->\n```mermaid\n{diagram()}\n```\n<!-- /states -->{after}"


PAGES: dict[str, Callable[[], str]] = {
    "limits.md": limits_page,
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
