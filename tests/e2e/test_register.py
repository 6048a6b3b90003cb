"""From a workload file to a night's model: register, a schedule that fires, a run by hand."""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from compilegate.adapters.sagemaker import JobLogs, SageMakerJobs
from compilegate.adapters.state_machines import EventBridgeSchedules, StepFunctionsExecutions
from compilegate.adapters.stores import SsmFlags
from compilegate.adapters.wiring import SystemClock
from compilegate.adapters.workload_files import read_workload
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.cloud import Production as Starts
from compilegate.cli.register import Result, register_files, retire_workloads
from compilegate.cli.run import exit_code, watch
from compilegate.cli.trials import RunWatcher
from compilegate.domain import naming
from compilegate.domain.records.production import ProductionRun
from compilegate.ports import Services, Settings
from compilegate.usecases.records import load_registration
from compilegate.usecases.registration import RegisterOptions
from distributions.localcloud.tests.helpers import eventually
from tests.e2e.conftest import JOB, App, stand_in

pytestmark = pytest.mark.e2e

ME = RegisterOptions(by="human:ada")


def cloud_of(app: App) -> Cloud:
    """The deployed app as the commands see it."""
    nobody: Any = None
    services = Services(
        store=app.store, ledger=app.ledger, fleet=nobody, locks=nobody,
        flags=SsmFlags(app.client("ssm")), jobs=SageMakerJobs(app.client("sagemaker")),
        outputs=nobody, roles=nobody, quotas=nobody, tokens=nobody, ends=nobody,
        clock=SystemClock(),
        settings=Settings("local", "us-east-1", app.outputs["JobRoles"], simulated="here"),
    )  # fmt: skip
    machine = app.outputs["TrainStateMachine"]
    starts = Starts(
        executions=StepFunctionsExecutions(app.client("stepfunctions"), machine),
        schedules=EventBridgeSchedules(
            app.client("scheduler"), group=app.outputs["ScheduleGroup"], machine=machine,
            role=app.outputs["SchedulerRole"],
        ),
    )  # fmt: skip
    logs = JobLogs(app.client("logs"))
    return Cloud(services, nobody, logs, 0.1, starts)


@pytest.fixture
def cloud(app: App) -> Cloud:
    return cloud_of(app)


@pytest.fixture
def write(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Path]:
    """Writes a workload of the stand-in script; returns its file."""
    shutil.copytree(JOB, tmp_path / "job", dirs_exist_ok=True)
    words = request.node.name.replace("test_", "").replace("_", "-")[:24].strip("-")

    def write(**schedule: Any) -> Path:
        document = stand_in(
            f"{words}-{os.getpid() % 1000}", owner="nlp",
            schedule={"runs_per_week": 1000, "run_hours": 0.5, **schedule},
        )  # fmt: skip
        file = tmp_path / "workload.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    return write


def registered(file: Path, cloud: Cloud) -> Result:
    (result,) = register_files([read_workload(file)], cloud, ME)
    assert result.error is None
    return result


def moment(seconds: int) -> str:
    """An epoch second as schedules write it, in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")


def scheduled(app: App, name: str) -> Any:
    group = app.outputs["ScheduleGroup"]
    return app.client("scheduler").get_schedule(Name=name, GroupName=group)


def wait_for_run(cloud: Cloud, workload: str, seconds: float = 40.0) -> ProductionRun:
    def runs() -> list[ProductionRun]:
        return list(cloud.services.ledger.history(workload).runs)

    first: ProductionRun = eventually(runs, seconds, f"no run of {workload} was recorded")[0]
    return first


def test_a_schedule_of_a_registered_workload_trains_it(
    app: App, cloud: Cloud, write: Callable[..., Path]
) -> None:
    file = write(cron="cron(0 3 * * ? *)")
    name = read_workload(file).workload.name

    assert "new" == registered(file, cloud).what
    assert "cron(0 3 * * ? *)" == scheduled(app, name)["ScheduleExpression"]
    # Nobody waits for 03:00: the same schedule, due now.
    due = int(time.time()) + 1
    cloud.production.schedules.put(name, f"at({moment(due)})")

    run = wait_for_run(cloud, name)
    assert naming.trial_id(due * 1000) == run.run  # known by the time that it was meant for
    assert ("baseline", "scheduled", "Completed", True) == (
        run.arm, run.why, run.status, run.finished,
    )  # fmt: skip
    assert load_registration(app.store, name).spec_key == run.details["spec_key"]


def test_a_retired_workload_has_no_schedule_and_keeps_its_history(
    app: App, cloud: Cloud, write: Callable[..., Path]
) -> None:
    file = write(cron="cron(0 3 * * ? *)")
    name = read_workload(file).workload.name
    registered(file, cloud)

    (result,) = retire_workloads([name], cloud, ME)

    assert "retired" == result.what
    scheduler = app.client("scheduler")
    with pytest.raises(scheduler.exceptions.ResourceNotFoundException):
        scheduled(app, name)
    kinds = [entry["kind"] for entry in app.ledger.raw.entries(name, "registered#")]
    assert ["registered", "retired"] == kinds
    assert "revived" == registered(file, cloud).what
    assert scheduled(app, name)["State"] == "ENABLED"


def test_a_run_by_hand_is_followed_to_its_end(cloud: Cloud, write: Callable[..., Path]) -> None:
    file = write()
    name = read_workload(file).workload.name
    registered(file, cloud)
    shown = io.StringIO()

    due = int(time.time())
    run = naming.trial_id(due * 1000)
    arn = cloud.production.executions.start(
        naming.execution_name(name, run), {"workload": name, "scheduled": moment(due) + "Z"}
    )
    watcher = RunWatcher(name, run, arn, cloud)
    (view,) = watch([watcher], cloud.poll_seconds, Console(file=shown, width=80), what="run")

    assert "SUCCEEDED" == view.state.status, view.state.cause
    (recorded,) = view.runs
    assert ("SUCCEEDED", run, "baseline") == (view.state.status, recorded.run, recorded.arm)
    assert 0 == exit_code(view)
    assert f"{name}: training" in shown.getvalue()
    assert f"{name}: done" in shown.getvalue()
    assert recorded.usd is not None
    assert recorded.usd > 0
