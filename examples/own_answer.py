"""An answer of your own: a timetable is looked up, and only what it cannot answer goes to a model.

    pip install .    # in a checkout of motamot
    OPENAI_API_KEY=… uvicorn own_answer:app

What the skill answers costs nothing and is always the same; page, stop, transcript and ledger are as ever.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator

from motamot import AnswerEvent, Assistant, Cited, Question, Routed, Text

TIMETABLE = {
    "harbour": ["7:10", "8:10", "9:40", "12:10", "17:30"],
    "market": ["6:55", "9:25", "11:55", "15:25"],
}
ASKED = re.compile(r"\b(?:bus(?:es)?|timetable|departures?)\b.*\b(" + "|".join(TIMETABLE) + r")\b", re.IGNORECASE)

chat = Assistant(
    model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),  # named: an answer of your own may need none
    system="You help the passengers of a bus line. You do not know the timetable.",
)


@chat.answer
async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
    """Route first, and say so: clients that show it learn who answers before the first word."""
    if found := ASKED.search(question.message):
        stop = found[1].lower()
        yield Routed(agent="timetable", confidence=1.0, method="pattern")
        yield Text(f"Buses to the {stop}:\n")
        for departure in TIMETABLE[stop]:
            yield Text(f"\n- {departure}")
        yield Cited(title="Timetable of the line", url="https://bus.example/timetable")
        return
    yield Routed(agent="model", confidence=0.5, method="otherwise")
    async for event in question.model_answer():
        yield event


app = chat.asgi
