"""Which of a chatbot's two ends went wrong when it was asked once, and what to set: a sentence for its owner. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.exam.visitor import ANSWER_SECONDS, Heard
from motamot.scripted import Received

__all__ = ["silent", "wrong_end"]


def silent(heard: Heard, asked: Sequence[Received], url: str, model: str) -> str:
    """What time ran out for, in a sentence."""
    what = "began no response (interim ones, 1xx, are none)" if heard.status is None else "sent no text"
    told = f"the chatbot at {url} took the question, and {what} within {ANSWER_SECONDS:g} s"
    if not asked:
        return f"{told}; it did not ask the model at {model}: does it wait for another one? Set its base URL to that"
    if any(one.ended is None for one in asked):
        return f"{told}; it asked the model, and reads it still"
    return f"{told}, though the model had answered it"


def wrong_end(heard: Heard, asked: Sequence[Received], url: str, model: str) -> str:
    """Which of the two ends went wrong, in a sentence; "" if neither did."""
    if heard.status is None:
        return f"nothing answers at {url}: {heard.broke or 'no response'}; is the chatbot running?"
    if 300 <= heard.status < 400:
        where = heard.tape().header("location") or "nowhere"
        return (
            f"{url} answers {heard.status} and sends its visitors to {where[:200]}: if that is a login, give the "
            "header that its page sends, with -H; else ask at that address"
        )
    if heard.status in (401, 403):
        return f"the chatbot wants a login ({heard.refused[:200]}): give the header that its page sends, with -H"
    if heard.status in (404, 405, 410):
        return f"{url} is not where the chatbot is asked ({heard.refused[:200]})"
    if heard.status in (400, 415, 422):
        return (
            f"the chatbot does not take this kind of question ({heard.refused[:200]}): another --preset, or --request"
        )
    if heard.status == 429:
        return f"the chatbot lets nobody ask so much ({heard.refused[:200]}): raise its limits for the exam"
    if not asked:
        return _not_asked(heard, heard.status, url, model)
    if heard.refused or heard.broke:
        return f"the chatbot asked the model, and failed: {(heard.refused or heard.broke)[:200]}"
    if not heard.text:
        return "no text was found in the chatbot's response: is --preset right, or --read?"
    # Spaces and single letters may be lost on the way: that is for the cases to find.
    if not any(part in "".join(heard.text.casefold().split()) for part in ("read", "eady")):
        return (
            f"the chatbot asked the model at {model}, and answered {heard.text[:100]!r} instead of what it said, "
            "'Ready.': does another model write its answers? Set that one's base URL to this address, too"
        )
    return ""


def _not_asked(heard: Heard, status: int, url: str, model: str) -> str:
    """What answered instead, where the model was not asked."""
    if status >= 500:
        return (
            f"the chatbot failed ({heard.refused[:200]}) and did not ask the model at {model}: set its base URL to "
            "that address, and see what its own log says"
        )
    if not heard.refused and (heard.tape().header("content-type") or "").lower().startswith("text/html"):
        return (
            f"an HTML page came from {url}, and the model at {model} was not asked: if it is a login, give the header "
            "that its page sends, with -H; else give the address that the page asks, or --page"
        )
    why = f"; it answered {heard.text[:100]!r}" if heard.text else f" ({heard.refused[:200]})" if heard.refused else ""
    return f"the chatbot answered, and did not ask the model at {model}: set its base URL to that address{why}"
