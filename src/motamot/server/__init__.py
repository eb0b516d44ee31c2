"""The server's half: ASGI routes, guards and pages around the exchange."""
