"""The site's own pages."""

from __future__ import annotations

from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.urls import path


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"Hello, {request.user.get_username() or 'stranger'}.")


urlpatterns = [path("", home), path("login", LoginView.as_view(template_name="login.html"))]
