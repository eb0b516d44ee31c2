"""From settings to an assistant that can be asked."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from motamot.assistant import Assistant
from motamot.errors import SettingsError
from motamot.exchange.exchange import Visible
from motamot.limits import Limits
from motamot.model.assembly import Dialect
from motamot.model.sources import Ask, Choice, Wanted, resolve
from motamot.model.turn import Model
from motamot.settings.hooks import hook
from motamot.settings.schema import AssistantSettings, Settings
from motamot.store.location import default_database
from motamot.store.prices import Prices

__all__ = ["DEFAULT_NAME", "assistant_from", "chosen", "database", "limits", "wanted"]

_logger = logging.getLogger("motamot.settings")

DEFAULT_NAME = "default"


def database(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Where the database is, as a path or URL: as the settings say, else where this system keeps a user's data."""
    return settings.store.database or default_database(environ)


def chosen(settings: Settings, name: str | None = None) -> tuple[str, AssistantSettings]:
    """The assistant of this name with its settings; without a name the one called `default`, or the only one.

    No assistant at all is one called `default` with nothing set. Raises: SettingsError.
    """
    known = settings.assistants
    if name is None and len(known) == 1:
        (name,) = known
    name = name or DEFAULT_NAME
    if name in known:
        return name, known[name]
    if not known and name == DEFAULT_NAME:
        return name, AssistantSettings()
    there = f"there are: {', '.join(known)}" if known else "the settings have none"
    if close := difflib.get_close_matches(name, known, n=1):
        there = f"did you mean {close[0]}?"
    raise SettingsError(f"the settings have no assistant called {name!r}; {there}")


def limits(assistant: AssistantSettings) -> Limits:
    """Its limits: ours where it says nothing."""
    return Limits(**_given(assistant.limits))


def wanted(assistant: AssistantSettings, environ: Mapping[str, str] = os.environ) -> Wanted:
    """What the settings say about the model, for `motamot.model.sources.resolve`.

    Raises: SettingsError where the variable that is to hold the key is not set.
    """
    http: dict[str, Any] = {
        "headers": assistant.headers,
        "proxy": assistant.proxy,
        "ca_file": assistant.ca_file,
        "token_field": assistant.token_field,
        "ask_usage": assistant.ask_usage,
        "dialect": Dialect(**_given(assistant.dialect)),
    }
    given = assistant.model_fields_set
    return Wanted(
        upstream=assistant.upstream,
        model=assistant.model,
        api_key=_key(assistant, environ),
        http={name: value for name, value in http.items() if name in given},
        local=assistant.local,
        gguf=assistant.gguf,
        recorded=tuple(assistant.recorded),
        fallback=assistant.fallback,
        limits=limits(assistant),
    )


def assistant_from(
    settings: Settings,
    name: str | None = None,
    *,
    choice: Choice | None = None,
    model: Model | None = None,
    ask: Ask | None = None,
    say: Callable[[str], None] = _logger.info,
    proceed: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Assistant:
    """The assistant of this name, as `chosen` finds it, ready to be asked. Blocks where `resolve` does.

    choice: of the model, where it was made before; else it is made here, with `ask`, `say` and `proceed`.
    model:  made from that choice: it is then the caller's to close. Else the assistant makes and closes its own.
    Raises: SettingsError, ModelUnavailable.
    """
    name, its = chosen(settings, name)
    choice = choice or resolve(wanted(its, environ), ask=ask, say=say, proceed=proceed, environ=environ)
    stand_in = its.fallback == "recorded" and "recorded" not in choice.labels
    arguments: dict[str, Any] = {
        "name": name,
        "system": its.system if its.system is not None else choice.system,
        "store": database(settings, environ),
        "limits": choice.limits,
        "visible": Visible(**_given(its.visible)),
        "extra": {**choice.extra, **its.extra},
        "prices": Prices(**_given(its.prices)) if its.prices is not None else None,
        "recorded": its.recorded if stand_in else (),
        "origins": its.origins,
        "redact": hook(settings.store.redact) if settings.store.redact is not None else None,
        "retention_days": settings.store.retention_days,
        "knowledge": its.knowledge,
        "knowledge_mode": its.knowledge_mode,
        "knowledge_overview_tokens": its.knowledge_overview_tokens,
    }
    if its.opening is not None:
        arguments["opening"] = its.opening
    if model is not None:
        return Assistant(upstream=model, **arguments)
    return _Configured(choice.make, **arguments)


class _Configured(Assistant):
    """Makes its model when it is opened, and closes it after: nobody else has it."""

    def __init__(self, make: Callable[[], Model], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._make = make

    def _model(self) -> Model:
        return self._make()


def _given(section: Any) -> dict[str, Any]:
    given: dict[str, Any] = section.model_dump(exclude_unset=True)
    return given


def _key(assistant: AssistantSettings, environ: Mapping[str, str]) -> str | None:
    if assistant.api_key_env is not None:
        key = environ.get(assistant.api_key_env, "").strip()
        if not key:
            raise SettingsError(
                f"the key is to be in the environment variable {assistant.api_key_env}, which is not set"
            )
        return key
    return assistant.api_key.get_secret_value() if assistant.api_key is not None else None
