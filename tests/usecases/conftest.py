"""Services in memory that hold one registered workload."""

from __future__ import annotations

from typing import Any

import pytest

from tests import fakes
from tests.domain.workload_builder import SOUND
from tests.usecases.trial_builder import put_spec


@pytest.fixture
def services() -> Any:
    made = fakes.services("prod")
    put_spec(made, SOUND)
    return made
