"""Commands and clouds that die while a trial runs leave nothing that stands in the way.

``python -m tests.localcloud.survival`` tries many moments of each death.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.localcloud.survival import survive

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.training,
    pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc"),
]
WHILE_JOBS_TRAIN = 11.0
SAMPLE = ("command SIGKILL", "cloud SIGKILL")


@pytest.mark.parametrize("name", SAMPLE)
def test_what_dies_leaves_no_process_and_what_was_recorded(name: str) -> None:
    assert [] == survive(name, WHILE_JOBS_TRAIN)
