"""The cloud of a simulation: several workloads, and a moment at every call and state.

Nothing runs side by side: what happens in the middle of something else happens whole.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from compilegate.domain import ledger_keys, naming
from tests import fakes
from tests.faults import simulation_jobs
from tests.faults.jobs import Job, job_of
from tests.faults.outside import OUT_OF_MEMORY, STOPPED
from tests.faults.simulation_schedule import Schedule, Team
from tests.faults.world import Document, World

ENDS: dict[str, Document] = {
    "out_of_memory": OUT_OF_MEMORY,
    "no_capacity": {**OUT_OF_MEMORY, "FailureReason": "CapacityError: none is available."},
    "stopped_by_others": STOPPED,
    "time_limit": {**STOPPED, "SecondaryStatus": "MaxRuntimeExceeded"},
}


@dataclass(frozen=True)
class Started:
    """A job that was paid for: what it could have brought when it started is in ``problems``."""

    name: str
    workload: str
    trial: str
    job: Job
    ended: bool
    jobs_before: tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass
class Cloud(World):
    """Services, jobs and people of all workloads."""

    schedule: Schedule = field(default_factory=lambda: Schedule(0))

    def __init__(self, workload: Document, schedule: Schedule) -> None:
        self.schedule, self.chance = schedule, random.Random(schedule.seed)
        self.documents = {f"team-{n}": _workload(workload, f"team-{n}", team)
                          for n, team in enumerate(schedule.teams)}  # fmt: skip
        self.teams = dict(zip(self.documents, schedule.teams, strict=True))
        self.schedules = fakes.MemorySchedules()
        self.started: list[Started] = []
        self.left: dict[str, str] = {}  # what each job that completed has left, "" for the truth
        # Started in the moment in which their execution was stopped, or production's whose answer
        # was lost: stopped later, in no account (README.md, accepted).
        self.unaccounted: set[str] = set()
        first, *_ = self.documents.values()
        super().__init__(first, None)  # type: ignore[arg-type]

    def register(self, **changes: Any) -> None:
        """All of them, as at the beginning."""
        for name in self.documents:
            self.register_one(name)

    def register_one(self, name: str) -> None:
        """What production trains."""
        key = f"workloads/{name}/specs/1.json"
        document = self.documents[name]
        self.put(key, {"workload": document, "source_key": f"workloads/{name}/s.tgz"})
        self.put(naming.registration_key(name), {
            "schema": 1, "workload": name, "spec_key": key, "source_digest": "d",
            "schedule": document["schedule"].get("cron"), "active": True,
        })  # fmt: skip

    # Jobs

    def create(self, request: Document) -> None:
        super().create(request)
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        workload, execution = tags[naming.TAG_WORKLOAD], tags.get(naming.TAG_EXECUTION, "")
        if execution in self.ended:
            self.unaccounted.add(request["TrainingJobName"])
            return
        if naming.machine_of(execution) != naming.machine_name("prod", naming.EVALUATE):
            return
        trial = naming.trial_of(execution)[1]
        past = self.services.ledger.raw.entries(workload, ledger_keys.TRIAL_ENTRIES)
        ended = any(entry["kind"] in ("decision", "failed") and entry.get("trial") == trial
                    for entry in past)  # fmt: skip
        before = tuple((one.name, self.left[one.name], one.job.arms) for one in self.started
                       if one.trial == trial and one.name in self.left)  # fmt: skip
        job = job_of(self.services.jobs.descriptions[request["TrainingJobName"]], 0)
        self.started.append(
            Started(request["TrainingJobName"], workload, trial, job, ended, before)
        )

    def finish(self, name: str) -> Document:
        described = self.services.jobs.descriptions[name]
        if described["TrainingJobStatus"] != "InProgress":
            return dict(described)
        job, self.jobs_started = job_of(described, self.jobs_started), self.jobs_started + 1
        team = self.teams[_tag(described, naming.TAG_WORKLOAD)]
        lie = self.schedule.lies.get(str(job.number), team.lie)
        seconds = simulation_jobs.job_seconds(job, team.truth, lie)
        self.passes(seconds)
        described.update(
            TrainingJobStatus="Completed", SecondaryStatus="Completed",
            TrainingEndTime=datetime.fromtimestamp(self.now, tz=UTC),
            BillableTimeInSeconds=seconds,
        )  # fmt: skip
        described.update(ENDS.get(lie, {}))
        self.left[name] = lie
        if described["TrainingJobStatus"] == "Completed":
            metric = self.documents[_tag(described, naming.TAG_WORKLOAD)]["quality"]["metric"]
            body = simulation_jobs.output(job, team.truth, metric, lie, self.chance)
            place = described["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://data/")
            if body is not None:
                self.services.store.put(f"{place}/{name}/output/output.tar.gz", body)
        return dict(described)


def _tag(described: Document, key: str) -> str:
    return next(str(tag["Value"]) for tag in described["Tags"] if tag["Key"] == key)


def _workload(workload: Document, name: str, team: Team) -> Document:
    policy = {**workload["policy"], "approval": "required" if team.approval else "none"}
    schedule = workload["schedule"]
    if team.runs == "canary":
        policy.update(quality_runs="canary", max_quality_runs=8)
        schedule = {**schedule, "cron": "rate(1 day)"}
    return {**workload, "name": name, "policy": policy, "schedule": schedule}
