"""What a visitor does on a page in a browser: finds where to type, and what sends; and asks what the page shows.

Elements are looked for in the document, its open shadow roots (Playwright's selectors see into them) and its frames.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from motamot.errors import InvalidRequest, MotamotError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Locator, Page

__all__ = ["FIND_SECONDS", "STEP_SECONDS", "Hands"]

FIND_SECONDS = 10  # until the place to type in is there, or a question has made the page ask
LAUNCH_SECONDS = 1.5  # without a place to type in: then a button that opens a panel is pressed, where there is one
ENTER_SECONDS = 1.0  # after Enter: a question that still stands there was not sent by it
STEP_SECONDS = 0.1
FRAMES = 50  # of all pages, that are looked into

_INPUTS = "textarea, input[type=text], input[type=search], input:not([type]), [contenteditable=true], [role=textbox]"
_LAUNCHERS = "[aria-haspopup=dialog], [aria-expanded=false]"
_SENDS = """(box) => {
  const buttons = "button:not([type=button], [type=reset]), input[type=submit]";
  const form = box.closest("form");
  const named = /send|submit|envoyer|ask|demander/i;
  const says = (one) => named.test([one.ariaLabel, one.title, one.textContent].join(" "));
  const inside = form ? [...form.querySelectorAll(buttons)] : [];
  const beside = [...box.getRootNode().querySelectorAll("button, [role=button]")].filter(says);
  return [inside, beside].find((found) => found.length === 1)?.[0] ?? null;
}"""


@dataclass(slots=True)
class Hands:
    """Of one visitor.

    into, button, answer: the selectors that were given for these, None to look.
    opens:   selector of what opens the chat; None for the only button there is that says it opens something.
    """

    context: BrowserContext
    page: Page
    into: str | None
    button: str | None
    answer: str | None
    opens: str | None
    _open: bool = False

    async def box(self) -> Locator:
        """The place to type in. Raises: InvalidRequest where it is none, or one of several."""
        if self.opens is not None and not self._open:
            await self._press(await self._located(self.opens, "open"))
            self._open = True
        if self.into is not None:
            return await self._located(self.into, "into")
        there = await self._seen(_INPUTS)
        if len(there) != 1:
            found = f"{len(there)} places" if there else "no place"
            closed = "" if there else await self._closed()
            way = closed or (": name it with --into SELECTOR" if there else _HIDDEN)
            raise InvalidRequest(f"the page has {found} to type in{way}", field="into")
        return there[0]

    async def send(self, box: Locator, text: str) -> None:
        """Type into this, and send: by the button that was named, by Enter, or by the form's button where Enter did
        not.
        """
        from playwright.async_api import Error

        try:
            await box.fill(text, timeout=FIND_SECONDS * 1000)
            if self.button is None:
                await box.press("Enter", timeout=FIND_SECONDS * 1000)
        except Error:
            busy = "it takes no text, or is too busy to"
            raise MotamotError(f"nothing could be typed on the page within {FIND_SECONDS} s: {busy}") from None
        if self.button is not None:
            await self._press(await self._located(self.button, "button"))
            return
        deadline = time.time() + ENTER_SECONDS
        try:
            async with asyncio.timeout(FIND_SECONDS):
                while text in await _typed(box):
                    if time.time() > deadline:
                        if (button := (await box.evaluate_handle(_SENDS)).as_element()) is not None:
                            await button.click()
                        return
                    await asyncio.sleep(STEP_SECONDS)
        except (Error, TimeoutError):
            return  # the page goes elsewhere with the question, or cannot be pressed: what it asks will tell

    async def ask_pages(self, call: str, since: float = 0.0) -> list[Any]:
        """Ask the script in every frame of every page; frames that are gone, or of no document, tell nothing.

        call: of what `page.js` tells, with `answer` and `since` (seconds since the epoch) in reach.
        """
        from playwright.async_api import Error

        told = []
        frames = [frame for page in self.context.pages for frame in page.frames]
        script = f"({{answer, since}}) => globalThis.__motamotShown?.{call}"
        for frame in frames[:FRAMES]:
            try:
                async with asyncio.timeout(FIND_SECONDS):
                    told.append(await frame.evaluate(script, {"answer": self.answer, "since": since * 1000}))
            except TimeoutError:
                continue
            except Error as error:
                if "is not a valid selector" in error.message:
                    raise InvalidRequest(f"--answer {self.answer!r} is no selector", field="answer") from None
        return told

    async def _located(self, selector: str, option: str) -> Locator:
        from playwright.async_api import Error

        try:
            there = await self._seen(selector, launch=option == "into")
        except Error:
            raise InvalidRequest(f"--{option} {selector!r} is no selector", field=option) from None
        if not there:
            closed = await self._closed()
            told = f"--{option} {selector!r} finds nothing that can be seen on the page{closed}"
            raise InvalidRequest(told, field=option)
        return there[0]

    async def _closed(self) -> str:
        """That a part of the page cannot be reached to type in, where there is such a part."""
        if not any(told is True for told in await self.ask_pages("closed()")):
            return ""
        return ": a part of it is in a closed shadow root, which cannot be reached; chat there by hand, without --send"

    async def _seen(self, selector: str, *, launch: bool = True) -> list[Locator]:
        """What can be seen of this on the page, once something can; else in its frames: a widget's are often one.

        launch: where nothing can, press what says that it opens something.
        Raises: playwright's Error for what is no selector.
        """
        began = time.time()
        while True:
            found = await self._everywhere(selector)
            if found or time.time() > began + FIND_SECONDS:
                return found
            if launch and not self._open and time.time() > began + LAUNCH_SECONDS:
                launchers = await self._everywhere(_LAUNCHERS)
                if len(launchers) == 1:
                    self._open = True
                    await self._press(launchers[0])
            await asyncio.sleep(STEP_SECONDS)

    async def _everywhere(self, selector: str) -> list[Locator]:
        found = await _visible(self.page.main_frame, selector)
        for frame in self.page.frames[1:FRAMES] if not found else ():
            found += await _visible(frame, selector)
        return found

    async def _press(self, button: Locator) -> None:
        from playwright.async_api import Error

        try:
            await button.click(timeout=FIND_SECONDS * 1000)
        except Error:
            raise MotamotError("a button of the page cannot be pressed: something lies over it, or it moves") from None


_HIDDEN = ": name it with --into SELECTOR, or what opens the chat with --open SELECTOR"


async def _typed(box: Locator) -> str:
    """What stands in the place to type in."""
    return str(await box.evaluate("(box) => box.value ?? box.textContent") or "")


async def _visible(frame: Frame, selector: str) -> list[Locator]:
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(FIND_SECONDS):
            return await frame.locator(selector).filter(visible=True).all()
    except TimeoutError:
        return []  # of a page that does nothing but compute
    except Error as error:
        if not any(word in error.message for word in ("destroyed", "detached", "navigat")):
            raise
        return []  # of a frame that is gone, or goes elsewhere just now
