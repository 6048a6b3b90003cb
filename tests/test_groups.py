"""That tests which share what they start run on one process, see `conftest.py` above."""

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="the tests are not spread")
def test_the_process_is_chosen_by_group(request):
    """Releases of pytest and pytest-xdist that disagree drop the group without a word."""
    assert request.node.nodeid.endswith("@tests/test_groups.py")
