"""`python -m tests.exam.again 20`: the examination of the honest chatbot and of each broken one, so many times.

A false alarm (the honest one fails somewhere) or a miss (a broken one passes where it is broken) is told, and the exit
status is 1. `make release-check` does so before a release; in the suite one round is run (`test_exam.py`), under load,
too: `--busy N` keeps N processes of this machine busy meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time

from motamot.exam.case import cases
from motamot.exam.judging import Passed
from motamot.exam.presets import PRESETS
from tests.exam.chatbots import BROKEN, Chatbot
from tests.exam.load import busy
from tests.exam.test_exam import examined, front


async def once(broken: list[str]) -> list[str]:
    """One round. Returns: what went wrong in it."""
    wrong: list[str] = []
    back = [case for case in cases() if "reconnect" in case.needs]
    for name, path, chosen in (("openai", "/v1/chat/completions", cases()), ("ui-message", "/ui-message", back)):
        wrong += (
            f"false alarm: {one.case.number} {one.passed}: {'; '.join(one.problems) or one.reason}"
            for one in await examined(Chatbot, PRESETS[name], path, chosen)
            if one.passed in (Passed.FAILED, Passed.COULD_NOT_RUN)
        )
    for name in broken:
        make, numbers = BROKEN[name]
        preset, path = front(name)
        wrong += (
            f"miss: {name!r}, {one.case.number} {one.passed} {one.reason}"
            for one in await examined(make, preset, path, [case for case in cases() if case.number in numbers])
            if one.passed is not Passed.FAILED
        )
    return wrong


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.exam.again", description=__doc__)
    parser.add_argument("times", type=int)
    parser.add_argument("--busy", type=int, default=0, metavar="N")
    told = parser.parse_args()
    failed = 0
    with busy(told.busy):
        for number in range(1, told.times + 1):
            began = time.monotonic()
            wrong = asyncio.run(once(list(BROKEN)))
            failed += bool(wrong)
            became = "as it should be" if not wrong else "WRONG"
            load = os.getloadavg()[0]
            print(f"run {number}: {became}, {time.monotonic() - began:.0f} s, load {load:.1f}", flush=True)
            for line in wrong:
                print(f"  {line}", flush=True)
    print(f"{told.times - failed} of {told.times} runs without a false alarm and without a miss")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
