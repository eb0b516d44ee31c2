"""One visitor: their conversations, all that is kept of them as JSON, and its removal."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.responses import Response

from motamot.errors import NotFound
from motamot.server.dashboard.export import download
from motamot.server.dashboard.markup import Child, Html, bdi, el, join
from motamot.server.dashboard.visit import Page, Visit
from motamot.store.views import VisitorConversation

__all__ = ["delete", "export", "page"]


async def page(visit: Visit) -> Page:
    """GET /dashboard/visitor?name=…: who they are to the books, and all their conversations."""
    words, name = visit.words, visit.query.get("name", "")
    found = await visit.site.exchanges.store.visitor_conversations(name)
    if not found:
        raise NotFound(words.no_visitor)
    return Page(words.visitor, join(_who(visit, name), _conversations(visit, found), _deleting(visit, name, found)))


def _who(visit: Visit, name: str) -> Html:
    words = visit.words
    return join(
        el("p", bdi(name), class_="card"),
        el("p", words.visitor_help, class_="help"),
        el(
            "p",
            el("a", words.exchanges, href=visit.to("conversations", visitor=name)),
            " ",
            el("a", words.export_visitor, href=visit.to("visitor.json", name=name)),
            class_="actions",
        ),
    )


def _conversations(visit: Visit, found: tuple[VisitorConversation, ...]) -> Html:
    words = visit.words
    rows: list[list[Child]] = [
        [
            el("a", visit.moment(one.created_at), href=visit.to(f"conversations/{one.id}")),
            visit.moment(one.last_asked_at),
            bdi(one.assistant),
            words.count(one.exchanges),
            el("span", words.deleted, class_="mark note") if one.deleted else None,
        ]
        for one in found
    ]
    heads = [words.began, words.last_asked, words.assistant, words.exchanges, words.status]
    return el("section", el("h2", words.conversations), visit.table(words.conversations, heads, rows))


def _deleting(visit: Visit, name: str, found: tuple[VisitorConversation, ...], *, unsure: bool = False) -> Child:
    words = visit.words
    if all(one.deleted for one in found):
        return None
    form = visit.form(
        "visitor/delete",
        el("input", type="hidden", name="name", value=name),
        el("p", words.delete_warning),
        el("p", words.delete_unsure, class_="notice bad", role="alert") if unsure else None,
        el(
            "p",
            el(
                "label",
                el("input", type="checkbox", name="sure", value="yes", required=True),
                words.delete_confirm,
                class_="check",
            ),
        ),
        el("button", words.delete_visitor, class_="danger"),
        class_="card",
    )
    return el("section", el("h2", words.delete_visitor), form)


async def export(visit: Visit) -> Response:
    """GET /dashboard/visitor.json?name=…: all that is kept of a visitor, streamed."""
    name, store = visit.query.get("name", ""), visit.site.exchanges.store
    if not await store.visitor_conversations(name):
        raise NotFound(visit.words.no_visitor)

    async def pieces() -> AsyncIterator[str]:
        yield '{"visitor":' + msgspec.json.encode(name).decode() + ',"exchanges":['
        between = "\n"
        async for one in store.export_visitor(name):
            yield between + msgspec.json.encode(one).decode()
            between = ",\n"
        yield "\n]}\n"

    return download(pieces(), "motamot-visitor.json", "application/json")


async def delete(visit: Visit) -> Page:
    """POST /dashboard/visitor/delete: remove all text of a visitor, once it was confirmed; what runs is stopped."""
    words, fields = visit.words, await visit.fields()
    name, exchanges = fields.get("name", ""), visit.site.exchanges
    found = await exchanges.store.visitor_conversations(name)
    if not found:
        raise NotFound(words.no_visitor)
    if fields.get("sure") != "yes":
        return Page(words.visitor, join(_who(visit, name), _deleting(visit, name, found, unsure=True)), status=400)
    number = await exchanges.delete_visitor(name)
    told = el("p", words.deleted_so_many.format(number), class_="notice", role="status")
    return Page(words.visitor, join(told, el("p", el("a", words.back, href=visit.to()))))
