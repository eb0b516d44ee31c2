"""The relays: each is started before a measurement on a CPU of its own, and ended after it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PEERS", "TARGETS", "Running", "Target", "free_port", "load_program", "motamot_settings", "serving"]

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-bench" / "bin"
"""Where `scripts/bench-peers.sh` installs the Python peers: their needs are not ours."""

_OPENAI = (
    '{"model": "m", "stream": true, "stream_options": {"include_usage": true}, '
    '"messages": [{"role": "user", "content": "@"}]}'
)
_UP_SECONDS = 90.0  # LiteLLM takes most of half a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A relay.

    path, body, headers: of a question; @ in the body becomes the stream's number.
    command:             made from its folder, its port and the upstream's port.
    """

    name: str
    path: str
    body: str
    command: Callable[[Path, int, int], tuple[list[str], dict[str, str]]]
    headers: str = ""


@dataclass(slots=True)
class Running:
    """A relay that listens."""

    target: Target
    port: int
    pids: list[int] = field(default_factory=list)


def motamot_settings(folder: Path, upstream: int) -> Path:
    """A settings file without the bounds that are there for strangers: all the load comes from one address."""
    path = folder / "motamot.toml"
    path.write_text(
        f"""
[store]
database = "{folder / "motamot.sqlite3"}"

[server]
requests_per_hour = 1000000
address_factor = 1000000
tokens_per_hour = 1000000000

[assistants.default]
upstream = "http://127.0.0.1:{upstream}/v1"
model = "m"

[assistants.default.limits]
exchanges_running = 6000
"""
    )
    return path


def _motamot(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:
    settings = motamot_settings(folder, upstream)
    return [sys.executable, "-m", "motamot", "serve", "--settings", str(settings), "--port", str(port)], {}


def _meter(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:  # noqa: ARG001
    there = f"http://127.0.0.1:{upstream}/v1"
    return [sys.executable, "-m", "motamot", "meter", "--upstream", there, "--port", str(port)], {}


def _nginx(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:
    conf = folder / "nginx.conf"
    conf.write_text(
        f"""
daemon off; master_process off; worker_processes 1; worker_rlimit_nofile 20000;
pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 6000; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=2048;
    location / {{
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 600s;
    }}
  }}
}}
"""
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(conf)], {}


def _fastapi(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:  # noqa: ARG001
    command = [str(PEERS / "uvicorn"), "bench.http.fastapi_app:app", "--port", str(port), "--log-level", "error"]
    return [*command, "--no-access-log", "--backlog", "2048"], {"BENCH_UPSTREAM": f"http://127.0.0.1:{upstream}/v1"}


def _litellm(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:
    conf = folder / "litellm.yaml"
    conf.write_text(
        f"""
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "http://127.0.0.1:{upstream}/v1", api_key: none, max_retries: 0}}
litellm_settings: {{num_retries: 0, telemetry: false, set_verbose: false}}
"""
    )
    command = [str(PEERS / "litellm"), "--config", str(conf), "--host", "127.0.0.1", "--port", str(port)]
    return [*command, "--num_workers", "1", "--telemetry", "False"], {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }


TARGETS = {
    target.name: target
    for target in (
        Target(name="nginx", path="/v1/chat/completions", body=_OPENAI, command=_nginx),
        Target(name="motamot", path="/api/chat/stream", body='{"message": "@"}', command=_motamot),
        Target(name="meter", path="/v1/chat/completions", body=_OPENAI, command=_meter),
        Target(name="fastapi", path="/chat", body='{"message": "@"}', command=_fastapi),
        Target(name="litellm", path="/v1/chat/completions", body=_OPENAI, command=_litellm),
    )
}


def free_port() -> int:
    """A port nobody listens on, as of now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def load_program(folder: Path) -> Path:
    """The load generator, compiled."""
    program = folder / "load"
    source = Path(__file__).with_name("load.c")
    subprocess.run(["cc", "-O2", "-o", str(program), str(source)], check=True)
    return program


@contextlib.contextmanager
def serving(target: Target, folder: Path, upstream: int, cpu: int | None) -> Iterator[Running]:
    """A relay that listens, pinned to `cpu`; ended afterwards, with whatever it has started."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command, more = target.command(folder, port, upstream)
    environment: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        **more,
    }
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(
            pinned(command, cpu), env=environment, cwd=folder, stdout=output, stderr=output, start_new_session=True
        )
    try:
        _wait(process, port, folder)
        yield Running(target, port, [process.pid, *_children(process.pid)])
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)  # a session of its own: no other process is in it
        process.wait()


def pinned(command: list[str], cpu: int | None) -> list[str]:
    """`command` on one CPU, where the system can do that."""
    return command if cpu is None or shutil.which("taskset") is None else ["taskset", "-c", str(cpu), *command]


def _wait(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            time.sleep(0.5)
            return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} does not listen:\n{(folder / 'output').read_text()[-2000:]}")


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *_children(child)]
    return found
