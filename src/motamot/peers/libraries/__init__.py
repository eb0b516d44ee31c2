"""Ports of client libraries from PyPI and npm, which read as the originals do without them.

Tests hold each against its original on ten thousand random streams.
"""
