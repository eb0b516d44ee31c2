"""Run by Alembic with a connection that already holds the write lock: migrating is one transaction, or nothing."""

from __future__ import annotations

from alembic import context

from motamot.store.schema import VERSION_TABLE, metadata

__all__: list[str] = []

if __name__ == "env_py":  # the name Alembic loads it under: importing it otherwise must do nothing
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        render_as_batch=True,  # SQLite cannot alter a column in place
    )
    context.run_migrations()
