"""The running exchange: one user message and everything done to answer it."""
