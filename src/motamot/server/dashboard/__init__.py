"""The operator's pages at /dashboard: made on the server, without a script, behind the operator's key."""
