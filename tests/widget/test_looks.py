"""How the chat looks: light and dark, in the site's colours, in other languages, from right to left; and its pictures.

The pictures are those of the documentation: `make screenshots` keeps them in docs/images.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.page.support import Chat, Chromium, Reader, chat, opened
from tests.widget.axe import violations
from tests.widget.shop import Pages, at, site
from tests.widget.test_panel import sideways

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "widget" / "static"
KEPT = ROOT / "docs" / "images"

ENGLISH = (
    "How do I send a lamp back?",
    """Within **30 days**, free of charge:

1. Open *My orders* and choose the lamp.
2. Print the label, or show the code at the counter.
3. Your money is back within five days.

| Where | How long |
| --- | ---: |
| Post office | 3–5 days |
| Our workshop | at once |

Repairs have no time limit. Shall I start a return for you?""",
)
FRENCH = (
    "Comment renvoyer une lampe ?",
    """Sous **30 jours**, sans frais :

1. Ouvrez *Mes commandes* et choisissez la lampe.
2. Imprimez l’étiquette, ou montrez le code au comptoir.
3. Vous êtes remboursé sous cinq jours.

| Où | Délai |
| --- | ---: |
| Bureau de poste | 3–5 jours |
| Notre atelier | aussitôt |

Les réparations n’ont pas de limite de temps. Dois-je préparer un retour ?""",
)


FRENCH_SHOP = {
    'lang="en"': 'lang="fr"',
    "Lamps that last.": "Des lampes qui durent.",
    "Turned from ash and brass in our workshop, repaired for as long as you keep them.": (
        "Tournées dans le frêne et le laiton à l’atelier, réparées aussi longtemps que vous les gardez."
    ),
    ">Lamps<": ">Lampes<",
    ">Workshop<": ">L’atelier<",
    ">Help<": ">Aide<",
}


def put_up(shop: Pages, served: Chat, lang: str = "en") -> None:
    """The example's shop, with this chat."""
    page = (SHOP / "index.html").read_text("utf-8").replace("https://chat.example/", served.url)
    for english, french in FRENCH_SHOP.items() if lang == "fr" else ():
        assert english in page
        page = page.replace(english, french)
    shop["/"] = page.replace('data-assistant="help"', 'data-assistant="Lumi"')
    shop["/shop.css"] = (SHOP / "shop.css").read_text("utf-8")


async def picture(page: Page, name: str, folder: Path) -> None:
    """Take it; keep it where that is wanted. Nothing in it may be cut off at a side."""
    assert await sideways(page) == []
    await page.evaluate("document.fonts.ready")
    where = KEPT if os.environ.get("MOTAMOT_SCREENSHOTS") else folder
    taken = await page.screenshot(path=where / f"{name}.png", animations="disabled", caret="hide")
    assert len(taken) > 10_000, "there is something to see"


DESK = {"width": 1120, "height": 760}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 780},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}


@pytest.mark.parametrize(
    ("name", "asked", "context"),
    [
        ("widget-light", ENGLISH, {"viewport": DESK}),
        ("widget-dark", ENGLISH, {"viewport": DESK, "color_scheme": "dark"}),
        ("widget-french", FRENCH, {"viewport": DESK}),
        ("widget-mobile", ENGLISH, PHONE),
        ("widget-mobile-french", FRENCH, {**PHONE, "color_scheme": "dark"}),
    ],
)
def test_screenshots_of_the_widget_on_a_site(
    chromium: Chromium, tmp_path: Path, name: str, asked: tuple[str, str], context: dict[str, Any]
) -> None:
    async def scenario(browser: Browser) -> None:
        question, answer = asked
        with site() as shop:
            async with chat(tmp_path, [[{"say": answer}]], origins=[shop.origin], name="Lumi") as served:
                put_up(shop, served, "fr" if "french" in name else "en")
                async with at(browser, f"{shop.origin}/", **context) as reader:
                    await reader.page.locator("motamot-launcher #button").click()
                    await reader.ask(question)
                    await reader.ended("complete")
                    assert await violations(reader.page) == []
                    await settle(reader)
                    await picture(reader.page, name, tmp_path)

    chromium.run(scenario)


