"""The books: conversations, transcripts, and a ledger in which every completion stands exactly once."""
