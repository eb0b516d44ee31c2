"""The tables, as SQLAlchemy Core sees them. Times are UTC, seconds since the epoch.

`number` is the order of booking; ids are the callers' own and random. A running row names its owner and has no
outcome; it gets one exactly once. The size of what a completion generated is kept so that token estimates can be
calibrated without the text itself.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

__all__ = [
    "REVISION",
    "VERSION_TABLE",
    "boundaries",
    "completions",
    "conversations",
    "details",
    "exchanges",
    "metadata",
    "owners",
    "past_days",
    "unsearchable",
]

REVISION = "0002"
"""The newest migration. Kept here so that opening an up-to-date database needs no Alembic (0.1 s to import)."""

VERSION_TABLE = "motamot_version"
"""Where Alembic notes the revision; a name of our own, for a database shared with another program that uses Alembic."""

metadata = MetaData()

owners = Table(
    "owners",
    metadata,
    Column("id", String, primary_key=True),
    Column("host", String, nullable=False),
    Column("place", String, nullable=False),  # boot and process-id namespace: where `pid` means something
    Column("pid", Integer, nullable=False),
    Column("started", String, nullable=False),
    Column("renewals", Integer, nullable=False, server_default=text("0")),
    Column("opened_at", Float, nullable=False),
    Column("renewed_at", Float, nullable=False),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", String, primary_key=True),
    Column("assistant", String, nullable=False),
    Column("visitor", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("deleted_at", Float),
)

Index("conversations_visitor", conversations.c.visitor, conversations.c.created_at)

exchanges = Table(
    "exchanges",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("conversation", String, ForeignKey("conversations.id"), nullable=False),
    Column("assistant", String, nullable=False),
    Column("visitor", String, nullable=False),
    Column("key", String),
    Column("body_hash", String),
    Column("question", Text),  # None: its text was removed, and none may be written here any more
    Column("model", String, nullable=False),
    Column("replaces", String),
    Column("owner", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("outcome", String),
    Column("code", String),
    Column("by", String),
    Column("message", Text),
    Column("detail", Text),
    Column("events", Integer, nullable=False, server_default=text("0")),
    Column("sent", Integer, nullable=False, server_default=text("0")),
    Column("seen", Integer),
    Column("marks", Text, nullable=False, server_default=text("''")),  # one a line
    Column("generated", Text),
    Column("shown", Text),  # None: all of what was generated
    # Seconds after the question; None: it did not happen, or is not known.
    Column("first_text", Float),
    Column("stop_asked", Float),
    Column("stop_closed", Float),
    Column("cost", Float),  # of all its completions, in whatever currency: what lists are filtered by
    UniqueConstraint("visitor", "key", name="exchanges_visitor_key"),
)
Index("exchanges_conversation", exchanges.c.conversation)
# Holds all that lists are filtered by and days are counted from: the rows with their texts need not be read for it.
Index(
    "exchanges_figures",
    *(exchanges.c[name] for name in ("started_at", "outcome", "assistant", "model", "cost")),
    *(exchanges.c[name] for name in ("first_text", "stop_asked", "stop_closed")),
)
Index("exchanges_open", exchanges.c.owner, sqlite_where=exchanges.c.outcome.is_(None))
Index("exchanges_with_text", exchanges.c.started_at, sqlite_where=exchanges.c.question.is_not(None))

boundaries = Table(
    "boundaries",
    metadata,
    Column("exchange", String, primary_key=True),
    Column("first_event", Integer, primary_key=True),
    Column("pairs", LargeBinary, nullable=False),  # (event number, characters up to and with it), unsigned 32 bit, LE
    sqlite_with_rowid=False,
)

details = Table(
    "details",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # the exchange's
    Column("times", LargeBinary, nullable=False),  # see `motamot.store.details`
    Column("events", LargeBinary, nullable=False),
    Column("sent", Integer),  # number of the last event sent, where that was after the end had been booked
)

unsearchable = Table(
    "unsearchable",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # of an ended exchange whose text awaits indexing
)

past_days = Table(
    "past_days",
    metadata,
    Column("day", Integer, primary_key=True, autoincrement=False),  # since 1970-01-01, UTC
    Column("figures", LargeBinary, nullable=False),  # see `motamot.store.days`
)

completions = Table(
    "completions",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("exchange", String, ForeignKey("exchanges.id"), nullable=False),
    Column("assistant", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("model", String, nullable=False),
    Column("model_reported", String, nullable=False, server_default=text("''")),
    Column("opened_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("outcome", String),
    Column("finish", String),
    Column("code", String),
    Column("detail", Text),
    # While it is open these two hold what is guessed, for the day the process is killed; then what was booked.
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("source", String),
    Column("completion_bytes", Integer, nullable=False, server_default=text("0")),
    Column("cost", Float),
    Column("currency", String, nullable=False, server_default=text("'USD'")),
    Column("first_delta", Float),
    Column("duration", Float),
)
Index("completions_exchange", completions.c.exchange)
# Begins as an index of that name would, and holds all that days are counted from.
Index(
    "completions_figures",
    *(completions.c[name] for name in ("opened_at", "assistant", "model", "outcome", "source")),
    *(completions.c[name] for name in ("prompt_tokens", "completion_tokens", "cost", "currency")),
)
Index("completions_open", completions.c.owner, sqlite_where=completions.c.outcome.is_(None))
