"""The embedded model asked again and again: none of its answers fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

from motamot.model.local import LocalModel
from motamot.model.turn import Message, TurnRequest
from tests.model.tiny_gguf import write_tiny_gguf
from tests.need import need


def test_asked_back_to_back_every_attempt_is_answered(tmp_path: Path) -> None:
    try:
        import xllamacpp
    except ImportError:
        xllamacpp = None
    need(xllamacpp is not None, "xllamacpp")

    async def scenario() -> None:
        model = LocalModel(write_tiny_gguf(tmp_path / "tiny.gguf"), name="tiny")
        try:
            for _ in range(30):
                request = TurnRequest(messages=[Message(role="user", content="Hello")], max_tokens=4)
                turn = await model.attempt(request).run(lambda _: None)
                assert turn.error is None, turn.error.detail
                assert turn.usage is not None
        finally:
            await model.close()

    asyncio.run(asyncio.wait_for(scenario(), 50))
