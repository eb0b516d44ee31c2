"""What is counted for the operator: at an exchange's end, or when somebody looks; nothing per delta."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from motamot import __version__
from motamot.errors import MotamotError
from motamot.exchange.exchange import Exchange
from motamot.server import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from motamot.server.site import Site

__all__ = ["BUCKETS", "Counts", "exposition", "metrics"]

BUCKETS = (0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600)
"""Seconds an exchange took: upper bounds of the histogram."""


class Counts:
    """Since this process began. Labels are assistants' names and codes of ours: no stranger can make one."""

    def __init__(self) -> None:
        self.exchanges: Counter[tuple[str, str, str]] = Counter()  # assistant, outcome, code
        self.tokens: Counter[tuple[str, str]] = Counter()  # assistant, kind
        self.took: dict[str, Counter[float]] = {}  # assistant -> by the bucket it fell into
        self.seconds: dict[str, float] = {}
        self.refusals: Counter[tuple[str, str]] = Counter()  # status, limit or code

    def ended(self, exchange: Exchange) -> None:
        """An exchange that was let in has ended."""
        end, assistant = exchange.ended, exchange.begun.assistant
        if end is None:
            return
        self.exchanges[assistant, str(end.outcome), str(end.code or "")] += 1
        self.tokens[assistant, "prompt"] += exchange.usage.prompt_tokens
        self.tokens[assistant, "completion"] += exchange.usage.completion_tokens
        took = max(0.0, time.time() - exchange.begun.started_at)
        bucket = next((bound for bound in BUCKETS if took <= bound), float("inf"))
        self.took.setdefault(assistant, Counter())[bucket] += 1
        self.seconds[assistant] = self.seconds.get(assistant, 0.0) + took

    def refused(self, error: MotamotError) -> None:
        """A request was refused before any stream."""
        self.refusals[str(refusals.status(error)), str(getattr(error, "limit", None) or error.code)] += 1


def metrics(site: Site) -> Iterator[Metric]:
    """All metrics of a site, as they are now. docs/metrics.md explains each."""
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
    )

    counts = site.counts
    yield InfoMetricFamily("motamot", "The program.", value={"version": __version__})

    ended = CounterMetricFamily(
        "motamot_exchanges", "Exchanges that have ended.", labels=("assistant", "outcome", "code")
    )
    for names, number in counts.exchanges.items():
        ended.add_metric(names, number)
    yield ended

    tokens = CounterMetricFamily("motamot_tokens", "Tokens booked at exchanges' ends.", labels=("assistant", "kind"))
    for kind, number in counts.tokens.items():
        tokens.add_metric(kind, number)
    yield tokens

    took = HistogramMetricFamily(
        "motamot_exchange_seconds", "From a question to the end of its answer.", labels=("assistant",)
    )
    for assistant, fell in counts.took.items():
        total = 0
        buckets = []
        for bound in (*BUCKETS, float("inf")):
            total += fell[bound]
            buckets.append(("+Inf" if bound == float("inf") else str(float(bound)), float(total)))
        took.add_metric((assistant,), buckets, counts.seconds[assistant])
    yield took

    refused = CounterMetricFamily(
        "motamot_refusals", "Requests refused before any stream, by status and reason.", labels=("status", "reason")
    )
    for reason, number in counts.refusals.items():
        refused.add_metric(reason, number)
    yield refused

    running = GaugeMetricFamily("motamot_exchanges_running", "Exchanges under way.", labels=("assistant",))
    under_way = Counter(exchange.begun.assistant for exchange in site.exchanges.running)
    for assistant in site.assistants:
        running.add_metric((assistant,), under_way[assistant])
    yield running
    yield GaugeMetricFamily("motamot_streams_open", "Responses that follow an exchange.", value=site.heartbeats.open)
    yield GaugeMetricFamily(
        "motamot_store_writable", "1 where the books can be written.", value=float(site.exchanges.store.failing is None)
    )


class _Collector:
    """Asked by the registry at each scrape."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def collect(self) -> Iterator[Metric]:
        return metrics(self._site)


def exposition(site: Site) -> tuple[bytes, str]:
    """The metrics of a site, and of its process, in Prometheus's text format, and its content type."""
    from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(site))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry), CONTENT_TYPE_LATEST
