"""What TRAIN makes of its input, as deployed: whoever starts it, and whatever they leave out."""

from __future__ import annotations

import pytest

from compilegate.domain import naming
from stacks.functions import STEPS
from stacks.train import definition
from tests.localcloud.state_language_cases import jsonata

pytestmark = pytest.mark.e2e

FUNCTIONS = {step.name: f"arn:aws:lambda:us-east-1:111122223333:{step.name}" for step in STEPS}
BEGIN = definition(FUNCTIONS, bucket="data", topic_arn="arn:aws:sns:us-east-1:1:t")["States"][
    "Begin"
]
KNOWN = ("workload", "team_job", "scheduled", "first_wait")
TAGGED = {"TrainingJobName": "nightly", "Tags": {naming.TAG_WORKLOAD: "bert-docs"}}


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"workload": "bert-docs"}, ("bert-docs", None, None, None)),
        (
            {"workload": "bert-docs", "scheduled": "2026-11-20T02:00:00Z", "wait_seconds": 0},
            ("bert-docs", None, "2026-11-20T02:00:00Z", 0),
        ),
        ({"workload": "bert-docs", "job": "nightly"}, ("bert-docs", "nightly", None, None)),
        ({"detail": TAGGED}, ("bert-docs", "nightly", None, None)),
        ({"detail": {**TAGGED, "Tags": {}}}, (None, "nightly", None, None)),
        ({"detail": {"TrainingJobName": "nightly"}}, (None, "nightly", None, None)),
        ({}, (None, None, None, None)),
    ],
    ids=["train", "schedule", "by hand", "event", "no workload tag", "no tags", "nothing"],
)
def test_what_is_not_given_is_null_and_ends_nothing(machines, given, known):
    states = {
        "Begin": {**BEGIN, "Next": "Done"},
        "Done": {"Type": "Succeed", "Output": {name: f"{{% ${name} %}}" for name in KNOWN}},
    }
    found = machines.run(jsonata({"StartAt": "Begin", "States": states}), given)

    assert dict(zip(KNOWN, known, strict=True)) == found["out"]
