"""Who gets to the dashboard: with the key alone, not by guessing it, and not through a page of another site."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from motamot.assistant import Assistant
from motamot.errors import LimitExceeded, SettingsError
from motamot.limits import Limits
from motamot.server.dashboard.sessions import Sessions
from motamot.server.dashboard.visit import POLICY
from motamot.server.operator import Operator, OperatorKey, hashed
from tests.dashboard.support import Browser, signed_in
from tests.server.reading import run
from tests.server.support import OPERATOR_KEY, Served, serving

HELLO = [{"say": "Hello."}]
HELD = [{"say": "Hello"}, {"gate": "more"}, {"say": " there."}]


def served(folder: Path, scenario: Any, scripts: object = HELLO, **options: Any) -> None:
    """Play a scenario with a server."""

    async def play() -> None:
        async with serving(folder, scripts, **options) as s:
            await scenario(s)

    run(play())


def test_without_the_key_every_page_leads_to_the_sign_in_and_with_it_back_to_where_one_was(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            page = await browser.get("/dashboard?a=b%20c")
            assert page.url.startswith(f"{s.url}/dashboard/sign-in") and page.status == 200
            seen = await browser.send(page, "sign-in", key=OPERATOR_KEY)
            assert seen.status == 200 and seen.url == f"{s.url}/dashboard?a=b+c"

    served(tmp_path, scenario)


def test_an_address_that_ends_with_a_slash_is_the_same(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with await signed_in(s) as browser:
            assert (await browser.get("/dashboard/")).url == f"{s.url}/dashboard"

    served(tmp_path, scenario)


def test_a_wrong_key_is_told_and_opens_nothing(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            page = await browser.sign_in("not-the-key-at-all")
            assert page.status == 403 and "That is not the key." in page.text and not browser.cookies()
            assert (await browser.get("/dashboard")).url.startswith(f"{s.url}/dashboard/sign-in")

    served(tmp_path, scenario)


@pytest.mark.parametrize("kept", ["plain", "sha256", "scrypt"])
def test_the_key_may_be_kept_as_it_is_or_hashed_and_opens_dashboard_and_metrics(tmp_path: Path, kept: str) -> None:
    told = {
        "plain": OPERATOR_KEY,
        "sha256": f"sha256:{hashlib.sha256(OPERATOR_KEY.encode()).hexdigest()}",
        "scrypt": hashed(OPERATOR_KEY),
    }[kept]

    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            assert (await browser.sign_in()).url == f"{s.url}/dashboard"
            for key, status in ((OPERATOR_KEY, 200), (OPERATOR_KEY, 200), ("another-key", 401), (told, 200)):
                if key is told and kept != "plain":
                    status = 401  # whoever reads the settings has not the key
                seen = await browser.get("/metrics", headers={"Authorization": f"Bearer {key}"})
                assert seen.status == status, key

    served(tmp_path, scenario, options={"operator_key": told})


@pytest.mark.parametrize(
    "wrong",
    [
        "sha256:abc",
        "sha256:" + "g" * 64,
        "scrypt:16384:8:1:salt",
        "scrypt:16384:8:1:c2FsdA:c2hvcnQ",
        f"scrypt:1000:8:1:c2FsdA:{'A' * 43}",
        f"scrypt:1073741824:8:1:c2FsdA:{'A' * 43}",
        f"scrypt:16384:8:1000:c2FsdA:{'A' * 43}",
    ],
)
def test_what_begins_as_a_hash_and_is_none_is_refused_at_the_start(wrong: str) -> None:
    with pytest.raises(SettingsError):
        OperatorKey(wrong)


def test_where_no_key_is_set_the_dashboard_says_what_to_set_and_nothing_opens_it(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            for path in ("/dashboard", "/dashboard/sign-in"):
                page = await browser.get(path)
                assert page.status == 404 and "operator_key" in page.text
            for key in ("", "x"):
                seen = await browser.get("/metrics", headers={"Authorization": f"Bearer {key}"})
                assert seen.status == 401
                async with browser.client.post(f"{s.url}/dashboard/sign-in", data={"key": key}) as response:
                    assert response.status == 404

    served(tmp_path, scenario, options={"operator_key": ""})


# Cookies and sessions


def test_the_session_is_a_cookie_for_the_dashboard_alone_that_no_script_and_no_other_site_sees(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            page = await browser.get("/dashboard")
            data = {**page.form("sign-in").fields, "key": OPERATOR_KEY}
            async with browser.client.post(f"{s.url}/dashboard/sign-in", data=data, allow_redirects=False) as response:
                assert response.status == 303
                cookies = response.headers.getall("Set-Cookie")
                assert len(cookies) == 2
                for cookie in cookies:
                    assert cookie.endswith("; HttpOnly; SameSite=Strict") and "Path" not in cookie
            kept = {cookie.key: cookie["path"] for cookie in browser.client.cookie_jar}
            assert kept == {"motamot_operator": "/dashboard", "motamot_device": "/dashboard"}
            secret = browser.cookies()["motamot_operator"]
            assert len(secret) >= 43
            assert secret not in repr(vars(s.site.operator))

    served(tmp_path, scenario)


def test_over_https_its_cookies_are_secure_and_named_so(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s, **{"X-Forwarded-Proto": "https"}) as browser:
            origin = s.url.replace("http://", "https://")
            data = {"key": OPERATOR_KEY}
            async with browser.client.post(
                f"{s.url}/dashboard/sign-in", data=data, headers={"Origin": origin}, allow_redirects=False
            ) as response:
                cookies = response.headers.getall("Set-Cookie")
                assert all(cookie.startswith("__Secure-") and cookie.endswith("; Secure") for cookie in cookies)
            value = cookies[0].partition(";")[0].partition("=")[2]
            for name, there in (("__Secure-motamot_operator", True), ("motamot_operator", False)):
                seen = await browser.get("/dashboard", headers={"Cookie": f"{name}={value}"}, allow_redirects=False)
                assert (seen.status == 200) is there

    served(tmp_path, scenario, proxies=["127.0.0.1"])


def test_a_session_that_somebody_planted_is_never_taken_over(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as victim:
            planted = "a" * 43
            victim.client.cookie_jar.update_cookies({"motamot_operator": planted})
            await victim.sign_in()
            async with Browser(s) as attacker:
                seen = await attacker.get("/dashboard", headers={"Cookie": f"motamot_operator={planted}"})
                assert "sign-in" in seen.url

    served(tmp_path, scenario)


def test_signing_in_again_ends_the_session_that_was_and_signing_out_the_one_that_is(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        browser = await signed_in(s)
        async with browser, Browser(s) as other:
            first = browser.cookies()["motamot_operator"]
            await browser.send(await browser.get("/dashboard/sign-in"), "sign-in", key=OPERATOR_KEY)
            second = browser.cookies()["motamot_operator"]
            page = await browser.send(await browser.get("/dashboard"), "sign-out")
            assert "You are signed out." in page.text
            assert "motamot_operator" not in browser.cookies()
            for secret in (first, second):
                seen = await other.get("/dashboard", headers={"Cookie": f"motamot_operator={secret}"})
                assert "sign-in" in seen.url

    served(tmp_path, scenario)


def test_a_session_ends_when_nobody_looks_when_it_is_old_and_when_there_are_too_many() -> None:
    now = 0.0
    sessions = Sessions(Limits(session_idle_seconds=10, session_seconds=25, sessions=2), clock=lambda: now)
    token = sessions.open()
    for moment in (9.0, 18.0, 24.0):
        now = moment
        assert sessions.find(token) is not None
    now = 25.0
    assert sessions.find(token) is None and sessions.find(token) is None
    token = sessions.open()
    now = 35.0
    assert sessions.find(token) is None
    tokens = [sessions.open() for _ in range(3)]
    assert [sessions.find(token) is not None for token in tokens] == [False, True, True]


# Pages of other sites


def test_a_form_needs_the_token_of_this_session_and_a_page_of_this_site(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        browser, other = await signed_in(s), await signed_in(s)
        async with browser, other:
            page = await browser.get("/dashboard")
            foreign = (await other.get("/dashboard")).form("sign-out").fields["token"]
            own = page.form("sign-out").fields["token"]
            refused = [
                await browser.send(page, "sign-out", token=token)
                for token in ("", "x", "x.y", foreign, own[:-1], own.swapcase(), "é.é")
            ]
            for headers in (
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Origin": "https://shop.example"},  # may ask, by `origins`; may not do this
                {"Origin": s.url.replace("127.0.0.1", "localhost")},
            ):
                refused.append(await browser.send(page, "sign-out", headers=headers))
                refused.append(await browser.send(page, "sign-out", headers=headers, key=OPERATOR_KEY))
            assert [seen.status for seen in refused] == [403] * len(refused)
            async with browser.client.post(
                f"{s.url}/dashboard/sign-out", data={"token": own}, headers={"Sec-Fetch-Site": "cross-site"}
            ) as response:
                assert response.status == 403
            async with browser.client.post(
                f"{s.url}/dashboard/sign-in", data={"key": OPERATOR_KEY}, headers={"Origin": "https://evil.example"}
            ) as response:
                assert response.status == 403
            async with browser.client.post(f"{s.url}/dashboard/sign-out", json={"token": own}) as response:
                assert response.status == 400
            assert (await browser.get("/dashboard")).url == f"{s.url}/dashboard"  # it is signed in still
            assert "signed out" in (await browser.send(page, "sign-out")).text

    served(tmp_path, scenario, origins=["https://shop.example"])


def test_no_two_pages_carry_the_same_token(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with await signed_in(s) as browser:
            tokens = {(await browser.get("/dashboard")).form("sign-out").fields["token"] for _ in range(5)}
            assert len(tokens) == 5

    served(tmp_path, scenario)


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example",
        "https://evil.example",
        "/evil",
        "../../evil",
        "\\\\evil.example",
        "javascript:alert(1)",
        "a/../../..//evil.example",
        "?" + "a" * 3000,
        "a\r\nSet-Cookie: x=y",
        "é",
    ],
)
def test_nobody_is_led_away_from_the_dashboard(tmp_path: Path, back: str) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            data = {"key": OPERATOR_KEY, "back": back[:2000]}
            for address, method in ((f"{s.url}/dashboard/sign-in", "POST"), (f"{s.url}/dashboard/language", "GET")):
                sent = {"data": data} if method == "POST" else {"params": {"to": "fr", "back": back[:2000]}}
                async with browser.client.request(method, address, allow_redirects=False, **sent) as response:  # type: ignore[arg-type]
                    assert response.status == 303
                    assert re.fullmatch(r"\.\./dashboard(\?a*)?", response.headers["Location"])

    served(tmp_path, scenario)


def test_every_page_forbids_scripts_frames_caches_and_other_hosts(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with await signed_in(s) as browser:
            for path in ("/dashboard", "/dashboard/sign-in", "/dashboard/none-such-page"):
                page = await browser.get(path)
                if page.status == 404 and not page.body.startswith("<!doctype"):
                    continue
                assert page.headers["Content-Security-Policy"] == POLICY
                assert page.headers["Cache-Control"] == "no-store"
                assert page.headers["X-Content-Type-Options"] == "nosniff"
                assert page.headers["X-Frame-Options"] == "DENY"
                assert "script" not in page.tags and "style" not in page.tags
                names = {name for name, _ in page.attributes}
                assert "style" not in names and not any(name.startswith("on") for name in names)

    served(tmp_path, scenario)


# Guessing


def test_guessing_is_ended_for_one_address_and_not_for_another(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with (
            Browser(s, **{"X-Forwarded-For": "192.0.2.1"}) as thief,
            Browser(s, **{"X-Forwarded-For": "192.0.2.2"}) as owner,
        ):
            seen = [await thief.sign_in(f"guess-number-{n:010}") for n in range(3)]
            assert [page.status for page in seen] == [403, 403, 403]
            page = await thief.sign_in()  # the right key: too late
            assert page.status == 429 and 0 < int(page.headers["Retry-After"]) <= 900
            metrics = await thief.get("/metrics", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})
            assert metrics.status == 429
            assert (await owner.sign_in()).url == f"{s.url}/dashboard"

    served(tmp_path, scenario, proxies=["127.0.0.1"], limits=Limits(sign_in_failures=3))


def test_guesses_at_metrics_count_as_those_at_the_sign_in(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s) as browser:
            for wrong in ("one-guess", "two-guesses"):
                seen = await browser.get("/metrics", headers={"Authorization": f"Bearer {wrong}"})
                assert seen.status == 401
            assert (await browser.get("/metrics")).status == 401  # no guess at all
            assert (await browser.sign_in()).status == 429

    served(tmp_path, scenario, limits=Limits(sign_in_failures=2))


def test_many_addresses_together_are_ended_too_and_a_browser_that_was_let_in_before_is_not_shut_out(
    tmp_path: Path,
) -> None:
    async def scenario(s: Served) -> None:
        async with await signed_in(s) as owner:
            await owner.send(await owner.get("/dashboard"), "sign-out")
            statuses = []
            for n in range(6):
                async with Browser(s, **{"X-Forwarded-For": f"192.0.2.{n}"}) as thief:
                    statuses.append((await thief.sign_in("a-guess-of-a-thief")).status)
            assert statuses == [403] * 4 + [429] * 2
            assert (await owner.sign_in()).url == f"{s.url}/dashboard"
            async with Browser(s) as forger:
                forger.client.cookie_jar.update_cookies({"motamot_device": "made-up.signature"})
                assert (await forger.sign_in()).status == 429

    served(tmp_path, scenario, proxies=["127.0.0.1"], limits=Limits(sign_in_failures=3, sign_in_failures_all=4))


def test_guesses_at_once_see_no_room_twice_and_time_makes_room_again() -> None:
    class Asked:
        client = None
        headers: dict[str, str] = {}  # noqa: RUF012

    async def scenario() -> None:
        import asyncio

        now = 0.0
        operator = Operator(hashed(OPERATOR_KEY), Limits(sign_in_failures=3), clock=lambda: now)
        request: Any = Asked()
        guesses: list[Coroutine[Any, Any, bool]] = [operator.holds(request, f"guess-{n}") for n in range(10)]
        ended = await asyncio.gather(*guesses, return_exceptions=True)
        assert ended[:3] == [False] * 3 and all(isinstance(one, LimitExceeded) for one in ended[3:])
        now = 899.0
        with pytest.raises(LimitExceeded):
            await operator.holds(request, OPERATOR_KEY)
        now = 900.0
        for _ in range(20):  # the right one is no guess
            assert await operator.holds(request, OPERATOR_KEY)

    run(scenario())


# Words


def test_what_fails_is_told_as_a_page_without_a_word_of_what_failed(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with await signed_in(s) as browser:
            for query, status in (("?" + "a=1&" * 60, 400), ("?a=" + "x" * 2_500, 400)):
                page = await browser.get(f"/dashboard/conversations{query}")
                assert page.status == status and page.headers["Content-Type"].startswith("text/html")
                assert "That did not work" in page.text and "Back to the overview" in page.text

    served(tmp_path, scenario)


def test_it_speaks_the_browsers_language_and_keeps_the_one_that_was_chosen(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        async with Browser(s, **{"Accept-Language": "de, fr-CA;q=0.8, en;q=0.5"}) as browser:
            page = await browser.get("/dashboard")
            assert "La clé de l’exploitant" in page.text and page.headers["Content-Language"] == "fr"
            english = await browser.get(page.link("language"))
            assert "The operator's key" in english.text
            assert "The operator's key" in (await browser.get("/dashboard")).text
        async with Browser(s) as browser:
            assert "The operator's key" in (await browser.get("/dashboard")).text

    served(tmp_path, scenario)


# What it is for


def test_the_operator_stops_an_answer_that_runs(tmp_path: Path) -> None:
    async def scenario(s: Served) -> None:
        import asyncio

        async with await signed_in(s) as browser:
            asking = asyncio.create_task(s.ask("Will this <b>end</b>?"))
            async with asyncio.timeout(10):
                while not any(one.log.text() for one in s.site.exchanges.running):
                    await asyncio.sleep(0.01)
            page = await browser.get("/dashboard")
            assert "Will this <b>end</b>?" in page.text and "b" not in page.tags
            stopped = await browser.send(page, "/stop")
            assert "It is stopped." in stopped.text
            answer = await asking
            assert (answer["outcome"], answer["by"], answer["text"]) == ("stopped", "operator", "Hello")
            page = await browser.get("/dashboard")
            assert "Nothing is being answered." in page.text

    served(tmp_path, scenario, HELD)


# The command that hashes a key


def test_serve_hash_key_makes_what_may_stand_in_the_keys_place() -> None:
    command = [sys.executable, "-m", "motamot", "serve", "--hash-key"]
    done = subprocess.run(command, input=f"{OPERATOR_KEY}\n", capture_output=True, text=True, check=True)
    assert OPERATOR_KEY not in done.stdout + done.stderr
    key = OperatorKey(done.stdout.strip())
    assert key.matches(OPERATOR_KEY) and not key.matches(OPERATOR_KEY[:-1]) and not key.matches(done.stdout.strip())
    refused = subprocess.run(command, input="short\n", capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "16 to 200" in refused.stderr and not refused.stdout


def test_a_mounted_app_without_a_key_has_no_dashboard() -> None:
    from motamot.server.site import Site

    site = Site([Assistant(upstream="http://127.0.0.1:1/v1", model="m")])
    assert not site.operator.is_set
