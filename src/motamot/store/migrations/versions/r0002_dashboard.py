"""What an operator is shown: details and times of an exchange, figures by day, what is to be made searchable."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["downgrade", "upgrade"]

revision = "0002"
down_revision = "0001"

_COST = "(SELECT sum(cost) FROM completions WHERE completions.exchange = exchanges.id)"


def upgrade() -> None:
    """Add columns in place, tables and indexes; the texts become searchable bit by bit, once the store is open."""
    for name in ("first_text", "stop_asked", "stop_closed", "cost"):
        op.add_column("exchanges", sa.Column(name, sa.Float))
    op.execute(f"UPDATE exchanges SET cost = {_COST} WHERE outcome IS NOT NULL")  # noqa: S608 - words of this file
    op.create_index(
        "exchanges_figures",
        "exchanges",
        ["started_at", "outcome", "assistant", "model", "cost", "first_text", "stop_asked", "stop_closed"],
    )
    op.create_index("conversations_visitor", "conversations", ["visitor", "created_at"])
    op.create_index("exchanges_with_text", "exchanges", ["started_at"], sqlite_where=sa.text("question IS NOT NULL"))
    op.drop_index("completions_opened_at", "completions")
    op.create_index(
        "completions_figures",
        "completions",
        [
            "opened_at",
            "assistant",
            "model",
            "outcome",
            "source",
            "prompt_tokens",
            "completion_tokens",
            "cost",
            "currency",
        ],
    )
    op.create_table(
        "details",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("times", sa.LargeBinary, nullable=False),
        sa.Column("events", sa.LargeBinary, nullable=False),
        sa.Column("sent", sa.Integer),
    )
    op.create_table("unsearchable", sa.Column("number", sa.Integer, primary_key=True, autoincrement=False))
    op.execute(
        "INSERT INTO unsearchable SELECT number FROM exchanges WHERE outcome IS NOT NULL AND question IS NOT NULL"
    )
    op.create_table(
        "past_days",
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("figures", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """What 0.1 has no place for would be lost: refuse."""
    raise NotImplementedError("0.1 has no place for the details; keep a copy of the file instead")
