"""The first tables. Frozen: it does not follow `schema.py`, it is what 0.1 made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["downgrade", "upgrade"]

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "owners",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started", sa.String, nullable=False),
        sa.Column("renewals", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("opened_at", sa.Float, nullable=False),
        sa.Column("renewed_at", sa.Float, nullable=False),
    )
    op.create_table(
        "conversations",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("assistant", sa.String, nullable=False),
        sa.Column("visitor", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("deleted_at", sa.Float),
    )
    op.create_table(
        "exchanges",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("conversation", sa.String, sa.ForeignKey("conversations.id"), nullable=False),
        sa.Column("assistant", sa.String, nullable=False),
        sa.Column("visitor", sa.String, nullable=False),
        sa.Column("key", sa.String),
        sa.Column("body_hash", sa.String),
        sa.Column("question", sa.Text),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("replaces", sa.String),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("outcome", sa.String),
        sa.Column("code", sa.String),
        sa.Column("by", sa.String),
        sa.Column("message", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("events", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("sent", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("seen", sa.Integer),
        sa.Column("marks", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("generated", sa.Text),
        sa.Column("shown", sa.Text),
        sa.UniqueConstraint("visitor", "key", name="exchanges_visitor_key"),
    )
    op.create_index("exchanges_conversation", "exchanges", ["conversation"])
    op.create_index("exchanges_open", "exchanges", ["owner"], sqlite_where=sa.text("outcome IS NULL"))
    op.create_table(
        "boundaries",
        sa.Column("exchange", sa.String, primary_key=True),
        sa.Column("first_event", sa.Integer, primary_key=True),
        sa.Column("pairs", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "completions",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("exchange", sa.String, sa.ForeignKey("exchanges.id"), nullable=False),
        sa.Column("assistant", sa.String, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("model_reported", sa.String, nullable=False, server_default=sa.text("''")),
        sa.Column("opened_at", sa.Float, nullable=False),
        sa.Column("closed_at", sa.Float),
        sa.Column("outcome", sa.String),
        sa.Column("finish", sa.String),
        sa.Column("code", sa.String),
        sa.Column("detail", sa.Text),
        sa.Column("prompt_tokens", sa.Integer),
        sa.Column("completion_tokens", sa.Integer),
        sa.Column("cached_tokens", sa.Integer),
        sa.Column("reasoning_tokens", sa.Integer),
        sa.Column("source", sa.String),
        sa.Column("completion_bytes", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("cost", sa.Float),
        sa.Column("currency", sa.String, nullable=False, server_default=sa.text("'USD'")),
        sa.Column("first_delta", sa.Float),
        sa.Column("duration", sa.Float),
    )
    op.create_index("completions_exchange", "completions", ["exchange"])
    op.create_index("completions_opened_at", "completions", ["opened_at"])
    op.create_index("completions_open", "completions", ["owner"], sqlite_where=sa.text("outcome IS NULL"))


def downgrade() -> None:
    """Nothing is older: refuse rather than throw the books away."""
    raise NotImplementedError("the first revision cannot be undone; delete the file instead")
