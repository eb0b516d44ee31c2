"""One Chromium for all of the page's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.support import Chromium


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    browser = Chromium()
    browser.start()
    yield browser
    browser.close()
