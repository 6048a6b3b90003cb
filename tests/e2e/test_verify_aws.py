"""A dry run of ``verify-aws``: the same calls, checks and clean-up on the embedded cloud."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from compilegate.cli.common import connect
from compilegate.cli.common.cloud import Cloud, StartedCloud
from compilegate.cli.common.session import Session
from compilegate.domain import naming
from compilegate.domain.workload.model import Workload
from compilegate_localcloud import api
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import find_places
from distributions.localcloud.tests.helpers import jobs_named
from tests.e2e.conftest import App
from tests.training.jobs import FEW_FILES, QUICK
from tools.verify_aws import jobs
from tools.verify_aws.__main__ import app as command
from tools.verify_aws.jobs import WORKLOAD
from tools.verify_aws.observed import JobKind
from tools.verify_aws.run import Prepared, prepare_verification
from tools.verify_aws.temporary import stack_name

pytestmark = pytest.mark.e2e

POLL_SECONDS = 0.5
SMALL_WORKLOAD = jobs.small_workload


class AppProviders:
    """The deployed app of the tests; ``simulated`` False shows it as if it were AWS."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch, *, simulated: bool) -> None:
        for name, value in app.cloud.running_state().environment().items():
            monkeypatch.setenv(name, value)
        # boto3's own session remembers the key of the cloud that another test used before.
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        self.app, self.simulated = app, simulated

    def aws(self, stage: str) -> Cloud:
        connect.client.cache_clear()
        cloud = connect.cloud_of(self.app.outputs, "local", POLL_SECONDS)
        if self.simulated:
            return cloud
        settings = replace(cloud.services.settings, simulated=None)
        return replace(cloud, services=replace(cloud.services, settings=settings))

    def client(self, service: str, region: str) -> Any:
        return self.app.client(service)

    @contextmanager
    def started_local(self, *, keep: bool) -> Iterator[StartedCloud]:
        yield StartedCloud(self.aws("local"), False, 0.0)


def prepared(providers: AppProviders) -> Prepared:
    prepared = prepare_verification(
        providers.app.client, providers.aws("local").services, "ml.g4dn.xlarge",
        trial=naming.trial_id(time.time_ns() // 1_000_000), poll_seconds=POLL_SECONDS,
    )  # fmt: skip
    prepared.verification.say = lambda text: None
    return prepared


def left_behind(app: App, trial: str) -> list[str]:
    """Everything of a verification that is still there; of all where no trial is named."""
    left = [key for prefix in (naming.WORKLOADS_PREFIX, naming.EXPERIMENTS_PREFIX)
            for key in keys(app, f"{prefix}{WORKLOAD}/")]  # fmt: skip
    prefix = naming.trial_job_prefix(WORKLOAD, trial)
    left += jobs_named(app.client("sagemaker"), prefix, StatusEquals="InProgress")
    machines = app.client("stepfunctions").list_state_machines()["stateMachines"]
    left += [one["name"] for one in machines if one["name"].startswith(stack_name(trial))]
    queues = app.client("sqs").list_queues(QueueNamePrefix=stack_name(trial))
    left += queues.get("QueueUrls", [])
    try:
        stack = app.client("cloudformation").describe_stacks(StackName=stack_name(trial))
        left += [one["StackName"] for one in stack["Stacks"]
                 if one["StackStatus"] != "DELETE_COMPLETE"]  # fmt: skip
    except ClientError:
        pass
    return left


def keys(app: App, prefix: str) -> list[str]:
    listed = app.client("s3").list_objects_v2(Bucket=app.store.bucket, Prefix=prefix)
    return [item["Key"] for item in listed.get("Contents", [])]


def test_an_interruption_leaves_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prepared(AppProviders(app, monkeypatch, simulated=True)).verification
    one.jobs = [job for job in one.jobs if job.kind is JobKind.STOPPED]
    running: list[str] = []

    def interrupted(name: str) -> None:
        running.append(name)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(one.account.jobs, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.run()

    assert app.client("sagemaker").describe_training_job(TrainingJobName=running[0])[
        "TrainingJobStatus"
    ] == "InProgress"  # fmt: skip
    assert not one.clean_up()
    assert not left_behind(app, one.trial)


def test_what_cannot_be_removed_is_named_and_the_rest_is_removed(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepared(AppProviders(app, monkeypatch, simulated=True)).verification
    one.jobs = []
    monkeypatch.setattr(one, "_refusals", lambda: ())
    monkeypatch.setattr(one, "_collect_messages", lambda: None)
    one.run()

    def refused(name: str) -> bool:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "DeleteStack")

    with monkeypatch.context() as patch:
        patch.setattr(one.account, "delete_stack", refused)
        (left,) = one.clean_up()

    assert stack_name(one.trial) in left
    assert "AccessDenied" in left
    assert not keys(app, f"{naming.WORKLOADS_PREFIX}{WORKLOAD}/")
    assert not one.clean_up()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-usd", "0.5"], ["--max-usd", "0.5", "$1.", "--cpu"]),
        (["--max-usd", "nan", "--yes"], ["--max-usd", "nan", "$1.", "--cpu"]),
        ([], ["--yes"]),
    ],
    ids=["dearer than allowed", "no number", "nobody to ask"],
)
def test_nothing_starts_without_a_bound_and_a_yes(
    app: App, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: list[str]
) -> None:
    providers = AppProviders(app, monkeypatch, simulated=False)

    result = CliRunner().invoke(command, arguments, obj=Session(providers=providers))

    assert result.exit_code == 2, result.output
    assert all(word in result.output for word in words), result.output
    assert not keys(app, f"{naming.WORKLOADS_PREFIX}{WORKLOAD}/")


def compiled_quickly(instance_type: str) -> Workload:
    """The workload of a verification, whose jobs compile as those of tests/training."""
    workload, environment = SMALL_WORKLOAD(instance_type), {**QUICK, **FEW_FILES}
    return replace(workload, training=replace(workload.training, environment=environment))


@pytest.mark.slow
def test_the_whole_dry_run_with_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "small_workload", compiled_quickly)
    with LocalCloud(places=find_places(tmp_path / "home")) as cloud:
        cloud.start(attached=True, extra_arguments=("--checkpoint-seconds", "1"))
        whole = App(cloud, api.up(cloud=cloud).outputs)
        providers = AppProviders(whole, monkeypatch, simulated=True)
        result = CliRunner().invoke(
            command,
            ["--local", "--out", str(tmp_path)],
            obj=Session(providers=providers),
        )
        left = left_behind(whole, "")

    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "verified-on-aws.json").read_text())
    rows = {row["id"]: row["agreement"] for row in record["assumptions"]}
    assert set() == {"differs", "not seen"} & set(rows.values()), rows
    agreed = ("schedule-time", "task-token", "job-event-tags", "unknown-field")
    assert {"agrees"} == {rows[name] for name in agreed}
    assert rows["quota-lookup"] == "needs an account"
    assert "embedded cloud" in record["cloud"]
    assert "`sync-times`" in (tmp_path / "verified-on-aws.md").read_text()
    assert not left
