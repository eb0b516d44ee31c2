"""The bounds of recordings: on files, on what comes out of them, on asking and replaying. docs/tapes.md lists them."""

from __future__ import annotations

from typing import Final

__all__: list[str] = []

# A file (TapeError beyond these).
FILE_BYTES: Final = 256 << 20  # of any format; an hour of chat in a HAR has 20 MB
ENTRIES: Final = 100_000  # in a HAR; a day's browsing has some thousands
JSON_VALUES: Final = 10_000_000  # brackets in a HAR: each stands for a hundred bytes of memory
BODY_BYTES: Final = 256 << 20  # of one body unpacked: a compressed byte can stand for a thousand
PIECES: Final = 4_000_000  # reads on one tape; what comes after them is put together
HEAD_BYTES: Final = 256 << 10  # of one response's head; the largest seen have 8 kB
HEADS: Final = 50  # before one body: redirects, 100-continue, a proxy's CONNECT
EVENTS: Final = 1_000_000  # of one stream that are shown; as many ignored lines
SECONDS: Final = 1_000_000.0  # a later time than this (eleven days) is not believed

# Asking and recording.
RECORD_BYTES: Final = 64 << 20  # of one body; `--max-bytes`
RECORD_SECONDS: Final = 600.0  # from the request to the end; `--timeout`
CONNECT_SECONDS: Final = 10.0  # a server that does not take a connection by then is down

# Replaying.
CONNECTIONS: Final = 100  # open at a time; more are closed
REQUEST_BYTES: Final = 20_000_000  # of a request's body, which is read and thrown away
REQUEST_SECONDS: Final = 30.0  # until a request is whole
DELIVERY_SECONDS: Final = 5.0  # for what was sent to arrive before the connection is broken
