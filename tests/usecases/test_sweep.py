"""Once a day: orphans are cleaned up, and the day's figures become metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from compilegate.domain import arithmetic, naming
from compilegate.domain.production.orphans import ExecutionEnd
from compilegate.domain.records.ledger import Swept
from compilegate.domain.records.production import BegunRun
from compilegate.domain.records.trials import TrialFailed, TrialStarted
from compilegate.ports import Ledger
from compilegate.report.notifications.production import swept as message_of
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.operations import sweep as sweeping
from compilegate.usecases.operations.sweep import daily, measure_day, sweep
from compilegate.usecases.records import Trial, save_record
from compilegate.usecases.trial.abort_trial import abort_trial
from tests.fakes import MemoryLedger, MemoryTopic, services, start_job
from tests.usecases.production_ledger import (
    DAY,
    NOW,
    decided,
    promote,
    ran,
    register,
    waited,
    write,
)

STATES = "arn:aws:states:us-east-1:111122223333:execution:compilegate-dev"
TRIAL = f"{STATES}-evaluate:w-0mabc123"
HOURS = 3600
RUN_ID = naming.trial_id((NOW - 3 * HOURS) * 1000)
RUN = f"{STATES}-train:w-{RUN_ID}"


class Cloud:
    """Services with jobs and locks in them, three hours ago."""

    def __init__(self) -> None:
        self.services = services()
        self.topic = MemoryTopic()
        self.ends: Any = self.services.ends
        self.now = self.services.clock.now()

    def job(
        self,
        execution: str,
        stage: str = "quality",
        workload: str = "w",
        hours: int = 3,
        **changes: str,
    ) -> str:
        """A job in progress, and in the ledger that its trial or run began so long ago."""
        number = len(self.services.jobs.descriptions)  # type: ignore[attr-defined]
        of, at = execution.rpartition("-")[2], self.now - hours * HOURS
        register(self.services, workload, None)
        if stage == naming.PRODUCTION_STAGE:
            name = f"{naming.job_base(workload, of, 'p0')}-r0"
            spec = naming.spec_key(workload, "d1")
            begun = BegunRun(at, of, execution, "baseline", "flag", 1, 1, spec, "source")
            write(self.services, workload, begun)
            self.services.jobs.add(name, "InProgress", at)  # type: ignore[attr-defined]
        else:
            name = start_job(self.services, workload, of, f"q1a{number}", started=at)
            write(self.services, workload, TrialStarted(at, execution, trial=of))
        jobs: Any = self.services.jobs
        jobs.descriptions[name]["CreationTime"] = datetime.fromtimestamp(at, tz=UTC)
        tags = {
            naming.TAG_WORKLOAD: workload, naming.TAG_EXECUTION: execution,
            naming.TAG_STAGE: stage, **changes,
        }  # fmt: skip
        jobs.tag(name, tags)
        return name

    def cleaned_up(self, execution: str, at: int) -> None:
        """The trial's end is recorded, but not what started in that moment."""
        write(self.services, "w", TrialFailed(at, execution.rpartition("-")[2], execution))

    def lock(self, execution: str) -> None:
        self.services.store.put(f"{naming.WORKLOADS_PREFIX}w/specs/1.json", b"{}")
        self.services.locks.acquire("w", execution, now=self.now, expires_at=self.now + HOURS)

    def ended(self, execution: str, status: str) -> None:
        name = execution.rpartition(":")[2]
        detail = {
            "executionArn": execution, "status": status,
            "input": json.dumps({"workload": "w", "trial": name[-8:], "spec_key": "s"}),
        }  # fmt: skip
        self.ends[execution] = ExecutionEnd(status, self.now - 2 * HOURS, detail)

    def sweep(self, **event: Any) -> dict[str, Any]:
        return sweep(event, services=self.services, topic=self.topic)

    def status(self, job: str) -> str:
        return str(self.services.jobs.describe(job)["TrainingJobStatus"])

    def entries(self) -> dict[str, Any]:
        return {entry["kind"]: entry for entry in self.services.ledger.raw.entries("w")}


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


