"""HTTP requests from bytes, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.scripted import bounds
from motamot.scripted.http import HttpRequest, RefusedRequest, RequestReader, response_head

PLAIN = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX-A: 1\r\nx-a:\t2 \r\n\r\nhello"
CHUNKED = (
    b"\r\nPOST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;ext=1\r\nhel\r\n002\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)
GET = b"GET /models HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"


def read(*parts: bytes) -> list[HttpRequest]:
    reader = RequestReader()
    found = []
    for part in parts:
        reader.feed(part)
        while (request := reader.next()) is not None:
            found.append(request)
    return found


def test_a_request_is_its_method_target_headers_and_body() -> None:
    (request,) = read(PLAIN)
    assert (request.method, request.path, request.body) == ("POST", "/a?b=c", b"hello")
    assert request.headers == {"host": "x", "content-length": "5", "x-a": "1, 2"}
    assert request.keep_alive
    assert not request.http_1_0


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.1", "Connection: TE, Close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
    ],
)
def test_the_connection_is_kept_as_version_and_header_say(version: str, connection: str, kept: bool) -> None:
    (request,) = read(f"GET / HTTP/{version}\r\n{connection}\r\n".encode())
    assert request.keep_alive is kept


@given(at=st.lists(st.integers(0, len(PLAIN + CHUNKED + GET)), max_size=6).map(sorted))
def test_where_the_bytes_are_cut_never_matters(at: list[int]) -> None:
    data = PLAIN + CHUNKED + GET
    parts = [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]
    assert read(*parts) == read(data)
    assert [request.body for request in read(data)] == [b"hello", b"hello", b""]


def test_byte_by_byte_is_read_too() -> None:
    data = CHUNKED + PLAIN + GET
    assert read(*(data[n : n + 1] for n in range(len(data)))) == read(data)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 505),
        (b"GET /\xe9 HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # TLS to a port that has none
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\na : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\na: b\nc: d\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\na: \0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, 400),
        (b"GET / HTTP/1.1\r\na: " + b"x" * bounds.HEAD_BYTES, 431),
    ],
)
def test_what_is_no_request_or_too_large_is_refused_with_a_status(data: bytes, status: int) -> None:
    for parts in ([data], [data[n : n + 100] for n in range(0, len(data), 100)]):
        with pytest.raises(RefusedRequest) as refused:
            read(*parts)
        assert refused.value.status == status


def test_chunks_that_together_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_BYTES", 10)
    chunk = b"6\r\nabcdef\r\n"
    with pytest.raises(RefusedRequest) as refused:
        read(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk)
    assert refused.value.status == 413


@given(data=st.binary(max_size=200) | st.lists(st.sampled_from([PLAIN, CHUNKED, b"\r\n", b"0", GET[:9]])).map(b"".join))
def test_any_bytes_are_requests_or_refused(data: bytes) -> None:
    try:
        read(data)
    except RefusedRequest as refused:
        assert 400 <= refused.status <= 505


def test_a_response_head_is_written_with_its_reason() -> None:
    assert response_head(404, {"a": "b"}) == b"HTTP/1.1 404 Not Found\r\na: b\r\n\r\n"
    assert response_head(299, {}) == b"HTTP/1.1 299 Scripted\r\n\r\n"
