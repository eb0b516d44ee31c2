"""docs/privacy.md: its redaction, as the page says it, from settings to the disk."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from motamot.scripted import ScriptedModel
from motamot.settings import assistant_from, load
from motamot.store.schema import metadata

PAGE = Path(__file__).parent.parent / "docs" / "privacy.md"
CARD = "4111 1111 1111 1111"


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [found] = [text for text in blocks if containing in text]
    return str(found)


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation does not ship in the wheel")
def test_the_page_s_redaction_keeps_cards_off_the_disk(tmp_path: Path) -> None:
    (tmp_path / "redact.py").write_text(block("python", "def redact"))
    settings = tmp_path / "motamot.toml"

    async def run() -> None:
        async with ScriptedModel([[{"say": ["Your card ", CARD[:7], CARD[7:], " is fine."]}]]) as model:
            told = block("toml", "redact =") + "\nretention_days = 30\ndatabase = 'books.db'\n"
            settings.write_text(f"{told}\n[assistants.a]\nupstream = '{model.url}'\nmodel = 'm'\n")
            chat = assistant_from(load(settings, environ={}))
            async with chat, chat.ask(f"Is {CARD} my card?") as asked:
                async for _ in asked:
                    pass
            assert asked.text == f"Your card {CARD} is fine."
            assert CARD in str(model.requests[0].body)

    asyncio.run(run())
    on_disk = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.name.startswith("books"))
    assert b"Your card [card] is fine." in on_disk
    assert b"Is [card] my card?" in on_disk
    assert b"4111" not in on_disk


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation does not ship in the wheel")
def test_every_column_that_holds_text_is_emptied_with_its_conversation(tmp_path: Path) -> None:
    """What the page says is removed is; a column that is added must be thought of."""
    texts = {
        "conversations": set(),
        "owners": set(),
        "exchanges": {"question", "generated", "shown", "detail", "body_hash"},
        "completions": {"detail"},
    }
    kept = {"id", "assistant", "visitor", "conversation", "exchange", "key", "model", "model_reported", "replaces"}
    kept |= {
        "owner",
        "outcome",
        "code",
        "by",
        "message",
        "marks",
        "finish",
        "source",
        "currency",
        "host",
        "place",
        "started",
    }
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.type.python_type is str:
                assert column.name in kept | texts.get(table.name, set()), f"{table.name}.{column.name}"

    async def run() -> None:
        async with ScriptedModel([[{"say": "An answer."}]]) as model:
            chat = assistant_from(load(write(tmp_path, model.url), environ={}))
            async with chat, chat.ask("A question?") as asked:
                async for _ in asked:
                    pass
                assert await chat.exchanges.delete_visitor("local") == 1

    asyncio.run(run())
    connection = sqlite3.connect(tmp_path / "books.db")
    for name, columns in texts.items():
        for text in columns:
            assert connection.execute(f"SELECT count(*) FROM {name} WHERE {text} IS NOT NULL").fetchone() == (0,)
    for name in ("details", "boundaries"):
        assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)
    connection.close()


def write(folder: Path, url: str) -> Path:
    file = folder / "motamot.toml"
    file.write_text(f"[store]\ndatabase = 'books.db'\n[assistants.a]\nupstream = '{url}'\nmodel = 'm'\n")
    return file
