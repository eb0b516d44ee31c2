"""What is missing is skipped on a laptop and fails where everything was set up on purpose."""

from __future__ import annotations

import pytest

from tests.need import need


def test_what_is_there_lets_the_test_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    need(True, "anything")


def test_what_is_missing_skips_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs a browser"):
        need(False, "a browser")


def test_what_is_missing_in_ci_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI needs a browser"):
        need(False, "a browser")
