"""Which evidence documents are read, and what is read of a document that is not valid."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_speed_run, recorded_spend

SPEED_RUN = {"stage": "speed", "block": 0, "job": "s0", "step_seconds": [0.1]}


@pytest.mark.parametrize("steps", ["2000", 2000.0, -1, True])
def test_in_a_jobs_own_output_it_must_be_a_number_of_steps(steps):
    with pytest.raises(InvalidEvidenceError, match=r"s0\.full_run_steps: "):
        read_speed_run({**SPEED_RUN, "full_run_steps": steps}, "s0")

    assert 2000 == read_speed_run({**SPEED_RUN, "full_run_steps": 2000}).full_run_steps


@pytest.mark.parametrize(
    ("text", "spent"),
    [
        ('{"plan": {"spent_usd": 3.5}}', 3.5),
        ('{"plan": {"spent_usd": null}}', None),
        ('{"plan": {"spent_usd": "3.5"}}', None),
        ('{"plan": {"spent_usd": true}}', None),
        ('{"plan": null}', None),
        ('{"plan": []}', None),
        ("{}", None),
    ],
)
def test_what_a_trial_had_spent_is_read_of_any_document(text, spent):
    assert spent == recorded_spend(json.loads(text))
