"""The bounds of the scripted model: on script files, requests, waits and memory. docs/scripted-model.md lists them."""

from __future__ import annotations

from typing import Final

__all__: list[str] = []

# A script file (ScriptError beyond any of these).
FILE_BYTES: Final = 1_000_000  # a pure-Python YAML reader needs seconds for more
FILE_VALUES: Final = 200_000  # values after aliases are followed: nine lines of aliases can mean a billion
FILE_DEPTH: Final = 40
SCRIPTS: Final = 10_000
NAME_CHARACTERS: Final = 100
REPEAT_TIMES: Final = 1_000_000
TURN_PIECES: Final = 10_000_000  # of one turn, its repeats run out
TURN_BYTES: Final = 1 << 30
WAIT_SECONDS: Final = 3600.0

# A request (an answer in OpenAI's error shape beyond these).
HEAD_BYTES: Final = 64 * 1024
BODY_BYTES: Final = 20 * 1000 * 1000  # questions may carry pictures
QUESTION_CHARACTERS: Final = 100_000  # of the last user message, its end: where a script's name is looked for
EMBEDDING_INPUTS: Final = 2048  # as OpenAI's own interface
EMBEDDING_DIMENSIONS: Final = 4096
EMBEDDING_NUMBERS: Final = 1_000_000  # inputs times dimensions
CONNECTIONS: Final = 2000

# Waits.
REQUEST_SECONDS: Final = 30.0  # a request that has begun is whole by then
IDLE_SECONDS: Final = 75.0  # a kept connection without a next request
GATE_SECONDS: Final = 60.0  # a gate that nobody opens
DELIVERY_SECONDS: Final = 2.0  # what was written has reached the client before a reset cuts the connection

# What is kept in memory of what was sent, over all requests; beyond it times and sizes only.
KEPT_BYTES: Final = 256 << 20

RECORD_LINES: Final = 500  # of the record, before they are handed to the system

# Playing.
BLOCK_BYTES: Final = 64 * 1024  # of `send_repeat`, in one write
PIECES_BETWEEN_LOOKS: Final = 32  # after so many without a pause, others get a turn and a client's leaving is seen
