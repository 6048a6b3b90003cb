"""Runs that a watch cannot judge: never the end of it, never a proof, told once."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.usecases.production.story import story_of
from tests.usecases.production_builder import WORKLOAD, night, promote


@pytest.mark.parametrize("arm", ["baseline", "compile"])
@pytest.mark.parametrize("seconds", [0, -1, None, "abc"])
def test_a_job_without_a_duration_does_not_break_the_story(
    services: Any, arm: str, seconds: Any
) -> None:
    promote(services)
    night(services, 1, arm, wall_seconds=seconds)
    night(services, 2)

    assert "compile" in story_of(WORKLOAD, services).html
