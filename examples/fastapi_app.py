"""A chat inside a FastAPI app, under /chat, with a tool that looks into the app's own data.

    pip install . fastapi    # in a checkout of motamot
    OPENAI_API_KEY=… uvicorn fastapi_app:app

The page is at /chat/, the app's own page at /.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from motamot import Assistant

ORDERS = {"7": "left the warehouse this morning", "8": "waits for its second parcel"}


async def order_status(order: str) -> str:
    """Where an order is.

    Args:
        order: its number, as on the invoice.
    """
    return ORDERS.get(order, "unknown: no order has this number")


chat = Assistant(system="You help the customers of a shop. Be brief.", tools=[order_status])

app = FastAPI(lifespan=chat.lifespan)
app.mount("/chat", chat.asgi)


@app.get("/", response_class=HTMLResponse)
async def home() -> str:
    return '<!doctype html><title>Shop</title><p>The shop. <a href="chat/">Ask us</a>.</p>'


@app.get("/orders/{order}")
async def order(order: str) -> dict[str, str]:
    return {"order": order, "status": await order_status(order)}