def test_jobs_without_a_waiting_execution_are_stopped_recorded_and_reported(cloud: Cloud) -> None:
    jobs = (cloud.job(TRIAL), cloud.job(TRIAL, owner="ml"))
    cloud.lock(TRIAL)
    cloud.ended(TRIAL, "TIMED_OUT")

    assert {"stopped_jobs": 2, "released_locks": 1, "recorded_runs": 0} == cloud.sweep()
    assert ["Stopped"] * 2 == [cloud.status(job) for job in jobs]
    left: Any = {"stopped_jobs": jobs, "released_locks_of": (TRIAL,)}
    assert Swept(cloud.now, **left).to_entry() == cloud.entries()["swept"]
    assert [message_of("w", **left, owner="ml", stage="dev")] == cloud.topic.sent
    failed = cloud.entries()["failed"]  # the clean-up that was lost is made up for
    assert (TRIAL, "TIMED_OUT") == (failed["execution"], failed["error"])


@pytest.mark.parametrize(
    ("status", "entries"),
    [("SUCCEEDED", {"swept"}), ("ABORTED", {"swept", "started", "failed"})],
    ids=["its decision stands", "its end is recorded"],
)
def test_a_lock_of_an_execution_that_has_ended_is_released(
    cloud: Cloud, status: str, entries: set[str]
) -> None:
    cloud.lock(TRIAL)
    cloud.ended(TRIAL, status)

    assert {"stopped_jobs": 0, "released_locks": 1, "recorded_runs": 0} == cloud.sweep()
    assert cloud.services.locks.holder("w") is None
    assert entries == set(cloud.entries())


@pytest.mark.parametrize(
    ("finished", "seconds", "status"),
    [(True, 0, "InProgress"), (False, 2 * DAY, "Stopped"), (False, 2 * DAY + 1, "InProgress")],
)
def test_a_job_of_a_run_that_has_ended_is_looked_at_for_two_days_where_it_left_no_model(
    cloud: Cloud, finished: bool, seconds: int, status: str
) -> None:
    job = cloud.job(RUN, "production")
    ran(cloud.services, "w", NOW - 3 * HOURS, "baseline", finished=finished)
    cloud.ended(RUN, "ABORTED")
    cloud.services.clock.seconds += seconds - 3 * HOURS  # type: ignore[attr-defined]
    cloud.sweep(grace_seconds=-HOURS)

    assert status == cloud.status(job)


def test_what_runs_is_left_alone_and_nothing_is_reported(cloud: Cloud) -> None:
    cloud.lock(TRIAL)
    jobs = [cloud.job(TRIAL), cloud.job(RUN, "production")]
    cloud.services.jobs.describe_all = None  # type: ignore[method-assign,assignment]

    assert {"stopped_jobs": 0, "released_locks": 0, "recorded_runs": 0} == cloud.sweep()
    assert ["InProgress"] * 2 == [cloud.status(job) for job in jobs]
    assert TRIAL == cloud.services.locks.holder("w")
    assert ({"started", "run_begun"}, []) == (set(cloud.entries()), cloud.topic.sent)


@pytest.mark.parametrize(
    ("execution", "stage", "untagged", "status"),
    [
        (TRIAL, "quality", False, "Stopped"),
        (TRIAL, naming.TEAM_STAGE, False, "InProgress"),
        (TRIAL.replace("-dev-", "-prod-"), "quality", False, "InProgress"),
        ("somebody", "quality", False, "InProgress"),
        (TRIAL, "quality", True, "InProgress"),
        (RUN, "production", False, "Stopped"),
    ],
    ids=["a trial's", "a team's", "another stage's", "somebody's", "untagged", "a run's"],
)
def test_what_started_as_its_execution_was_stopped_is_stopped_if_of_this_deployment(
    cloud: Cloud, execution: str, stage: str, untagged: bool, status: str
) -> None:
    job, jobs = cloud.job(execution, stage), cast("Any", cloud.services.jobs)
    if execution != RUN:
        cloud.cleaned_up(execution, cloud.now - 2 * HOURS)
    if untagged:
        jobs.descriptions[job]["Tags"] = []
    cloud.ended(execution, "ABORTED")
    cloud.sweep()

    assert status == cloud.status(job)
    assert (status == "Stopped") == ("swept" in cloud.entries())


