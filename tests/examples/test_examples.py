"""Each example does what it says, run as its first lines say, with a scripted model behind."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from motamot.sse import Decoder, Event
from motamot.testing import ThreadedScriptedModel, scripted_model
from tests.examples.support import EXAMPLES, App, asking, booked, environment, example, free_port

HELLO = [{"say": "Hello, passenger."}, {"usage": {"prompt": 12, "completion": 3}}]
ORDER = {
    "default": "order",
    "scripts": {
        "order": {
            "turns": [
                [
                    {"say": "Let me look."},
                    {"call": {"name": "order_status", "arguments": {"order": "7"}}},
                    {"usage": {"prompt": 30, "completion": 9}},
                ],
                [{"say": "It left the warehouse."}, {"usage": {"prompt": 50, "completion": 6}}],
            ]
        },
        "slow": [{"say": ["one", " two"]}, {"gate": "more"}, {"say": " three"}],
        "broken": [{"fail": {"status": 500, "message": "no answer"}}],
    },
}


class Reply:
    """One response, with its body read to the end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def cookies(self) -> str:
        """As the next request sends them."""
        return "; ".join(cookie.partition(";")[0] for cookie in self.headers.get_all("set-cookie", []))

    @property
    def events(self) -> list[Event]:
        return Decoder().feed(self.body)


