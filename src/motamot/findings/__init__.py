"""What a tape shows to be wrong: pure functions from a tape to findings."""

from motamot.findings.examine import Examination, Times, examine
from motamot.findings.finding import Evidence, Fault, Finding, Level, Promise
from motamot.findings.recognise import PROTOCOLS, Recognised

__all__ = [
    "PROTOCOLS",
    "Evidence",
    "Examination",
    "Fault",
    "Finding",
    "Level",
    "Promise",
    "Recognised",
    "Times",
    "examine",
]
