"""What can be set, section by section. Every setting here does something; docs/settings.md explains them."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, create_model, model_validator
from pydantic_core import PydanticCustomError

from motamot.assistant import check_name
from motamot.errors import SettingsError
from motamot.exchange.exchange import Visible
from motamot.limits import Limits
from motamot.model.assembly import Dialect
from motamot.model.request import check_extra, check_headers, endpoint
from motamot.settings.hooks import check_hook
from motamot.store.prices import Prices

__all__ = ["AssistantSettings", "ServerSettings", "Settings", "StoreSettings"]

T = TypeVar("T")

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


def _table(of: type[Any]) -> type[BaseModel]:
    """A section with the fields of a dataclass of ours, so that neither can have what the other has not."""
    hints = typing.get_type_hints(of)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(of):
        hint: Any = hints[field.name]
        if {int, float} & {hint, *typing.get_args(hint)}:
            hint = Annotated[hint, Field(ge=0) if of is Prices else Field(gt=0)]
        fields[field.name] = (hint, ... if field.default is dataclasses.MISSING else field.default)
    return create_model(of.__name__, __config__=_CONFIG, **fields)


if TYPE_CHECKING:
    _LimitsTable: TypeAlias = BaseModel
    _VisibleTable: TypeAlias = BaseModel
    _PricesTable: TypeAlias = BaseModel
    _DialectTable: TypeAlias = BaseModel
else:
    _LimitsTable, _VisibleTable, _PricesTable, _DialectTable = map(_table, (Limits, Visible, Prices, Dialect))


def _taken_by(check: Callable[[T], object]) -> AfterValidator:
    """The value is one that `check` takes without a SettingsError."""

    def validate(value: T) -> T:
        try:
            check(value)
        except SettingsError as error:
            raise ValueError(error.message) from None
        return value

    return AfterValidator(validate)


def _not_blank(text: str) -> None:
    if not text.strip():
        raise SettingsError("must not be empty")


def _is_origin(text: str) -> None:
    parts = urlsplit(text)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or text != f"{parts.scheme}://{parts.netloc}".lower()
    ):
        raise SettingsError("an origin is scheme, host and port and nothing more, as https://shop.example")
    if text.endswith({"http": ":80", "https": ":443"}[parts.scheme]):
        raise SettingsError("browsers leave out a scheme's own port: write https://shop.example without :443")
    if not re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]+)?", parts.netloc):
        raise SettingsError(
            "each origin is named in full, without *, and as browsers send it, as https://xn--bcher-kva.example"
        )


def _is_host(text: str) -> None:
    if text != "*" and not re.fullmatch(r"\[[0-9a-f:.]+\]|[a-z0-9_.-]+", text):
        raise SettingsError('a host is a name in small letters without a port, as "chat.example", or "*" for any')


def _is_network(text: str) -> None:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise SettingsError("a proxy is an address or a network, as 10.0.0.1 or 10.0.0.0/8") from None
    if network.prefixlen == 0:
        raise SettingsError("that is everybody: whoever likes could then say what address they come from")


Host = Annotated[str, _taken_by(_is_host)]
Network = Annotated[str, _taken_by(_is_network)]
Origin = Annotated[str, _taken_by(_is_origin)]
Named = Annotated[str, _taken_by(_not_blank)]
Address = Annotated[str, _taken_by(endpoint)]
Extra = Annotated[dict[str, Any], _taken_by(check_extra)]
Headers = Annotated[dict[str, str], _taken_by(check_headers)]
Hook = Annotated[str, _taken_by(check_hook)]
AssistantName = Annotated[str, _taken_by(check_name)]

_OF_UPSTREAM = ("api_key", "api_key_env", "headers", "proxy", "ca_file", "token_field", "ask_usage", "dialect")


class StoreSettings(BaseModel):
    """`[store]`: where conversations and the ledger are kept."""

    model_config = _CONFIG

    database: Named | None = Field(
        default=None, description="a file, or `sqlite:///…`; a relative one is beside this settings file"
    )
    retention_days: float | None = Field(
        default=None, gt=0, description="text older than that is removed by itself; without it, none is"
    )
    redact: Hook | None = Field(
        default=None,
        description='what every text goes through before it is written: `"module:function"`, or `"file.py:function"` '
        "beside this settings file, from str to str",
    )


class AssistantSettings(BaseModel):
    """`[assistants.<name>]`: one assistant. Where it names no model, docs/models.md says what answers."""

    model_config = _CONFIG

    upstream: Address | None = Field(
        default=None, description="address of an OpenAI-compatible API, as `https://api.openai.com/v1`"
    )
    model: Named | None = Field(
        default=None,
        description="the model's name there; for `local` which embedded one, for `gguf` a name of your own",
    )
    api_key_env: Named | None = Field(default=None, description="name of the environment variable that holds the key")
    api_key: SecretStr | None = Field(
        default=None, description="the key itself; better kept out of files: `api_key_env`"
    )
    headers: Headers = Field(default={}, description="further request headers, as Azure's `api-key`")
    proxy: Named | None = Field(
        default=None, description="`http://host:port`; else the environment's (`HTTPS_PROXY`, …)"
    )
    ca_file: Named | None = Field(
        default=None, description="certificate authorities (PEM) trusted instead of the system's"
    )
    token_field: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None, description="the request field of the token limit, where a server wants the other one"
    )
    ask_usage: bool = Field(default=True, description="`false` for a server that refuses `stream_options`")
    dialect: _DialectTable = Field(default_factory=_DialectTable, description="faults of the server that are repaired")
    local: bool = Field(default=False, description="the embedded model answers, on this machine")
    gguf: Named | None = Field(default=None, description="a model file (GGUF) that the embedded server runs")
    system: str | None = Field(default=None, description="the system prompt")
    opening: Named | None = Field(
        default=None, description="the question put to the model where a page opens a stream without one (`GET /flux`)"
    )
    origins: list[Origin] = Field(default=[], description="other sites whose pages may ask, as `https://shop.example`")
    knowledge: Named | None = Field(
        default=None, description="pages it answers from, a file of `motamot learn`; a relative one is beside this file"
    )
    knowledge_mode: Literal["tool", "given"] | None = Field(
        default=None,
        description="`tool`: the model searches them; `given`: passages stand before each question, for models without "
        "tools. Without it, `given` for the embedded model and `tool` for others",
    )
    knowledge_overview_tokens: int = Field(
        default=400, ge=0, description="how much of the system prompt the pages' titles may take"
    )
    extra: Extra = Field(default={}, description="further fields of each request, as `{ temperature = 0.2 }`")
    recorded: list[Named] = Field(
        default=[], description="sample answers: the first to the first question, the last repeats"
    )
    fallback: Literal["recorded"] | None = Field(
        default=None, description="`recorded`: the samples answer, marked, where the model cannot be asked"
    )
    limits: _LimitsTable = Field(default_factory=_LimitsTable, description="docs/limits.md")
    visible: _VisibleTable = Field(
        default_factory=_VisibleTable, description="what visitors see beside text and the names of tools"
    )
    prices: _PricesTable | None = Field(
        default=None, description="money per million tokens, where the table does not know"
    )

    @model_validator(mode="after")
    def _no_contradiction(self) -> AssistantSettings:
        given = self.model_fields_set
        if self.api_key is not None and self.api_key_env is not None:
            raise _contradiction("api_key", "api_key_env names another key: leave one of the two out")
        embedded = "gguf" if self.gguf is not None else "local" if self.local else None
        if self.upstream is not None and embedded:
            raise _contradiction(embedded, "upstream names another source of answers: leave one of the two out")
        if embedded:
            for name in _OF_UPSTREAM:
                if name in given:
                    raise _contradiction(name, f"it is for a model behind an address, and {embedded} is not one")
        for name in ("knowledge_mode", "knowledge_overview_tokens"):
            if name in given and self.knowledge is None:
                raise _contradiction(name, 'it needs the pages that it is about: knowledge = "help.db"')
        if self.fallback is not None and not self.recorded:
            raise _contradiction("fallback", 'it needs sample answers: recorded = ["…"]')
        if self.recorded and self.fallback is None and (self.upstream is not None or embedded):
            source = embedded or "upstream"
            raise _contradiction(
                "recorded",
                f'{source} answers already: say fallback = "recorded" to use them when it cannot, or leave one out',
            )
        return self


def _contradiction(key: str, words: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{words}", {"key": key, "words": words})


class ServerSettings(BaseModel):
    """`[server]`: how `motamot serve` listens, whom it lets in, and what strangers may spend."""

    model_config = _CONFIG

    host: Named = Field(default="127.0.0.1", description="address to listen on; `0.0.0.0` or `::` for all of them")
    port: int = Field(default=8000, ge=0, le=65535, description="0: any that is free")
    hosts: list[Host] = Field(
        default=[],
        description="names that browsers may call it by, as `chat.example`, beside localhost; `*`: any, which lets "
        "pages of other sites in by a name of their own",
    )
    proxies: list[Network] = Field(
        default=[],
        description="addresses of proxies in front, as `10.0.0.1`: they say who asks, and whether by https",
    )
    tls_cert: Named | None = Field(default=None, description="a certificate with its chain (PEM), to serve https")
    tls_key: Named | None = Field(default=None, description="its key (PEM), where that is another file")
    v1_keys_env: Named | None = Field(
        default=None,
        description="name of the environment variable with the keys of `/v1`, blanks between; else MOTAMOT_V1_KEYS",
    )
    v1_keys_file: Named | None = Field(default=None, description="a file with the keys of `/v1`, one a line")
    operator_key_env: Named | None = Field(
        default=None,
        description="name of the environment variable with the key of `/dashboard` and `/metrics`, or its hash; else "
        "MOTAMOT_OPERATOR_KEY",
    )
    operator_key_file: Named | None = Field(default=None, description="a file with that key, or its hash")
    requests_per_hour: int = Field(default=60, gt=0, description="questions of one visitor")
    tokens_per_hour: int = Field(default=200_000, gt=0, description="tokens of one visitor, read and written")
    address_factor: int = Field(
        default=5, gt=0, description="one address may have so many times as much: families and offices share one"
    )
    money_per_day: float | None = Field(
        default=None,
        gt=0,
        description="of one assistant, in its prices' currency, from midnight UTC; without it, no bound",
    )
    log: Named | None = Field(
        default=None, description="a line of JSON for each completion goes to this file, without any text; `-`: stderr"
    )
    limits: _LimitsTable | None = Field(
        default=None,
        description="docs/limits.md, for all that is not one assistant's; without it, those of the first one",
    )

    @model_validator(mode="after")
    def _no_contradiction(self) -> ServerSettings:
        if self.tls_key is not None and self.tls_cert is None:
            raise _contradiction("tls_key", "it needs its certificate: tls_cert")
        for one, other in (("v1_keys_env", "v1_keys_file"), ("operator_key_env", "operator_key_file")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise _contradiction(other, f"{one} names another source of it: leave one of the two out")
        return self


class Settings(BaseModel):
    """A whole settings file, with what the environment puts in its place."""

    model_config = _CONFIG

    server: ServerSettings = Field(default_factory=ServerSettings)
    store: StoreSettings = Field(default_factory=StoreSettings)
    assistants: dict[AssistantName, AssistantSettings] = Field(default={})
