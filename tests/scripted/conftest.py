"""Property tests are bounded by the time limit of a test: the machine may be busy with something else."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("busy-machine", deadline=None)
settings.load_profile("busy-machine")