@pytest.mark.parametrize("days", [3, 15, 27, 89])
@pytest.mark.parametrize("row", [True, False], ids=["a row", "no row"])
def test_a_run_may_have_begun_long_before_its_execution_left_a_job(
    cloud: Cloud, days: int, row: bool
) -> None:
    """Years of runs are not read for it: the row names it."""
    run = f"{RUN[:-8]}{naming.trial_id((NOW - days * DAY) * 1000)}"
    job = cloud.job(run, "production", hours=24 * days)
    ran(cloud.services, "w", NOW - 5 * HOURS, "baseline")
    if row:
        fold_workload("w", cloud.services)
    cloud.ended(run, "ABORTED")

    assert {"stopped_jobs": 1, "released_locks": 0, "recorded_runs": 1} == cloud.sweep()
    assert "Stopped" == cloud.status(job)
    fold_workload("w", cloud.services)
    assert {"stopped_jobs": 0, "released_locks": 0, "recorded_runs": 0} == cloud.sweep()


@pytest.mark.parametrize(("event", "swept"), [({}, 0), ({"grace_seconds": 0}, 1)])
def test_what_ended_just_now_is_left_to_its_event_unless_asked_otherwise(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, event: dict[str, Any], swept: int
) -> None:
    """Executions are asked for four at a time, each once."""
    at_once, asked = sweeping.at_once, list[tuple[int, list[str]]]()

    def listed(read: Any, names: Any, *, most: int = 32) -> list[Any]:
        asked.append((most, [*names]))
        return at_once(read, names, most=most)

    cleaned: list[Any] = []
    monkeypatch.setattr(sweeping, "at_once", listed)
    monkeypatch.setattr(sweeping, "clean_up_after", lambda *of, **_: cleaned.append(of))
    cloud.job(TRIAL, hours=0)
    cloud.job(RUN, "production", hours=0)
    cloud.lock(TRIAL)
    for execution in (TRIAL, RUN):
        cloud.ended(execution, "ABORTED")
        cloud.ends[execution] = replace(cloud.ends[execution], at=cloud.now)

    counts = {"stopped_jobs": 2 * swept, "released_locks": swept, "recorded_runs": swept}
    assert counts == cloud.sweep(**event)
    assert bool(swept) is ("failed" in cloud.entries())
    assert [(32, ["w"]), (4, [TRIAL, RUN, TRIAL])] == asked
    assert [(one, cloud.ends[one]) for one in (TRIAL, RUN)] * swept == cleaned


@pytest.mark.parametrize(
    ("status", "seconds", "recorded"), [("ABORTED", 0, 1), ("ABORTED", 1, 0), ("SUCCEEDED", 0, 0)]
)
def test_an_end_is_recorded_for_as_long_as_its_event_is_kept(
    cloud: Cloud, status: str, seconds: int, recorded: int
) -> None:
    run = f"{RUN[:-8]}{naming.trial_id((NOW - 20 * DAY) * 1000)}"
    cloud.job(run, "production", hours=24 * 20)
    cloud.ended(run, status)
    cloud.ends[run] = replace(cloud.ends[run], at=cloud.now - 14 * DAY - seconds)

    assert recorded == cloud.sweep()["recorded_runs"]


