"""Event-stream decoders side by side: `python -m bench.decoders` (the group `bench` installs the peers).

Every decoder reads the same streams in one process, in the same feedings, in interleaved rounds; the best round
counts, in CPU time. Ours must first give the events that were written. Output: Markdown.

A peer is driven from bytes to its own event objects by the path its package uses: what it does besides (langgraph-sdk
parses the JSON of each event) is its own cost.
"""

from __future__ import annotations

import argparse
import codecs
import gc
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from motamot.sse import Decoder, Event

__all__ = ["FEEDINGS", "Stream", "pieces_of", "streams"]


STREAM_BYTES = 400_000


@dataclass(frozen=True)
class Stream:
    """A stream to measure with: its blocks as bytes, and the events a right reader makes of them."""

    name: str
    blocks: tuple[bytes, ...]
    events: tuple[Event, ...]


def _chunk_json(number: int, text: str) -> str:
    """A chat completion chunk of about 260 bytes, as providers send them."""
    return json.dumps(
        {
            "id": "chatcmpl-Bq7vXk2ZtT9mWn4RcYd1LsPeA0hGu",
            "object": "chat.completion.chunk",
            "created": 1795977565 + number // 50,
            "model": "gpt-4.1-mini-2025-04-14",
            "service_tier": "default",
            "system_fingerprint": "fp_6f2eabb9a5",
            "choices": [{"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}],
            "usage": None,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


_WORDS = [" the", " bus", " leaves", " at", " noon", ",", " and", " so", " do", " we", ".", "\n\n"]
_FRENCH = [" le", " départ", " à", " midi", ",", " où", " l’été", " déjà", " — ", "…", " être", "\n\n", " 🚌"]


def _plain(name: str, texts: Iterable[str], *, before: str = "", end: str = "\n", colon: str = ": ") -> Stream:
    blocks, events = [], []
    for text in texts:
        blocks.append(f"{before}data{colon}{text}{end}{end}".encode())
        events.append(Event("message", text, ""))
    return Stream(name, tuple(blocks), tuple(events))


def _typed(count: int) -> Stream:
    blocks, events = [], []
    for number in range(count):
        data = json.dumps(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _WORDS[number % 12]}}
        )
        blocks.append(f"event: content_block_delta\ndata: {data}\n\n".encode())
        events.append(Event("content_block_delta", data, ""))
    return Stream("event type and data", tuple(blocks), tuple(events))


def _numbered(count: int) -> Stream:
    blocks, events = [], []
    for number in range(count):
        data = json.dumps({"type": "text", "text": _WORDS[number % 12]})
        blocks.append(f"id: 7f3a9c.{number}\ndata: {data}\n\n".encode())
        events.append(Event("message", data, f"7f3a9c.{number}"))
    return Stream("id and data", tuple(blocks), tuple(events))


def _many_lines(count: int) -> Stream:
    blocks, events = [], []
    for number in range(count):
        lines = [f"- {word.strip()} {number}" for word in _WORDS]
        blocks.append("".join(f"data: {line}\n" for line in lines).encode() + b"\n")
        events.append(Event("message", "\n".join(lines), ""))
    return Stream("twelve data lines", tuple(blocks), tuple(events))


def _pinged(count: int) -> Stream:
    blocks, events = [], []
    for number in range(count):
        text = _chunk_json(number, _WORDS[number % 12])
        blocks.append((": ping\n\n" if number % 10 == 0 else "").encode() + f"data: {text}\n\n".encode())
        events.append(Event("message", text, ""))
    return Stream("a ping every ten events", tuple(blocks), tuple(events))


def streams(size: int = STREAM_BYTES) -> list[Stream]:
    """The streams, each of about `size` bytes."""
    chunks = size // 300
    ascii_chunks = [_chunk_json(n, _WORDS[n % 12]) for n in range(chunks)]
    small = [json.dumps({"morceau": _WORDS[n % 12], "n": 100_000 + n, "fin": False}) for n in range(size // 60)]
    return [
        _plain("chat chunks, ASCII", ascii_chunks),
        _plain("chat chunks, French", [_chunk_json(n, _FRENCH[n % 13]) for n in range(chunks)]),
        _plain("small events (60 bytes)", small),
        _plain("chat chunks, CRLF", ascii_chunks, end="\r\n"),
        _plain("small events, CRLF", small, end="\r\n"),
        _plain("small events, no space", small, colon=":"),
        _pinged(chunks),
        _typed(size // 130),
        _numbered(size // 60),
        _many_lines(size // 200),
    ]


FEEDINGS: dict[str, int | None] = {"64 KiB": 65_536, "4 KiB": 4_096, "1 KiB": 1_024, "one event": None}


def pieces_of(stream: Stream, size: int | None) -> list[bytes]:
    """The stream cut into pieces of `size` bytes, or into its blocks."""
    if size is None:
        return list(stream.blocks)
    body = b"".join(stream.blocks)
    return [body[start : start + size] for start in range(0, len(body), size)]


Decode = Callable[[list[bytes]], int]  # pieces -> number of events made


def _ours(pieces: list[bytes]) -> int:
    feed, count = Decoder().feed, 0
    for piece in pieces:
        for _ in feed(piece):
            count += 1
    return count


def _floor(pieces: list[bytes]) -> int:
    """Not a decoder: split, slice and decode, none of the standard's rules; what Python can do at all."""
    rest, count = b"", 0
    blank = b"\r\n\r\n" if b"\r" in pieces[0] else b"\n\n"
    for piece in pieces:
        *blocks, rest = (rest + piece).split(blank)
        for block in blocks:
            block[6:].decode()
            count += 1
    return count


def _launchdarkly(pieces: list[bytes]) -> int:
    from ld_eventsource.actions import Event as TheirEvent
    from ld_eventsource.reader import _BufferedLineReader, _SSEReader

    reader = _SSEReader(_BufferedLineReader.lines_from(pieces))
    return sum(1 for action in reader.events_and_comments() if isinstance(action, TheirEvent))


def _httpx_sse(pieces: list[bytes]) -> int:
    from httpx_sse._decoders import SSEDecoder, SSELineDecoder

    to_text = codecs.getincrementaldecoder("utf-8")("replace")
    lines, decoder, count = SSELineDecoder(), SSEDecoder(), 0
    for piece in pieces:
        for line in lines.decode(to_text.decode(piece)):
            if decoder.decode(line) is not None:
                count += 1
    return count


def _sseclient(pieces: list[bytes]) -> int:
    from sseclient import SSEClient

    return sum(1 for _ in SSEClient(iter(pieces)).events())


def _langgraph(pieces: list[bytes]) -> int:
    from langgraph_sdk.sse import BytesLineDecoder, SSEDecoder

    lines, decoder, count = BytesLineDecoder(), SSEDecoder(), 0
    for piece in pieces:
        for line in lines.decode(piece):
            if decoder.decode(line) is not None:
                count += 1
    return count


def _anthropic(pieces: list[bytes]) -> int:
    from anthropic._streaming import SSEDecoder

    return sum(1 for _ in SSEDecoder().iter_bytes(iter(pieces)))


def _openai(pieces: list[bytes]) -> int:
    from openai._streaming import SSEDecoder

    return sum(1 for _ in SSEDecoder().iter_bytes(iter(pieces)))


DECODERS: dict[str, tuple[Decode, str | None]] = {  # and the package whose version is shown
    "motamot": (_ours, "motamot"),
    "launchdarkly-eventsource": (_launchdarkly, "launchdarkly-eventsource"),
    "httpx-sse": (_httpx_sse, "httpx-sse"),
    "sseclient-py": (_sseclient, "sseclient-py"),
    "langgraph-sdk": (_langgraph, "langgraph-sdk"),
    "anthropic": (_anthropic, "anthropic"),
    "openai": (_openai, "openai"),
    "(floor: no rules)": (_floor, None),
}


def check(stream: Stream, pieces: list[bytes]) -> None:
    """Ours gives exactly the events that were written, or the figures are worth nothing."""
    decoder = Decoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    if events != list(stream.events) or decoder.close():
        raise SystemExit(f"motamot read the stream “{stream.name}” wrong")


def measure(stream: Stream, feeding: int | None, rounds: int) -> dict[str, float | None]:
    """Best CPU seconds of each decoder over the stream; None for one that fails on it or miscounts its events."""
    pieces = pieces_of(stream, feeding)
    check(stream, pieces)
    best: dict[str, float | None] = {}
    for name, (decode, _) in DECODERS.items():
        try:
            right = decode(pieces) == len(stream.events)
        except ImportError as error:  # else a peer that is not there would count as one that is slower
            raise SystemExit(f"{name} cannot be measured: {error}") from error
        except Exception:  # noqa: BLE001 - whatever a peer raises on a legal stream
            right = False
        best[name] = float("inf") if right or name.startswith("(") else None
    gc.collect()
    gc.freeze()  # what the peers have loaded is looked through no more, neither here nor while they are measured
    for _ in range(rounds):
        for name, (decode, _) in DECODERS.items():
            so_far = best[name]
            if so_far is None:
                continue
            gc.collect()
            start = time.process_time()
            decode(pieces)
            best[name] = min(so_far, time.process_time() - start)
    return best


def table(stream: Stream, rounds: int) -> tuple[str, float]:
    """The stream's table, and the smallest lead over the fastest peer in any feeding."""
    size = sum(map(len, stream.blocks))
    results = {name: measure(stream, feeding, rounds) for name, feeding in FEEDINGS.items()}
    leads = {}
    for feeding, best in results.items():
        peers = [took for name, took in best.items() if took is not None and name != "motamot" and name[0] != "("]
        leads[feeding] = min(peers) / (best["motamot"] or float("nan"))
    head = f"### {stream.name}: {size / 1e6:.1f} MB, {len(stream.events):,} events\n\n"
    rows = [
        "| MB/s | " + " | ".join(FEEDINGS) + " | one event, ns |",
        "| --- |" + " ---: |" * (len(FEEDINGS) + 1),
    ]
    for name in DECODERS:
        times = [results[feeding][name] for feeding in FEEDINGS]
        cells = ["fails" if took is None else f"{size / took / 1e6:,.0f}" for took in times]
        each = "" if times[-1] is None else f"{times[-1] / len(stream.events) * 1e9:,.0f}"
        rows.append(f"| {name} | " + " | ".join(cells) + f" | {each} |")
    rows.append("| motamot ÷ fastest peer | " + " | ".join(f"{leads[f]:.2f}" for f in FEEDINGS) + " | |")
    return head + "\n".join(rows) + "\n", min(leads.values())


def main() -> None:
    """Print the tables, and in the end how far ahead of the fastest peer the decoder was at the least."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--bytes", type=int, default=STREAM_BYTES, help="size of each stream")
    options.add_argument("--only", default="", help="streams whose name holds this")
    chosen = options.parse_args()
    print(f"Python {platform.python_version()}, CPU time, best of {chosen.rounds} interleaved rounds.")
    print(", ".join(f"{name} {version(package)}" for name, (_, package) in DECODERS.items() if package), end=".\n\n")
    least = float("inf")
    for stream in streams(chosen.bytes):
        if chosen.only in stream.name:
            text, lead = table(stream, chosen.rounds)
            print(text, flush=True)
            least = min(least, lead)
    print(f"Smallest lead over the fastest peer: {least:.2f}.")


if __name__ == "__main__":
    # Run as a file, this folder comes first in the path, and its `http` would stand for the standard library's.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    main()