@pytest.mark.parametrize(
    ("name", "asked", "context"),
    [
        ("page-light", ENGLISH, {"viewport": DESK, "locale": "en-GB"}),
        ("page-dark-french", FRENCH, {"viewport": DESK, "locale": "fr-FR", "color_scheme": "dark"}),
    ],
)
def test_screenshots_of_the_page(
    chromium: Chromium, tmp_path: Path, name: str, asked: tuple[str, str], context: dict[str, Any]
) -> None:
    async def scenario(browser: Browser) -> None:
        question, answer = asked
        async with (
            chat(tmp_path, [[{"say": answer}]], name="Lumi") as served,
            opened(browser, served.url, **context) as reader,
        ):
            await reader.ask(question)
            await reader.ended("complete")
            await settle(reader)
            await picture(reader.page, name, tmp_path)

    chromium.run(scenario)


def test_screenshots_of_the_reading_panel(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [[{"say": ENGLISH[1]}]], origins=[shop.origin], name="Lumi") as served:
                put_up(shop, served)
                async with at(browser, f"{shop.origin}/", viewport=DESK) as reader:
                    await reader.page.locator("motamot-launcher #button").click()
                    await reader.ask(ENGLISH[0])
                    await reader.ended("complete")
                    await reader.page.locator("#reading").click()
                    await reader.page.get_by_role("radio", name="Cream").check()
                    await settle(reader)
                    await picture(reader.page, "widget-reading", tmp_path)

    chromium.run(scenario)


async def settle(reader: Reader) -> None:
    """Let the view be at its end, and nothing be under the pointer."""
    await reader.page.mouse.move(1, 1)
    await expect(reader.page.locator("#latest")).to_be_hidden()


async def colours(chat: Locator) -> list[str]:
    """Of ground and text, as they are painted."""
    found: list[str] = await chat.locator("#chat").evaluate(
        "chat => [getComputedStyle(chat).backgroundColor, getComputedStyle(chat).color]"
    )
    return found


@pytest.mark.parametrize("system", ["light", "dark"])
def test_it_is_light_or_dark_as_the_system_is_unless_the_site_says_which(
    chromium: Chromium, tmp_path: Path, system: Any
) -> None:
    looks = {"light": ["rgb(251, 250, 248)", "rgb(29, 33, 31)"], "dark": ["rgb(21, 24, 22)", "rgb(232, 235, 233)"]}

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [], origins=[shop.origin]) as served:
                shop["/"] = f"""<!doctype html><title>Shop</title>
                    <script src="{served.url}widget.js" data-theme="dark" data-open async></script>
                    {
                    "".join(
                        f'<div style="width: 30em"><motamot-chat {theme}></motamot-chat></div>'
                        for theme in ('id="system"', 'id="light" theme="light"', 'id="dark" theme="dark"')
                    )
                }"""
                async with at(browser, f"{shop.origin}/", color_scheme=system) as reader:
                    await expect(reader.page.locator("#system #question")).to_be_visible()
                    for one in ("light", "dark"):
                        assert await colours(reader.page.locator(f"#{one}")) == looks[one]
                    assert await colours(reader.page.locator("#system")) == looks[system]
                    assert await colours(reader.page.locator("motamot-launcher motamot-chat")) == looks["dark"]
                    light = reader.page.locator("#light")
                    await light.evaluate("chat => chat.setAttribute('theme', 'dark')")
                    assert await colours(light) == looks["dark"]

    chromium.run(scenario)


PROPERTIES = {  # custom property: where it shows, and as what
    "ground": ("#chat", "backgroundColor"),
    "ink": ("#chat", "color"),
    "raised": ("#composer", "backgroundColor"),
    "soft": ("#machine", "color"),
    "line": ("#head", "borderBottomColor"),
    "accent": ("#send", "backgroundColor"),
    "on-accent": ("#send", "color"),
    "asked": (".asked", "backgroundColor"),
    "code": ("p > code", "backgroundColor"),
    "font": ("#question", "fontFamily"),
    "code-font": ("p > code", "fontFamily"),
    "size": ("#question", "fontSize"),
}


