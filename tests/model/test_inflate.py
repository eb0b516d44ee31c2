"""Bodies compressed against our asking."""

from __future__ import annotations

import gzip
import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.model.inflate import Inflater


def inflated(encoding: str, body: bytes, cuts: list[int]) -> list[bytes]:
    inflater = Inflater.named(encoding)
    assert inflater is not None
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    pieces = [body[begin:end] for begin, end in itertools.pairwise(edges)]
    return [piece for chunk in pieces for piece in inflater.feed(chunk)]


@given(st.binary(max_size=300), st.integers(1, 900), st.lists(st.integers(0, 10_000), max_size=6))
@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "X-GZip ", "deflate"])
def test_where_the_body_is_cut_changes_nothing_and_no_piece_is_large_or_empty(
    encoding: str, data: bytes, times: int, cuts: list[int]
) -> None:
    data *= times
    name = encoding.strip().lower()
    body = gzip.compress(data, 1) if "gzip" in name else zlib.compress(data, 1) if name == "deflate" else data
    pieces = inflated(encoding, body, cuts)
    assert b"".join(pieces) == data
    assert all(pieces)
    assert "gzip" not in name or max(map(len, pieces), default=0) <= 65536


def test_several_compressed_bodies_end_to_end_are_one() -> None:
    assert b"".join(inflated("gzip", gzip.compress(b"Hel") + gzip.compress(b"lo"), [25])) == b"Hello"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "identity, gzip"])
def test_other_compressions_are_not_taken(encoding: str) -> None:
    assert Inflater.named(encoding) is None


def test_a_body_that_is_not_compressed_as_it_says_is_an_error() -> None:
    with pytest.raises(zlib.error):
        inflated("gzip", b"data: hello", [])
