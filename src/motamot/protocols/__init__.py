"""One file per protocol: how its clients ask, the writer, the reader, and what it cannot carry."""
