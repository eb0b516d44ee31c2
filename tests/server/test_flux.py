"""`GET /flux`: what a plain `EventSource` gets, and that it never makes the model answer twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from motamot.answer import Code, Outcome, Text
from motamot.limits import Limits
from tests.scripted.wire import Client, Response
from tests.server.reading import Stream, Visitor, request, run
from tests.server.support import Served, serving

STREAM = {"Accept": "text/event-stream"}
WORDS = [f"w{number} " for number in range(6)]
ANSWER = "".join(WORDS)
HELD = [{"say": WORDS[:3]}, {"gate": "more"}, {"say": WORDS[3:]}]
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]


async def source(v: Visitor, question: str = "?message=Hello", last: str | None = None) -> Stream:
    """What an `EventSource` opens; `last`: as a browser does that connects again."""
    headers = STREAM if last is None else {**STREAM, "Last-Event-ID": last}
    return await v.open("GET", f"/flux{question}", headers=headers, protocol="morceaux")


async def again(v: Visitor, last: str) -> Response:
    """The whole response to a browser that connects again."""
    return await v.fetch("GET", "/flux?message=Hello", headers={**STREAM, "Last-Event-ID": last})


async def quiet(s: Served) -> None:
    async with asyncio.timeout(3):
        while s.site.exchanges.running:
            await asyncio.sleep(0.005)


class TestAsking:
    def test_a_page_gets_pieces_and_the_end(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": ["Bon", 'jour\n"é"']}]]) as s:
                stream = await (await source(Visitor(s.port))).to_end()
                name = stream.exchange
                assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
                assert [(block.event, block.data) for block in stream.blocks] == [
                    ("message", '{"morceau":""}'),
                    ("message", '{"morceau":"Bon"}'),
                    ("message", '{"morceau":"jour\\n\\"é\\""}'),
                    ("fin", "fin"),
                ]
                assert [block.id.partition(".")[0] for block in stream.blocks] == [name] * 4
                assert s.model.requests[0].body["messages"] == [{"role": "user", "content": "Hello"}]
                await stream.close()

        run(scenario())

    @pytest.mark.parametrize("opening", [None, "Say hello to a guest."])
    def test_without_a_question_the_assistant_s_opening_is_put(self, tmp_path: Path, opening: str | None) -> None:
        async def scenario() -> None:
            options: dict[str, Any] = {} if opening is None else {"opening": opening}
            async with serving(tmp_path, [[{"say": "Bonjour !"}]], **options) as s:
                stream = await (await source(Visitor(s.port), "")).to_end()
                assert stream.text == "Bonjour !"
                [asked] = s.model.requests[0].body["messages"]
                assert asked["content"] == (opening or "Saluez un voyageur de bus en une phrase courte.")
                await stream.close()

        run(scenario())

    @pytest.mark.parametrize(
        ("script", "limits", "name", "data"),
        [
            ([{"say": "a"}, {"finish": "length"}], {}, "fin", "coupe"),
            ([{"say": "a"}, {"finish": "content_filter"}], {}, "fin", "filtre"),
            ([{"say": ["a"]}, {"close": "reset"}], {}, "erreur", None),
            ([{"fail": {"status": 500, "message": "secret"}}], {}, "erreur", None),
        ],
    )
    def test_every_end_has_its_event(
        self, tmp_path: Path, script: object, limits: dict[str, Any], name: str, data: str | None
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [script], limits=Limits(**limits)) as s:
                stream = await (await source(Visitor(s.port))).to_end()
                assert stream.blocks[-1].event == name
                if data is not None:
                    assert stream.blocks[-1].data == data
                else:
                    assert stream.ended is not None
                    assert stream.ended.outcome is Outcome.FAILED
                    assert "secret" not in stream.body.decode()
                await stream.close()

        run(scenario())

    @pytest.mark.parametrize(
        "accept", [None, "*/*", "text/html", "image/avif,image/webp,*/*;q=0.8", "text/event-strea"]
    )
    def test_what_does_not_ask_for_a_stream_gets_none(self, tmp_path: Path, accept: str | None) -> None:
        """An image of a strange page must not spend the owner's money."""

        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "a"}]]) as s:
                headers = {} if accept is None else {"Accept": accept}
                told = await Visitor(s.port).fetch("GET", "/flux?message=Hello", headers=headers)
                assert (told.status, told.json["error"]["code"]) == (406, "not_acceptable")
                assert not s.model.requests

        run(scenario())

    @pytest.mark.parametrize("accept", ["text/event-stream", "Text/Event-Stream;q=0.9", "a/b, text/event-stream"])
    def test_what_asks_for_a_stream_gets_one(self, tmp_path: Path, accept: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "a"}]]) as s:
                told = await Visitor(s.port).fetch("GET", "/flux?message=Hello", headers={"Accept": accept})
                assert told.status == 200

        run(scenario())

    @pytest.mark.parametrize(
        "headers",
        [
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
        ],
        ids=str,
    )
    def test_a_page_of_another_site_gets_nothing_and_spends_nothing(
        self, tmp_path: Path, headers: dict[str, str]
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "a"}]]) as s:
                told = await Visitor(s.port).fetch("GET", "/flux?message=Hello", headers={**STREAM, **headers})
                assert told.status == 403
                assert not s.model.requests

        run(scenario())

    def test_a_listed_site_may_ask_and_read(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            origin = "https://shop.example"
            async with serving(tmp_path, [[{"say": "a"}]], origins=[origin]) as s:
                headers = {**STREAM, "Origin": origin, "Sec-Fetch-Site": "cross-site"}
                told = await Visitor(s.port).fetch("GET", "/flux?message=Hello", headers=headers)
                assert told.status == 200
                assert told.headers["access-control-allow-origin"] == origin

        run(scenario())

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ("message=" + "a" * 2_000, 200),
            ("message=" + "a" * 2_001, 400),
            ("message=" + quote("é" * 1_001), 400),
            ("message=", 400),
            ("message=a&message=b", 400),
            ("message=a&assistant=nobody", 404),
            ("message=a&conversation=nothing", 404),
        ],
    )
    def test_a_question_in_an_address_is_short_and_plain(self, tmp_path: Path, query: str, status: int) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "a"}]]) as s:
                told = await Visitor(s.port).fetch("GET", f"/flux?{query}", headers=STREAM)
                assert told.status == status
                assert bool(s.model.requests) == (status == 200)

        run(scenario())

    @pytest.mark.parametrize("method", ["HEAD", "POST"])
    def test_nothing_but_get_begins_an_answer(self, tmp_path: Path, method: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "a"}]]) as s:
                told = await Visitor(s.port).fetch(method, "/flux?message=Hello", headers=STREAM)
                assert told.status == 405
                assert not s.model.requests

        run(scenario())

    def test_a_new_visitor_gets_a_cookie_with_the_stream(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                client = await Client.to(s.port)
                await client.send(request("GET", "/flux?message=Hello", headers=STREAM))
                stream = Stream(client, "morceaux")
                await stream.head()
                await stream.until("w0")
                cookie = stream.headers["set-cookie"]
                assert "SameSite=Lax" in cookie
                browser = {"Cookie": cookie.partition(";")[0], "Authorization": "none"}
                headers = {**STREAM, **browser, "Last-Event-ID": stream.last_id}
                back = await Visitor(s.port).open("GET", "/flux?message=Hello", headers=headers, protocol="morceaux")
                s.model.release("more")
                await back.to_end()
                await stream.to_end()
                assert back.ended == stream.ended
                assert len(s.model.requests) == 1
                await back.close()
                await stream.close()

        run(scenario())


class TestOnce:
    """A browser connects again by itself: what it gets then, and that nothing is generated for it."""

    def test_after_the_end_it_gets_204(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}]]) as s:
                v = Visitor(s.port)
                stream = await (await source(v)).to_end()
                await stream.close()
                told = await again(v, stream.last_id)
                assert (told.status, told.body) == (204, b"")
                assert len(s.model.requests) == 1

        run(scenario())

    @pytest.mark.parametrize("script", [[{"say": ["w0 "]}, {"close": "reset"}], [{"fail": {"status": 500}}]])
    def test_after_a_failure_it_gets_204(self, tmp_path: Path, script: object) -> None:
        """The lesson's page closes at `fin` only: without ids a browser would ask again every few seconds."""

        async def scenario() -> None:
            async with serving(tmp_path, [script, [{"say": "again"}]]) as s:
                v = Visitor(s.port)
                stream = await (await source(v)).to_end()
                await stream.close()
                requests = len(s.model.requests)
                assert (await again(v, stream.last_id)).status == 204
                assert len(s.model.requests) == requests

        run(scenario())

    def test_a_close_is_a_stop(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [ENDLESS]) as s:
                stream = await (await source(Visitor(s.port))).until("word word ")
                await stream.close()
                left = await s.model.wait_left(0, timeout=1)
                assert left.cancelled

        run(scenario())

    @pytest.mark.parametrize("how", ["closed", "reset"])
    def test_after_a_lost_connection_it_gets_what_was_logged_and_then_204(self, tmp_path: Path, how: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD, [{"say": "again"}]]) as s:
                v = Visitor(s.port)
                stream = await (await source(v)).until("w1")
                if how == "reset":
                    stream.client.reset()
                await stream.close()
                await s.model.wait_left(0, timeout=1)
                await quiet(s)
                back = await (await source(v, last=stream.blocks[1].id)).to_end()
                assert back.status == 200
                assert (stream.blocks[1].data, back.text) == ('{"morceau":"w0 "}', "w1 w2 ")
                assert (back.blocks[-1].event, back.blocks[-1].data) == ("arret", "arret")
                assert (await again(v, back.last_id)).status == 204
                assert len(s.model.requests) == 1
                await back.close()

        run(scenario())

    def test_a_connection_not_yet_seen_dead_costs_no_second_generation(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD, [{"say": "again"}]]) as s:
                v = Visitor(s.port)
                stream = await (await source(v)).until("w2")
                back = await source(v, last=stream.last_id)  # the old one still looks alive
                await stream.close()
                s.model.release("more")
                await back.to_end()
                assert stream.text + back.text == ANSWER
                assert len(s.model.requests) == 1
                await back.close()

        run(scenario())

    @pytest.mark.parametrize("last", ["0", "unknown.3", "x", "é", "a.b.c", "." * 300, "w.99999999999"])
    def test_an_id_that_is_nobody_s_or_another_s_gets_204(self, tmp_path: Path, last: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD, [{"say": "again"}]]) as s:
                assert (await again(Visitor(s.port), last.encode().decode("latin-1"))).status == 204
                stream = await (await source(Visitor(s.port))).until("w0")
                assert (await again(Visitor(s.port), stream.last_id)).status == 204
                assert len(s.model.requests) == 1
                await stream.close()

        run(scenario())

    def test_coming_back_is_never_over_budget(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": WORDS}]], options={"requests_per_hour": 1}) as s:
                v = Visitor(s.port)
                stream = await (await source(v)).to_end()
                await stream.close()
                for block in stream.blocks[:-1]:
                    assert (await again(v, block.id)).status == 200
                assert (await v.fetch("GET", "/flux?message=More", headers=STREAM)).status == 429

        run(scenario())

    def test_after_a_restart_it_gets_the_end_or_204(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                stream = await (await source(v)).until("w2")
                last = stream.last_id
                s.server.end()
                await stream.to_end()
                assert stream.blocks[-1].event == "erreur"
                assert stream.ended is not None
                assert stream.ended.outcome is Outcome.INTERRUPTED
                assert stream.ended.code is not Code.UPSTREAM_ERROR
                await stream.close()
            async with serving(tmp_path, [[{"say": "again"}]]) as s:
                v = Visitor(s.port, v.secret)
                back = await (await source(v, last=last)).to_end()
                assert [block.event for block in back.blocks] == ["erreur"]
                assert not any(isinstance(event, Text) for event in back.events)
                await back.close()
                for had in (back.last_id, stream.last_id):
                    assert (await again(v, had)).status == 204
                assert not s.model.requests

        run(scenario())

    def test_a_conversation_goes_on_through_its_name(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "One."}], [{"say": "Two."}]]) as s:
                v = Visitor(s.port)
                first = await v.fetch("POST", "/api/chat", {"message": "Hello"})
                name = first.json["conversation"]
                stream = await (await source(v, f"?message=More&conversation={name}")).to_end()
                assert stream.text == "Two."
                assert "One." in str(s.model.requests[1].body["messages"])
                await stream.close()

        run(scenario())
