"""A provider's usage export beside the books: what both say, and where they differ."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import InvalidRequest
from motamot.server.dashboard.forms import fields_of, parts_of
from tests.dashboard.books import asked, chatbot
from tests.dashboard.support import Browser, Seen, signed_in
from tests.server.reading import run

TODAY = dt.datetime.now(dt.UTC).date().isoformat()
OPENAI = "start_time,start_time_iso,model,input_tokens,output_tokens,num_model_requests\n"


async def sent(browser: Browser, page: Seen, file: str | None, **fields: str) -> Seen:
    """The form, sent as a browser sends it."""
    form = page.form("reconcile")
    data = aiohttp.FormData()
    for name, value in {**form.fields, **fields}.items():
        if name != "file":
            data.add_field(name, value)
    content = b"" if file is None else file.encode()
    data.add_field("file", io.BytesIO(content), filename="" if file is None else "usage.csv", content_type="text/csv")
    headers = {"Origin": browser.served.url}
    async with browser.client.post(urljoin(page.url, form.action), data=data, headers=headers) as response:
        return Seen(response.status, str(response.url), response.headers, await response.text())


def test_an_export_is_compared_with_the_books_by_day_and_model(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            await asked(s)
            page = await browser.get("/dashboard/reconcile")
            assert page.status == 200
            # The books have 1,071 and 533 tokens of this model in 6 completions: the provider says otherwise.
            line = f"0,{TODAY}T00:00:00+00:00,scripted,1100,500,6\n0,{TODAY}T00:00:00+00:00,<b>x<script>,7,0,1\n"
            told = await sent(browser, page, OPENAI + line, assistant="guide")
            assert told.status == 200 and "Read as: OpenAI usage" in told.text
            for words in ("1,100 1,071 +29", "500 533 −33", "6 6 0", "only there", "<b>x<script>"):
                assert words in told.text, (words, told.text)
            assert "script" not in told.tags
            equal = await sent(browser, page, f"{OPENAI}0,{TODAY},scripted,1071,533,6\n", assistant="guide")
            assert "No difference." in equal.text

    run(scenario())


def test_of_any_other_file_the_columns_are_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            await asked(s)
            page = await browser.get("/dashboard/reconcile")
            file = f"Datum;Betrag\n{TODAY};0.01\n"
            unknown = await sent(browser, page, file)
            assert unknown.status == 400 and "say which column is which" in unknown.text
            told = await sent(browser, unknown, file, column_day="Datum", column_cost="Betrag")
            assert told.status == 200 and "USD: Provider" in told.text and "0.006406" in told.text
            wrong = await sent(browser, page, file.replace(TODAY, "<b>"), column_day="Datum", column_cost="Betrag")
            assert wrong.status == 400 and "line 2, column 'Datum': '<b>' is no day" in wrong.text
            assert 'value="Datum"' in wrong.body  # what was typed is still there

    run(scenario())


def test_what_is_no_export_is_told_and_needs_the_token(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            page = await browser.get("/dashboard/reconcile")
            for file, words in (
                (None, "Choose a file first."),
                ("\n", "Choose a file"),
                ("\x00", "known"),
                ("a,b\n1", "a"),
            ):
                told = await sent(browser, page, file)
                assert told.status == 400 and words in told.text, file
            assert (await sent(browser, page, OPENAI, token="x")).status == 403
            assert (await sent(browser, page, "a" * 1_100_000)).status == 413
            async with browser.client.post(f"{s.url}/dashboard/reconcile", data={"token": "x"}) as response:
                assert response.status == 400

    run(scenario())


# Forms

KIND = "multipart/form-data; boundary=----b0undary"


def body(*parts: tuple[str, bytes, str | None]) -> bytes:
    """A form as Chromium writes it. parts: name, content, name of a file."""
    made = b""
    for name, content, file in parts:
        named = "" if file is None else f'; filename="{file}"\r\nContent-Type: text/csv'
        made += (
            f'------b0undary\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode()
            + content
            + b"\r\n"
        )
    return made + b"------b0undary--\r\n"


@given(st.binary(max_size=200).filter(lambda data: b"\r\n------b0undary" not in data), st.text(max_size=20))
def test_a_file_comes_as_it_is_whatever_its_bytes(content: bytes, value: str) -> None:
    value = value.encode("utf-8", "replace").decode()
    sent_body = body(("a", value.encode(), None), ("file", content, "u.csv"), ("b", b"2", None))
    assert parts_of(KIND, sent_body) == ({"a": value, "b": "2"}, content)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("text/plain", body()),
        ("multipart/form-data", body()),
        ("multipart/form-data; boundary=", body()),
        (KIND, b""),
        (KIND, body(("a", b"1", None))[:-10]),
        (KIND, b"------b0undary\r\n\r\nx\r\n------b0undary--\r\n"),
        (KIND, body(*[("a", b"1", None)] * 60)),
        (KIND, body(("a", b"x" * 3_000, None))),
    ],
)
def test_what_is_no_form_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parts_of(kind, data)


def test_fields_are_bounded() -> None:
    assert fields_of(b"a=1&a=2&b=%E9%C3%A9&c&=x") == {"a": "2", "b": "\ufffdé", "c": "", "": "x"}
    for encoded in (b"a=1&" * 51, b"a=" + b"x" * 2_001, b"x" * 2_001 + b"=a"):
        with pytest.raises(InvalidRequest):
            fields_of(encoded)
