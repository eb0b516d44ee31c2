"""What commands that ask have in common: the settings with the options over them, and what answers."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from motamot.cli.console import harmless, is_terminal, say
from motamot.errors import InvalidRequest, SettingsError

if TYPE_CHECKING:
    from motamot.model.sources import Choice
    from motamot.settings import AssistantSettings, Settings

__all__ = ["choose", "from_source", "option_of", "settings_of", "with_key", "with_options"]

_KEY_BYTES = 10_000


def choose(its: AssistantSettings, *, yes: bool, option: str | None, of: str = "") -> Choice:
    """What answers, told to the user in a line. yes: to a download. of: the assistant, where there are several.

    option: that names the source, as `option_of` gives it.
    Blocks; raises as `resolve`.
    """
    from motamot.cli.words import mark_words
    from motamot.model.sources import resolve
    from motamot.settings import wanted

    asks = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    choice = resolve(replace(wanted(its), said_by=option), ask=_confirm if asks else None, say=say, proceed=yes)
    say(f"{of}: {choice.why}" if of else choice.why)
    for mark in choice.labels:
        say(mark_words(mark))
    return choice


def _confirm(question: str) -> bool:
    """The answer; the end of the input (Ctrl-D) is a no. Raises: KeyboardInterrupt."""
    try:
        return typer.confirm(harmless(question), err=True)
    except typer.Abort as abort:  # Typer's word for both
        typer.echo(err=True)  # the cursor is still behind the question
        if isinstance(abort.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None


# What is set


def settings_of(
    file: Path | None, database: str | None, name: str | None, *, first: bool = False
) -> tuple[Settings, str, AssistantSettings]:
    """The settings, the assistant's name and its own settings. Raises: SettingsError.

    first: where none is named, and none of several is called `default`, the first of them is meant.
    """
    from motamot.settings import DEFAULT_NAME, chosen, load

    settings = load(file)
    if database is not None:
        settings.store.database = database
    if first and name is None and settings.assistants and DEFAULT_NAME not in settings.assistants:
        name = next(iter(settings.assistants))
    return settings, *chosen(settings, name)


_OF_SOURCE = frozenset(
    (
        *("upstream", "model", "api_key", "api_key_env", "headers", "proxy", "ca_file", "token_field", "ask_usage"),
        *("dialect", "local", "gguf", "fallback"),
    )
)


def option_of(*, upstream: str | None, gguf: str | None, local: bool, recorded: bool) -> str | None:
    """The option that names the source of answers; None where the settings do, or nobody does."""
    sources = {"--upstream": upstream, "--gguf": gguf, "--local": local, "--recorded": recorded}
    return next((option for option, value in sources.items() if value), None)


def from_source(
    its: AssistantSettings, *, upstream: str | None, gguf: str | None, local: bool, recorded: bool
) -> AssistantSettings:
    """The settings with another source of answers, where an option names one."""
    sources = {"upstream": upstream, "gguf": gguf, "local": local or None, "recorded": recorded or None}
    named = {key: value for key, value in sources.items() if value is not None}
    if len(named) > 1:
        options = " and ".join(f"--{key}" for key in named)
        raise InvalidRequest(f"{options} name more than one source of answers: choose one")
    if not named or (upstream is not None and upstream == its.upstream):
        return its
    if recorded and not its.recorded:
        raise SettingsError('there are no recorded samples: the settings need recorded = ["…"] for this assistant')
    kept = its.model_dump(exclude_unset=True)
    if recorded or gguf or local or its.upstream is not None:
        # A key, a model's name and the like belong to the source they were given for, and go to no other.
        stays = {"fallback"} if its.fallback and not recorded else set()
        kept = {key: value for key, value in kept.items() if key not in _OF_SOURCE - stays}
    if not recorded:
        kept = {key: value for key, value in kept.items() if key not in ("gguf", "local")} | named
        if its.fallback is None:
            kept.pop("recorded", None)  # they were the source
    return _checked(kept)


def with_key(its: AssistantSettings, variable: str | None, file: Path | None) -> AssistantSettings:
    """The settings with the key that the command line or MOTAMOT_API_KEY names."""
    if variable is not None and file is not None:
        raise InvalidRequest("--api-key-env and --api-key-file name two keys: choose one")
    kept = {key: value for key, value in its.model_dump(exclude_unset=True).items() if "api_key" not in key}
    if variable is not None:
        return _checked(kept | {"api_key_env": variable})
    if file is not None:
        try:
            with file.open("rb") as opened:
                key = opened.read(_KEY_BYTES + 1).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not plain text"
            raise SettingsError(f"the key cannot be read from {file}: {why}") from None
        if not key or len(key) > _KEY_BYTES or not key.isprintable():
            raise SettingsError(f"the file {file} is to hold a key, in one line, and nothing else")
        from pydantic import SecretStr

        return _checked(kept | {"api_key": SecretStr(key)})
    none_yet = its.upstream is not None and its.api_key is None and its.api_key_env is None
    if none_yet and os.environ.get("MOTAMOT_API_KEY"):
        return _checked(kept | {"api_key_env": "MOTAMOT_API_KEY"})
    return its


def with_options(its: AssistantSettings, **options: Any) -> AssistantSettings:
    """The settings with the options that were given put over them; those that are limits into the limits."""
    given = {key: value for key, value in options.items() if value is not None}
    limits = {key: given.pop(key) for key in ("max_tokens", "answer_timeout") if key in given}
    kept = its.model_dump(exclude_unset=True)
    if limits:
        given["limits"] = kept.get("limits", {}) | limits
    return _checked(kept | given) if given else its


_OPTIONS = {"max_tokens": "--max-tokens", "answer_timeout": "--timeout"}


def _checked(values: dict[str, Any]) -> AssistantSettings:
    """Raises: SettingsError naming the option that is wrong."""
    from pydantic import ValidationError

    from motamot.settings import AssistantSettings

    try:
        return AssistantSettings.model_validate(values, strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        context = problem.get("ctx", {})
        key = str(context.get("key") or problem["loc"][-1])
        words = context.get("words") or context.get("error") or problem["msg"]
        raise SettingsError(f"{_OPTIONS.get(key, '--' + key.replace('_', '-'))}: {words}") from None
