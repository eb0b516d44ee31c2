"""A chat for those who are signed in: the app's own login decides, and tools see whose question it is.

    pip install . itsdangerous    # in a checkout of motamot
    SESSION_SECRET=… OPENAI_API_KEY=… uvicorn login:app

`chat.identify` gives the user's name, or None for nobody, who is then answered 401. The name is what tools get as
`ctx.visitor`, what the ledger books under, and what makes a conversation nobody else's.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from motamot import Assistant, ToolContext

FORM = """<!doctype html><title>Sign in</title><form method="post">
<label>Name <input name="name" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<button>Sign in</button></form>"""
BODY_BYTES = 2_000


def hashed(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


# Your own user table stands here: a salt and a hash for each name.
USERS = {"ada": (b"salt of ada", hashed("harbour", b"salt of ada"))}
TRIPS = {"ada": "the 7:10 to the harbour, seat 12"}


async def my_trip(ctx: ToolContext) -> str:
    """The trip that the one who asks has booked."""
    return TRIPS.get(ctx.visitor, "none")


async def current_user(request: Request) -> str | None:
    """Who is signed in; the session is in a signed cookie, checked by the app's middleware before this is asked."""
    name: str | None = request.session.get("user")
    return name if name in USERS else None


chat = Assistant(system="You help the passengers of a bus line.", tools=[my_trip])
chat.identify = current_user


async def sign_in(request: Request) -> Response:
    if request.method == "GET":
        return HTMLResponse(FORM)
    if int(request.headers.get("content-length", BODY_BYTES + 1)) > BODY_BYTES:
        return HTMLResponse(FORM, status_code=413)
    form = parse_qs((await request.body()).decode(errors="replace"))
    name, password = form.get("name", [""])[0], form.get("password", [""])[0]
    salt, known = USERS.get(name, (b"nobody's", b""))
    given = await run_in_threadpool(hashed, password, salt)  # it takes long, on purpose: answers go on meanwhile
    if not hmac.compare_digest(given, known):
        return HTMLResponse(FORM, status_code=403)
    request.session["user"] = name
    return RedirectResponse("chat/", status_code=303)


app = Starlette(
    routes=[Route("/", sign_in, methods=["GET", "POST"]), Mount("/chat", chat.asgi)],
    middleware=[Middleware(SessionMiddleware, secret_key=os.environ["SESSION_SECRET"], same_site="lax")],
    lifespan=chat.lifespan,
)