def test_every_custom_property_reaches_what_it_is_for_and_is_documented(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        rules, wanted = [], {}
        for number, name in enumerate(PROPERTIES):
            value = {"size": "19px", "font": "Georgia", "code-font": "Courier"}.get(name, f"rgb(1, 2, {number})")
            rules.append(f"--motamot-{name}: {value};")
            wanted[name] = value
        with site() as shop:
            async with chat(tmp_path, [[{"say": "Use `code`."}]], origins=[shop.origin]) as served:
                shop["/"] = f"""<!doctype html><title>Shop</title><style>:root {{ {" ".join(rules)} }}</style>
                    <script src="{served.url}widget.js" data-launcher="none" async></script>
                    <motamot-chat></motamot-chat>"""
                async with at(browser, f"{shop.origin}/") as reader:
                    await reader.ask("Hello")
                    await reader.ended("complete")
                    found = {
                        name: await reader.page.locator(where).evaluate(
                            "(element, style) => getComputedStyle(element)[style]", style
                        )
                        for name, (where, style) in PROPERTIES.items()
                    }
                    assert found == wanted

    chromium.run(scenario)
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "widget" / "src" / "styles").glob("*.ts"))
    assert {name for name in PROPERTIES if f"--motamot-{name}," in sources} == set(PROPERTIES)
    text = (ROOT / "docs" / "widget.md").read_text("utf-8")
    assert {name for name in PROPERTIES if f"`--motamot-{name}`" in text} == set(PROPERTIES)


def test_a_page_with_the_rudest_rules_changes_nothing(chromium: Chromium, tmp_path: Path) -> None:
    rude = """* { font: 7px/1 fantasy; color: red; background: yellow; letter-spacing: 9px; text-transform: uppercase;
        margin: 5px; padding: 7px; box-sizing: content-box; direction: ltr; visibility: visible; cursor: wait }
        button, textarea, dialog { display: none !important; border: 9px solid lime !important }"""

    async def looks(browser: Browser, served: Chat, shop: Pages, path: str) -> Any:
        async with at(browser, f"{shop.origin}{path}", viewport=DESK) as reader:
            await reader.page.locator("motamot-launcher #button").click()
            await expect(reader.page.locator("#welcome")).to_be_visible()
            panel = await reader.page.locator("motamot-launcher #panel").bounding_box()
            styles = await reader.page.locator("#send").evaluate(
                "({offsetWidth, offsetHeight}) => [offsetWidth, offsetHeight]"
            )
            text = await reader.page.locator("#welcome").evaluate(
                "(one) => ['fontSize', 'color', 'letterSpacing', 'textTransform', 'fontFamily'].map("
                "(name) => getComputedStyle(one)[name])"
            )
            return panel, styles, text

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [], origins=[shop.origin]) as served:
                line = f'<script src="{served.url}widget.js" async></script>'
                shop["/"] = f"<!doctype html><title>Shop</title><p>Hello</p>{line}"
                shop["/rude"] = f"<!doctype html><title>Shop</title><style>{rude}</style><p>Hello</p>{line}"
                plain = await looks(browser, served, shop, "/")
                assert await looks(browser, served, shop, "/rude") == plain

    chromium.run(scenario)


ARABIC = """customElements.whenDefined("motamot-chat").then((chat) => chat.addLanguage("ar", "العربية", {
    send: "إرسال", open: "افتح المحادثة", close: "أغلق المحادثة", welcome: "ماذا تريد أن تعرف؟",
}))"""


