"""A chat beside a Django site, for those who are signed in there.

    pip install . django    # in a checkout of motamot
    export DJANGO_SECRET_KEY=… DJANGO_SETTINGS_MODULE=site_settings
    django-admin migrate --pythonpath . && django-admin createsuperuser --pythonpath .
    OPENAI_API_KEY=… uvicorn asgi:app

Django's own handler runs no lifespan and mounts no ASGI apps, so the chat stands beside it: what begins with /chat is
the chat's, all else is the site's. Django's middleware sees nothing of the chat; its session is read here.
"""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from motamot import Assistant

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
django_app = get_asgi_application()

from django.conf import settings  # noqa: E402 - after Django's set-up
from django.contrib.auth import aget_user  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.http import HttpRequest  # noqa: E402

chat = Assistant(system="You help the customers of a shop.")


async def current_user(request: Request) -> str | None:
    """Who is signed in at the site, by the session that its cookie names."""
    asked = HttpRequest()
    asked.session = SessionStore(request.cookies.get(settings.SESSION_COOKIE_NAME))
    user = await aget_user(asked)
    return user.get_username() if user.is_authenticated else None


chat.identify = current_user
app = Starlette(routes=[Mount("/chat", chat.asgi), Mount("/", django_app)], lifespan=chat.lifespan)
