"""The process in which the embedded model runs: llama.cpp's own HTTP server, alone, and never longer than its parent.

Run as `python -m motamot.model.local_child`. Its settings come as one line of JSON on standard input, so that the key
stands neither in the process list nor in the environment; then the input stays open, and its end is the parent's end.
On standard output it says one line: where it listens, or why it does not. All else goes to standard error.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import threading
from typing import Any, NoReturn

__all__ = ["SETTINGS_BYTES", "main"]

SETTINGS_BYTES = 65_536  # of the one line of settings
_LOOK_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1  # prctl(2)
_NOBODY = "http://127.0.0.1:1"  # an origin that no page has


def main() -> NoReturn:
    """Serve until the parent goes away."""
    _end_with_parent()
    # A service manager tells all processes of a service to end: our parent ends its answers first, then us.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    settings = _settings()
    report, out = os.dup(1), 1
    os.dup2(2, out)  # the library prints where it likes; standard output is ours
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    answer = _serve(settings)
    os.write(report, json.dumps(answer).encode() + b"\n")
    os.close(report)
    if "address" in answer:
        threading.Event().wait()
    sys.exit(1)


def _end_with_parent() -> None:
    """Ask the kernel to kill us with our parent: loading a model holds the interpreter, and no thread of ours runs.

    The kernel means the parent's thread: the parent starts us from one that lives on. Only Linux has this; elsewhere,
    and should the thread's end have been missed, `_watch` notices.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _settings() -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):  # unbuffered: what follows the line is _watch's
        byte = os.read(0, 1)
        line += byte
        if not byte or len(line) > SETTINGS_BYTES:
            os._exit(2)
    settings: dict[str, Any] = json.loads(line)
    return settings


def _watch(parent: int) -> None:
    """End when the input ends or the parent changes. (A forked sister may hold the input's other end open.)"""
    while True:
        readable, _, _ = select.select([0], [], [], _LOOK_SECONDS)
        if os.getppid() != parent or (readable and not os.read(0, 4096)):
            os._exit(0)


def _serve(settings: dict[str, Any]) -> dict[str, str]:
    """Load the model and open the port: `{"address": …}`, or `{"failed": word, "detail": …}`."""
    # Before the library is loaded: OpenMP's default barrier spins, and on a machine that does anything else
    # generation falls to a fifth (measured; docs/local-model.md).
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["GOMP_SPINCOUNT"] = "0"
    try:
        import xllamacpp
    except ImportError as problem:
        return {"failed": "missing", "detail": str(problem)}
    try:
        params = _params(xllamacpp.CommonParams(), settings)
    except (AttributeError, TypeError, ValueError) as problem:
        return {"failed": "version", "detail": f"xllamacpp {xllamacpp.__version__}: {problem}"}
    try:
        server = xllamacpp.Server(params)  # returns when the model is loaded and the port is open
    except RuntimeError as problem:
        return {"failed": "load", "detail": str(problem)}
    _keep.append(server)
    return {"address": server.listening_address}


_keep: list[object] = []  # the server ends when it is collected


def _params(params: Any, settings: dict[str, Any]) -> Any:
    params.model.path = settings["gguf"]
    params.model_alias = {settings["name"]}
    params.offline = True  # fetches nothing by itself
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # Without these any web page could use the port from its visitor's browser.
    params.api_keys = [settings["key"]]
    params.cors_origins = _NOBODY
    params.cors_origins_explicit = True
    params.cors_credentials = False
    params.ui = False
    params.endpoint_slots = False
    params.endpoint_props = False
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]  # the server shares it out among the slots
    # A stop is heard between batches: with the default of 2048, a prompt is read to its end first (measured > 45 s).
    params.n_batch = params.n_ubatch = settings["batch"]
    params.cache_ram_mib = 0  # default 8 GiB: prompts of ended conversations
    params.sse_ping_interval = settings["ping_seconds"]
    if settings["threads"]:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    return params


if __name__ == "__main__":
    main()
