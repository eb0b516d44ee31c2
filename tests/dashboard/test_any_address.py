"""Whatever stands in an address of the dashboard: a page, a refusal or a file, and never a fault of ours."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.parse import quote

import pytest

from motamot.testing import call
from tests.dashboard.books import asked, chatbot
from tests.server.reading import run
from tests.server.support import OPERATOR_KEY

PATHS = (
    "",
    "/conversations",
    "/conversations/{conversation}",
    "/conversations/%00",
    "/exchanges/{exchange}",
    "/exchanges/{exchange}/tape",
    "/exchanges/%ED%A0%80",
    "/exchanges/..%2f..",
    "/export.csv",
    "/export.jsonl",
    "/figures",
    "/language",
    "/reconcile",
    "/sign-in",
    "/visitor",
    "/visitor.json",
)
FIELDS = (
    "assistant",
    "back",
    "before",
    "conversation",
    "cost_from",
    "cost_to",
    "from",
    "model",
    "name",
    "out",
    "outcome",
    "text",
    "to",
    "visitor",
)
VALUES = (
    *("", " ", "x", "0", "-1", "1e999", "nan", "9" * 19, "%", "é", "文", "\U0001f469", "\x00", "\ud800", "a" * 1_999),
    *("2026-11-30", "0001-01-01", "1969-12-31", "1970-01-01", "9000-01-01", "9999-12-31", "2026-02-30", "2026-W48-1"),
    *("<b>", "'", '"a', 'a" OR', "*", "NEAR(a b)", "a:b", "-a", "(a", "a^2", "running", "complete", "guide"),
)


@pytest.mark.parametrize("seed", range(3))
def test_no_address_makes_a_fault_of_it(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)

    async def scenario() -> None:
        async with chatbot(tmp_path) as s:
            ids = await asked(s)
            row = await s.site.exchanges.store.exchange(ids["tools"])
            assert row is not None
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            signed = await call(s.site, "POST /dashboard/sign-in", headers=kind, body=f"key={quote(OPERATOR_KEY)}")
            cookies = [cookie.partition(";")[0] for cookie in signed.headers.getlist("set-cookie")]
            for _ in range(120):
                path = generator.choice(PATHS).replace("{conversation}", row.conversation)
                path = path.replace("{exchange}", generator.choice(list(ids.values())))
                fields = [(generator.choice(FIELDS), generator.choice(VALUES)) for _ in range(generator.randint(0, 5))]
                query = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in fields)
                address = f"/dashboard{path}?{query}"
                answered = await call(s.site, f"GET {address}", headers={"Cookie": "; ".join(cookies)})
                assert answered.status in (200, 303, 400, 404), address
                if answered.headers.get("content-type", "").startswith("text/html"):
                    assert b"<script" not in answered.body.lower(), address

    run(scenario())
