"""docs/findings.md says what the faults are, and its example runs."""

from __future__ import annotations

import re

from tests.findings.make_docs import PAGE, page


def test_the_page_of_the_findings_is_the_one_they_make() -> None:
    """If not: `make docs`."""
    assert PAGE.read_text("utf-8") == page()


def test_the_example_of_the_page_runs() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/findings.md", "exec"), {})
