"""Embeddings made from a hash: the same for the same text, of length 1, in every form a client may ask for."""

from __future__ import annotations

import array
import base64
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.scripted.dialects import BadRequest
from motamot.scripted.embeddings import embed, embeddings


@given(text=st.text(), dimensions=st.integers(1, 64))
def test_a_text_has_one_vector_of_length_one(text: str, dimensions: int) -> None:
    vector = embed(text, dimensions)
    assert vector == embed(text, dimensions)
    assert len(vector) == dimensions
    assert math.isclose(math.hypot(*vector), 1)


def test_vectors_stay_what_they_are_from_release_to_release() -> None:
    assert [round(number, 6) for number in embed("hello", 3)] == [-0.602159, 0.551899, -0.576898]


def test_different_texts_have_different_vectors() -> None:
    assert len({tuple(embed(text, 8)) for text in ("", "a", "A", "a ", "é", "e\u0301", "\ud83d")}) == 7


def test_the_answer_has_a_vector_for_each_input_in_order() -> None:
    answer = embeddings({"input": ["one two", "three"], "model": "m", "dimensions": 4})
    assert [(item["index"], item["embedding"]) for item in answer["data"]] == [
        (0, embed("one two", 4)),
        (1, embed("three", 4)),
    ]
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert answer["model"] == "m"
    assert len(embeddings({"input": "x"})["data"][0]["embedding"]) == 256


def test_base64_holds_the_same_numbers() -> None:
    (item,) = embeddings({"input": "x", "encoding_format": "base64", "dimensions": 5})["data"]
    numbers = array.array("f", base64.b64decode(item["embedding"]))
    assert numbers.tolist() == pytest.approx(embed("x", 5), rel=1e-6)


def test_tokens_count_as_a_text_of_their_own() -> None:
    one, two = embeddings({"input": [[1, 2], [3]]})["data"]
    assert one["embedding"] == embeddings({"input": [1, 2]})["data"][0]["embedding"] != two["embedding"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": [1, "a"]}, "input"),
        ({"input": [[]]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": ["a"] * 2048, "dimensions": 4096}, "input"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": True}, "dimensions"),
        ({"input": "a", "dimensions": 4097}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
    ],
)
def test_bad_requests_are_refused_with_their_field(body: Any, param: str | None) -> None:
    with pytest.raises(BadRequest) as refused:
        embeddings(body)
    assert refused.value.param == param
