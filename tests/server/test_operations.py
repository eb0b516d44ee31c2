"""Whether it lives, whether it is ready, and what it counts."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.server.troubles import Troubles
from tests.server.reading import run
from tests.server.support import OPERATOR_KEY, Served, serving

SCRIPTS = {
    "default": "hello",
    "scripts": {
        "hello": [{"say": "Hello."}, {"finish": "stop"}, {"usage": {"prompt": 3, "completion": 2}}],
        "slow": [{"say": "Wait"}, {"wait": "20s"}, {"say": "."}],
        "broken": [{"fail": "down"}],
    },
}
METRICS_PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


async def scrape(s: Served) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample, by its name and labels, as Prometheus's own parser reads them."""
    headers = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    async with s.client.get(f"{s.url}/metrics", headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        text = await response.text()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_it_lives_and_is_ready(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SCRIPTS) as s:
            for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
                async with s.client.get(s.url + path) as response:
                    assert response.status == 200
                    assert await response.json() == {"status": status}
                    assert response.headers["Cache-Control"] == "no-store"
                async with s.client.head(s.url + path) as response:
                    assert response.status == 200

    run(scenario())


def test_it_is_not_ready_when_the_books_cannot_be_written_and_lives_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SCRIPTS, limits=Limits(store_seconds=0.2)) as s:
            store = s.site.exchanges.store
            store._writer.error = StoreError("the disk is full")
            store._writer._failing_since = 0.0
            async with s.client.get(f"{s.url}/readyz") as response:
                assert response.status == 503 and (await response.json())["error"]["code"] == "store"
                assert "Retry-After" in response.headers
            assert (await scrape(s))[("motamot_store_writable", ())] == 0
            async with s.client.get(f"{s.url}/healthz") as response:
                assert response.status == 200
            store._writer.error = store._writer._failing_since = None
            async with s.client.get(f"{s.url}/readyz") as response:
                assert response.status == 200

    run(scenario())


def test_it_is_not_ready_once_it_was_told_to_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SCRIPTS) as s:
            s.site.begin_end()
            async with s.client.get(f"{s.url}/readyz") as response:
                assert response.status == 503
            async with s.client.post(f"{s.url}/api/chat", json={"message": "hello"}) as response:
                assert response.status == 503 and "shutting down" in (await response.json())["error"]["message"]

    run(scenario())


def test_what_happened_is_counted_once_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SCRIPTS) as s:
            for _ in range(2):
                await s.ask("hello")
            await s.ask("broken")
            await s.ask("")
            async with s.client.get(f"{s.url}/no/such/page") as response:
                assert response.status == 404
            async with s.client.post(f"{s.url}/api/chat/stream", json={"message": "slow"}) as response:
                await response.content.readany()
                under_way = await scrape(s)
                assert under_way[("motamot_exchanges_running", (("assistant", "default"),))] == 1
                assert under_way[("motamot_streams_open", ())] == 1
            for _ in range(100):
                now = await scrape(s)
                if now[("motamot_exchanges_running", (("assistant", "default"),))] == 0:
                    break
                await asyncio.sleep(0.02)

            def ended(outcome: str, code: str = "") -> float:
                labels = (("assistant", "default"), ("code", code), ("outcome", outcome))
                return now.get(("motamot_exchanges_total", labels), 0)

            assert (ended("complete"), ended("failed", "upstream_error"), ended("stopped")) == (2, 1, 1)
            assert now[("motamot_tokens_total", (("assistant", "default"), ("kind", "completion")))] >= 4
            assert now[("motamot_exchange_seconds_count", (("assistant", "default"),))] == 4
            assert now[("motamot_exchange_seconds_bucket", (("assistant", "default"), ("le", "+Inf")))] == 4
            assert now[("motamot_refusals_total", (("reason", "invalid_request"), ("status", "400")))] == 1
            assert now[("motamot_refusals_total", (("reason", "not_found"), ("status", "404")))] == 1
            assert now[("motamot_streams_open", ())] == 0
            assert now[("motamot_store_writable", ())] == 1

    run(scenario())


def test_no_stranger_can_make_a_label(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SCRIPTS) as s:
            before = set(await scrape(s))
            for number in range(20):
                for path in (f"/made/up/{number}", f"/api/exchanges/{number}/events", f"/v1/models/{number}"):
                    async with s.client.get(s.url + path) as response:
                        assert response.status in (401, 404)
                async with s.client.request(f"MADE{number}", s.url + "/api/chat") as response:
                    assert response.status in (400, 405)
                await s.ask("hello", assistant=f"made-up-{number}")
            new = {name for name, _ in set(await scrape(s)) - before}
            assert len(set(await scrape(s)) - before) <= 4, new

    run(scenario())


def test_every_metric_is_documented_and_no_other_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SCRIPTS) as s:
            await s.ask("hello")
            await s.ask("")
            names = {name for name, _ in await scrape(s) if name.startswith("motamot")}
            families = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in names}
            told = set(re.findall(r"^\| `(motamot_\w+)`", METRICS_PAGE.read_text("utf-8"), re.MULTILINE))
            assert families == told

    run(scenario())


def test_a_failing_model_is_told_to_the_operator_once_a_minute_without_a_word_of_anybodys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = {"default": "failing", "scripts": {"failing": [{"fail": {"message": "secret", "status": 401}}]}}

    async def scenario() -> None:
        async with serving(tmp_path, failing) as s:
            now = [0.0]
            s.site.troubles = Troubles(clock=lambda: now[0])
            first = await s.ask("a private question")
            assert first["outcome"] == "failed"
            await s.ask("another")
            told = [record.getMessage() for record in caplog.records if record.name == "motamot.server"]
            assert len(told) == 1 and first["exchange"] in told[0] and "upstream_error" in told[0]
            now[0] = 61.0
            await s.ask("a third")
            told = [record.getMessage() for record in caplog.records if record.name == "motamot.server"]
            assert len(told) == 2 and "1 more" in told[1]
            assert "secret" not in caplog.text and "private" not in caplog.text

    run(scenario())
