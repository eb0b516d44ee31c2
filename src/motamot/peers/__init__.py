"""The writers, readers and chunkers of event streams that exist in the world, with their habits kept to the letter.

A peer is one file with one object, and one line here. Ports are of our own hand: they are compared with the originals,
or with what was measured of them, in tests/peers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from motamot.peers.base import Chunker, Got, PeerReader, PeerWriter, Step
from motamot.peers.chunkers import characters, naive_lines, naive_words, sentence, sentence_lossless, tokens, whole
from motamot.peers.libraries import (
    ag_ui_client,
    eventsource_parser,
    fetch_event_source,
    httpx_sse,
    openai_python,
    sseclient_py,
)
from motamot.peers.readers import (
    chat_api,
    chat_service,
    chat_service_course,
    chat_service_mended,
    course,
    naive_first_line,
    naive_iter_lines,
    naive_json_per_line,
    naive_json_per_read,
    naive_per_read,
    naive_split,
    page,
    page_mended,
    parse_ag_ui_frames,
    standard,
    stream_ag_ui_chat,
)
from motamot.peers.readers import ga_text as ga_text_reader
from motamot.peers.readers import json_events as json_reader
from motamot.peers.readers import native as native_reader
from motamot.peers.writers import (
    ag_ui,
    ag_ui_gaapi,
    ga_text,
    gaapi,
    gaapi_lines,
    gaapi_mended,
    gachatbot_api,
    json_events,
    naive_escaped,
    naive_f_string,
    naive_strip,
    native,
)

__all__ = ["CHUNKERS", "READERS", "WRITERS", "Chunker", "Got", "PeerReader", "PeerWriter", "Step"]

_READERS = (
    standard.READER,
    course.READER,
    page.READER,
    page_mended.READER,
    chat_service.READER,
    chat_service_course.READER,
    chat_service_mended.READER,
    chat_api.READER,
    ga_text_reader.READER,
    naive_split.READER,
    naive_first_line.READER,
    naive_per_read.READER,
    naive_iter_lines.READER,
    json_reader.READER,
    naive_json_per_read.READER,
    naive_json_per_line.READER,
    parse_ag_ui_frames.READER,
    stream_ag_ui_chat.READER,
    native_reader.READER,
    eventsource_parser.READER,
    fetch_event_source.READER,
    httpx_sse.READER,
    openai_python.READER,
    sseclient_py.READER,
    ag_ui_client.READER,
)
_WRITERS = (
    gachatbot_api.WRITER,
    gaapi.WRITER,
    gaapi_mended.WRITER,
    gaapi_lines.WRITER,
    ga_text.WRITER,
    naive_f_string.WRITER,
    naive_strip.WRITER,
    naive_escaped.WRITER,
    json_events.WRITER,
    ag_ui.WRITER,
    ag_ui_gaapi.WRITER,
    native.WRITER,
)
_CHUNKERS = (
    sentence.CHUNKER,
    sentence_lossless.CHUNKER,
    tokens.CHUNKER,
    naive_words.CHUNKER,
    naive_lines.CHUNKER,
    characters.CHUNKER,
    whole.CHUNKER,
)

READERS: Mapping[str, PeerReader] = MappingProxyType({reader.name: reader for reader in _READERS})
"""Every reader, by its name for the command line."""
WRITERS: Mapping[str, PeerWriter] = MappingProxyType({writer.name: writer for writer in _WRITERS})
"""Every writer, by its name for the command line."""
CHUNKERS: Mapping[str, Chunker] = MappingProxyType({chunker.name: chunker for chunker in _CHUNKERS})
"""Every chunker, by its name for the command line."""
