"""Trials and months of production to be played through, each with something else about it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from itertools import count
from typing import Any

from tests.frozen.jobs import Document, Ends, Job
from tests.frozen.machines import NAME, SPEC_KEY, TRIAL, World

OUT_OF_MEMORY = {
    "TrainingJobStatus": "Failed", "SecondaryStatus": "Failed", "output": None,
    "FailureReason": "AlgorithmError: CUDA out of memory",
}  # fmt: skip
NO_CAPACITY = {
    **OUT_OF_MEMORY,
    "FailureReason": "CapacityError: Unable to provision requested ML compute capacity.",
}
STOPPED = {"TrainingJobStatus": "Stopped", "SecondaryStatus": "Stopped", "output": None}
OVERDUE = {**STOPPED, "SecondaryStatus": "MaxRuntimeExceeded"}
NO_QUOTA = {**OUT_OF_MEMORY, "Error": "SageMaker.ResourceLimitExceededException",
            "FailureReason": "ResourceLimitExceeded: the account-level limit is 0"}  # fmt: skip
WORKLOAD: Document = {
    "schema": 1,
    "name": NAME,
    "owner": "ml-platform",
    "framework": {"name": "pytorch", "version": "2.13.0"},
    "model": {"family": "transformer", "name": "bert-base-cased"},
    "training": {
        "source_dir": "training", "entry_point": "train.py", "instance_type": "ml.g5.48xlarge",
        "instance_count": 1, "distribution": "torch_distributed", "precision": "bf16",
        "batch_size": 32, "learning_rate": 5e-5, "max_runtime_hours": 12,
    },
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 3, "run_hours": 6},
    "quality": {
        "metric": "eval_accuracy", "goal": "maximize", "margin": 0.005,
        "history": [0.912, 0.913, 0.912, 0.914, 0.911],
    },
    "policy": {"quality_runs": "shadow"},
    "candidates": [{"name": "compile", "compiler": "torch_compile"}],
}  # fmt: skip


def workload(**changes: Any) -> Document:
    """The workload with keys of its sections replaced, ``section__key=value``."""
    document = copy.deepcopy(WORKLOAD)
    for path, value in changes.items():
        section, _, key = path.partition("__")
        if key:
            document.setdefault(section, {})[key] = value
        else:
            document[section] = value
    return document


def only(
    ends: Document, stage: str, arm: str | None = None, first: int | None = None
) -> Callable[[], Ends]:
    """Jobs of a stage, and of an arm, end so: the ``first`` of them, else all."""

    def begin() -> Ends:
        left = count(first or 10_000, -1)

        def end_of(job: Job) -> Document:
            fits = job.stage == stage and (arm is None or arm in job.arms)
            return dict(ends) if fits and next(left) > 0 else {}

        return end_of

    return begin


def trial(changes: Document | None = None, **world: Any) -> World:
    """One trial of the workload, to its end."""
    made = World(workload(**(changes or {})), **world)
    made.evaluate()
    return made


def promoted(changes: Document | None = None, **world: Any) -> World:
    """A registered workload whose trial has promoted the candidate."""
    schedule = {"schedule__cron": "rate(1 day)", **(changes or {})}
    made = World(workload(**schedule), **world)
    made.register()
    made.evaluate()
    return made


def production(runs: int = 16, *, falls: float = 0.0, slower: float = 1.0, **world: Any) -> World:
    """Runs after a promotion; after the second the candidate loses quality or speed."""
    made = promoted(**world)
    for number in range(runs):
        if number == 2:
            made.loss, made.speedup = falls, made.speedup / slower
        made.production_run()
    return made


def failing_runs(
    ends: Document, runs: int = 4, first: int | None = None, arm: str | None = None
) -> World:
    made = promoted()
    made.end_of = only(ends, "production", arm, first)()
    for _ in range(runs):
        made.production_run()
    return made


def canary(mode: str, **world: Any) -> World:
    """A trial whose full runs production makes, between its own."""
    made = World(
        workload(schedule__cron="rate(1 day)", policy__quality_runs=mode,
                 policy__max_quality_runs=8), **world,
    )  # fmt: skip
    made.register()
    for _ in range(2):
        made.production_run()
    made.evaluate(between=made.production_run)
    made.production_run()
    return made


def canary_overdue() -> World:
    """A canary round without a production run."""
    made = World(workload(schedule__cron="rate(1 day)", policy__quality_runs="canary"))
    made.register()
    made.evaluate()
    return made


def approval(*arguments: str) -> World:
    made = World(workload(policy__approval="required"))

    def between() -> None:
        if arguments:
            made.command(*arguments)
            made.command("status", NAME)

    made.evaluate(between=between)
    if arguments:
        made.command(*arguments)
    return made


def locked() -> World:
    """A second trial while the first holds the lock; then the first goes on."""
    made = World(workload())
    made.evaluate(rounds=1)
    made.evaluate("efgh5678")
    made.evaluate()
    return made


def aborted() -> World:
    """A trial that is stopped on its way, cleaned up twice, once by the event of its execution."""
    made = World(workload())
    made.evaluate(rounds=2)
    execution = f"arn:aws:states:us-east-1:111122223333:execution:e:{NAME}-{TRIAL}"
    execution = made.cloud.services.locks.holder(NAME) or execution
    event = {"workload": NAME, "trial": TRIAL, "spec_key": SPEC_KEY}
    made.step("abort_trial", **event, execution=execution, error="States.Timeout", cause="")
    detail = {"executionArn": execution, "status": "ABORTED", "input": json.dumps(event)}
    made.step("abort_trial", detail=detail)
    made.evaluate("efgh5678")
    return made


def repeated() -> World:
    """Every step is called again with the same event right after it was answered."""
    made = World(workload())
    once = made.step

    def twice(name: str, **event: Any) -> Any:
        first, again = once(name, **event), once(name, **event)
        made.log.append({"step": name, "same": first == again})
        return first

    made.step = twice  # type: ignore[method-assign]
    made.evaluate()
    made.register()
    for _ in range(3):
        made.production_run()
    return made


def late() -> World:
    """Steps of rounds that are over come once more after the trial has ended."""
    made = trial()
    both = {"workload": NAME, "trial": TRIAL, "spec_key": SPEC_KEY}
    execution = f"{NAME}-{TRIAL}"
    for number in (0, 1):
        made.step("judge_arms", **both, execution=execution, round=number, runs=[])
    made.step("plan_trial", **both, execution=execution)
    keys = [entry["answer"].get("decision_key") for entry in made.log if "answer" in entry]
    (key,) = {key for key in keys if key}
    made.step("record_decision", **both, decision_key=key)
    made.step("apply_flag", **both, decision_key=key)
    return made


def by_hand() -> World:
    """A person turns the flag off, on again, and leaves it to the decisions again."""
    made = promoted()
    because = ("--reason", "loss spikes", "--yes")
    made.command("flag", "show", NAME)
    made.command("flag", "revert", NAME, *because)
    made.production_run()
    made.command("flag", "revert", NAME, *because)
    made.evaluate("efgh5678")
    made.command("flag", "promote", NAME, *because)
    made.production_run()
    made.command("flag", "show", NAME)
    return made


def team() -> World:
    """Jobs that a team's own pipeline starts, and reports of which come twice."""
    made = promoted()
    made.production_run()
    name = f"cg-{NAME}-team-1"
    last = next(reversed(made.cloud.services.jobs.descriptions.values()))
    made.cloud.services.jobs.descriptions[name] = {**last, "TrainingJobName": name}
    for _ in range(2):
        made.step("record_run", workload=NAME, job=name, execution="x")
    return made


