"""Every fault there is, one line each: what it is, and what looks for it.

A new fault is a file here and a line below; `docs/findings.md` and the tests take it from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from motamot.findings.faults import (
    ag_ui,
    block_ends,
    broken,
    characters,
    comments,
    completions,
    dataless,
    delivery,
    endings,
    fields,
    headers,
    line_ends,
    open_after_end,
    pieces,
    repeats,
    space_eaten,
    tools,
    ui_message,
    whole,
)
from motamot.findings.finder import Rule
from motamot.findings.finding import Fault

__all__ = ["FAULTS", "RULES"]

RULES: tuple[Rule, ...] = (
    block_ends.MISSING_BLANK_LINE,
    block_ends.UNTERMINATED_LAST_EVENT,
    fields.UNKNOWN_FIELD,
    fields.ERROR_FIELD,
    fields.RAW_LINE_BREAK,
    space_eaten.SPACE_EATEN,
    dataless.EVENT_WITHOUT_DATA,
    dataless.BLOCK_WITHOUT_DATA,
    dataless.ID_ON_FOREIGN_ROUTE,
    comments.COMMENT_AS_DATA,
    comments.KEEPALIVE_INSIDE_EVENT,
    characters.REPLACEMENT_CHARACTER,
    characters.LONE_SURROGATE,
    characters.MOJIBAKE,
    characters.BOM,
    line_ends.CRLF_FOR_LF_ONLY_READER,
    repeats.CUMULATIVE_DELTAS,
    repeats.REPEATED_FULL_TEXT,
    pieces.GLUED_PIECES,
    pieces.WIRE_IN_TEXT,
    endings.MISSING_TERMINAL_EVENT,
    broken.CONNECTION_BROKEN,
    endings.EMPTY_STREAM,
    endings.DONE_IN_TEXT,
    endings.FOREIGN_END_MARK,
    endings.ERROR_AS_TEXT,
    ag_ui.AG_UI_ORDER,
    ui_message.UI_MESSAGE_UNKNOWN_PART,
    ui_message.UI_MESSAGE_ORDER,
    whole.WHOLE_DIFFERS,
    delivery.BURST_DELIVERY,
    delivery.LATE_FIRST_TEXT,
    delivery.BATCHED_DELIVERY,
    delivery.NO_KEEPALIVE,
    open_after_end.OPEN_AFTER_END,
    headers.COMPRESSED_STREAM,
    headers.CONTENT_LENGTH_ON_STREAM,
    headers.NOT_AN_EVENT_STREAM,
    headers.BUFFERING_HEADERS,
    *tools.TOOL_RULES,
    *completions.COMPLETION_RULES,
)

FAULTS: Mapping[str, Fault] = MappingProxyType({rule.fault.id: rule.fault for rule in RULES})
"""Every fault by its name."""