class Unwritten(MemoryLedger):
    """Takes no entry of a kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        if entry["kind"] == self.kind:
            raise ConnectionError("DynamoDB does not answer")
        return super().put_once(workload, sort_key, entry)


@pytest.mark.parametrize(
    ("recorded", "hours", "status"),
    [
        (False, 24, "Stopped"), (False, 169, "InProgress"), (True, 24, "InProgress"),
        (None, 24, "Stopped"),
    ],
    ids=[
        "that the judge has not seen", "a week ago", "that has ended as far as the judge saw",
        "unless its evidence cannot be read",
    ],
)  # fmt: skip
def test_a_decided_trial_may_have_left_a_job(
    cloud: Cloud, recorded: bool | None, hours: int, status: str
) -> None:
    job = cloud.job(TRIAL, hours=200)
    write(cloud.services, "w", decided("0mabc123", NOW - hours * HOURS))
    arms = [{"name": "baseline", "runs": [{"job": job}]}] if recorded else []
    trial = Trial("w", "0mabc123", "")
    evidence: Any = {"plan": {"usd_by_job": {job: 1.0}}, "arms": arms}
    evidence = [] if recorded is None else evidence
    save_record(cloud.services.store, trial, "evidence", evidence)
    cloud.ended(TRIAL, "SUCCEEDED")
    later = cloud.job(f"{TRIAL[:-1]}4")
    cloud.ended(f"{TRIAL[:-1]}4", "SUCCEEDED")
    cloud.sweep()

    assert (status, "Stopped") == (cloud.status(job), cloud.status(later))


@pytest.mark.parametrize(("seconds", "status"), [(0, "Stopped"), (1, "InProgress")])
def test_the_sweeps_of_a_week_look_at_what_a_clean_up_may_have_missed(
    cloud: Cloud, seconds: int, status: str
) -> None:
    job = cloud.job(TRIAL)
    cloud.cleaned_up(TRIAL, cloud.now - 7 * DAY - seconds)
    cloud.ended(TRIAL, "ABORTED")
    cloud.sweep()

    assert status == cloud.status(job)


def test_a_trial_whose_clean_up_wrote_its_start_and_died_ends_without_lock_and_jobs() -> None:
    """Stopped before it took the lock: neither a lock nor a job leads the sweep to it."""
    cloud, raw = Cloud(), Unwritten("failed")
    cloud.services = replace(cloud.services, ledger=Ledger(raw))
    cloud.services.store.put(f"{naming.WORKLOADS_PREFIX}w/specs/1.json", b"{}")
    cloud.ended(TRIAL, "ABORTED")
    with pytest.raises(ConnectionError):
        abort_trial({"detail": cloud.ends[TRIAL].detail}, services=cloud.services)
    assert ["started"] == list(cloud.entries())

    with pytest.raises(ConnectionError):  # once more, and an alarm says so
        cloud.sweep()
    raw.kind = "none"
    cloud.sweep()

    failed = cloud.entries()["failed"]
    assert ("ABORTED", TRIAL) == (failed["error"], failed["execution"])


@pytest.mark.parametrize(
    ("status", "hours", "ends"),
    [("ABORTED", 0.5, False), ("ABORTED", 2, True), ("SUCCEEDED", 2, False), (None, 2, False)],
)
def test_a_start_without_an_end_gets_one_once_its_execution_ended_badly_an_hour_ago(
    cloud: Cloud, status: str | None, hours: float, ends: bool
) -> None:
    cloud.services.store.put(f"{naming.WORKLOADS_PREFIX}w/specs/1.json", b"{}")
    write(cloud.services, "w", TrialStarted(cloud.now - 3 * HOURS, TRIAL))
    if status is not None:
        cloud.ended(TRIAL, status)
        at = cloud.now - int(hours * HOURS)
        cloud.ends[TRIAL] = ExecutionEnd(status, at, cloud.ends[TRIAL].detail)
    cloud.sweep()

    assert ends == ("failed" in cloud.entries())


def test_jobs_that_cannot_be_read_do_not_keep_back_the_others(cloud: Cloud) -> None:
    first = cloud.job(f"{TRIAL[:-1]}0", workload="a")
    second = cloud.job(TRIAL)
    for execution in (f"{TRIAL[:-1]}0", TRIAL):
        cloud.ended(execution, "SUCCEEDED")
    jobs: Any = cloud.services.jobs
    tags = jobs.tags

    def broken(job: str) -> Mapping[str, str]:
        if job == first:
            raise ConnectionError("SageMaker does not answer")
        answer: Mapping[str, str] = tags(job)
        return answer

    jobs.tags = broken
    with pytest.raises(ConnectionError):
        cloud.sweep()
    assert ("InProgress", "Stopped") == (cloud.status(first), cloud.status(second))


@pytest.fixture
def measured() -> Any:
    memory = services()
    for name in ("one", "two"):
        register(memory, name, None)
        ran(memory, name, NOW - 24 * HOURS + 1, "baseline", usd=10.0)
        ran(memory, name, NOW - 24 * HOURS - 1, "baseline", usd=100.0)
        write(memory, name, decided("a", NOW - 60, spent_usd=2))
    return memory


def written(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if hasattr(record, "_aws")]


def test_each_figure_of_the_day_is_a_metric_of_its_own(caplog: Any) -> None:
    """Three runs save 3 USD each; what four failed ones cost saved nothing."""
    memory = services()
    register(memory, "one", None)
    promote(memory, "one", NOW - 2 * 24 * HOURS)
    for hours in (72, 25):
        ran(memory, "one", NOW - hours * HOURS, "baseline", usd=10.0)
    for hours in (1, 12, 23):
        ran(memory, "one", NOW - hours * HOURS, "compile", usd=7.0)
    for hours in range(4, 8):
        ran(memory, "one", NOW - hours * HOURS, "compile", usd=0.25, finished=False)
        for began in (1, 2, hours):
            run = naming.trial_id(1000 * (NOW - began * HOURS))
            write(memory, "one", waited(run, hours, NOW - hours * HOURS))
    write(memory, "one", decided("a", NOW - 60, spent_usd=2.5))
    with caplog.at_level(logging.INFO):
        measure_day(services=memory)

    record, _ = written(caplog)
    assert {
        arithmetic.TRIAL_USD: 2.5, arithmetic.PRODUCTION_RUNS: 7, arithmetic.FAILED_RUNS: 4,
        arithmetic.WAITED_RUNS: 6, arithmetic.PRODUCTION_USD: 22.0, arithmetic.SAVED_USD: 8.0,
        arithmetic.FLAGS_ON: 1,
    } == {item["Name"]: getattr(record, item["Name"])
          for item in record._aws["CloudWatchMetrics"][0]["Metrics"]}  # fmt: skip


class Logs:
    """Training jobs' logs; how often their retention was limited."""

    limited = 0

    def limit_retention(self) -> bool:
        self.limited += 1
        return True


