"""Bytes to text: in the encoding that a page is in, whatever it says."""

from __future__ import annotations

import pytest

from motamot.knowledge.article import Unreadable
from motamot.knowledge.charset import decode

WORDS = "Réservé : 3 €, cœur"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WORDS.encode(), None),
        (WORDS.encode("utf-8-sig"), "iso-8859-1"),
        (WORDS.encode("utf-16"), None),
        (WORDS.encode("cp1252"), "windows-1252"),
        (WORDS.encode("cp1252"), "ISO-8859-1"),
        (b'<meta charset="windows-1252">' + WORDS.encode("cp1252"), None),
        (b"<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'>" + WORDS.encode("cp1252"), None),
        (b'<meta charset="latin1">' + WORDS.encode(), "utf-8"),
    ],
)
def test_what_is_said_truly_is_read_without_a_word(body: bytes, said: str | None) -> None:
    text, odd = decode(body, said)
    assert text.endswith(WORDS) and odd is None


@pytest.mark.parametrize(
    ("body", "said", "told"),
    [
        (WORDS.encode(), "iso-8859-1", "read as UTF-8"),
        (WORDS.encode(), "utf-16", None),
        (WORDS.encode(), "klingon", "read as UTF-8"),
        (WORDS.encode(), "shift_jis", "read as UTF-8"),
        (WORDS.encode("cp1252"), "utf-8", "read as Windows-1252"),
        (WORDS.encode("cp1252"), "unicode_escape", "read as Windows-1252"),
        (WORDS.encode("cp1252"), None, None),
    ],
)
def test_what_is_said_wrongly_is_read_and_told(body: bytes, said: str | None, told: str | None) -> None:
    text, odd = decode(body, said)
    assert text == WORDS
    assert told is None or (odd is not None and told in odd)


@pytest.mark.parametrize(
    "said", ["zlib", "idna", "hex", "rot13", "unicode_escape", "undefined", "\x00", "mbcs", "utf-7"]
)
def test_codecs_that_are_no_encodings_are_not_run(said: str) -> None:
    assert decode(b"plain", said)[0] == "plain"


@pytest.mark.parametrize(
    "body",
    [b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"%PDF-1.7\n\x00\x01\x02", bytes(range(256)) * 20, b"PK\x03\x04\x14\x00"],
)
def test_what_is_no_text_is_not_read(body: bytes) -> None:
    with pytest.raises(Unreadable, match="no text"):
        decode(body)


def test_other_scripts_are_read() -> None:
    assert decode("Ответ".encode("koi8-r"), "koi8-r") == ("Ответ", None)
    assert decode("答え".encode("shift_jis"), "Shift_JIS") == ("答え", None)
    assert decode("答え".encode("euc-jp"), "EUC-JP") == ("答え", None)
