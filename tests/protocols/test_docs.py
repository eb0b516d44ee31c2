"""docs/protocols.md says what the protocols are."""

from __future__ import annotations

from tests.protocols.make_docs import PAGE, page


def test_the_page_of_the_protocols_is_the_one_they_make() -> None:
    """If not: `make docs`."""
    assert PAGE.read_text("utf-8") == page()
