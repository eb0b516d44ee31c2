"""Characters that were broken on the way."""

from __future__ import annotations

import re

from motamot.findings.faults.clauses import DECODE, JSON
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Fault, Level, Promise
from motamot.findings.recognise import Shape

__all__ = ["BOM", "LONE_SURROGATE", "MOJIBAKE", "REPLACEMENT_CHARACTER"]

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def _half(raw: bytes) -> int | None:
    """Where in `raw` an escaped surrogate stands without its other half, or None."""
    high: tuple[int, int] | None = None  # where it stands, where it ends
    for found in _ESCAPE.finditer(raw):
        value = int(found[1], 16) if found[1] else 0
        if high is not None and not (0xDC00 <= value < 0xE000 and found.start() == high[1]):
            return high[0]
        if 0xD800 <= value < 0xDC00:
            high = (found.start(), found.end())
        elif high is None and 0xDC00 <= value < 0xE000:
            return found.start()
        else:
            high = None
    return high[0] if high is not None else None


class _ReplacementCharacter(Finder):
    def on_rare_text(self, text: str) -> None:
        if "\ufffd" in text:
            self.saw("A character of the text came as U+FFFD, the sign for a broken one.")


REPLACEMENT_CHARACTER = Rule(
    Fault(
        id="replacement-character",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="U+FFFD in the text: a character was broken",
        clause=f"{DECODE}: bytes that are no UTF-8 become U+FFFD",
        remedy="Decode bytes with one incremental decoder a stream, never read by read; never cut text by bytes.",
        harm="Accents, emoji and non-Latin letters turn into �.",
    ),
    _ReplacementCharacter,
)


class _LoneSurrogate(Finder):
    def on_escape(self, raw: bytes) -> None:
        at = _half(raw)
        if at is not None:
            self.saw("Half a surrogate pair stands alone in a piece: a character was cut in two, or lost its half.")


LONE_SURROGATE = Rule(
    Fault(
        id="lone-surrogate",
        promise=Promise.EXACT,
        level=Level.SHOULD,
        title="half a surrogate pair in a piece",
        clause=f"{JSON}, section 8.2: what receivers do with an unpaired surrogate is not to be predicted",
        remedy="Never cut between the halves of a pair: hold the first back until the second has come.",
        harm="Python clients raise when they print or store the piece; others show �.",
    ),
    _LoneSurrogate,
)

# What UTF-8 bytes 0x80 to 0xBF look like where they were read as windows-1252 or Latin-1.
_REST = "".join(
    {bytes([byte]).decode("latin-1") for byte in range(0x80, 0xC0)}
    | {bytes([byte]).decode("cp1252", "ignore") for byte in range(0x80, 0xC0)}
)
_TWICE = re.compile(
    f"[\u00c2-\u00c5\u00d0\u00d1][{re.escape(_REST)}]|[\u00e2-\u00e9][{re.escape(_REST)}]{{2}}|\u00f0[{re.escape(_REST)}]{{3}}"
)


def _decoded_once_more(text: str) -> str | None:
    """The character that `text` is the UTF-8 bytes of, read one by one; None if it is no such thing."""
    try:
        raw = b"".join(char.encode("latin-1") if ord(char) < 0x100 else char.encode("cp1252") for char in text)
        return raw.decode("utf-8")
    except UnicodeError:
        return None


class _Mojibake(Finder):
    """One such pair may be an answer about them; two are not. A HAR without a charset makes them by itself."""

    def __init__(self, fault: Fault, scene: object) -> None:
        super().__init__(fault, scene)  # type: ignore[arg-type]
        charset = "charset" in (self.scene.tape.header("content-type") or "").lower()
        self._trusted = self.scene.tape.source != "har" or charset
        self._first: tuple[str, str] | None = None

    def on_rare_text(self, text: str) -> None:
        if not self._trusted:
            return
        for found in _TWICE.finditer(text):
            meant = _decoded_once_more(found[0])
            if meant is None:
                continue
            if self._first is None:
                self._first = (found[0], meant)
            else:
                shown, was = self._first
                self.saw(f"The text was encoded twice: {shown!r} stands where {was!r} was meant.")
                return


MOJIBAKE = Rule(
    Fault(
        id="mojibake",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="UTF-8 that was encoded twice",
        clause=f"{DECODE}: an event stream is UTF-8, once",
        remedy="Name `charset=utf-8` where text is read, and never decode a stream as Latin-1 or windows-1252.",
        harm="`é` is read as `Ã©`, `’` as `â€™`.",
    ),
    _Mojibake,
)


class _Bom(Finder):
    def at_end(self) -> None:
        if self.scene.mark and self.scene.shape is Shape.EVENTS:
            self.scene.offset, self.scene.raw = 0, b"\xef\xbb\xbf"
            self.saw("The stream begins with a byte-order mark.")


BOM = Rule(
    Fault(
        id="bom",
        promise=Promise.EXACT,
        level=Level.SHOULD,
        title="a byte-order mark before the first event",
        clause=f"{DECODE} drops one; openai-python, anthropic-python, httpx-sse and sseclient-py do not",
        remedy="Write UTF-8 without a byte-order mark (in .NET: `new UTF8Encoding(false)`).",
        harm="Those readers lose the first line: the beginning of the answer, where its data stands there.",
    ),
    _Bom,
)
