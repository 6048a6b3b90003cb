"""The state machines, synthesised once for the tests of this folder."""

import pytest

from tests.asl.definitions import synthesised
from tests.asl.recordings import read


@pytest.fixture(scope="session")
def definitions():
    return synthesised()


@pytest.fixture(scope="session")
def recorded():
    return read()
