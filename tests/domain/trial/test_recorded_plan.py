"""A recorded plan is read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from compilegate.domain.decision import CANARY
from compilegate.domain.trial.plan import QualityMode, read_plan
from tests.domain.trial.plans import plan


def document(**changes: Any) -> dict[str, Any]:
    return {**asdict(plan("baseline", "compile")), "quotas": [], **changes}


def test_a_later_releases_further_fields_are_left_out() -> None:
    mode = QualityMode(CANARY, CANARY, beside=True)
    arms = [{**arm, "of_a_later_release": 1} for arm in document()["arms"]]
    later = {**asdict(mode), "of_a_later_release": 1}

    assert plan("baseline", "compile", quality_mode=mode) == read_plan(
        document(arms=arms, quality_mode=later, of_a_later_release=1)
    )
