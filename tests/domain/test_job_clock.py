"""A job's own clock is compared with the service's; only what no job can do contradicts it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.job_output import CODE, check_run, check_steps, trained_seconds

BEGAN = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = 3600.0


def described(seconds: float = 6 * HOUR, *, start_up: float = 300.0, **more: Any) -> dict[str, Any]:
    """A job of so many seconds, of which ``start_up`` pass before its container runs."""
    phases = [
        ("Starting", -600.0, 0.0), ("Downloading", 0.0, start_up),
        ("Training", start_up, seconds - 60), ("Uploading", seconds - 60, seconds),
    ]  # fmt: skip
    return {
        "TrainingJobName": "j",
        "CreationTime": BEGAN - timedelta(seconds=600),
        "TrainingStartTime": BEGAN,
        "TrainingEndTime": BEGAN + timedelta(seconds=seconds),
        "TrainingTimeInSeconds": round(seconds),
        "BillableTimeInSeconds": round(seconds),
        "SecondaryStatusTransitions": [
            {
                "Status": name,
                "StartTime": BEGAN + timedelta(seconds=began),
                "EndTime": BEGAN + timedelta(seconds=ended),
            }
            for name, began, ended in phases
        ],
        **more,
    }


def accepted(job: dict[str, Any], wall: float | None, **record: Any) -> bool:
    try:
        check_run(job, wall, record)
    except InvalidEvidenceError as error:
        assert CODE == error.code
        return False
    return True


@pytest.mark.parametrize("wall", [1e-300, 1e-9, 0.009, 1.0, 100.0, 6.2 * HOUR, 1e9])
def test_a_clock_that_no_job_of_six_hours_can_have_is_refused(wall):
    assert not accepted(described(), wall)


@pytest.mark.parametrize("wall", [None, 600.0, HOUR, 5.8 * HOUR, 6 * HOUR, 6 * HOUR + 30])
def test_start_up_transfers_and_rounding_are_no_contradiction(wall):
    assert accepted(described(), wall)


@pytest.mark.parametrize(
    "lacking", [{}, {"TrainingTimeInSeconds": None}, {"TrainingEndTime": "now"}]
)
def test_what_the_service_does_not_say_is_not_compared(lacking):
    job = {**described(), "SecondaryStatusTransitions": None, **lacking} if lacking else {}

    assert accepted(job, 5 * HOUR)


def test_steps_cannot_take_longer_than_their_run():
    curve = [[1, 2.0, 1.0], [9, 1.0, 2 * HOUR]]

    assert not accepted({}, HOUR, seconds=2 * HOUR)
    assert not accepted({}, HOUR, loss_curve=curve)
    assert accepted({}, HOUR, seconds=HOUR, loss_curve=curve[:1])


@pytest.mark.parametrize(
    ("seconds", "shortest", "plausible"),
    [(HOUR, 1e-3, True), (6 * HOUR, math.inf, True), (7 * HOUR, 0.4, False), (1.0, 1e-7, False)],
)
def test_segments_fit_into_their_job(seconds, shortest, plausible):
    if plausible:
        check_steps(described(), seconds, shortest=shortest)
        return
    with pytest.raises(InvalidEvidenceError) as caught:
        check_steps(described(), seconds, shortest=shortest)
    assert CODE == caught.value.code


def test_the_container_trained_as_long_as_the_service_says_if_it_did_once():
    whole = described(1000.0, start_up=300.0)
    twice = described(SecondaryStatusTransitions=[*whole["SecondaryStatusTransitions"]] * 2)

    assert 640.0 == trained_seconds(whole)
    assert (None, None) == (trained_seconds(twice), trained_seconds({}))
