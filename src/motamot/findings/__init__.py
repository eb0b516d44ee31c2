"""What a tape shows to be wrong: pure functions from a tape to findings."""

from motamot.findings.finding import Evidence, Fault, Finding, Level, Promise

__all__ = ["Evidence", "Fault", "Finding", "Level", "Promise"]
