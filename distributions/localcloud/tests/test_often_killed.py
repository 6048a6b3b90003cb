"""``python -m distributions.localcloud.tests.often_killed`` kills many."""

from pathlib import Path

import pytest

from distributions.localcloud.tests.often_killed import wrong_after

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc"),
]


def test_a_cloud_that_is_killed_again_and_again_loses_no_write_and_ends_its_executions() -> None:
    assert [] == list(wrong_after(3, 1))
