"""Where the answers come from: what the settings say, the environment, a server on this machine, the embedded model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from motamot.errors import ModelUnavailable, SettingsError
from motamot.limits import Limits
from motamot.model.download import fetch, find
from motamot.model.http import HttpModel
from motamot.model.known import DEFAULT, KNOWN, PACKAGED, KnownModel
from motamot.model.local import LOCAL_CONTEXT, LocalModel, check_gguf, check_runtime, limits_for
from motamot.model.recorded import RecordedModel
from motamot.model.request import endpoint
from motamot.model.servers import Server, find_servers, list_models
from motamot.model.turn import Model

__all__ = ["OPENAI_MODEL", "OPENAI_URL", "Choice", "Wanted", "resolve"]

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4.1-mini"  # asked for where nobody names one: cheap, quick to its first word, no hidden reasoning
_TOLD = 12  # names of models in a message

Ask: TypeAlias = Callable[[str], bool]
"""Puts a yes-or-no question to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What settings or options say about the model; all of it may be left out.

    upstream: address of an OpenAI-compatible API.  model: its name there, or that of a known embedded model.
    api_key:  its key.                              http:  further arguments of `HttpModel` (headers, proxy, …).
    local:    the embedded model answers.           gguf:  this file does.
    recorded: samples, which answer if nothing else is said, or, with `fallback` "recorded", if no model can be had.
    said_by:  the option or argument that names the source, for the words about it; None: the settings do.
    """

    upstream: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    http: Mapping[str, Any] = field(default_factory=dict, repr=False)
    local: bool = False
    gguf: str | Path | None = None
    recorded: tuple[str, ...] = ()
    fallback: str | None = None
    limits: Limits = field(default_factory=Limits)
    said_by: str | None = None

    @property
    def as_said(self) -> str:
        """Why what is named is chosen, in words."""
        return f"as {self.said_by} says" if self.said_by else "as the settings say"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model that will answer.

    make:   makes it; no I/O happens then, and nothing is bound to an event loop yet.
    name:   of the model.       why: what was chosen and why, one line for the user.
    labels: shown beside each answer: `demo_model`, `test_model`, `recorded`; none for a model of the user's own.
    limits: those asked for, lowered to what the model can keep: its context may be small.
    system, extra: a prompt and request fields that suit an embedded model, for an assistant that has none of its own.
    """

    make: Callable[[], Model]
    name: str
    why: str
    labels: tuple[str, ...] = ()
    limits: Limits
    system: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def resolve(
    wanted: Wanted,
    *,
    ask: Ask | None,
    say: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
    proceed: bool = False,
    embedded: bool = True,
    hub: str | None = None,
) -> Choice:
    """Choose what answers. Blocks: it may look at ports of this machine, and download a model.

    The order: 1. what `wanted` says; 2. `OPENAI_BASE_URL`, `OPENAI_API_KEY`, else `AI_URL`; 3. an Ollama or llama.cpp
    server on this machine; 4. the embedded model, with consent where it has to be downloaded.

    ask:      asks the user; None where nobody can be asked.
    say:      takes one sentence for the user at a time.
    proceed:  take consent for given (`--yes`; a server without a terminal). Else, with `ask` None, a download is
              refused with a sentence that says what would have been done.
    embedded: whether 4. may be.   hub: its address, for 4.
    Raises:   SettingsError for settings that cannot work or name a model that is not there (what is there is listed);
              ModelUnavailable where no model can be had, unless `wanted.fallback` is "recorded".
    """
    consent = _Consent(ask, say, proceed)
    try:
        choice = _resolved(wanted, consent, environ, embedded, hub)
        choice.make()  # what is wrong with the settings is to be said now
    except ModelUnavailable as problem:
        if wanted.fallback != "recorded" or not wanted.recorded:
            raise
        say(problem.message)
        return _recorded(wanted, problem.message)
    return choice


