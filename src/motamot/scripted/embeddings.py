"""POST /v1/embeddings: vectors made from a hash of the text. The same text always gives the same vector of length 1;
texts that mean the same do not lie near each other."""

from __future__ import annotations

import array
import base64
import hashlib
import math
import sys
from typing import Any

from motamot.scripted import bounds
from motamot.scripted.dialects import BadRequest

__all__ = ["embed", "embeddings"]

_DEFAULT_DIMENSIONS = 256


def embed(text: str, dimensions: int = _DEFAULT_DIMENSIONS) -> list[float]:
    """The vector of a text: SHAKE-256 of its UTF-8, four bytes a number, scaled to length 1."""
    data = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(4 * dimensions)
    numbers = [int.from_bytes(data[at : at + 4], "big") / 2**31 - 1 for at in range(0, len(data), 4)]
    length = math.sqrt(math.fsum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def embeddings(body: Any) -> dict[str, Any]:
    """The answer to an embeddings request. Raises BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    texts = _texts(body.get("input"))
    dimensions = body.get("dimensions", _DEFAULT_DIMENSIONS)
    if (
        not isinstance(dimensions, int)
        or isinstance(dimensions, bool)
        or not 1 <= dimensions <= bounds.EMBEDDING_DIMENSIONS
    ):
        raise BadRequest(f"'dimensions' must be 1 to {bounds.EMBEDDING_DIMENSIONS}", "dimensions")
    if len(texts) * dimensions > bounds.EMBEDDING_NUMBERS:
        raise BadRequest(f"at most {bounds.EMBEDDING_NUMBERS} numbers at once: fewer inputs or dimensions", "input")
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise BadRequest("'encoding_format' must be float or base64", "encoding_format")
    vectors: list[Any] = [embed(text, dimensions) for text in texts]
    if encoding == "base64":
        vectors = [_packed(vector) for vector in vectors]
    words = sum(len(text.split()) for text in texts)
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)],
        "model": str(body.get("model", "scripted")),
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


def _texts(given: Any) -> list[str]:
    """A text, a list of texts, a list of tokens or a list of such lists. Tokens count as the text of their numbers."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not 1 <= len(given) <= bounds.EMBEDDING_INPUTS:
        raise BadRequest(f"'input' must be a text or a list of 1 to {bounds.EMBEDDING_INPUTS}", "input")
    if all(isinstance(item, str) for item in given):
        return list(given)
    if all(isinstance(item, int) for item in given):
        return [" ".join(map(str, given))]
    if all(isinstance(item, list) and item and all(isinstance(token, int) for token in item) for item in given):
        return [" ".join(map(str, item)) for item in given]
    raise BadRequest("'input' must be texts, or tokens", "input")


def _packed(vector: list[float]) -> str:
    """Little-endian 32-bit floats in base64, the form that OpenAI's own clients ask for."""
    packed = array.array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes()).decode()
