"""A model file from its maker's repository on the Hugging Face hub, over plain HTTPS.

A download that was cut goes on where it stopped, also in another process: what came stays beside the target as
`.partial`. (The hub's own client gave that up in its version 2: it downloads a gigabyte again from the start.)
"""

from __future__ import annotations

import http.client
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import motamot
from motamot.errors import ModelUnavailable, SettingsError
from motamot.model.cache import DOWNLOAD_SECONDS, Say, Tell, check_room, install, meter, size_of, writing
from motamot.model.known import HubModel

__all__ = ["DOWNLOAD_ATTEMPTS", "DOWNLOAD_SILENCE_SECONDS", "HUB", "from_hub"]

HUB = "https://huggingface.co"
DOWNLOAD_SILENCE_SECONDS = 15.0  # no byte for so long: the connection is given up, and taken up again
DOWNLOAD_ATTEMPTS = 5  # connections in a row that brought nothing, once something had come
_RETRY_PAUSE_SECONDS = 1.0
_REDIRECTS = 8
_CHUNK_BYTES = 1 << 16


def from_hub(model: HubModel, target: Path, say: Say, environ: Mapping[str, str], endpoint: str | None) -> None:
    """Download `model` to `target`, whose lock the caller holds; going on from what an earlier try left.

    endpoint: the hub's address, default `$HF_ENDPOINT`, else `HUB`.
    Raises:   ModelUnavailable (`unreachable`, `disk`, `damaged`); SettingsError for an endpoint that is no address.
    """
    base = (endpoint or environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    if urlsplit(base).scheme not in ("http", "https") or not urlsplit(base).netloc:
        raise SettingsError(f"HF_ENDPOINT is to be an address like {HUB}, not {base!r}.")
    if environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelUnavailable(
            f"{model.title} is not here, and HF_HUB_OFFLINE forbids to fetch it.", reason="unreachable"
        )
    url = f"{base}/{model.repository}/resolve/{model.revision}/{model.file}"
    partial = target.with_name(f"{target.name}.partial")
    if size_of(partial) > model.size:  # it cannot be the beginning of this file
        partial.unlink()
    check_room(target.parent, model.size - size_of(partial))
    try:
        with meter(model, say) as tell:
            _download(model, url, partial, tell)
    except KeyboardInterrupt:
        come = f"{size_of(partial) / 1e6:,.0f} of {model.size / 1e6:,.0f} MB"
        say(f"Interrupted at {come}; the next try goes on from there.")
        raise
    install(model, partial, target)


def _download(model: HubModel, url: str, partial: Path, tell: Tell) -> None:
    """Fill `partial` up to the model's size, over as many connections as it takes."""
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    failures = 0
    moved = False
    while (have := size_of(partial)) < model.size:
        try:
            _one_connection(model, url, partial, tell, deadline)
        except (OSError, http.client.HTTPException) as problem:
            now = size_of(partial)
            moved = moved or now != have
            failures = 0 if now > have else failures + 1
            # Nothing at all came: no network, or no such file. Asking again would only keep the user waiting.
            if failures >= (DOWNLOAD_ATTEMPTS if moved else 1) or time.monotonic() > deadline:
                raise _unreachable(model, url, now, problem) from problem
            time.sleep(_RETRY_PAUSE_SECONDS)


def _one_connection(model: HubModel, url: str, partial: Path, tell: Tell, deadline: float) -> None:
    """Append what one request brings. Raises OSError or HTTPException where the connection brought less."""
    have = size_of(partial)
    try:
        response = _open(model, url, have)
    except urllib.error.HTTPError as answer:
        if answer.code == 416:  # the partial file does not fit what is there: start again
            partial.unlink(missing_ok=True)
        raise
    with response, writing(partial.parent):
        have, total = _place(response, have)
        if total is not None and total != model.size:
            raise _replaced(model)
        with partial.open("ab" if have else "wb") as file:
            for chunk in _chunks(response, deadline):
                have += len(chunk)
                if have > model.size:
                    raise _replaced(model)
                file.write(chunk)
                tell(have)
            file.flush()
            os.fsync(file.fileno())
    if have < model.size:
        raise _Cut("the connection ended early")


class _Cut(http.client.HTTPException):
    """The network's failure while a file is being written; never mistaken for the disk's, which is an OSError."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to us: the standard handler would read a redirect's body to its end, however long."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _open(model: HubModel, url: str, have: int) -> Any:
    """Ask for the file from byte `have` on, following the hub to where the bytes are."""
    headers = {"User-Agent": f"motamot/{motamot.__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    opener = urllib.request.build_opener(_NoRedirects)
    for _ in range(_REDIRECTS):
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http or https: checked, here and below
        try:
            return opener.open(request, timeout=DOWNLOAD_SILENCE_SECONDS)
        except urllib.error.HTTPError as answer:
            with answer:  # an error's body holds the connection
                if answer.code not in (301, 302, 303, 307, 308):
                    raise
                url = _next(model, url, answer.headers)
    raise _Cut("it redirects without end")


def _next(model: HubModel, url: str, headers: Message) -> str:
    """Where a redirect leads. A file that its maker has replaced is noticed here, before a gigabyte has come:
    the hub's redirect names the SHA-256 of the file in `X-Linked-Etag`."""
    linked = str(headers.get("X-Linked-Etag", "")).strip('W/"')
    if re.fullmatch("[0-9a-f]{64}", linked) and linked != model.sha256:
        raise _replaced(model)
    target = urljoin(url, str(headers.get("Location", "")))
    before, after = urlsplit(url).scheme, urlsplit(target).scheme
    if after not in ("http", "https") or (before == "https" and after == "http"):
        raise _Cut(f"it redirects from {before} to {after}")
    return target


def _chunks(response: Any, deadline: float) -> Iterator[bytes]:
    while True:
        if time.monotonic() > deadline:
            raise _Cut(f"it took longer than {DOWNLOAD_SECONDS / 3600:.0f} hours")
        try:
            chunk: bytes = response.read1(_CHUNK_BYTES)
        except OSError as problem:
            raise _Cut(str(problem)) from problem
        if not chunk:
            return
        yield chunk


def _place(response: Any, have: int) -> tuple[int, int | None]:
    """Where the body of `response` begins in the file, and the file's whole size where it is told (RFC 9110 §14.4)."""
    if response.status == 206:
        told = re.fullmatch(r"bytes (\d{1,15})-\d{1,15}/(\d{1,15}|\*)", response.headers.get("Content-Range", ""))
        if not told or int(told[1]) != have:
            raise _Cut("the server sent another part than the one asked for")
        return have, None if told[2] == "*" else int(told[2])
    length = response.headers.get("Content-Length", "")  # 200: the whole file, the range was not heard
    return 0, int(length) if re.fullmatch(r"\d{1,15}", length) else None


def _replaced(model: HubModel) -> ModelUnavailable:
    return ModelUnavailable(
        f"{model.origin} now holds another file than the one that is known for {model.title}: it is not used. "
        f"Give a GGUF file of your choice instead.",
        reason="damaged",
    )


def _unreachable(model: HubModel, url: str, have: int, problem: BaseException) -> ModelUnavailable:
    cause: object = problem.reason if isinstance(problem, urllib.error.URLError) else problem
    if isinstance(problem, urllib.error.HTTPError):
        cause = f"HTTP {problem.code} {problem.reason}"
    elif isinstance(cause, ssl.SSLCertVerificationError):
        cause = f"its certificate is not trusted: {cause.verify_message}"
    elif isinstance(cause, TimeoutError):
        cause = f"nothing came for {DOWNLOAD_SILENCE_SECONDS:.0f} s"
    host = urlsplit(url).hostname
    if not have:
        text = f"{model.title} cannot be fetched from {host}: {cause}."
    else:
        text = (
            f"The download of {model.title} from {host} stopped at {have / 1e6:,.0f} of {model.size / 1e6:,.0f} MB: "
            f"{cause}. The next try goes on from there."
        )
    return ModelUnavailable(text, reason="unreachable", detail=f"{url}: {problem!r}")
