"""axe-core, as it is: what it finds wrong with a page."""

from __future__ import annotations

from functools import cache

from playwright.async_api import Page

from tests.node import npm_package

__all__ = ["violations"]

_VERSION = "4.14.1"
_RUN = """() => axe.run({
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    resultTypes: ['violations'],
}).then(({violations}) => violations.flatMap(({id, nodes}) => nodes.map(
    ({target, failureSummary}) => `${id}: ${target.flat().join(' ')}: ${failureSummary.split('\\n').slice(1).join(';')}`
)))"""


@cache
def _source() -> str:
    return (npm_package("axe-core", _VERSION) / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


async def violations(page: Page) -> list[str]:
    """What axe-core finds, by WCAG 2.2 AA and by good practice, in shadow roots, too: one line for each element."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_source())
    found: list[str] = await page.evaluate(_RUN)
    return found
