"""What `bench.relay` measures over HTTP: the relays, and the load that is put on them."""