def _resolved(wanted: Wanted, consent: _Consent, environ: Mapping[str, str], embedded: bool, hub: str | None) -> Choice:
    if wanted.upstream:
        return _upstream(wanted, wanted.upstream, wanted.api_key, environ, wanted.as_said)
    if wanted.gguf:
        return _gguf(wanted, Path(wanted.gguf).expanduser())
    if wanted.local:
        return _embedded(wanted, consent, environ, hub, wanted.as_said)
    if wanted.recorded and wanted.fallback != "recorded":
        return _recorded(wanted, f"{wanted.said_by} asks for them" if wanted.said_by else "the settings ask for them")
    url, key = environ.get("OPENAI_BASE_URL"), wanted.api_key or environ.get("OPENAI_API_KEY")
    if url or key:
        because = "because OPENAI_BASE_URL is set" if url else "because a key for it is there"
        return _upstream(wanted, url or OPENAI_URL, key, environ, because)
    if url := environ.get("AI_URL"):
        return _upstream(wanted, url, None, environ, "because AI_URL is set")
    servers = find_servers(environ)
    if (found := _found(wanted, servers)) is not None:
        return found
    for server in servers:
        if server.problem:
            consent.say(server.problem)
    if wanted.model is not None and wanted.model not in KNOWN:
        raise _unknown(wanted.model, servers, embedded)
    if not embedded:
        raise ModelUnavailable(_ways_out("There is no model to ask."), reason="none")
    return _embedded(wanted, consent, environ, hub, "because no upstream, key or model server was found")


# Behind an address --------------------------------------------------------------------------------------------------


def _upstream(wanted: Wanted, url: str, key: str | None, environ: Mapping[str, str], because: str) -> Choice:
    named = wanted.model or environ.get("OPENAI_MODEL")
    if key is None and _same_server(url, environ.get("OPENAI_BASE_URL") or OPENAI_URL):
        key = environ.get("OPENAI_API_KEY")  # a key goes nowhere but where it belongs
    if named:
        name = named
    elif _same_server(url, OPENAI_URL):
        name, because = OPENAI_MODEL, f"{because}; another model: --model or OPENAI_MODEL"
    else:
        passed = {name: wanted.http[name] for name in ("headers", "proxy", "ca_file") if wanted.http.get(name)}
        names = list_models(url, api_key=key, **passed)
        if not names:
            raise SettingsError(f"{url} lists no models: say which one is wanted, with --model or OPENAI_MODEL")
        name, because = names[0], f"{because}; the first model that it lists"
    make = partial(HttpModel, url, name, api_key=key, limits=wanted.limits, **wanted.http)
    return Choice(make=make, name=name, why=f"{name} at {_shown(url)}, {because}", limits=wanted.limits)


def _same_server(url: str, other: str) -> bool:
    try:
        one, two = urlsplit(endpoint(url)), urlsplit(endpoint(other))
    except SettingsError:  # told where the address is used
        return False
    return (one.scheme, one.hostname, one.port) == (two.scheme, two.hostname, two.port)


def _shown(url: str) -> str:
    """The address without its query, which may hold a key."""
    return urlsplit(url)._replace(query="").geturl()


# On this machine ----------------------------------------------------------------------------------------------------


def _found(wanted: Wanted, servers: list[Server]) -> Choice | None:
    for server in servers:
        if server.problem is not None:
            continue
        name = server.models[0] if wanted.model is None else server.named(wanted.model)
        if name is None:
            continue
        because = f"from {server.kind}, which runs at {_shown(server.url)}"
        if wanted.model is None and len(server.models) > 1:
            because += f"; the first of {len(server.models)}, another: --model"
        make = partial(HttpModel, server.url, name, limits=wanted.limits, **wanted.http)
        return Choice(make=make, name=name, why=f"{name} {because}", limits=wanted.limits)
    return None


def _unknown(model: str, servers: list[Server], embedded: bool) -> SettingsError:
    lines = [f"{server.kind} has {_listed(server.models)}" for server in servers if server.models]
    if embedded:
        lines.append(f"embedded ones are {_listed(tuple(KNOWN))}")
    there = "; ".join(lines) or "no model server runs here"
    return SettingsError(
        f"no model {model!r} is on this machine: {there}. For a model elsewhere, give the address of its server: "
        f"--upstream or OPENAI_BASE_URL"
    )


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _TOLD
    return ", ".join(names[:_TOLD]) + (f" and {more} more" if more > 0 else "")


# Embedded -----------------------------------------------------------------------------------------------------------


