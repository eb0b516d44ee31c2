"""The document that the server publishes is what the server does."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from motamot.assistant import Assistant
from motamot.limits import Limits
from motamot.scripted import scripted_model
from motamot.server.openapi import document
from motamot.server.router import Router
from motamot.server.site import Site
from tests.server.support import OPERATOR_KEY, V1_KEY, Process, serve_process, upstream

EXAMPLES = 40  # of each operation; more by hand: `hypothesis` remembers what it found
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
SECURITY = {
    "secret": {"Authorization": "Bearer " + "s" * 22},
    "v1_key": {"Authorization": f"Bearer {V1_KEY}"},
    "operator_key": {"Authorization": f"Bearer {OPERATOR_KEY}"},
}
DOCUMENT = document(Limits())
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that answers at once, and lets a stranger ask as often as a test does."""
    scripts = {"default": "hello", "scripts": {"hello": "Hello."}}
    with (
        scripted_model(scripts) as model,
        serve_process(
            tmp_path_factory.mktemp("served"),
            *upstream(model.url),
            MOTAMOT_V1_KEYS=V1_KEY,
            MOTAMOT_OPERATOR_KEY=OPERATOR_KEY,
            MOTAMOT_SERVER__REQUESTS_PER_HOUR="1000000",
            MOTAMOT_SERVER__TOKENS_PER_HOUR="1000000000",
        ) as process,
    ):
        yield process


def test_every_route_is_in_the_document_and_nothing_else_is() -> None:
    site = Site([Assistant(upstream="http://127.0.0.1:1", model="m")])
    assert isinstance(site._router, Router)
    routes = {
        (route.path.replace(":path", ""), method.lower())
        for route in site._router._routes
        if isinstance(route, Route) and not route.path.startswith("/dashboard/")  # pages for people
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert routes == set(OPERATIONS)


def test_the_document_says_under_which_path_the_app_is_mounted(served: Process) -> None:
    with urllib.request.urlopen(f"{served.url}/openapi.json") as response:
        told = json.load(response)
    assert told == json.loads(json.dumps(document(Limits())))
    assert told["servers"] == [{"url": "/"}]
    assert document(Limits(), "/chat")["servers"] == [{"url": "/chat"}]


def test_the_document_is_openapi(served: Process) -> None:
    schemathesis.openapi.from_url(f"{served.url}/openapi.json").validate()


def test_every_schema_that_is_named_is_there() -> None:
    told = document(Limits())

    def named(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, one in value.items():
                if key == "$ref":
                    yield one
                yield from named(one)
        elif isinstance(value, list):
            for one in value:
                yield from named(one)

    there = {f"#/components/schemas/{name}" for name in told["components"]["schemas"]}
    assert set(named(told)) <= there


def asked() -> Iterator[Any]:
    """Each operation, with what the document allows; and with what it does not, where anything can be wrong."""
    for path, method in OPERATIONS:
        told = DOCUMENT["paths"][path][method]
        yield pytest.param(path, method, GenerationMode.POSITIVE, id=f"{method} {path}")
        if "requestBody" in told or any(one["in"] != "path" for one in told.get("parameters", [])):
            yield pytest.param(path, method, GenerationMode.NEGATIVE, id=f"{method} {path} wrongly")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("path", "method", "mode"), list(asked()))
def test_the_server_does_what_the_document_says(served: Process, path: str, method: str, mode: GenerationMode) -> None:
    operation = schemathesis.openapi.from_url(f"{served.url}/openapi.json")[path][method.upper()]
    security = DOCUMENT["paths"][path][method]["security"]
    headers = dict(next((SECURITY[name] for one in security for name in one if name in SECURITY), {}))
    if path == "/flux":
        headers["Accept"] = "text/event-stream"  # no parameter of a document's may be named so
    statuses = set()

    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    def holds(case: schemathesis.Case[Any]) -> None:
        statuses.add(case.call_and_validate(headers=headers, checks=CHECKS, timeout=20).status_code)

    holds()
    if (
        path == "/v1/chat/completions" and mode is GenerationMode.POSITIVE
    ):  # few of what a schema allows end in a question
        body: Any = {"model": "default", "messages": [{"role": "user", "content": "hello"}]}
        good = operation.Case(body=body, media_type="application/json")
        statuses.add(good.call_and_validate(headers=headers, checks=CHECKS, timeout=20).status_code)
    if mode is GenerationMode.POSITIVE and "{" not in path:
        assert statuses & {200, 303}, statuses  # else nothing was held against anything; 303: who signs in first
