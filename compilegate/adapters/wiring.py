"""Puts the AWS adapters together from a Lambda's environment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlparse

from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import FactOverrides
from compilegate.ports import (
    FleetTable,
    JobOutputs,
    Ledger,
    Services,
    Settings,
    Topic,
    TrainingLogs,
)

if TYPE_CHECKING:
    from compilegate.adapters.stores import S3Store

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class SystemClock:
    """The machine's time."""

    def now(self) -> int:
        return int(time.time())


@lru_cache(maxsize=1)
def services() -> Services:
    """The Lambda's services; the environment is the stack's (stacks/functions.py)."""
    return build(
        bucket=os.environ["DATA_BUCKET"],
        table=os.environ["LEDGER_TABLE"],
        settings=settings_from(os.environ),
    )


@lru_cache(maxsize=1)
def topic() -> Topic:
    """The deployment's topic, for the functions that publish messages themselves."""
    from compilegate.adapters.stores import SnsTopic, client

    return SnsTopic(client("sns"), os.environ["TOPIC_ARN"])


def training_logs() -> TrainingLogs:
    """The logs of training jobs, with the retention that the deployment names."""
    from compilegate.adapters.sagemaker import CloudWatchTrainingLogs
    from compilegate.adapters.stores import client

    days = os.environ.get("TRAINING_LOG_DAYS")
    return CloudWatchTrainingLogs(client("logs"), int(days) if days else None)


class _LateOutputs:
    """StoredOutputs, loaded when an output is read: few functions do."""

    def __init__(self, store: S3Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        from compilegate.adapters.job_outputs import StoredOutputs

        return getattr(StoredOutputs(self._store.fetch), name)


def build(*, bucket: str, table: str, settings: Settings) -> Services:
    """Services on one stage's resources."""
    from compilegate.adapters.sagemaker import IamJobRoles, SageMakerJobs, ServiceQuotas
    from compilegate.adapters.state_machines import StepFunctions
    from compilegate.adapters.stores import DynamoDbFleet, DynamoDbTable, S3Store, SsmFlags, client

    store, records = S3Store(client("s3"), bucket), DynamoDbTable(client("dynamodb"), table)
    machines = StepFunctions(client("stepfunctions"))
    return Services(
        store=store,
        ledger=Ledger(records),
        fleet=FleetTable(DynamoDbFleet(client("dynamodb"), table)),
        locks=records,
        flags=SsmFlags(client("ssm")),
        jobs=SageMakerJobs(client("sagemaker")),
        outputs=cast("JobOutputs", _LateOutputs(store)),
        roles=IamJobRoles(client("iam"), settings),
        quotas=ServiceQuotas(client("service-quotas", hasty=True), _quota_codes),
        tokens=machines,
        ends=machines,
        clock=SystemClock(),
        settings=settings,
    )


def _quota_codes() -> Mapping[tuple[str, bool], str]:
    from compilegate.facts import quota_codes

    return quota_codes()


def settings_from(variables: Mapping[str, str]) -> Settings:
    """The deployment's settings from a function's environment variables."""
    document = json.loads(variables.get("SETTINGS", "{}"))
    vpc = document.get("vpc") or {}
    return Settings(
        stage=variables["STAGE"],
        region=document.get("region") or variables["AWS_REGION"],
        job_roles=variables["JOB_ROLES"],
        job_policy=variables.get("JOB_POLICY_ARN", ""),
        job_boundary=document.get("boundary") or "",
        tags=document.get("tags", {}),
        rules=Fields(document.get("jobs", {}), "SETTINGS.jobs").read(JobRules),
        kms_key_arn=variables.get("DATA_KEY_ARN"),
        subnet_ids=tuple(vpc.get("subnet_ids", ())),
        security_group_ids=tuple(vpc.get("security_group_ids", ())),
        facts=Fields(document.get("facts") or {}, "SETTINGS.facts").read(FactOverrides),
        simulated=simulated_note(),
    )


def simulated_note() -> str | None:
    """Says what is simulated when the endpoint is this machine instead of AWS."""
    host = urlparse(os.environ.get("AWS_ENDPOINT_URL", "")).hostname
    if host not in LOOPBACK:
        return None
    return (
        f"Trained on this machine's CPU ({os.cpu_count()} cores) instead of the workload's "
        "instances, in one process: speed-ups are this machine's, dollars are what the same "
        "minutes would cost on those instances."
    )
