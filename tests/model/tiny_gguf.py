"""A GGUF model of a few kilobytes, made here: llama.cpp loads and runs it, and it babbles in letters.

It stands in where a test is about the process around a model and not about the model: nothing is downloaded, and it
starts in a tenth of a second.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

__all__ = ["write_tiny_gguf"]

_WIDTH = 32
_U32, _F32, _STRING, _ARRAY = 4, 6, 8, 9  # value types of the GGUF specification
_LETTERS = frozenset(b" abcdefghijklmnopqrstuvwxyz")
_TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"


def write_tiny_gguf(path: Path, *, context: int = 8192) -> Path:
    """Write the model to `path`. context: tokens it says it was trained on."""
    tokens = [_shown(byte) for byte in range(256)] + ["<end>"]
    metadata = [
        _pair("general.architecture", _STRING, _text("llama")),
        _pair("general.name", _STRING, _text("tiny")),
        _pair("llama.context_length", _U32, struct.pack("<I", context)),
        _pair("llama.embedding_length", _U32, struct.pack("<I", _WIDTH)),
        _pair("llama.block_count", _U32, struct.pack("<I", 1)),
        _pair("llama.feed_forward_length", _U32, struct.pack("<I", _WIDTH)),
        _pair("llama.attention.head_count", _U32, struct.pack("<I", 1)),
        _pair("llama.attention.layer_norm_rms_epsilon", _F32, struct.pack("<f", 1e-5)),
        _pair("tokenizer.ggml.model", _STRING, _text("gpt2")),
        _pair("tokenizer.ggml.pre", _STRING, _text("gpt-2")),
        _pair("tokenizer.ggml.tokens", _ARRAY, _strings(tokens)),
        _pair("tokenizer.ggml.token_type", _ARRAY, struct.pack("<IQ257i", 5, 257, *[1] * 256, 3)),
        _pair("tokenizer.ggml.merges", _ARRAY, _strings([])),
        _pair("tokenizer.ggml.bos_token_id", _U32, struct.pack("<I", 256)),
        _pair("tokenizer.ggml.eos_token_id", _U32, struct.pack("<I", 256)),
        _pair("tokenizer.chat_template", _STRING, _text(_TEMPLATE)),
    ]
    tensors = _tensors()
    infos, data = b"", b""
    for name, (columns, rows), values in tensors:
        shape = struct.pack("<IQQ", 2, columns, rows) if rows else struct.pack("<IQ", 1, columns)
        infos += _text(name) + shape + struct.pack("<IQ", 0, len(data))  # 0: 32-bit floats
        data += _padded(struct.pack(f"<{len(values)}f", *values))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata) + infos
    path.write_bytes(_padded(head) + data)
    return path


def _tensors() -> list[tuple[str, tuple[int, int], list[float]]]:
    """One layer that changes nothing, and an output that prefers letters to all other bytes.

    The first number of each token is large, so that it stays so after normalisation; the output adds it for letters
    and takes it off for the rest. The other numbers are random: which letter comes next depends on the last.
    """
    noise = random.Random(3)
    embedding: list[float] = []
    output: list[float] = []
    for token in range(257):
        embedding += [4.0] + [noise.uniform(-1, 1) for _ in range(_WIDTH - 1)]
        output += [2.0 if token in _LETTERS else -8.0] + [noise.uniform(-1, 1) for _ in range(_WIDTH - 1)]
    square, ones = [0.0] * _WIDTH**2, [1.0] * _WIDTH
    layers: list[tuple[str, tuple[int, int], list[float]]] = [
        ("token_embd.weight", (_WIDTH, 257), embedding),
        ("output_norm.weight", (_WIDTH, 0), ones),
        ("output.weight", (_WIDTH, 257), output),
        ("blk.0.attn_norm.weight", (_WIDTH, 0), ones),
        ("blk.0.ffn_norm.weight", (_WIDTH, 0), ones),
    ]
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    return layers + [(f"blk.0.{name}.weight", (_WIDTH, _WIDTH), square) for name in names]


def _shown(byte: int) -> str:
    """The printable stand-in for a byte that GPT-2's tokenizer uses: itself, or a character from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in printable:
        return chr(byte)
    return chr(256 + sum(1 for other in range(byte) if other not in printable))


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _strings(values: list[str]) -> bytes:
    return struct.pack("<IQ", _STRING, len(values)) + b"".join(map(_text, values))


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 32)
