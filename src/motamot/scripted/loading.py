"""From plain values (a YAML or JSON file, Python lists and dicts) to scripts, with errors that say where and what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from motamot.scripted import bounds, checks
from motamot.scripted.patterns import Pattern, PatternError, compiled
from motamot.scripted.reading import read_turn
from motamot.scripted.script import Scripts, folded
from motamot.scripted.steps import Script, Turn
from motamot.scripted.values import Place, read_file

__all__ = ["load_scripts"]


def load_scripts(source: object) -> Scripts:
    """Scripts from a file's path, or from the values such a file would hold.

    source: a `Path` or `str` (a file; `.json` is JSON, anything else YAML), a dict with `scripts` and more,
            a list of steps (one answer to everything) or a list of lists of steps (one for each request, in order).
    Raises: ScriptError, naming file, line, script and step, and what was expected.
    """
    if isinstance(source, Scripts):
        return source
    if isinstance(source, str | Path):
        value, place = read_file(Path(source))
    else:
        value, place = source, Place()
    return _scripts(value, place)


def _scripts(value: Any, place: Place) -> Scripts:
    if value is None:
        raise place.error('holds nothing; expected "scripts:" or a list of steps')
    if isinstance(value, list):
        if value and all(isinstance(item, list) for item in value):
            return Scripts(
                requests=tuple(
                    _script(v, place.at(n, f"request {n + 1}"), f"request {n + 1}") for n, v in enumerate(value)
                )
            )
        only = _script(value, place, "the only script")
        return Scripts(scripts={only.name: only}, default=only)
    fields = checks.fields(value, place, {"scripts", "requests", "default", "models"}, 'a mapping with "scripts"')
    scripts: dict[str, Script] = {}
    for name, inner in checks.mapping(fields.get("scripts", {}), place.at("scripts"), "scripts by name").items():
        at = place.at("scripts").at(name, f'script "{name}"')
        if not checks.is_name(name):
            raise at.error("a script's name is letters and digits, with - . or _ inside")
        if folded(name) in scripts:
            raise at.error("there is another script with this name (upper and lower case are not told apart)")
        scripts[folded(name)] = _script(inner, at, name)
    if len(scripts) > bounds.SCRIPTS:
        raise place.at("scripts").error(f"at most {bounds.SCRIPTS} scripts")
    requests = None
    if "requests" in fields:
        at = place.at("requests")
        items = checks.items(fields["requests"], at, "a list of script names or of lists of steps")
        requests = tuple(_request(item, at.at(n, f"request {n + 1}"), n, scripts) for n, item in enumerate(items))
    if not scripts and requests is None:
        raise place.error('holds no script; expected "scripts:", "requests:" or a list of steps')
    default = _named(fields["default"], place.at("default", '"default"'), scripts) if "default" in fields else None
    models = fields.get("models", ["scripted"])
    if not isinstance(models, list) or not models or not all(isinstance(m, str) and m for m in models):
        raise place.at("models", '"models"').error(f"expected a list of model names; got {checks.shown(models)}")
    return Scripts(scripts=scripts, requests=requests, default=default, models=tuple(models))


def _request(value: Any, place: Place, number: int, scripts: dict[str, Script]) -> Script:
    if isinstance(value, str):
        return _named(value, place, scripts)
    return _script(value, place, f"request {number + 1}")


def _named(value: Any, place: Place, scripts: dict[str, Script]) -> Script:
    if not isinstance(value, str) or folded(value) not in scripts:
        known = ", ".join(script.name for script in scripts.values()) or "none"
        raise place.error(f"expected the name of a script ({known}); got {checks.shown(value)}")
    return scripts[folded(value)]


def _script(value: Any, place: Place, name: str) -> Script:
    if isinstance(value, str):  # `hello: Good morning.` says it
        value = [{"say": value}]
    if isinstance(value, list):
        return Script(name, (read_turn(value, place),))
    what = 'a list of steps, or a mapping with "steps" or "turns"'
    fields = checks.fields(value, place, {"steps", "turns", "match"}, what)
    if ("steps" in fields) == ("turns" in fields):
        raise place.error('expected either "steps" or "turns"')
    if "steps" in fields:
        turns: tuple[Turn, ...] = (read_turn(fields["steps"], place.at("steps")),)
    else:
        at = place.at("turns")
        items = checks.items(fields["turns"], at, "a list of turns, each a list of steps")
        turns = tuple(read_turn(item, at.at(n, f"turn {n + 1}")) for n, item in enumerate(items))
        if not turns:
            raise at.error("a script has at least one turn")
    contains, pattern = _match(fields["match"], place.at("match", '"match"')) if "match" in fields else ((), None)
    return Script(name, turns, contains=contains, pattern=pattern)


def _match(value: Any, place: Place) -> tuple[tuple[str, ...], Pattern | None]:
    """What a question must contain, all of it, and the regular expression that must be found in it."""
    if isinstance(value, str):
        value = {"contains": value}
    fields = checks.fields(value, place, {"contains", "regex"}, 'text, or a mapping with "contains" or "regex"')
    if not fields:
        raise place.error('expected "contains" or "regex"')
    contains: tuple[str, ...] = ()
    if "contains" in fields:
        at = place.at("contains")
        texts = fields["contains"]
        listed = checks.items([texts] if isinstance(texts, str) else texts, at, "text or a list of texts")
        contains = tuple(checks.text(text, at, "text") for text in listed)
        if not all(contains):
            raise at.error("expected text; got an empty one, which is in every question")
    if "regex" not in fields:
        return contains, None
    source = checks.text(fields["regex"], place.at("regex"), "a regular expression")
    try:
        return contains, compiled(source)
    except PatternError as error:
        raise place.at("regex").error(f"expected a regular expression: {error}") from error
