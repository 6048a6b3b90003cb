"""From a workload file to a night's model: registered, a schedule that fires."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from compilegate.adapters.sagemaker import JobLogs, SageMakerJobs
from compilegate.adapters.state_machines import EventBridgeSchedules, StepFunctionsExecutions
from compilegate.adapters.stores import SsmFlags
from compilegate.adapters.wiring import SystemClock
from compilegate.adapters.workload_files import read_workload
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.cloud import Production as Starts
from compilegate.cli.register import register_files
from compilegate.domain import naming
from compilegate.domain.records.production import ProductionRun
from compilegate.ports import Services, Settings
from compilegate.usecases.records import load_registration
from compilegate.usecases.registration import RegisterOptions
from distributions.localcloud.tests.helpers import eventually
from tests.e2e.conftest import JOB, App, stand_in

pytestmark = pytest.mark.e2e


def cloud_of(app: App) -> Cloud:
    """The deployed app as the commands see it."""
    unused: Any = None
    services = Services(
        store=app.store, ledger=app.ledger, fleet=unused, locks=unused,
        flags=SsmFlags(app.client("ssm")), jobs=SageMakerJobs(app.client("sagemaker")),
        outputs=unused, roles=unused, quotas=unused, tokens=unused, ends=unused,
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
    return Cloud(services, unused, logs, 0.4, starts)


def test_a_schedule_of_a_registered_workload_trains_it(app: App, tmp_path: Path) -> None:
    cloud, name = cloud_of(app), f"scheduled-{os.getpid() % 1000}"
    shutil.copytree(JOB, tmp_path / "job")
    file = tmp_path / "workload.yaml"
    nightly = {"runs_per_week": 7, "run_hours": 0.5, "cron": "cron(0 3 * * ? *)"}
    file.write_text(yaml.safe_dump(stand_in(name, owner="nlp", schedule=nightly)))
    (result,) = register_files([read_workload(file)], cloud, RegisterOptions(by="human:ada"))
    schedule = app.client("scheduler").get_schedule(
        Name=name, GroupName=app.outputs["ScheduleGroup"]
    )

    assert ("new", None) == (result.what, result.error)
    assert "cron(0 3 * * ? *)" == schedule["ScheduleExpression"]
    # Nobody waits for 03:00: the same schedule, due now.
    due = int(time.time()) + 1
    moment = datetime.fromtimestamp(due, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    cloud.production.schedules.put(name, f"at({moment})")

    def runs() -> list[ProductionRun]:
        return list(cloud.services.ledger.history(name).runs)

    run: ProductionRun = eventually(runs, 40, "no run was recorded")[0]
    assert naming.trial_id(due * 1000) == run.run  # known by the time that it was meant for
    assert ("baseline", "scheduled", "Completed", True) == (
        run.arm, run.why, run.status, run.finished,
    )  # fmt: skip
    assert load_registration(app.store, name).spec_key == run.details["spec_key"]
