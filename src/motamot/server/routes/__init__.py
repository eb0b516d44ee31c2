"""All routes of a site: one file per kind of client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from motamot.server.dashboard import routes as dashboard
from motamot.server.router import Router
from motamot.server.routes import ag_ui, flux, ga, native, operations, page, ui_message, v1, widget

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["router"]


def router(site: Site) -> ASGIApp:
    """The site's routes."""
    return Router(
        site,
        [
            *native.routes(site),
            *flux.routes(site),
            *ga.routes(site),
            *v1.routes(site),
            *ag_ui.routes(site),
            *ui_message.routes(site),
            *operations.routes(site),
            *dashboard.routes(site),
            *page.routes(site),
            *widget.routes(site),
        ],
    )
