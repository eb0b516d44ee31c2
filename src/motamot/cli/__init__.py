"""The `motamot` command: one file per subcommand."""
