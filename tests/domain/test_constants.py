"""Constants by which other tests count: who changes one sees it here, not in a dozen tests."""

from __future__ import annotations

import pytest

from compilegate.domain import claims, codec, flag_change, job_output, outside
from compilegate.domain.judging import design
from compilegate.domain.planning import estimate, rounds
from compilegate.domain.production import attempts, history, probation
from compilegate.domain.records import trials
from compilegate.domain.workload import model

CONSTANTS = [
    (attempts, {"FIRST_SECONDS": 300, "RUN_SECONDS": 90 * 86_400}),
    (claims, {"BYTES_MAX": 65_536, "SUBJECT_MAX": 99, "TEXT_MAX": 4000}),
    (codec, {"SIGNIFICANT_DIGITS": 10}),
    (design, {"LONGEST_SHADOW": 36}),
    (estimate, {"MOST_AT_ONCE": 40, "STARTUP_HOURS": 0.05}),
    (flag_change, {"AGAIN_SECONDS": 600, "LONGEST_REASON": 500}),
    (history, {"DAY_SECONDS": 86_400}),
    (job_output, {"LARGEST_RUN": 100_000}),
    (model, {"MIN_RUNTIME_SECONDS": 900}),
    (outside, {"REASON_MAX": 1000, "VALUE_MAX": 4096}),
    (probation, {"UNTREATED": 2}),
    (rounds, {"MOST_WITHOUT_RESULT": 3}),
    (trials, {"WAIT_SECONDS": 30 * 86_400}),
]


@pytest.mark.parametrize(("module", "values"), CONSTANTS)
def test_a_constant_has_the_value_that_tests_count_with(module, values):
    assert values == {name: getattr(module, name) for name in values}
