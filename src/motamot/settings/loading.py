"""Reading the settings: the file, the environment over it, and what is wrong with either, in words and by line."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError

from motamot.errors import SettingsError
from motamot.settings import places
from motamot.settings.schema import Settings

__all__ = ["FILE_NAME", "load", "settings_file"]

_logger = logging.getLogger("motamot.settings")

FILE_NAME = "motamot.toml"
"""Read from the current folder where no other file is named."""

PREFIX = "MOTAMOT_"
FILE_BYTES = 1_000_000
"""More than any settings: a database or a model named by mistake is not read into memory."""

_PROBLEMS_TOLD = 10


def load(file: str | Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings: what the environment says, over what the file says.

    file:    the file to read; None: the one `MOTAMOT_SETTINGS` names, else `motamot.toml` in the current folder, else
             none at all.
    environ: `MOTAMOT_STORE__DATABASE`, `MOTAMOT_ASSISTANTS__<NAME>__<KEY>` and so on: the keys' path in capitals,
             joined by two underscores, every character of a name that is not a letter or digit as one. Text is taken
             as it is, anything else is JSON. `MOTAMOT_DATABASE` is the short form of the first.
    Raises:  SettingsError naming file and line, or the variable, and what was expected there, for all that is wrong.
    """
    found = settings_file(file, environ)
    data, where = _read(found) if found is not None else ({}, _Places())
    if found is not None:
        _resolve_paths(data, found.parent)
    where.variables.update(_put_environment_over(data, environ))
    try:
        settings = Settings.model_validate(data, strict=True)
    except ValidationError as error:
        raise SettingsError(_told(error, where)) from None
    for name, assistant in settings.assistants.items():
        path = ("assistants", name, "api_key")
        if assistant.api_key is not None and not where.in_environment(path):
            _logger.warning("%s holds a key itself; api_key_env, the name of a variable, keeps it out", where.of(path))
    return settings


@dataclass(slots=True)
class _Places:
    """Where each setting was given."""

    file: Path | None = None
    lines: dict[places.Path, int] = field(default_factory=dict)
    variables: dict[places.Path, str] = field(default_factory=dict)  # path -> environment variable

    def in_environment(self, path: places.Path) -> str | None:
        """The variable that gave the setting at `path`, or what it is part of, or made it exist; None: the file did."""
        above = (self.variables.get(path[:length]) for length in range(len(path), 0, -1))
        if found := next((name for name in above if name), None):
            return found
        if path in self.lines:
            return None
        return next((name for given, name in self.variables.items() if given[: len(path)] == path), None)

    def of(self, path: places.Path) -> str:
        """`motamot.toml, line 7: assistants.default.model`, or the variable's name."""
        if variable := self.in_environment(path):
            return f"the environment variable {variable}"
        line = self.line(path)
        at = f"{self.file}, line {line}" if line else f"{self.file}"
        return f"{at}: {_dotted(path)}" if path else at

    def line(self, path: places.Path) -> int:
        """The line of the setting at `path`, or of the nearest table it is missing from; 0 where there is none."""
        return next((line for end in range(len(path), 0, -1) if (line := self.lines.get(path[:end]))), 0)


# The file


def settings_file(file: str | Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Which file `load` reads; None: none. Raises: SettingsError for another user's, unless it is named."""
    named = file or environ.get("MOTAMOT_SETTINGS")
    if named:
        return Path(named).expanduser()
    here = Path(FILE_NAME)
    try:
        owner = here.stat().st_uid
    except OSError:
        return None
    # Hygiene: in a shared folder, somebody else's file must not send questions and keys where they like.
    if hasattr(os, "geteuid") and owner not in (os.geteuid(), 0):
        raise SettingsError(
            f"{FILE_NAME} in this folder belongs to another user and is not read by itself; if you trust it, name it: "
            f"--settings {FILE_NAME}"
        )
    return here


def _read(file: Path) -> tuple[dict[str, Any], _Places]:
    try:
        with file.open("rb") as opened:
            raw = opened.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise SettingsError(f"there is no settings file {file}") from None
    except OSError as error:
        raise SettingsError(f"the settings file {file} cannot be read: {error.strerror or error}") from error
    if len(raw) > FILE_BYTES:
        raise SettingsError(f"the settings file {file} has more than {FILE_BYTES} bytes; is it the right file?")
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file}, line {line}: not UTF-8; save the file in that encoding") from None
    try:
        data = tomllib.loads(text)
        return data, _Places(file, places.lines_of(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}, line {_syntax(str(error), text)}") from None
    except RecursionError:
        raise SettingsError(f"{file}: lists or tables nested too deep") from None


def _syntax(words: str, text: str) -> str:
    """`3: not TOML: …` from what tomllib says, with a line also where it only says that something has no end."""
    if found := re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", words, re.DOTALL):
        return f"{found[2]}: not TOML: {found[1]} (column {found[3]})"
    words = words.removesuffix(" (at end of document)")
    try:
        places.lines_of(text)
    except places.Lost as lost:
        return f"{lost.line}: not TOML: {words}"
    return f"{text.count(chr(10)) + 1}: not TOML: {words}"


_PATHS = {
    "store": ("database",),
    "server": ("tls_cert", "tls_key", "v1_keys_file", "operator_key_file", "log"),
}


def _resolve_paths(data: dict[str, Any], folder: Path) -> None:
    """Paths in a file are beside it, whatever folder the command runs in."""
    assistants = data.get("assistants")
    tables = [table for table in assistants.values() if isinstance(table, dict)] if isinstance(assistants, dict) else []
    paths = [(table, key) for table in tables for key in ("gguf", "ca_file", "knowledge")]
    store = data.get("store")
    if isinstance(store, dict) and isinstance(named := store.get("redact"), str):
        where, colon, function = named.rpartition(":")
        if where.endswith(".py"):
            store["redact"] = f"{folder / Path(where).expanduser()}{colon}{function}"
    for section, keys in _PATHS.items():
        table = data.get(section)
        if isinstance(table, dict):
            paths += [(table, key) for key in keys]
    for table, key in paths:
        value = table.get(key)
        if isinstance(value, str) and value.strip() and "://" not in value and value not in (":memory:", "-"):
            table[key] = str(folder / Path(value).expanduser())


# The environment


def _put_environment_over(data: dict[str, Any], environ: Mapping[str, str]) -> Iterator[tuple[places.Path, str]]:
    """Put the variables' values into `data`; gives each setting's path and the variable it came from."""
    for variable, value in sorted(environ.items()):
        if not value:
            continue  # how compose files and shells say "not set"
        parts = variable.removeprefix(PREFIX).lower().split("__")
        if variable == "MOTAMOT_DATABASE":
            parts = ["store", "database"]
        elif not variable.startswith(PREFIX) or len(parts) == 1:
            continue  # another program's, or one of ours that is no setting: MOTAMOT_DEBUG, MOTAMOT_CACHE, …
        if parts[0] == "assistants":
            known = data.get("assistants")
            names = {_folded(name): name for name in known} if isinstance(known, dict) else {}
            parts[1] = names.get(_folded(parts[1]), parts[1])
        table = data
        for part in parts[:-1]:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):  # the file is wrong there, and is told so
                break
            table = inner
        else:
            table[parts[-1]] = value if _is_text(parts) else _json(value)
            yield tuple(parts), variable


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.casefold())


