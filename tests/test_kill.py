"""kill -9 at random moments under load: nothing is booked twice, nothing is lost, nothing stays open."""

from __future__ import annotations

import pytest

from tests.kill import run


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_after_any_kill_every_request_is_booked_once_and_at_most_a_second_of_shown_text_is_lost() -> None:
    found = run(200)
    assert not found.faults
    assert found.rounds == 200
    assert found.requests > 2000
    assert found.outcomes["interrupted"] > 200, "the kills came in the middle of answers"
    assert found.longest_sweep < 2
    assert 0 < found.most_lost <= 1
