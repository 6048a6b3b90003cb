"""What every step asks SageMaker: for jobs by their names, and for no list of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.sagemaker import SageMakerJobs
from compilegate.domain.production.orphans import ExecutionEnd
from lambdas.handlers import STEPS
from tests.fakes import MemoryJobs, start_job
from tests.frozen import entries
from tests.frozen.machines import NAME, SPEC_KEY, TRIAL, World
from tests.frozen.scenarios import workload
from tests.frozen.steps import SCENARIOS

# Between them these call every step, and meet jobs that crash, wait, are stopped and left.
TOLD = (
    "promote", "full runs without quota", "approved", "canary", "aborted",
    "production waits once", "production crashes", "team", "weekly",
)  # fmt: skip
DESCRIBES, STOPS, TAGS = "describe_training_job", "stop_training_job", "add_tags"
LISTS_TAGS = "list_tags"
CALLS = {
    "on_job_ended": {DESCRIBES, STOPS},
    "judge_arms": {DESCRIBES, STOPS},
    "release_models": {DESCRIBES, TAGS},
    "abort_trial": {DESCRIBES, STOPS},
    "record_run": {DESCRIBES, LISTS_TAGS},
    "sweep": {DESCRIBES, LISTS_TAGS, STOPS},
}


class SageMaker:
    """A client that keeps what is asked of it, on jobs in memory."""

    def __init__(self, jobs: MemoryJobs, asked: list[str]) -> None:
        self._jobs, self._asked = jobs, asked

    def describe_training_job(self, *, TrainingJobName: str) -> Any:  # noqa: N803
        self._asked.append(DESCRIBES)
        if TrainingJobName not in self._jobs.descriptions:
            error = {"Code": "ValidationException", "Message": "Requested resource not found."}
            raise ClientError({"Error": error}, "DescribeTrainingJob")
        return {"TrainingJobArn": TrainingJobName, **self._jobs.descriptions[TrainingJobName]}

    def stop_training_job(self, *, TrainingJobName: str) -> None:  # noqa: N803
        self._asked.append(STOPS)
        self._jobs.stop(TrainingJobName)

    def add_tags(self, *, ResourceArn: str, Tags: Any) -> None:  # noqa: N803
        self._asked.append(TAGS)
        self._jobs.tag(_job(ResourceArn), {tag["Key"]: tag["Value"] for tag in Tags})

    def get_paginator(self, operation: str) -> Any:
        self._asked.append(operation)
        return self

    def paginate(self, *, ResourceArn: str) -> Iterator[Any]:  # noqa: N803 - of ListTags alone
        yield {"Tags": self._jobs.descriptions[_job(ResourceArn)].get("Tags", [])}


def _job(arn: str) -> str:
    return arn.rpartition("/")[2]


class Jobs(SageMakerJobs):
    """The adapter, with what tests put into the jobs in memory."""

    def __init__(self, memory: MemoryJobs, asked: list[str]) -> None:
        super().__init__(SageMaker(memory, asked))
        self.descriptions, self.add = memory.descriptions, memory.add


def in_progress(step: str) -> None:
    """A trial was stopped in its first round, of which a first try trains unheard of."""
    made = World(workload())
    made.evaluate(rounds=1)
    services, run = made.cloud.services, "s0"
    trial = {"workload": NAME, "trial": TRIAL, "spec_key": SPEC_KEY}
    execution = services.locks.holder(NAME)
    job = start_job(services, NAME, TRIAL, run, started=float(services.clock.seconds))
    tags = {"workload": NAME, "execution": execution, "stage": "speed"}
    services.jobs.descriptions[job]["CreationTime"] = datetime.fromtimestamp(0, tz=UTC)
    services.jobs.tag(job, {f"compilegate:{name}": value for name, value in tags.items()})
    detail = {"executionArn": execution, "status": "ABORTED", "input": json.dumps(trial)}
    services.ends[execution] = ExecutionEnd("ABORTED", services.clock.seconds, detail)
    made.passes(7200)
    ended = {"run": run, "job": job.replace("-r0", "-r1"), "error": "E", "cause": "no answer"}
    given = {
        "on_job_ended": {**trial, **ended, "runs": [{"run": run}]},
        "judge_arms": {**trial, "round": 1, "runs": [
            {**ended, "status": "Failed", "infrastructure": True},
        ]},
        "abort_trial": {"detail": detail},
    }  # fmt: skip
    made.step(step, **given.get(step, {}))

    assert services.jobs.descriptions[job]["TrainingJobStatus"] == "Stopped"


def test_no_step_lists_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, by_step = list[str](), defaultdict[str, set[str]](set)
    cloud, call = entries.cloud, entries.step

    def watched() -> Any:
        made = cloud()
        jobs = Jobs(made.services.jobs, asked)
        return replace(made, services=replace(made.services, jobs=jobs))

    def counted(name: str, *arguments: Any) -> Any:
        asked.clear()
        try:
            return call(name, *arguments)
        finally:
            by_step[name].update(asked)

    monkeypatch.setattr(entries, "cloud", watched)
    monkeypatch.setattr(entries, "step", counted)
    for name in TOLD:
        made = SCENARIOS[name]()
    keys = {"pk": {"S": f"workload#{NAME}"}, "sk": {"S": "run#0"}}
    made.step("project", Records=[{"dynamodb": {"Keys": keys, "SequenceNumber": "1"}}])
    for step in ("on_job_ended", "judge_arms", "abort_trial", "sweep"):
        in_progress(step)

    assert {*STEPS} == {*by_step}
    assert CALLS == {name: calls for name, calls in by_step.items() if calls}
