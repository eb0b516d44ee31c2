"""POST /v1/moderations: every text is fine. Frameworks ask before they ask the model, and go on by it."""

from __future__ import annotations

from typing import Any

from motamot.scripted import bounds
from motamot.scripted.dialects import BadRequest

__all__ = ["moderations"]

_CATEGORIES = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)


def moderations(body: Any, number: int) -> dict[str, Any]:
    """The answer to a moderations request. number: of the request. Raises: BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    given = body.get("input")
    if not isinstance(given, str | list) or (
        isinstance(given, list) and not 1 <= len(given) <= bounds.EMBEDDING_INPUTS
    ):
        raise BadRequest(f"'input' must be a text or a list of 1 to {bounds.EMBEDDING_INPUTS}", "input")
    # A list of parts is one input, a list of texts is several.
    several = isinstance(given, list) and all(isinstance(one, str) for one in given)
    result = {
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {name: ["text"] for name in _CATEGORIES},
    }
    return {
        "id": f"modr-scripted-{number}",
        "model": str(body.get("model", "scripted")),
        "results": [result] * (len(given) if several else 1),
    }
