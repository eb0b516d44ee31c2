"""What went wrong between us and a model's server, in two voices. Pure.

A visitor reads `message`: one plain sentence of ours, without hosts, keys or a provider's words. The operator
reads `detail`: the provider's own words or the system's reason, with the address asked, bounded and cleaned of
control characters and of every secret we were given. `safe_to_retry` is set where the model surely did not start,
so that nothing was spent; whether it is worth asking again is for `motamot.model.retries` to say.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp

from motamot.errors import SettingsError, UpstreamError
from motamot.model.retries import retry_after

__all__ = ["Teller"]

_DETAIL_CHARS = 500
"""Characters of a `detail`: providers' sentences have 50 to 300; a whole web page helps nobody."""

_LONG_SECRET = 12

_NOT_BEGUN = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 411, 413, 414, 415, 422, 426, 429, 431})
"""Refusals of the question itself. Not 408, 409 and 499, nor any 5xx: a gateway says those of a model that has
begun. 503 and 529 only with a time to come back, which a gateway does not give for a model that broke."""

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TAG = re.compile(r"<(?:style|script)[^<]*|<[^<>]*>?")
_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|size|window|limit)|maximum.{0,20}tokens|too many tokens|prompt is too long", re.IGNORECASE
)
_NO_MODEL = re.compile(r"model.{0,80}(?:not found|does not exist|not exist|unknown|not supported)", re.IGNORECASE)
_TOKEN_FIELD = re.compile(r"max_completion_tokens")
_STREAM_OPTIONS = re.compile(r"stream_options|include_usage")


class Teller:
    """Puts failures of one model's server into words.

    model:   its name, as a visitor may read it.
    url:     the address asked.
    secrets: what must never be read in any of the words: keys, passwords.
    """

    def __init__(self, model: str, url: str, secrets: Iterable[str]) -> None:
        self._model = model
        self._url = url
        # The beginning of a long key is hidden with what follows it: providers quote keys in part. A short one
        # ("x", "ollama", for servers that want just anything) is hidden as a word only, or nothing could be read.
        hidden = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        patterns = [re.escape(secret) for secret in hidden if len(secret) >= _LONG_SECRET]
        patterns += [re.escape(secret[:8]) + r"\S*" for secret in hidden if len(secret) >= _LONG_SECRET]
        patterns += [rf"(?<!\w){re.escape(secret)}(?!\w)" for secret in hidden if len(secret) < _LONG_SECRET]
        self._secrets = re.compile("|".join(patterns)) if patterns else None

    def detail(self, words: str) -> str:
        """`words` on one line, bounded, without secrets."""
        words = words[: 8 * _DETAIL_CHARS]
        if self._secrets is not None:
            words = self._secrets.sub("[hidden]", words)
        words = _BLANK.sub(" ", words.encode("utf-8", "replace").decode("utf-8")).strip()
        return words if len(words) <= _DETAIL_CHARS else words[: _DETAIL_CHARS - 1] + "…"

    def failed(self, message: str, reason: str, **more: Any) -> UpstreamError:
        """An error with the address asked before the `reason`, for the operator."""
        return UpstreamError(message, detail=self.detail(f"{self._url}: {reason}"), **more)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        """A reply whose status is not 200. body: its first bytes, as many as were kept."""
        said, kind = _provider_words(body)
        message = _refusal(status, said, kind, self._model)
        hint = _hint(status, said)
        exhausted = status == 402 or "insufficient_quota" in kind
        after = None if exhausted else retry_after(headers)
        filtered = "content_filter" in kind or "content_policy" in kind  # Azure: the prompt was read, and is paid for
        return self.failed(
            message,
            " ".join(part for part in (f"HTTP {status}", said, f"({kind})" if kind else "", hint) if part),
            status=status,
            safe_to_retry=(status in _NOT_BEGUN and not filtered) or (status in (503, 529) and after is not None),
            retry_after=after,
        )

    def moved(self, status: int, target: str) -> UpstreamError:
        """A redirection that is not followed: to another origin, one too many, or by a status that turns a POST
        into a GET."""
        return self.failed(
            "The model's server has moved, and its address in the settings is out of date.",
            f"HTTP {status} to {target or 'nowhere'}; put the new address into the settings if you trust it",
            status=status,
            safe_to_retry=True,
        )

    def unsendable(self, error: SettingsError) -> UpstreamError:
        """A question that was never sent."""
        return self.failed("The assistant's settings ask the model for something that cannot be sent.", error.message)

    def web_page(self, status: int, body: bytes) -> UpstreamError:
        """HTML where an answer was to come."""
        return self.failed(
            "A web page came instead of the model's answer: the model's address is probably wrong.",
            f"HTTP {status}, a web page that begins with: {_readable(body)}",
            status=status,
        )

    def unreadable(self, reason: str, status: int | None = None) -> UpstreamError:
        """A reply that is not HTTP, or not in a form we can read."""
        return self.failed("The model's server answered in a way that cannot be understood.", reason, status=status)

    def empty(self, status: int) -> UpstreamError:
        """A reply without a body."""
        return self.failed(
            "The model's server closed the connection without an answer.",
            f"HTTP {status} with an empty body",
            code="upstream_cut",
            status=status,
        )

    def cut(self, reason: str, *, begun: bool, never_asked: bool = False) -> UpstreamError:
        """The connection ended before the answer did.

        begun:       a part of the answer had come.
        never_asked: it was a kept connection, and not one byte came back on it: its server had closed it
                     before the question arrived (RFC 9110, 9.2.2).
        """
        message = (
            "The connection to the model was cut in the middle of its answer."
            if begun
            else "The model's server closed the connection without an answer."
        )
        return self.failed(message, reason, code="upstream_cut", safe_to_retry=never_asked and not begun)

    def too_slow(self, message: str, reason: str, *, never_asked: bool = False) -> UpstreamError:
        """A time limit of ours passed."""
        return self.failed(message, reason, code="timeout", safe_to_retry=never_asked)

    def unreachable(self, error: Exception, connect_seconds: float) -> UpstreamError:
        """No connection was made: the question never left."""
        reason = _reason(error)
        if isinstance(error, TimeoutError):
            return self.too_slow(
                f"The model's server did not take a connection within {connect_seconds:g} s.", reason, never_asked=True
            )
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self.failed(
                "The proxy on the way to the model's server refused the connection.",
                f"the proxy said {error.status} {error.message}",
                status=error.status,
                safe_to_retry=True,
            )
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            return self.failed(
                "The proxy on the way to the model's server cannot be reached.", f"proxy: {reason}", safe_to_retry=True
            )
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
            return self.failed(
                "The model's server cannot be trusted: its certificate was not accepted.",
                f"{reason}; give the certificate authority's file (ca_file) if it is your own",
                safe_to_retry=True,
            )
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return self.failed(
                "A safe connection to the model's server could not be made.", f"TLS: {reason}", safe_to_retry=True
            )
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return self.failed("The model's server was not found.", f"no such host: {reason}", safe_to_retry=True)
        return self.failed("The model's server cannot be reached.", reason, safe_to_retry=True)


