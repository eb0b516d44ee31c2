"""The settings of a model behind HTTP, checked when they are given and not when they are first used."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from motamot.errors import SettingsError
from motamot.model.request import check_headers

__all__ = ["checked_name", "checked_token_field", "own_headers", "proxy_for", "secrets_of", "trusted"]


def checked_name(model: str) -> str:
    """A model's name as it is sent. Raises: SettingsError."""
    if not model.strip() or len(model) > 200 or not model.isprintable():
        raise SettingsError("the model's name is empty, longer than 200 characters, or holds a control character")
    return model.strip()


def checked_token_field(token_field: str | None, url: str) -> str:
    """The request field of the token limit; None: what the server at `url` is known to want. Raises: SettingsError."""
    if token_field is None:
        return "max_completion_tokens" if urlsplit(url).hostname == "api.openai.com" else "max_tokens"
    if token_field not in ("max_tokens", "max_completion_tokens"):
        raise SettingsError(f"token_field is max_tokens or max_completion_tokens, not {token_field!r}")
    return token_field


def own_headers(api_key: str | None, headers: Mapping[str, str], user_agent: str) -> dict[str, str]:
    """The headers of every request. Raises: SettingsError for what cannot be sent, never with its value."""
    check_headers({**headers, "User-Agent": user_agent})
    ours = dict(headers)
    if not any(name.lower() == "user-agent" for name in headers):
        ours["User-Agent"] = user_agent
    if api_key is not None and api_key.strip():
        key = api_key.strip()  # a key read from a file ends in a line end
        if not key.isascii() or not key.isprintable() or " " in key:
            raise SettingsError("the key for the model holds a space, a line end or another character no key has")
        if any(name.lower() == "authorization" for name in headers):
            raise SettingsError("give the key for the model, or an Authorization header, not both")
        ours["Authorization"] = f"Bearer {key}"
    return {
        **ours,
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # a compressor holds small pieces back
        "Content-Type": "application/json",
    }


def proxy_for(url: str, proxy: str | None, *, trust_env: bool) -> str | None:
    """The proxy to `url`: the one given, else the environment's, else none.

    The environment's is never used for this machine itself: a proxy elsewhere cannot reach a model on it, and
    forgetting `NO_PROXY=localhost` is common.
    Raises: SettingsError for a proxy that is not `http(s)://[user:password@]host:port`.
    """
    if proxy:
        return _checked_proxy(proxy, "the proxy")
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not trust_env or _loopback(host):
        return None
    named = urllib.request.getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    return _checked_proxy(proxy, f"the environment's proxy for {parts.scheme}")


def _checked_proxy(proxy: str, which: str) -> str:
    address = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable:
        raise SettingsError(f"{which} is not http://host:port or https://host:port; other kinds are not supported")
    return address


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def trusted(ca_file: str | Path | None) -> ssl.SSLContext | bool:
    """The TLS context that trusts `ca_file`. None gives True: aiohttp's own, which trusts what the system does.

    Raises: SettingsError for a file that cannot be read.
    """
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"the certificate authorities in {str(ca_file)!r} cannot be read: {error}") from error


def secrets_of(url: str, headers: Mapping[str, str], proxy: str | None) -> list[str]:
    """What must not be read in any message: the key, header values that look like one, passwords."""
    hidden = [value.removeprefix("Bearer ") for name, value in headers.items() if _secret_name(name)]
    hidden += [value for name, value in parse_qsl(urlsplit(url).query) if _secret_name(name)]
    if proxy is not None and (password := urlsplit(proxy).password):
        hidden += [password, unquote(password)]
    return hidden


def _secret_name(name: str) -> bool:
    return any(word in name.lower() for word in ("auth", "key", "token", "secret", "cookie", "password", "sig"))