def _json(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value  # the check of its type says what was expected


def _is_text(path: list[str]) -> bool:
    section = _section(tuple(path[:-1]))
    if section is None or path[-1] not in section.model_fields:
        return True
    annotation = section.model_fields[path[-1]].annotation
    return any(kind in (str, SecretStr) or isinstance(kind, str) for kind in _leaves(annotation))


def _leaves(annotation: Any) -> Iterator[Any]:
    """What a value of this type can be: `str | None` gives both, `Literal["a"]` its "a", `list[str]` the list."""
    if get_origin(annotation) in (Union, UnionType, Literal):
        for part in get_args(annotation):
            yield from _leaves(part)
    elif get_origin(annotation) is Annotated:
        yield from _leaves(get_args(annotation)[0])
    else:
        yield annotation


# What is wrong


def _section(path: places.Path) -> type[BaseModel] | None:
    """The section at `path`, as a class; None where it is no section of ours."""
    section: type[BaseModel] = Settings
    keys = list(path)
    while keys:
        name = str(keys.pop(0))
        if section is Settings and name == "assistants":
            if not keys:
                return None
            keys.pop(0)
        if name not in section.model_fields:
            return None
        annotation = section.model_fields[name].annotation
        inner = (kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type))
        found = next((kind for kind in inner if issubclass(kind, BaseModel)), None)
        if found is None:
            return None
        section = found
    return section


def _told(error: ValidationError, where: _Places) -> str:
    """Every problem in a line of its own, in the order of the file."""
    told = []
    for problem in error.errors(include_url=False):
        path: places.Path = tuple(part for part in problem["loc"] if part != "[key]")
        context = problem.get("ctx", {})
        if problem["type"] == "contradiction":
            path = (*path, context["key"])
        told.append((where.line(path), where.of(path) + _words(problem["type"], path, problem, context)))
    lines = [line for _, line in sorted(told, key=lambda pair: pair[0])]
    if len(lines) > _PROBLEMS_TOLD:
        lines[_PROBLEMS_TOLD:] = [f"and {len(lines) - _PROBLEMS_TOLD} more"]
    return "\n".join(lines)


_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a table",
    "model": "a table",
    "finite": "a finite number",
}
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "text"),
    (int, "a whole number"),
    (float, "a number with a fraction"),
    (list, "a list"),
    (dict, "a table"),
)


def _words(kind: str, path: places.Path, problem: Any, context: dict[str, Any]) -> str:
    """The rest of a sentence that begins with the setting. A value is never repeated: it may be a key."""
    if kind == "extra_forbidden":
        return f" is not a setting{_meant(path)}"
    if kind == "missing":
        return " is missing"
    if kind in ("contradiction", "value_error"):
        return f": {context.get('words') or context.get('error')}"
    if kind in ("greater_than", "greater_than_equal"):
        least = f"more than {context['gt']:g}" if kind == "greater_than" else f"{context['ge']:g} or more"
        return f" must be {least}"
    if kind == "less_than_equal":
        return f" must be {context['le']:g} or less"
    if kind == "literal_error":
        return f" must be {context['expected']}".replace("'", '"')
    expected = _EXPECTED.get(kind.split("_")[0])
    if expected is None:
        return f": {problem['msg']}"
    given = next((words for type_, words in _KINDS if isinstance(problem["input"], type_)), "a date or time")
    hint = "; `model` names it" if path[-1] == "local" and given == "text" else ""
    return f" must be {expected}, not {given}{hint}"


def _meant(path: places.Path) -> str:
    """The way out for a key that does not exist."""
    section = _section(path[:-1])
    if section is None:
        return ""
    known = sorted(section.model_fields)
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(known)}"


def _dotted(path: places.Path) -> str:
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            plain = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            words += ("." if words else "") + (part if plain else json.dumps(part))
    return words