def test_from_right_to_left_everything_is_mirrored_and_each_text_keeps_its_own_direction(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        answers = [[{"say": "Within 30 days."}], [{"say": "خلال ٣٠ يومًا.\n\n- واحد"}]]
        with site() as shop:
            async with chat(tmp_path, answers, origins=[shop.origin]) as served:
                shop["/"] = f"""<!doctype html><html lang="ar" dir="rtl"><meta charset="utf-8"><title>متجر</title>
                    <main><h1>متجر</h1></main><script src="{served.url}widget.js" async></script>
                    <script>{ARABIC}</script>"""
                async with at(browser, f"{shop.origin}/", viewport=DESK) as reader:
                    page = reader.page
                    launcher = page.get_by_role("button", name="افتح المحادثة")
                    box = await launcher.bounding_box()
                    assert box is not None and box["x"] == 16
                    await launcher.click()
                    await reader.ask("How long?")
                    await reader.ended("complete")
                    await reader.ask("كم يومًا؟")
                    await reader.ended("complete")
                    placed = await page.evaluate("""() => {
                        const root = document.querySelector("motamot-launcher").shadowRoot
                            .querySelector("motamot-chat").shadowRoot
                        const chat = root.querySelector("#chat").getBoundingClientRect()
                        const middle = (chat.left + chat.right) / 2
                        const side = (one) => {
                            const { left, right } = one.getBoundingClientRect()
                            return (left + right) / 2 < middle ? "left" : "right"
                        }
                        return {
                            send: side(root.querySelector("#send")),
                            close: side(root.querySelector("#close")),
                            title: side(root.querySelector("#title")),
                            asked: [...root.querySelectorAll(".asked")].map(side),
                            texts: [...root.querySelectorAll(".text > p")].map((p) => getComputedStyle(p).direction),
                        }
                    }""")
                    assert placed == {
                        "send": "left",
                        "close": "left",
                        "title": "right",
                        "asked": ["left", "left"],
                        "texts": ["ltr", "rtl"],
                    }
                    assert await sideways(page) == []
                    assert await violations(page) == []
                    await page.locator("#reading").click()
                    assert await sideways(page) == []
                    panel = await page.locator("#reading-panel").bounding_box()
                    assert panel is not None and panel["x"] < 60
                    title = await page.locator("#reading-title").bounding_box()
                    words = await page.locator("#reading-title").evaluate(
                        "(title) => { const range = document.createRange(); range.selectNodeContents(title);"
                        " const { left, right } = range.getBoundingClientRect(); return [left, right] }"
                    )
                    assert title is not None and words[1] == title["x"] + title["width"], "at the page's own side"

    chromium.run(scenario)


def test_words_that_a_site_gives_are_spoken_and_english_where_it_gives_none(chromium: Chromium, tmp_path: Path) -> None:
    """Also by chats that are there already; and they are text, whatever is in them."""

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [[{"say": "Ja."}]], origins=[shop.origin]) as served:
                shop["/"] = f"""<!doctype html><html lang="de-AT"><meta charset="utf-8"><title>Laden</title>
                    <script src="{served.url}widget.js" async></script>"""
                async with at(browser, f"{shop.origin}/", locale="en-GB") as reader:
                    page = reader.page
                    await page.get_by_role("button", name="Open the chat").click()
                    await expect(page.get_by_role("button", name="Send")).to_be_visible()
                    await page.evaluate("""customElements.get("motamot-chat").addLanguage(
                        "de", "Deutsch", {send: "Senden", open: "Fragen", close: "Zu", welcome: "<b>Nun?</b>"})""")
                    await expect(page.get_by_role("button", name="Senden")).to_be_visible()
                    await expect(page.locator("#welcome")).to_have_text("<b>Nun?</b>")
                    await expect(page.get_by_role("textbox", name="Your question")).to_be_visible()
                    assert await page.locator("#chat").get_attribute("lang") == "de"
                    await expect(page.locator("motamot-launcher #button")).to_have_attribute("aria-label", "Zu")
                    await page.get_by_role("button", name="English").click()
                    await expect(page.locator("motamot-launcher #button")).to_have_attribute(
                        "aria-label", "Close the chat"
                    )
                    await page.reload()
                    await expect(page.locator("motamot-launcher #button")).to_have_attribute(
                        "aria-label", "Close the chat"
                    )

    chromium.run(scenario)


def test_events_tell_the_page_what_happens_and_no_word_of_it(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [[{"say": "Secret."}]], origins=[shop.origin]) as served:
                shop["/"] = f"""<!doctype html><title>Shop</title><script>
                    window.heard = []
                    for (const name of ["opened", "closed", "asked", "ended"]) {{
                        document.addEventListener(`motamot-${{name}}`, ({{ type, detail, target }}) => {{
                            window.heard.push([type, detail, target.localName])
                        }})
                    }}</script><script src="{served.url}widget.js" async></script>"""
                async with at(browser, f"{shop.origin}/") as reader:
                    await reader.page.locator("motamot-launcher #button").click()
                    await reader.ask("Secret?")
                    await reader.ended("complete")
                    await reader.page.get_by_role("button", name="Close the chat").first.click()
                    heard = await reader.page.evaluate("heard")
                    [exchange] = {detail["exchange"] for _, detail, _ in heard if detail is not None}
                    named = {"assistant": "default", "exchange": exchange}
                    assert heard == [
                        ["motamot-opened", None, "motamot-launcher"],
                        ["motamot-asked", named, "motamot-launcher"],
                        ["motamot-ended", {**named, "outcome": "complete"}, "motamot-launcher"],
                        ["motamot-closed", None, "motamot-launcher"],
                    ]

    chromium.run(scenario)
