"""What ``run`` says of a trial that production had a part in."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.cli.common.figures import full_run_words

FOUND: dict[str, Any] = {
    "made_by": "production, as it trains anyway (canary)",
    "extra": {"runs": 0, "usd": 0.0, "gpu_hours": 0.0},
    "carried": {"runs": 4, "usd": 80.0, "gpu_hours": 32.0},
    "exposed": "2 models of a candidate made in production, held back until the verdict",
}


def test_it_says_who_made_them_what_was_extra_and_what_was_exposed() -> None:
    assert (
        "made by production, as it trains anyway (canary); extra $0.00, 0 GPU-hours; 2 models of a "
        "candidate made in production, held back until the verdict"
    ) == full_run_words(FOUND)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, ""),
        (
            {**FOUND, "made_by": "the trial", "extra": {"runs": 4, "usd": None, "gpu_hours": None},
             "carried": {"runs": 0}},
            "made by the trial; extra –, – GPU-hours",  # noqa: RUF001
        ),
    ],
)  # fmt: skip
def test_what_production_had_no_part_in_is_told_shortly(found: Any, words: str) -> None:
    assert words == full_run_words(found)
