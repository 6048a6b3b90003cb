"""The temporary stack of a verification, from temporary.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from compilegate.domain import naming
from compilegate.verify.jobs import WORKLOAD
from stacks.states import load_request, train

FILE = Path(__file__).with_name("temporary.yaml")


def stack_name(trial: str) -> str:
    """Name of the stack, and of the state machine in it."""
    return f"compilegate-verify-{trial}"


def template(*, trial: str, bucket: str, role_arn: str) -> str:
    """The CloudFormation template; ``role_arn`` is the deployed trial machine's own role."""
    document: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    properties = {name: one["Properties"] for name, one in document["Resources"].items()}
    properties["Machine"]["RoleArn"] = role_arn
    properties["Machine"]["DefinitionString"] = {"Fn::Sub": json.dumps(_training(bucket))}
    prefix = naming.trial_job_prefix(WORKLOAD, trial)
    properties["JobEvents"]["EventPattern"]["detail"]["TrainingJobName"] = [{"prefix": prefix}]
    return json.dumps(document)


def _training(bucket: str) -> dict[str, Any]:
    """The two states that every deployed machine starts its jobs with, without their retries."""
    state = train(then="Done", catches=[])
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "LoadRequest",
        "States": {
            "LoadRequest": load_request(bucket, then="Train"),
            "Train": {key: value for key, value in state.items() if key not in ("Retry", "Catch")},
            "Done": {"Type": "Succeed"},
        },
    }
