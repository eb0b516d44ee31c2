"""A script file as plain values, with the line where each of them stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from json.decoder import scanstring  # type: ignore[attr-defined]  # present in every CPython, missing in typeshed
from pathlib import Path
from typing import Any

import yaml

from motamot.errors import ScriptError
from motamot.scripted import bounds

__all__ = ["Path_", "Place", "read_file"]

Path_ = tuple[str | int, ...]
_PLAIN_TAGS = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file a value stands: for errors. line: finds the line of a path, where there is a file."""

    file: str | None = None
    line: Callable[[Path_], int | None] = lambda _: None
    path: Path_ = ()
    words: tuple[str, ...] = ()

    def at(self, key: str | int, *words: str) -> Place:
        """A value inside this one. words: what people call it (`script "hello"`, `step 3`)."""
        return replace(self, path=(*self.path, key), words=self.words + words)

    def error(self, message: str) -> ScriptError:
        line = self.line(self.path)
        where = [self.file] if self.file else []
        if line is not None:
            where.append(f"line {line}")
        where += self.words
        return ScriptError(f"{', '.join(where)}: {message}" if where else message)


def read_file(path: Path) -> tuple[Any, Place]:
    """The values of a YAML or JSON (`.json`) script file. Raises ScriptError."""
    try:
        with path.open("rb") as file:
            data = file.read(bounds.FILE_BYTES + 1)
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > bounds.FILE_BYTES:
        raise ScriptError(f"{path}: is larger than {bounds.FILE_BYTES // 1000} kB, the most a script file may have")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScriptError(f"{path}, line {line}: is not UTF-8 (byte {error.start})") from error
    return _json(text, str(path)) if path.suffix == ".json" else _yaml(text, str(path))


# JSON


def _json(text: str, file: str) -> tuple[Any, Place]:
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise ScriptError(f"{file}, line {error.lineno}: is not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise ScriptError(f"{file}: is nested deeper than {bounds.FILE_DEPTH} levels") from error
    except ValueError as error:
        raise ScriptError(f"{file}: is not JSON we take: it holds too large a number") from error
    place = Place(file, lambda path: _json_line(text, path))
    return _plain(value, place, [0]), place


class _Pairs(list[tuple[str, Any]]):
    """A JSON object before its keys are known to be different."""


def _plain(value: Any, place: Place, count: list[int]) -> Any:
    _bounded(place, count)
    if isinstance(value, _Pairs):
        found: dict[str, Any] = {}
        for key, inner in value:
            if key in found:
                raise place.at(key).error(f'the key "{key}" stands here twice')
            found[key] = _plain(inner, place.at(key), count)
        return found
    if isinstance(value, list):
        return [_plain(inner, place.at(n), count) for n, inner in enumerate(value)]
    return value


def _bounded(place: Place, count: list[int]) -> None:
    count[0] += 1
    if count[0] > bounds.FILE_VALUES:
        raise ScriptError(f"{place.file}: holds more than {bounds.FILE_VALUES} values (aliases are followed)")
    if len(place.path) > bounds.FILE_DEPTH:
        raise ScriptError(f"{place.file}: is nested deeper than {bounds.FILE_DEPTH} levels")


def _json_line(text: str, path: Path_) -> int | None:
    """The line at which the value at `path` stands; the last one of equal keys. The text is known to be JSON."""
    decoder = json.JSONDecoder()
    at = _after_space(text, 0)
    for step in path:
        if text[at] not in "[{":
            break
        named = text[at] == "{"
        found = None
        at = _after_space(text, at + 1)
        number = 0
        while text[at] not in "]}":
            key: str | int = number
            start = at
            if named:
                key, at = scanstring(text, at + 1)
                at = _after_space(text, _after_space(text, at) + 1)
            value_at = at
            _, at = decoder.raw_decode(text, at)
            if key == step:
                found = (start, value_at)
            number += 1
            at = _after_space(text, at)
            if text[at] == ",":
                at = _after_space(text, at + 1)
        if found is None:
            break
        at = found[1]
        last = found[0]
        if step is path[-1]:
            return text.count("\n", 0, last) + 1
    return text.count("\n", 0, at) + 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


# YAML


def _yaml(text: str, file: str) -> tuple[Any, Place]:
    try:
        # The pure-Python reader: the C one recurses on the C stack, and a file may be hostile.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise ScriptError(f"{file}{line}: is not YAML: {problem}") from error
    except yaml.YAMLError as error:
        raise ScriptError(f"{file}: is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ScriptError(f"{file}: is nested deeper than {bounds.FILE_DEPTH} levels") from error
    lines: dict[Path_, int] = {}
    place = Place(file, lambda path: _nearest(lines, path))
    return (None if node is None else _Values(lines).value(node, place)), place


def _nearest(lines: dict[Path_, int], path: Path_) -> int | None:
    return next((lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in lines), None)


class _Values:
    """Turns YAML nodes into plain values and notes their lines."""

    def __init__(self, lines: dict[Path_, int]) -> None:
        self._lines = lines
        self._count = [0]
        self._constructor = yaml.SafeLoader("")

    def value(self, node: yaml.Node, place: Place) -> Any:
        self._lines.setdefault(place.path, node.start_mark.line + 1)
        _bounded(place, self._count)
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_TAGS:
            raise place.error(f"does not know the tag {node.tag[:100]}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, place.at(n)) for n, inner in enumerate(node.value)]
        return self._scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, inner in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._lines[place.path] = key_node.start_mark.line + 1
                raise place.error("a key must be a word, not a list or a mapping")
            # `on: x` and `1: x` are names here, whatever YAML 1.1 makes of them.
            key = str(key_node.value)
            inside = place.at(key)
            self._lines[inside.path] = key_node.start_mark.line + 1
            if key == "<<" or key_node.tag == "tag:yaml.org,2002:merge":
                raise inside.error('merge keys ("<<") are not understood here')
            if key in found:
                raise inside.error(f'the key "{key}" stands here twice')
            found[key] = self.value(inner, inside)
        return found

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return str(node.value)  # to YAML a date, here the text that stands there
        try:
            value = self._constructor.construct_object(node)
        except yaml.MarkedYAMLError as error:
            raise place.error(f"cannot be read: {error.problem}") from error
        except (ValueError, OverflowError) as error:
            raise place.error("cannot be read: too large a number") from error
        return value
