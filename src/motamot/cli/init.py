"""`motamot init`: a settings file with every setting in it, explained."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from motamot.cli.console import say, write_result
from motamot.errors import SettingsError

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["init", "text"]

_WIDTH = 100
_EXAMPLES: dict[str, Any] = {
    "hosts": ["chat.example"],
    "proxies": ["10.0.0.1"],
    "tls_cert": "/etc/ssl/chat.example.pem",
    "tls_key": "/etc/ssl/chat.example.key",
    "v1_keys_env": "CHAT_V1_KEYS",
    "v1_keys_file": "v1-keys.txt",
    "operator_key_env": "CHAT_OPERATOR_KEY",
    "operator_key_file": "operator-key.txt",
    "money_per_day": 5.0,
    "log": "completions.log",
    "database": "motamot.sqlite3",
    "retention_days": 30,
    "redact": "redact.py:redact",
    "upstream": "https://api.openai.com/v1",
    "model": "gpt-4.1-mini",
    "api_key_env": "OPENAI_API_KEY",
    "headers": {"X-Team": "buses"},
    "proxy": "http://proxy.example:3128",
    "ca_file": "authorities.pem",
    "token_field": "max_completion_tokens",
    "gguf": "model.gguf",
    "system": "You know the buses of this town. Answer in one or two sentences.",
    "opening": "Greet a bus traveller in one short sentence.",
    "origins": ["https://shop.example"],
    "knowledge": "help.db",
    "knowledge_mode": "given",
    "extra": {"temperature": 0.2},
    "recorded": ["The next bus leaves at ten past."],
    "fallback": "recorded",
    "answer_timeout": 30.0,
    "input": 0.4,
    "output": 1.6,
    "cached": 0.1,
}
"""A value to begin with, where the default is none."""

_WORDS = {
    "tool_arguments": "with what a tool was called, beside its name",
    "tool_results": "what it gave back, beside whether it worked",
    "reasoning": "what the model thinks before it answers, where it tells",
    "trace": "how an answer was routed",
    "input": "tokens read",
    "output": "tokens written",
    "cached": "tokens read that the provider had cached; as the others, where it is not set",
    "currency": "a word that is shown beside sums",
    "cumulative": "each delta repeats the text so far",
    "think_tags": "reasoning stands in the text, between <think> and </think>",
}
"""What the fields of tables mean that have no words of their own."""

_HEAD = """\
# Settings of motamot. What stands behind a # has its default, or is an example: take the # away to change it.
# `motamot serve --check` explains what these settings do; docs/settings.md tells more of each.
"""


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; -: standard output.")] = Path(
        "motamot.toml"
    ),
) -> None:
    """Write a settings file in which every setting is explained. It is valid as it is, and changes nothing yet.

    A file that is there is never overwritten. Exit status: 0 it is written, 2 it is not.
    """
    written = text()
    if str(file) == "-":
        write_result(written)
        return
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(written)
    except FileExistsError:
        raise SettingsError(f"{file} is there already, and is left as it is; name another: motamot init FILE") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}") from None
    say(f"written: {file}; next: motamot serve --check")


def text() -> str:
    """The file: made from the settings themselves, so that none is missing and none is wrong."""
    from motamot.exchange.exchange import Visible
    from motamot.limits import Limits
    from motamot.model.assembly import Dialect
    from motamot.settings import AssistantSettings, ServerSettings, StoreSettings
    from motamot.store.prices import Prices

    lines = [_HEAD]
    lines += ["[server]", *_keys(ServerSettings, skip=("limits",)), ""]
    lines += ["[store]", *_keys(StoreSettings), ""]
    lines += ["# Several assistants: one such table each, with a name of its own.", "[assistants.default]"]
    tables = ("limits", "visible", "prices", "dialect")
    lines += _keys(AssistantSettings, skip=("api_key", *tables))
    lines += _inline("prices", "money per million tokens, where the table does not know the model", Prices)
    lines += [*_inline("dialect", "faults of the model's server that are repaired", Dialect), ""]
    lines += ["[assistants.default.visible]", "# What visitors see of an answer beside its text.", *_of(Visible), ""]
    lines += ["[assistants.default.limits]", "# Sizes are bytes of UTF-8. The same table may stand as [server.limits]."]
    lines += _of(Limits)
    return "\n".join(lines) + "\n"


def _keys(section: type[BaseModel], *, skip: tuple[str, ...] = ()) -> list[str]:
    """Each setting of a section: what it is, then itself, behind a #."""
    lines = []
    for name, field in section.model_fields.items():
        if name not in skip:
            lines += _setting(name, field.description or "", field.get_default(call_default_factory=True))
    return lines


def _of(table: Any) -> list[str]:
    """The same of a dataclass: the words are in its fields, or in their names."""
    lines = []
    for field in dataclasses.fields(table):
        default = None if field.default is dataclasses.MISSING else field.default
        unit = field.metadata.get("unit", "")
        why = field.metadata.get("why", "")
        lines += _setting(field.name, f"{unit}; {why}" if why else _WORDS[field.name], default)
    return lines


def _inline(name: str, words: str, table: Any) -> list[str]:
    """A whole table as one setting: its fields mean something together, or where they are given at all."""
    fields = {field.name: field.default for field in dataclasses.fields(table)}
    value = {key: _EXAMPLES.get(key, default) for key, default in fields.items()}
    each = "; ".join(f"{key}: {_WORDS[key]}" for key in fields)
    return _setting(name, f"{words}. {each}", value)


def _setting(name: str, words: str, default: Any) -> list[str]:
    value = _EXAMPLES.get(name, default) if default in (None, [], {}) else default
    return [
        *textwrap.wrap(words.replace("`", ""), _WIDTH, initial_indent="# ", subsequent_indent="# "),
        f"#{name} = {_toml(value)}",
    ]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # TOML's strings, numbers and booleans are written as JSON's
