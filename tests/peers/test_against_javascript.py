"""Guitar Alchemist's readers in Python and in JavaScript make the same of 10,000 random streams, cut at random."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from motamot.peers import READERS, WRITERS
from motamot.peers.javascript import BLANKS, trim
from tests.node import node

HERE = Path(__file__).parent
NAMES = ("page", "page-mended", "chat-service", "chat-service-mended", "chat-api", "stream-ag-ui-chat")
STREAMS = 10_000
PARTS = (
    *(
        "data: ",
        "data:",
        "data",
        "event: x",
        "id: 1",
        ": ping",
        "retry: 1",
        " ",
        "\t",
        "\n",
        "\n\n",
        "\n\n",
        "\r\n",
        "\r",
    ),
    *("[DONE]", "data: [DONE]\n\n", "a", "b c", "é", "→", "🙂", "\u2028", "\x85", "\x1c", "\xa0", "\x00"),
    *("{", "}", '{"x":1}', "{x}", '{"error":"no"}', '{"error":null}', '{"error":0}', '{"error":[1,"a",null]}'),
    *('{"error":{"a":1}}', '{"error":true}', '{"error":1.5}', '{"error":-0}', '{"error":1e30}', '{"error":2e-7}'),
    *('{"error":"no","type":"routing"}', '{"type":"routing"}', '{"type":"routing","error":""}', '{"type":"text"}'),
    *('{"type":"TEXT_MESSAGE_CONTENT","delta":"d"}', '{"type":"TEXT_MESSAGE_CONTENT"}', '{"type":"RUN_FINISHED"}'),
    *('{"type":"TEXT_MESSAGE_CONTENT","delta":"\\ud83d"}', '{"type":"TEXT_MESSAGE_CONTENT","delta":"\\ude42"}'),
    *('{"type":"TEXT_MESSAGE_CONTENT","delta":null}', '{"type":"TEXT_MESSAGE_CONTENT","delta":3}', "null", "7", "[1]"),
    *('{"type":"routing","trace":{"steps":[null]}}', '{"type":"routing","trace":{"steps":{"length":1}}}'),
    *('{"type":"routing","trace":{"steps":[{"name":"a"}, 1]}}', '{"type":"routing","trace":{"steps":{}}}'),
    *('{"type":"RUN_ERROR","message":"m"}', '{"type":"CUSTOM","name":"ga:diatonic","value":[]}', '"text"', "NaN"),
)
FIELDS = ("data: ", "data: ", "data: ", "data:", "event: ", "")
MARK = b"\xef\xbb\xbf"
BAD_BYTES = (b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\xc3", b"\xed\xa0\x80")


def stream(rng: random.Random) -> bytes:
    """A stream of a real writer with something done to it, events of a few parts each, or parts in any order."""
    kind = rng.random()
    if kind < 0.3:
        writer = rng.choice(list(WRITERS.values()))
        whole = writer.write(["".join(rng.choices(PARTS, k=rng.randrange(4))) for _ in range(rng.randrange(5))])
        if rng.random() < 0.3:
            whole = whole.replace(b"\n", b"\r\n")
        return whole[: rng.randrange(len(whole) + 1)] if rng.random() < 0.4 else whole
    if kind < 0.7:
        events = [
            "\n".join(f"{rng.choice(FIELDS)}{rng.choice(PARTS)}" for _ in range(rng.choice((1, 1, 1, 2, 3))))
            for _ in range(rng.randrange(8))
        ]
        return "\n\n".join([*events, ""]).encode()
    parts = [
        rng.choice(PARTS).encode() if rng.random() < 0.97 else rng.choice(BAD_BYTES) for _ in range(rng.randrange(30))
    ]
    return b"".join(parts)


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """As network reads."""
    cuts = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 1, 2, 8, 40))))})
    return [data[start:end] for start, end in pairwise(cuts)]


@pytest.mark.timeout(120)
def test_the_ports_agree_with_javascript_on_ten_thousand_streams() -> None:
    rng = random.Random(760)
    # Node 24 drops a byte-order mark anywhere if the read before it ended inside a character; browsers do not.
    streams = [cut((MARK if rng.random() < 0.05 else b"") + stream(rng), rng) for _ in range(STREAMS)]
    given = json.dumps([[base64.b64encode(read).decode() for read in reads] for reads in streams])
    done = subprocess.run([node(), HERE / "read_all.mjs"], input=given, capture_output=True, text=True, check=True)
    threw = dict.fromkeys(NAMES, 0)
    said = dict.fromkeys(NAMES, 0)
    for reads, readings in zip(streams, json.loads(done.stdout), strict=True):
        for name in NAMES:
            got = READERS[name].read(reads)
            expected = readings[name]
            got_threw = "SyntaxError" if got.threw is not None and got.threw.startswith("SyntaxError") else got.threw
            ours = (got.text, got_threw or "")
            assert ours == (expected["text"], expected["threw"] or ""), (name, reads)
            threw[name] += got.threw is not None
            said[name] += bool(got.text)
    assert min(said.values()) > 500  # the streams have something to read for each
    assert min(threw[name] for name in ("page-mended", "chat-service", "chat-api")) > 100


def test_trim_takes_what_javascript_takes() -> None:
    code = "process.stdout.write(JSON.stringify([...Array(65536).keys()].filter(c => !String.fromCharCode(c).trim())))"
    done = subprocess.run([node(), "-e", code], capture_output=True, text=True, check=True)
    assert sorted(map(ord, BLANKS)) == json.loads(done.stdout)
    assert trim("\ufeff\x85a\x85\u2028") == "\x85a\x85"
