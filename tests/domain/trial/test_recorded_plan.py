"""A recorded plan of any release is read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from compilegate.domain.decision import CANARY
from compilegate.domain.trial.plan import EXTRA_RUNS, QualityMode, read_plan
from tests.domain.trial.plans import plan


def document(**changes: Any) -> dict[str, Any]:
    recorded = asdict(plan("baseline", "compile"))
    return {**{key: value for key, value in recorded.items() if key != "quotas"}, **changes}


def test_a_later_releases_further_fields_are_left_out() -> None:
    mode = QualityMode(CANARY, CANARY, beside=True)
    arms = [{**arm, "of_a_later_release": 1} for arm in document()["arms"]]
    later = {**asdict(mode), "of_a_later_release": 1}

    assert plan("baseline", "compile", quality_mode=mode) == read_plan(
        document(arms=arms, quality_mode=later, of_a_later_release=1)
    )


def test_a_plan_that_names_no_mode_makes_its_own_full_runs() -> None:
    assert EXTRA_RUNS == read_plan(document(quality_mode=None)).quality_mode
