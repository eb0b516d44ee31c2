"""docs/peers/chatbots.md, from results.json and the findings in words."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import yaml

from bench.chatbots.stacks import LEFT_OUT, STACKS, Stack

__all__ = ["PAGE", "RESULTS", "findings", "page", "results"]

RESULTS = Path(__file__).parent / "results.json"
FINDINGS = Path(__file__).parent / "findings.yaml"
PAGE = Path(__file__).parent.parent.parent / "docs" / "peers" / "chatbots.md"

_PROMISES = ("exact", "live", "once", "stoppable", "accounted", "safe")

_HEAD = """\
<!-- Made by `make docs`; edit the code it comes from. -->

# What is lost in chatbots that nobody here wrote

Chatbots as their makers' documentation says to write them, a few lines each (`bench/chatbots/servers/`), examined by
[`motamot exam`](../exam.md): a scripted model behind, a visitor in front. All of it can be done again, with the
packages of PyPI and npm at the versions named here:

```sh
python -m bench.chatbots            # all of them
python -m bench.chatbots tutorial   # one
```

The findings were looked at on the wire by hand before they were written down (those of case 173, and of 407 for
LangGraph, rest on what the examination saw); of the notes that many programs share, in one to three of them. Each
names the [cases](../exam-cases.md) in which it shows. motamot runs with its limits on questions raised, LiteLLM with
its cool-downs off: the examination asks more in a minute than a visitor does in a week.

A row is what this program does as it stands, with the library's defaults. What a kind of stream cannot say, or a
chatbot has not got (a tool, a memory), is not judged and not counted; notes are not counted, either.

## Kept, of what could be judged

"""


def results() -> dict[str, Any]:
    """What the last examinations said."""
    if not RESULTS.exists():
        return {"stacks": {}}
    told: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return told


def findings() -> dict[str, Any]:
    """What was found, in words: `everywhere` and, by stack, `right` and `findings`."""
    told: dict[str, Any] = yaml.safe_load(FINDINGS.read_text("utf-8"))
    return told


def page() -> str:
    """The page. Raises: KeyError for a chatbot that has not been examined, or of which nothing is said."""
    found, words = results()["stacks"], findings()
    lines = [f"| chatbot | {' | '.join(_PROMISES)} |", f"| --- |{' --- |' * len(_PROMISES)}"]
    for stack in STACKS:
        cells = [_cell(found[stack.name]["kept"].get(promise)) for promise in _PROMISES]
        lines.append(f"| [{stack.title}](#{stack.name}) | {' | '.join(cells)} |")
    parts = [_HEAD, "\n".join(lines), "\n\n## Almost everywhere\n\n", *map(_finding, words["everywhere"])]
    parts += [_section(stack, found[stack.name], words["stacks"][stack.name]) for stack in STACKS]
    parts.append("\n## Left out\n\n")
    parts += [_wrapped(f"- **{name}** {why}", "  ") + "\n" for name, why in LEFT_OUT]
    return "".join(parts)


def _cell(kept: list[int] | None) -> str:
    if kept is None:
        return "–"
    return f"all {kept[1]}" if kept[0] == kept[1] else f"**{kept[0]} of {kept[1]}**"


def _section(stack: Stack, found: dict[str, Any], words: dict[str, Any]) -> str:
    packages = ", ".join(f"`{one}`" for one in (*stack.npm, *stack.pip)) or "this checkout"
    made = f"Made of {packages}; examined on {found['date']}."
    lost = "".join(map(_finding, words["findings"]))
    about = _wrapped(f"**{stack.title}.** {stack.about} {made}")
    return f"\n## {stack.name}\n\n{about}\n\n{_wrapped(words['right'])}\n" + (f"\n{lost}" if lost else "")


def _finding(told: dict[str, Any]) -> str:
    numbers = told["cases"]
    where = f"case{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return _wrapped(f"- {told['text'].strip()} ({where})", "  ") + "\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
