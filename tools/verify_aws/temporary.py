"""What a verification creates for a while: its stack, from temporary.yaml; and its removal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError

from compilegate.adapters.state_machines import StepFunctionsExecutions
from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError
from compilegate.ports import ObjectStore
from stacks.states import load_request, train
from tools.verify_aws.account import Account
from tools.verify_aws.jobs import WORKLOAD

FILE = Path(__file__).with_name("temporary.yaml")
ERRORS = (BotoCoreError, ClientError, CompilegateError, OSError)
PREFIXES = (
    f"{naming.EXPERIMENTS_PREFIX}{WORKLOAD}/",
    f"{naming.WORKLOADS_PREFIX}{WORKLOAD}/",
    naming.compile_cache_prefix(WORKLOAD),
)


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


def clean_up(
    account: Account,
    store: ObjectStore,
    trial: str,
    machines: Mapping[str, StepFunctionsExecutions],
    *,
    stop_seconds: float,
    job_role: str,
) -> list[str]:
    """Stop executions and jobs, then remove stack, role and objects; one failure stops no other.

    ``machines`` are the temporary ones, by name; ``stop_seconds`` is how long jobs may take to
    stop. Ctrl-C ends the step that it meets, and none of the others. Returns what could not be
    removed.
    """
    name, prefix = stack_name(trial), naming.trial_job_prefix(WORKLOAD, trial)
    jobs = (f"training jobs {prefix}*", partial(_stop_jobs, account, prefix, stop_seconds))
    steps: list[tuple[str, Callable[[], bool]]] = [
        *((f"executions of {one}", partial(_stop_executions, of)) for one, of in machines.items()),
        jobs,
        (f"stack {name}", partial(account.delete_stack, name)),
        (f"the role of {WORKLOAD}", partial(account.delete_role, job_role)),
        jobs,  # once more: one may have been created while its execution was being stopped
        *(
            (f"s3://{store.bucket}/{prefix}", partial(account.delete, store.bucket, prefix))
            for prefix in PREFIXES
        ),
    ]
    left = []
    for what, remove in steps:
        try:
            if not remove():
                left.append(what)
        except ERRORS as error:
            left.append(f"{what} ({error})")
        except KeyboardInterrupt:
            left.append(f"{what} (interrupted)")
    return left


def _stop_executions(executions: StepFunctionsExecutions) -> bool:
    for arn in executions.running_arns():
        executions.stop(arn, "the verification has ended")
    return True


def _stop_jobs(account: Account, prefix: str, seconds: float) -> bool:
    """Whether no job is in progress any more."""

    def stopped() -> bool:
        unfinished = account.jobs.unfinished(prefix, account.since)
        for name in unfinished:
            account.jobs.stop(name)
        return not unfinished

    return account.wait_for(stopped, seconds)
