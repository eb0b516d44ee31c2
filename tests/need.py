"""What a test cannot do without, said once: a skip on somebody's laptop, a failure where it must be there."""

from __future__ import annotations

import os

import pytest

__all__ = ["need"]


def need(condition: object, what: str) -> None:
    """Go on only where `condition` holds.

    what: the missing thing as a noun phrase with the way to get it; it becomes the reason.

    Elsewhere the test is skipped, except under `CI=true`: there everything is set up on purpose, and a skip
    would let a broken set-up pass for a green one, so it fails.
    """
    if condition:
        return
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"CI needs {what}", pytrace=False)
    pytest.skip(f"needs {what}")
