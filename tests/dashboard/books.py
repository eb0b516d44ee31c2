"""A chat that something has happened to: real exchanges of several kinds, made through a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from motamot.assistant import Assistant
from motamot.model.http import HttpModel
from motamot.store.prices import Prices
from tests.server.reading import Visitor
from tests.server.support import Served, serving

__all__ = ["BIDI", "SCRIPTS", "XSS", "asked", "chatbot"]

XSS = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)></textarea>{{7*7}}&lt;b&gt;"
BIDI = "left \u202eright\u202c \u2066in\u2069 \x1b[31mred\x07 zero\u200bwidth \ufeff \U000e0041"

SCRIPTS = {
    "default": "hello",
    "models": ["scripted"],
    "scripts": {
        "hello": [{"say": "Bonjour, le café ouvre à midi."}, {"usage": {"prompt": 1000, "completion": 500}}],
        "long": [{"say": "A long answer that is cut"}, {"finish": "length"}, {"usage": {"prompt": 3, "completion": 6}}],
        "broken": [{"fail": "down"}],
        "held": [{"say": "Before the gate."}, {"gate": "more"}, {"say": " After the gate."}],
        "order": {
            "turns": [
                [{"say": "I look."}, {"call": {"name": "order_status", "arguments": {"order": XSS}}}],
                [{"say": ["It left ", XSS, " ", BIDI]}, {"usage": {"prompt": 30, "completion": 5}}],
            ]
        },
    },
}


async def order_status(order: str) -> str:
    """Where an order is.

    order: its number.
    """
    return f"<b>shipped</b> {order}"


def _assistants(url: str, made: list[HttpModel]) -> list[Assistant]:
    """One that is named as an attacker would, and one that costs."""
    made += [HttpModel(url, "scripted"), HttpModel(url, f"model-{XSS[:25]}")]
    return [
        Assistant(upstream=made[0], name="guide", tools=[order_status], prices=Prices(input=2.0, output=8.0)),
        Assistant(upstream=made[1], name="<i>other</i>"),
    ]


@asynccontextmanager
async def chatbot(folder: Path, scripts: object = SCRIPTS, **more: Any) -> AsyncIterator[Served]:
    """The chatbot that scripts make, served. more: of `serving`."""
    made: list[HttpModel] = []
    options = {"requests_per_hour": 1000, **more.pop("options", {})}
    try:
        async with serving(
            folder, scripts, assistants=lambda url: _assistants(url, made), options=options, **more
        ) as served:
            yield served
    finally:
        for one in made:
            await one.close()


async def asked(s: Served) -> dict[str, str]:
    """Ask of every kind once, each as another visitor. Returns: exchange ids by kind."""
    found: dict[str, str] = {}
    for kind, question in (
        ("complete", "hello"),
        ("truncated", "long"),
        ("failed", "broken"),
        ("tools", "order"),
    ):
        stream = await Visitor(s.port).ask(question)
        await stream.to_end()
        found[kind] = stream.exchange
        await stream.close()
    stream = await Visitor(s.port).ask(f"Wer fragt? {XSS}\n{BIDI}", assistant="<i>other</i>")
    await stream.to_end()
    found["xss"] = stream.exchange
    await stream.close()
    visitor = Visitor(s.port)
    stream = await visitor.ask("held")
    await stream.until("Before the")
    seen = next(number for number, event in enumerate(stream.events, 1) if "the" in getattr(event, "text", ""))
    await visitor.stop(stream.exchange, seen)
    await stream.close()
    found["stopped"] = stream.exchange
    await s.site.exchanges.store.flush()
    return found
