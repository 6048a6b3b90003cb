"""What dies while a trial runs leaves nothing that stands in the way.

``python -m tests.localcloud.survival`` tries many moments of each death.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.localcloud.survival import CLOUD, survive

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.training,
    pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc"),
]
WHILE_JOBS_TRAIN = 11.0


def test_a_cloud_that_dies_leaves_no_process_and_its_trial_goes_on() -> None:
    """Of a command that dies: test_crash_safety.py of the embedded cloud."""
    assert [] == survive(CLOUD, WHILE_JOBS_TRAIN)
