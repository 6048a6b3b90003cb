"""The state machines, synthesised once for the tests of this folder."""

import pytest

from tests.asl.definitions import synthesised


@pytest.fixture(scope="session")
def definitions():
    return synthesised()
