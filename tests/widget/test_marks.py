"""What is said beside an answer, in both languages; and that who deletes a conversation has deleted it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.page.support import Chromium, chat, opened
from tests.widget.shop import at, site

ENDS: list[tuple[list[dict[str, Any]], str, str]] = [
    (
        [{"say": "So far"}, {"finish": "length"}],
        "Cut off: the answer has reached its greatest length.",
        "Coupée : la réponse a atteint sa longueur maximale.",
    ),
    (
        [{"say": "So far"}, {"finish": "content_filter"}],
        "Cut off by the provider's content filter.",
        "Coupée par le filtre de contenu du fournisseur.",
    ),
    ([{"finish": "stop"}], "The model said nothing.", "Le modèle n’a rien dit."),
    ([{"say": "So far"}, {"gate": "never"}], "Stopped.", "Arrêtée."),
    (
        [{"say": "So far"}, {"close": "reset"}],
        "The connection to the model was cut in the middle of its answer.",
        "La réponse s’est interrompue avant sa fin.",
    ),
]


def test_each_end_is_said_in_each_language_and_that_a_machine_answers(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [script for script, *_ in ENDS]
        marks = ("demo_model", "test_model")
        async with chat(tmp_path, scripts, marks=marks) as served, opened(browser, served.url) as reader:
            page = reader.page
            for script, *_ in ENDS:
                await reader.ask("Hello")
                if {"gate": "never"} in script:
                    await reader.shows("So far")
                    await page.keyboard.press("Escape")
                await expect(reader.answer()).to_have_attribute("aria-busy", "false")
            model = page.locator("#model")
            assert await page.locator(".mark").all_inner_texts() == [english for _, english, _ in ENDS]
            await expect(model).to_contain_text("Demo: a small model on this machine answers.")
            await expect(page.locator("#machine")).to_have_text("Answers are made by a machine and may be wrong.")
            await page.get_by_role("button", name="Français").click()
            assert await page.locator(".mark").all_inner_texts() == [french for _, _, french in ENDS]
            await expect(model).to_contain_text("Modèle d’essai : il montre que tout s’emboîte, rien de plus.")
            await expect(page.locator("#machine")).to_contain_text("écrites par une machine")
            named = await page.locator(".marks").first.inner_text()
            assert "Démonstration : un petit modèle répond sur cette machine." in named

    chromium.run(scenario)


def test_who_deletes_a_conversation_has_deleted_it_from_the_books_and_their_file(
    chromium: Chromium, tmp_path: Path
) -> None:
    question, answer = "My number is 8675309-question", "Noted: 8675309-answer"

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [[{"say": answer}]], origins=[shop.origin]) as served:
                shop["/"] = f'<!doctype html><title>Shop</title><script src="{served.url}widget.js" async></script>'
                async with at(browser, f"{shop.origin}/") as reader:
                    await reader.page.get_by_role("button", name="Open the chat").click()
                    await reader.ask(question)
                    await reader.ended("complete")
                    assert await served.outcomes() == ["complete"]
                    assert kept(tmp_path) == {b"question", b"answer"}
                    await reader.page.get_by_role("button", name="Delete").click()
                    await (
                        reader.page.get_by_role("dialog", name="Delete this conversation?")
                        .get_by_role("button", name="Delete")
                        .click()
                    )
                    await expect(reader.page.locator("#welcome")).to_be_visible()
                    await reader.page.reload()
                    await expect(reader.page.locator("#welcome")).to_be_visible()
                    assert await reader.questions() == []
                    left = await reader.page.evaluate("[...Object.values(localStorage)].join()")
                    assert "8675309" not in left
        assert kept(tmp_path) == set()

    chromium.run(scenario)


def kept(folder: Path) -> set[bytes]:
    """What of it is in any file of the books."""
    written = b"".join(file.read_bytes() for file in folder.glob("books.sqlite3*"))
    return {part for part in (b"question", b"answer") if b"8675309-" + part in written}
