"""Which promotion a flag stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.flag import OFF, Flag
from compilegate.domain.production.history import standing_promotion
from compilegate.domain.records.flags import FlagVersion

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
KEPT = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d2")
OTHER = Flag(True, "probation", "fp8", {"precision": "fp8"}, "d3")


def entry(at: int, flag: Flag, by: str = "evaluate", trial: str | None = "abcd1234") -> Any:
    details = {"trial": trial} if trial else {}
    return FlagVersion(at, at, f"c{at}", by, "a", "r", flag.to_json(), details=details)


PROMOTED = entry(1, ON)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [PROMOTED, entry(2, Flag(False, "reverted", "compile"), "train")],
        [PROMOTED, entry(2, OTHER, "human:ann", None)],
        [PROMOTED, entry(2, replace(ON, enabled=False, state="stale"), "train")],
        [entry(1, Flag(True, "permanent"))],
    ],
    ids=[
        "never on",  "reverted",  "another by hand", "stale",
        "without a candidate",
    ],
)  # fmt: skip
def test_what_is_off_or_no_trial_proved_is_no_promotion(history):
    assert None is standing_promotion(history)


@pytest.mark.parametrize(
    ("history", "trial", "candidate", "at", "since", "by_human"),
    [
        ([PROMOTED, entry(5, KEPT, "train"), entry(7, KEPT, "train")],
         "abcd1234", "compile", 1, 5, False),
        ([PROMOTED, entry(4, OTHER, trial="newer123")], "newer123", "fp8", 4, 1, False),
        ([PROMOTED, entry(2, OFF, "human:ann", None), entry(3, ON, "human:ann")],
         "abcd1234", "compile", 3, 3, True),
        ([PROMOTED, entry(2, replace(ON, enabled=False, state="stale")), entry(3, ON, "train")],
         "abcd1234", "compile", 1, 3, False),
    ],
    ids=[
        "changed by the review", "a later trial's", "turned on by a person",
        "resumed by the review",
    ],
)  # fmt: skip
def test_a_promotion_is_of_the_trial_that_measured_it(
    history, trial, candidate, at, since, *, by_human
):
    promotion = standing_promotion(history)

    assert (trial, candidate, at, since, by_human, len(history)) == (
        promotion.trial, promotion.candidate, promotion.at, promotion.since, promotion.by_human,
        promotion.version,
    )  # fmt: skip