def test_the_daily_pass_sweeps_repairs_rows_measures_and_limits_logs(
    cloud: Cloud, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the sweep also where the sweep fails; each ledger is looked at once."""
    logs, seen = Logs(), list[tuple[str, str]]()
    around = {"services": cloud.services, "topic": cloud.topic}
    cloud.job(TRIAL)
    register(cloud.services, "idle", None)
    for name in ("look_at", "day_by_ledger"):
        read = getattr(sweeping, name)

        def counted(workload: str, *of: Any, name: str = name, read: Any = read) -> Any:
            seen.append((name, workload))
            return read(workload, *of)

        monkeypatch.setattr(sweeping, name, counted)
    with caplog.at_level(logging.INFO):
        answer = daily({}, **around, training_logs=logs)
    assert [("day_by_ledger", "w"), ("look_at", "idle"), ("look_at", "w")] == sorted(seen)
    rows = {"rows_built": 2, "rows_repaired": 0, "rows_newer": 0, "rows_waiting": 0}
    assert {"stopped_jobs": 0, "released_locks": 0, "recorded_runs": 0, **rows} == answer

    cloud.ended(TRIAL, "ABORTED")
    cloud.services.jobs.stop = None  # type: ignore[method-assign,assignment]
    with caplog.at_level(logging.INFO), pytest.raises(TypeError):
        daily({}, **around, training_logs=logs)
    assert 2 == logs.limited
    assert 2 == len([one for one in written(caplog) if hasattr(one, arithmetic.PRODUCTION_RUNS)])


def test_a_workload_that_cannot_be_read_does_not_hide_the_others(
    measured: Any, caplog: Any
) -> None:
    measured.ledger.raw.put_once("one", "trial#b#decision", {"kind": "decision", "at": NOW - 60})
    with caplog.at_level(logging.INFO):
        total = measure_day(services=measured)

    assert {"promote": 2} == total.decisions
    assert "one: the ledger's entry of kind 'decision'" in caplog.text
    measured.ledger.raw.put_once("one", "flag#000009", {"kind": "flag", "at": NOW - 60})
    with caplog.at_level(logging.INFO):
        total = measure_day(services=measured)

    assert {"promote": 1} == total.decisions
    assert "one: its day cannot be read" in caplog.text
