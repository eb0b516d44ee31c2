"""Numbered migrations: each ran or did not. Run by `motamot.store.database`, never by hand."""
