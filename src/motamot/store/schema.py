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

__all__ = ["REVISION", "VERSION_TABLE", "boundaries", "completions", "conversations", "exchanges", "metadata", "owners"]

REVISION = "0001"
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
    Column("question", Text),  # None: its conversation was deleted, no text may be written here any more
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
    UniqueConstraint("visitor", "key", name="exchanges_visitor_key"),
)
Index("exchanges_conversation", exchanges.c.conversation)
Index("exchanges_open", exchanges.c.owner, sqlite_where=exchanges.c.outcome.is_(None))

boundaries = Table(
    "boundaries",
    metadata,
    Column("exchange", String, primary_key=True),
    Column("first_event", Integer, primary_key=True),
    Column("pairs", LargeBinary, nullable=False),  # (event number, characters up to and with it), unsigned 32 bit, LE
    sqlite_with_rowid=False,
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
Index("completions_opened_at", completions.c.opened_at)
Index("completions_open", completions.c.owner, sqlite_where=completions.c.outcome.is_(None))
