"""The world's writers, readers and chunkers of answers, as ports that run without them."""

from motamot.peers.base import Chunker, Got, PeerReader, PeerWriter, Step

__all__ = ["Chunker", "Got", "PeerReader", "PeerWriter", "Step"]
