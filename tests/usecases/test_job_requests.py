"""A trial whose jobs SageMaker would refuse ends at planning, with field, value and fix."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain.planning.arms import Refusal
from compilegate.domain.planning.plan import Plan
from compilegate.domain.workload.model import Candidate
from compilegate.ports import Services
from compilegate.usecases.trial.plan_trial import plan_for, plan_trial
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import EVENT, put_spec

# Each fits by itself, all of an arm's in a speed job's one value do not.
TOO_MUCH_TOGETHER = {f"h{n}": "x" * 900 for n in range(3)}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"training__hyperparameters": {"prompt": "x" * 2600}}, "training.hyperparameters.prompt"),
        ({"training__hyperparameters": {f"h{n}": n for n in range(101)}},
         "training.hyperparameters"),
        ({"training__hyperparameters": TOO_MUCH_TOGETHER}, "training.hyperparameters.h0"),
        ({"training__environment": {"A-B": "1"}}, "training.environment"),
        ({"training__environment": {"A": "x" * 513}}, "training.environment"),
        ({"training__inputs": {"my data": "s3://corpus/k/"}}, "training.inputs"),
        ({"training__inputs": {f"c{n}": "s3://corpus/k/" for n in range(21)}}, "training.inputs"),
        ({"tags": {"a&b": "c"}}, "tags or owner"),
        ({"tags": {"cost": "x" * 257}}, "tags or owner"),
        ({"tags": {f"t{n}": "v" for n in range(45)}}, "tags or owner"),
        ({"tags": {"aws:mine": "v"}}, "tags.aws:mine"),
        ({"owner": "me & you"}, "tags or owner"),
        ({"quality__metric": "m" * 256}, "quality.metric"),
    ],
)  # fmt: skip
def test_what_the_service_would_refuse_is_refused_at_planning(
    services: Services, changes: dict[str, Any], field: str
) -> None:
    """The parser refuses much of it earlier; the plan relies on no parser."""
    refused = plan_for(change(SOUND, **changes), services.settings)

    assert isinstance(refused, Refusal)
    assert "request_refused" == refused.reason.code
    assert refused.reason.message.startswith(f"{field}: ")
    assert "Fix: " in refused.reason.message


def test_the_refusal_is_recorded_before_anything_is_spent(services: Services) -> None:
    put_spec(services, change(SOUND, training__hyperparameters=TOO_MUCH_TOGETHER))
    answer = plan_trial(EVENT, services=services)

    assert ("inconclusive", None) == (answer["verdict"], answer["plan_key"])
    (reason,) = json.loads(services.store.get(answer["decision_key"]))["reasons"]
    assert "request_refused" == reason["code"]
    assert "as a speed job carries them" in reason["message"]


def test_a_candidate_whose_flag_could_not_be_written_is_refused_at_planning(
    services: Services,
) -> None:
    hyperparameters = {"mp_parameters": json.dumps({"a": "x" * 2450}), "prompt": "x" * 1500}
    wide = Candidate("wide", compiler="torch_compile", hyperparameters=hyperparameters)
    refused = plan_for(change(SOUND, candidates=(wide,)), services.settings)

    assert isinstance(refused, Refusal)
    assert "flag_too_large" == refused.reason.code
    assert refused.reason.message.startswith("candidates (wide): has changes whose flag is larger")
    assert "Fix: " in refused.reason.message


def test_what_fits_just_so_is_planned(services: Services) -> None:
    changes = {
        "tags": {f"t{n}": "v" * 256 for n in range(43)},
        "training__hyperparameters": {"prompt": "x" * 1500},
        "training__environment": {"A": "x" * 512},
        "training__inputs": {"train": "data/train", "validation": "s3://corpus/val/"},
        "training__spot": True,
    }

    assert isinstance(plan_for(change(SOUND, **changes), services.settings), Plan)
