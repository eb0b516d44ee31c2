"""Text of a stream as JavaScript decodes it: `TextDecoder` with `{stream: true}`, and `TextDecoderStream`."""

from __future__ import annotations

import codecs

__all__ = ["TextStream"]


class TextStream:
    """UTF-8 in, text out: one byte-order mark at the start is dropped, bytes that are not UTF-8 become U+FFFD.

    Source: WHATWG Encoding, "Interface TextDecoder".
    """

    __slots__ = ("_decoder", "_started")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._started = False

    def decode(self, data: bytes) -> str:
        """The text that these bytes complete."""
        return self._begun(self._decoder.decode(data))

    def end(self) -> str:
        """U+FFFD for a character that the end has cut, or nothing."""
        return self._begun(self._decoder.decode(b"", final=True))

    def _begun(self, text: str) -> str:
        if self._started or not text:
            return text
        self._started = True
        return text.removeprefix("\ufeff")