@contextmanager
def opened(
    url: str, method: str = "GET", body: object = None, headers: Mapping[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """A response whose body is still coming."""
    parts = urlsplit(url)
    sent = dict(headers or {})
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    if body is not None:
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path or "/", data, sent)
    response = connection.getresponse()
    try:
        yield response
    finally:
        response.close()
        connection.close()


def fetch(url: str, method: str = "GET", body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
    with opened(url, method, body, headers) as response:
        return Reply(response)


def ask(app: App, message: str, prefix: str = "/chat", headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    """The whole answer."""
    return fetch(f"{app.url}{prefix}/api/chat", "POST", {"message": message, **more}, headers)


def read_until(response: http.client.HTTPResponse, wanted: bytes) -> bytes:
    got = b""
    while wanted not in got:
        piece = response.read1(65_536)
        assert piece, got
        got += piece
    return got


@pytest.fixture
def model() -> Iterator[ThreadedScriptedModel]:
    with scripted_model(ORDER) as server:
        yield server


def test_a_fastapi_app_has_its_own_pages_and_the_chat_beside_them(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    with example("fastapi_app:app", tmp_path, asking(model.url)) as app:
        assert b'href="chat/"' in fetch(app.url).body
        assert fetch(f"{app.url}/orders/7").json["status"] == "left the warehouse this morning"
        chat = fetch(f"{app.url}/chat/")
        assert chat.status == 200 and chat.headers["content-type"].startswith("text/html")
        assert "Path=/chat" in chat.headers["set-cookie"]
        reply = ask(app, "Where is my order")
        assert (reply.status, reply.json["text"]) == (200, "Let me look.\n\nIt left the warehouse.")
        tool = model.requests[1].body["messages"][-1]
        assert (tool["role"], tool["content"]) == ("tool", "left the warehouse this morning")
        [order_status] = model.requests[0].body["tools"]
        assert order_status["function"]["parameters"]["properties"]["order"]["description"]
    [entry] = booked(tmp_path)
    assert [(row.outcome, row.usage and row.usage.prompt_tokens) for row in entry.completions] == [
        ("complete", 30),
        ("complete", 50),
    ]


def test_a_starlette_app_keeps_its_lifespan_and_serves_two_assistants(tmp_path: Path) -> None:
    with (
        scripted_model([HELLO, HELLO]) as model,
        example("starlette_app:app", tmp_path, asking(model.url)) as app,
    ):
        assert fetch(f"{app.url}/hours").json["monday"] == "closed"
        assert ask(app, "What is this?", "/ask").json["text"] == "Hello, passenger."
        assert ask(app, "Where is it?", "/ask", assistant="porter").json["text"] == "Hello, passenger."
        assert ask(app, "Who?", "/ask", assistant="nobody").status == 404
        guide, porter = (request.body for request in model.requests)
        assert "paintings" in guide["messages"][0]["content"]
        assert "one sentence" in porter["messages"][0]["content"]
        assert (guide["max_tokens"], porter["max_tokens"]) == (2_000, 100)
    assert [entry.assistant for entry in booked(tmp_path)] == ["porter", "guide"]


def test_an_answer_of_ones_own_is_routed_and_hands_over_what_it_cannot_answer(tmp_path: Path) -> None:
    with scripted_model([HELLO]) as model, example("own_answer:app", tmp_path, asking(model.url)) as app:
        url = f"{app.url}/api/chat/stream"
        skill = fetch(url, "POST", {"message": "When does the bus to the harbour leave?"})
        told = [json.loads(event.data) for event in skill.events]
        assert (told[1]["type"], told[1]["agent"], told[1]["confidence"]) == ("routed", "timetable", 1.0)
        text = "".join(event["text"] for event in told if event["type"] == "text")
        assert text == "Buses to the harbour:\n\n- 7:10\n- 8:10\n- 9:40\n- 12:10\n- 17:30"
        assert any(event["type"] == "cited" for event in told)
        assert model.requests == []
        other = fetch(url, "POST", {"message": "Are dogs allowed?"})
        told = [json.loads(event.data) for event in other.events]
        assert told[1]["agent"] == "model"
        assert "".join(event["text"] for event in told if event["type"] == "text") == "Hello, passenger."
        routed = fetch(f"{app.url}/api/chatbot/chat/stream", "POST", {"message": "buses, market?"})
        assert json.loads(routed.events[0].data)["agentId"] == "timetable"
    assert [len(entry.completions) for entry in booked(tmp_path)] == [0, 1, 0]


class TestAgentFramework:
    """`agent_framework.py`."""

    def test_its_run_is_streamed_with_its_tools_and_each_request_is_booked(
        self, tmp_path: Path, model: ThreadedScriptedModel
    ) -> None:
        with example("agent_framework:app", tmp_path, asking(model.url)) as app:
            first = fetch(f"{app.url}/api/chat/stream", "POST", {"message": "Where is my order"})
            told = [json.loads(event.data) for event in first.events]
            assert "".join(event["text"] for event in told if event["type"] == "text") == (
                "Let me look.\n\nIt left the warehouse."
            )
            assert [event["type"] for event in told if event["type"] != "text"] == [
                *("started", "turn_ended", "tool_called", "tool_returned", "turn_ended", "ended")
            ]
            again = {"message": "And now, my order", "conversation": told[0]["conversation"]}
            assert fetch(f"{app.url}/api/chat", "POST", again, {"Cookie": first.cookies}).status == 200
            assert [message["content"] for message in model.requests[2].body["messages"][1:]] == [
                *("Where is my order", "Let me look.\n\nIt left the warehouse.", "And now, my order")
            ]
        completions = [completion for entry in booked(tmp_path) for completion in entry.completions]
        assert [(row.turn, row.outcome, row.finish) for row in completions] == [
            *[(1, "complete", "tool_calls"), (2, "complete", "stop")] * 2
        ]
        assert [row.usage.prompt_tokens for row in completions if row.usage] == [30, 50, 30, 50]

    def test_a_stop_stops_its_model_and_is_booked(self, tmp_path: Path, model: ThreadedScriptedModel) -> None:
        with example("agent_framework:app", tmp_path, asking(model.url)) as app:
            with opened(f"{app.url}/api/chat/stream", "POST", {"message": "be slow"}) as response:
                read_until(response, b"two")
                left = time.monotonic()
            gone = model.wait_left(0)
            assert gone.cancelled and gone.left_at is not None and gone.left_at - left < 1
        [entry] = booked(tmp_path)
        [completion] = entry.completions
        assert (entry.outcome, completion.outcome, completion.finish) == ("stopped", "stopped", "incomplete")
        assert completion.usage is not None
        assert completion.usage.source == "estimated" and completion.usage.completion_tokens > 0

    def test_a_failure_is_asked_once_and_is_no_answer(self, tmp_path: Path, model: ThreadedScriptedModel) -> None:
        with example("agent_framework:app", tmp_path, asking(model.url)) as app:
            reply = ask(app, "be broken", "")
            assert (reply.status, reply.json["text"]) == (502, "")
            assert len(model.requests) == 1
        [entry] = booked(tmp_path)
        assert [completion.outcome for completion in entry.completions] == ["failed"]


class TestLogin:
    """`login.py`."""

    def test_only_who_is_signed_in_may_ask_and_tools_see_who_it_is(self, tmp_path: Path) -> None:
        steps = [
            [{"call": {"name": "my_trip", "arguments": {}}}],
            [{"say": "Seat 12."}],
        ]
        variables = {"SESSION_SECRET": "secret of the tests"}
        with (
            scripted_model(steps) as model,
            example("login:app", tmp_path, asking(model.url) | variables) as app,
        ):
            nobody = ask(app, "Where do I sit?")
            assert (nobody.status, nobody.json["error"]["code"]) == (401, "unauthorized")
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            for name, password in (("ada", "wrong"), ("nobody", "harbour"), ("ada", "")):
                sent = urlencode({"name": name, "password": password}).encode()
                assert fetch(app.url, "POST", sent, form).status == 403
            assert fetch(app.url, "POST", b"name=\xff&password=\xff", form).status == 403
            entered = fetch(app.url, "POST", urlencode({"name": "ada", "password": "harbour"}).encode(), form)
            assert (entered.status, entered.headers["location"]) == (303, "chat/")
            signed_in = {"Cookie": entered.cookies}
            reply = ask(app, "Where do I sit?", headers=signed_in)
            assert (reply.status, reply.json["text"]) == (200, "Seat 12.")
            assert model.requests[1].body["messages"][-1]["content"] == "the 7:10 to the harbour, seat 12"
            conversation = f"{app.url}/chat/api/conversations/{reply.json['conversation']}"
            assert fetch(conversation, headers=signed_in).status == 200
            assert fetch(conversation).status == 401
            forged = {"Cookie": entered.cookies.replace("session=", "session=x")}
            assert ask(app, "Who am I?", headers=forged).status == 401
            assert len(model.requests) == 2


class TestDjango:
    """`django_app/`."""

    @pytest.fixture
    def variables(self, tmp_path: Path) -> dict[str, str]:
        """A site with one user."""
        variables = {
            "DJANGO_SECRET_KEY": "secret of the tests",
            "DJANGO_SETTINGS_MODULE": "site_settings",
            "DJANGO_DATA": str(tmp_path),
            "DJANGO_SUPERUSER_PASSWORD": "harbour",
        }
        for command in (
            ["migrate", "--verbosity", "0"],
            ["createsuperuser", "--noinput", "--username", "ada", "--email", "ada@bus.example"],
        ):
            done = subprocess.run(
                [sys.executable, "-m", "django", *command, "--pythonpath", str(EXAMPLES / "django_app")],
                env=environment(tmp_path, **variables),
                capture_output=True,
                text=True,
                timeout=50,
            )
            assert done.returncode == 0, done.stderr
        return variables

    def test_the_chat_stands_beside_the_site_and_knows_its_users(
        self, tmp_path: Path, variables: dict[str, str]
    ) -> None:
        with (
            scripted_model([HELLO]) as model,
            example("django_app/asgi:app", tmp_path, asking(model.url) | variables) as app,
        ):
            assert fetch(app.url).body == b"Hello, stranger."
            assert ask(app, "Hello?").status == 401
            login = fetch(f"{app.url}/login")
            token = login.body.decode().partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
            form = urlencode({"username": "ada", "password": "harbour", "csrfmiddlewaretoken": token}).encode()
            kind = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": login.cookies}
            entered = fetch(f"{app.url}/login", "POST", form, kind)
            assert (entered.status, entered.headers["location"]) == (302, "/chat/")
            session = {"Cookie": entered.cookies}
            assert fetch(app.url, headers=session).body == b"Hello, ada."
            assert fetch(f"{app.url}/chat/", headers=session).status == 200
            with opened(f"{app.url}/chat/api/chat/stream", "POST", {"message": "Hello?"}, session) as response:
                assert response.status == 200
                assert b"passenger" in read_until(response, b'"ended"')
            assert len(model.requests) == 1
            forged = {"Cookie": "sessionid=" + "0" * 32}
            assert ask(app, "Hello?", headers=forged).status == 401
        [entry] = booked(tmp_path)
        assert entry.outcome == "complete"


class TestBehindProxy:
    """`behind_proxy.py`; nginx and Caddy themselves stand in front in tests/deploy."""

    @contextmanager
    def served(self, folder: Path, **variables: str) -> Iterator[str]:
        port = free_port()
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "behind_proxy.py")],
            env=environment(folder, PORT=str(port), **variables),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        try:
            said = ""
            while "Uvicorn running" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            yield f"http://127.0.0.1:{port}"
            process.send_signal(signal.SIGTERM)
            process.wait(15)
        finally:
            process.kill()
            process.communicate()

    def test_a_listed_proxy_is_believed_scheme_address_and_prefix(self, tmp_path: Path) -> None:
        # What the proxy makes of https://shop.example/help/api/chat
        seen = {
            "Host": "shop.example",
            "Origin": "https://shop.example",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "192.0.2.7",
        }
        with scripted_model([HELLO]) as model, self.served(tmp_path, **asking(model.url)) as url:
            reply = fetch(f"{url}/api/chat", "POST", {"message": "Hello?"}, seen)
            assert (reply.status, reply.json["text"]) == (200, "Hello, passenger.")
            assert reply.headers["set-cookie"].startswith("__Host-motamot_visitor=")
            assert "Path=/;" in reply.headers["set-cookie"] and reply.headers["set-cookie"].endswith("; Secure")
            page = fetch(f"{url}/", headers=seen)
            assert page.status == 200
            assert not [part for part in page.body.split(b'"') if part.startswith(b"/")], "all addresses are relative"

    def test_anybody_else_is_not_believed(self, tmp_path: Path) -> None:
        seen = {"Host": "shop.example", "Origin": "https://shop.example", "X-Forwarded-Proto": "https"}
        with (
            scripted_model([HELLO]) as model,
            self.served(tmp_path, PROXIES="192.0.2.1", **asking(model.url)) as url,
        ):
            reply = fetch(f"{url}/api/chat", "POST", {"message": "Hello?"}, seen)
            assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden_origin")
            assert model.requests == []


def test_the_lesson_gives_up_after_half_a_minute(tmp_path: Path) -> None:
    with (
        scripted_model([[{"say": "Bonjour"}, {"gate": "never"}]]) as model,
        example("lesson/app:app", tmp_path, asking(model.url)) as app,
    ):
        began = time.monotonic()
        reply = fetch(f"{app.url}/flux", headers={"Accept": "text/event-stream"})
        assert 29 < time.monotonic() - began < 35
        assert (reply.events[-1].event, json.loads(reply.events[-1].data)["code"]) == ("erreur", "timeout")
        assert model.wait_left(0).cancelled
        assert model.requests[0].body["max_tokens"] == 60
    [entry] = booked(tmp_path)
    assert (entry.outcome, entry.code) == ("failed", "timeout")


def test_every_example_is_listed_and_every_listed_one_is_there() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    there = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith((".", "_"))} - {"README.md"}
    assert {name for name in there if f"({name}" not in listed} == set()