def _refusal(status: int, said: str, kind: str, model: str) -> str:
    if status == 401:
        return "The model's server did not accept the key it was given."
    if status == 407:
        return "The proxy on the way to the model's server refused the connection."
    if status == 403:
        return "The model's server does not allow this key to use the model."
    if status == 402 or "insufficient_quota" in kind:
        return "The account at the model's server has no credit left."
    if "content_filter" in kind or "content_policy" in kind:
        return "The model's server refused the question because of what it says."
    if "context_length" in kind or "exceed_context_size" in kind or (status in (400, 422) and _TOO_LONG.search(said)):
        return "The conversation has become too long for this model."
    if "model_not_found" in kind or (status in (400, 404) and _NO_MODEL.search(said)):
        return f"The model “{model}” is not known to its server."
    if status == 404:
        return "The model's server does not answer at this address."
    if status == 413:
        return "The question is too large for the model's server."
    if status == 429:
        return "The model is being asked too much at the moment; try again in a while."
    if status in (503, 529):
        return "The model is overloaded at the moment; try again in a while."
    if status >= 500:
        return "The model's server failed."
    if 400 <= status < 500:
        return "The model's server refused the request."
    return "The model's server answered in a way that cannot be understood."


def _hint(status: int, said: str) -> str:
    """The way out for the two request fields that servers are known to refuse: never a second, silent request."""
    if status not in (400, 422):
        return ""
    if _TOKEN_FIELD.search(said):
        return '[set token_field = "max_completion_tokens" for this model]'
    if _STREAM_OPTIONS.search(said):
        return "[set ask_usage = false for this model]"
    return ""


def _provider_words(body: bytes) -> tuple[str, str]:
    """A provider's sentence and its words for the kind of error, from the body of a refusal."""
    text = body.decode("utf-8", "replace").strip()
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _readable(body), ""
    if isinstance(said, list) and said:
        said = said[0]  # Gemini wraps its error object in a list
    if isinstance(said, dict) and isinstance(error := said.get("error", said), dict | str):
        said = error
    if not isinstance(said, dict):
        return str(said), ""
    words = next((said[key] for key in ("message", "detail", "error_description", "title") if said.get(key)), None)
    kinds = [str(said[key]) for key in ("code", "type", "status", "param") if isinstance(said.get(key), str | int)]
    return (words if isinstance(words, str) else text), ", ".join(kind for kind in kinds if kind)


def _readable(body: bytes) -> str:
    """The text of a page or of anything else, without its tags."""
    return _BLANK.sub(" ", _TAG.sub(" ", body[: 4 * _DETAIL_CHARS].decode("utf-8", "replace"))).strip()


def _reason(error: BaseException) -> str:
    """What the system said, without the library's wrapping."""
    inner: object = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(inner, ssl.SSLError):
        verify = getattr(inner, "verify_message", None)
        return str(verify or inner.reason or inner)
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return str(inner) or type(inner).__name__