class _Consent:
    """The user's yes or no, however it is had."""

    def __init__(self, ask: Ask | None, say: Callable[[str], None], proceed: bool) -> None:
        self._ask = ask
        self._proceed = proceed
        self.say = say

    def to_download(self, model: KnownModel) -> None:
        """Tells size, origin and licence. Raises ModelUnavailable (`refused`) without a yes."""
        if self._proceed:
            self.say(f"{model.offer()}.")
            return
        if self._ask is None:
            would = f"Nobody can be asked here whether to fetch a model ({model.offer()}): --yes allows it."
            raise ModelUnavailable(_ways_out(would) + _smaller(model), reason="refused")
        if not self._ask(f"{model.offer()}. Fetch it?"):
            raise ModelUnavailable(_ways_out("Without a model there is no answer.") + _smaller(model), reason="refused")


def _smaller(model: KnownModel) -> str:
    """The known models with less to download, as a further line of the ways out."""
    known = sorted(KNOWN.values(), key=lambda other: other.download)
    named = [
        f"--local --model {other.name} ({other.download / 1e6:,.0f} MB"
        + (" to download, to try things out and for nothing else)" if other is PACKAGED else ")")
        for other in known
        if other.download < model.download
    ]
    return f"\nA smaller model: {' or '.join(named)}." if named else ""


def _embedded(wanted: Wanted, consent: _Consent, environ: Mapping[str, str], hub: str | None, because: str) -> Choice:
    model = KNOWN.get(wanted.model or DEFAULT.name)
    if model is None:
        raise SettingsError(
            f"there is no embedded model {wanted.model!r}, only {_listed(tuple(KNOWN))}; any other is given as a file"
        )
    try:
        check_runtime()
    except ModelUnavailable as missing:
        raise ModelUnavailable(_ways_out(missing.message), reason="missing") from missing
    try:
        path = _file_of(model, consent, environ, hub)
    except ModelUnavailable as problem:
        if model is not DEFAULT or wanted.model is not None or problem.reason not in ("unreachable", "damaged"):
            raise
        consent.say(problem.message)
        consent.say(
            f"There is a smaller one instead, good enough to try things out and for nothing else: {PACKAGED.title}."
        )
        model, path = PACKAGED, _file_of(PACKAGED, consent, environ, hub)
    limits = wanted.limits
    if model.max_tokens is not None and limits.max_tokens == Limits().max_tokens:
        limits = replace(limits, max_tokens=model.max_tokens)
    why = f"{model.title}, on this machine, {because}"
    choice = _local(replace(wanted, limits=limits), path, model.name, model.marks, why)
    return replace(choice, system=model.system, extra=model.extra)


def _file_of(model: KnownModel, consent: _Consent, environ: Mapping[str, str], hub: str | None) -> Path:
    path = find(model, environ=environ)
    if path is None:
        consent.to_download(model)
        path = fetch(model, say=consent.say, environ=environ, endpoint=hub)
    return path


def _gguf(wanted: Wanted, path: Path) -> Choice:
    check_gguf(path)  # first: a wrong path is not to be found out after an installation
    check_runtime()
    return _local(wanted, path, wanted.model, (), f"{path.name}, on this machine, {wanted.as_said}")


def _local(wanted: Wanted, path: Path, name: str | None, marks: tuple[str, ...], why: str) -> Choice:
    make = partial(LocalModel, path, name=name, marks=marks, limits=wanted.limits)
    return Choice(make=make, name=make().name, why=why, labels=marks, limits=limits_for(wanted.limits, LOCAL_CONTEXT))


# Neither ------------------------------------------------------------------------------------------------------------


def _recorded(wanted: Wanted, reason: str) -> Choice:
    return Choice(
        make=partial(RecordedModel, wanted.recorded, reason, limits=wanted.limits),
        name=RecordedModel.name,
        why=f"recorded samples, because {reason[:1].lower()}{reason[1:].removesuffix('.')}",
        labels=RecordedModel.marks,
        limits=wanted.limits,
    )


def _ways_out(problem: str) -> str:
    return (
        f"{problem}\nSet OPENAI_API_KEY, or give an address (--upstream URL, OPENAI_BASE_URL) or a model file "
        f"(--gguf FILE), or start Ollama or a llama.cpp server on this machine."
    )