def changed_job() -> World:
    """Production trains another job than the one that was proven."""
    made = promoted()
    made.production_run()
    other = workload(schedule__cron="rate(1 day)", training__learning_rate=1e-3)
    made.put(f"workloads/{NAME}/specs/2.json",
             {"workload": other, "source_key": f"workloads/{NAME}/other.tgz"})  # fmt: skip
    made.register(spec_key=f"workloads/{NAME}/specs/2.json", source_digest="e", revision=2)
    for _ in range(2):
        made.production_run()
    return made


def again() -> World:
    """A second trial within and after the cool-down that follows a revert."""
    made = production(12, falls=0.02)
    made.evaluate("efgh5678")
    made.passes(15 * 86_400)
    made.evaluate("ijkl9012")
    made.production_run()
    return made


def weekly() -> World:
    """What the functions that a timer starts do after a week of production."""
    made = production(6)
    made.step("weekly_digest")
    made.step("sweep")
    made.command("digest")
    return made


def lookups() -> World:
    """The commands that look things up, after a trial and some production runs."""
    made = production(5)
    (decision,) = {
        entry["decision_id"]
        for (_, key), entry in made.cloud.services.ledger.raw.items.items()
        if key.endswith("#decision")
    }
    for arguments in (
        ("status",), ("status", NAME), ("status", "nobody"), ("judge", "--replay", decision),
        ("judge", "--replay", "0000000000000000"), ("flag", "show", NAME),
        ("flag", "show", "nobody"), ("flag", "approve", NAME, "--reason", "r", "--yes"),
        ("digest",), ("drain", "--check"),
    ):  # fmt: skip
        made.command(*arguments)
    return made
