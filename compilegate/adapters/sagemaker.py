"""Training jobs on SageMaker: the jobs, their roles, logs and quotas."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.stores import error_code, listed, unless
from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, NotFoundError
from compilegate.domain.failures import IN_PROGRESS, STOPPING
from compilegate.ports import Settings

# SageMaker training jobs.

PAGE_SIZE = 100  # the most that ListTrainingJobs and ListServiceQuotas give at once
AT_ONCE = 8  # jobs that are described at the same time


class SageMakerJobs:
    """TrainingJobs on SageMaker."""

    def __init__(self, sagemaker: Any) -> None:
        self._sagemaker = sagemaker

    def describe(self, job: str) -> Mapping[str, Any]:
        try:
            return self._described(job)
        except NotFoundError:
            return {}

    def describe_all(self, names: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            described = pool.map(lambda name: (name, self.describe(name)), names)
            return {name: one for name, one in described if one}

    def tags(self, job: str) -> Mapping[str, str]:
        described = self.describe(job)
        if not described:
            return {}
        arn = described["TrainingJobArn"]
        return _by_key(listed(self._sagemaker, "list_tags", "Tags", ResourceArn=arn))

    def stop(self, job: str) -> None:
        try:
            self._sagemaker.stop_training_job(TrainingJobName=job)
        except ClientError:
            if self._described(job)["TrainingJobStatus"] == IN_PROGRESS:
                raise

    def tag(self, job: str, tags: Mapping[str, str]) -> None:
        arn = self._described(job)["TrainingJobArn"]
        self._sagemaker.add_tags(ResourceArn=arn, Tags=_tags(tags))

    def unfinished(self, prefix: str, since: float) -> Mapping[str, str]:
        # Stopping last: a job that goes over to it between the two calls is in one of them.
        return {
            name: status
            for of_status in (IN_PROGRESS, STOPPING)
            for name, status in self._list(prefix, of_status, since)
        }

    def _described(self, job: str) -> Mapping[str, Any]:
        """DescribeTrainingJob; raises NotFoundError."""
        try:
            described: Mapping[str, Any] = self._sagemaker.describe_training_job(
                TrainingJobName=job
            )
        except ClientError as error:
            if "not found" in str(error).lower():
                raise NotFoundError(f"there is no training job {job}") from error
            raise
        return described

    def _list(self, prefix: str, status: str, since: float) -> Iterator[tuple[str, str]]:
        """Names with their status, the oldest job first."""
        for job in listed(
            self._sagemaker, "list_training_jobs", "TrainingJobSummaries",
            NameContains=prefix, StatusEquals=status,
            CreationTimeAfter=datetime.fromtimestamp(since, tz=UTC),
            SortBy="CreationTime", SortOrder="Ascending",
            PaginationConfig={"PageSize": PAGE_SIZE},
        ):  # fmt: skip
            if job["TrainingJobName"].startswith(prefix):
                yield job["TrainingJobName"], job["TrainingJobStatus"]


def _tags(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


def _by_key(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


# The IAM roles of training jobs, made when a workload's first job is requested.
#
# A role carries its workload's name as a tag and one policy, the deployment's: it is both what the
# role may do and its permissions boundary (docs/decisions/0019-one-role-per-workload.md).


# Longer than any training job lasts (28 days: API reference, StoppingCondition), which uses its
# role to the end.
IDLE = timedelta(days=30)
# Roles that are looked at for an idle one, in a function of one minute.
LOOKED_AT = 300


class ForeignRoleError(CompilegateError):
    """A role of the expected name belongs to something else."""


class IamJobRoles:
    """JobRoles in IAM; where the deployment has no policy for them, they are provided.

    A role of a deployment that was removed and came back is put under the new one's policy. Where
    the account has no room for another role, one that has long been idle is deleted: its
    workload's next job makes it again.
    """

    def __init__(self, iam: Any, settings: Settings) -> None:
        self._iam, self._settings, self._policy = iam, settings, settings.job_policy
        self._boundary = settings.job_boundary or settings.job_policy
        path, _, self._names = settings.job_roles.partition(":role")[2].rpartition("/")
        self._path = f"{path}/"

    def ensure(self, workload: str) -> None:
        """Make the workload's role if there is none; raises ForeignRoleError for another's.

        Safe to repeat, also after a call that broke off: the policy comes last and is attached
        again. A new role may take seconds to work; the state that starts a job retries.
        """
        if not self._policy:
            return
        name = f"{self._names}{workload}"
        role = self._role(name) or self._create(name, workload)
        tags, path = _by_key(role.get("Tags", ())), role["Path"]
        if path != self._path or tags.get(naming.ROLE_TAG_WORKLOAD) != workload:
            raise ForeignRoleError(
                f"the role {name} exists and was not made for {workload}: it lies at {path} "
                f"with the tags {tags}",
                fix="delete it; the next run makes it again",
            )
        boundary = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
        if boundary != self._boundary:
            self._iam.put_role_permissions_boundary(
                RoleName=name, PermissionsBoundary=self._boundary
            )
        attached = self._iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        arns = [policy["PolicyArn"] for policy in attached]
        if self._policy not in arns:
            self._iam.attach_role_policy(RoleName=name, PolicyArn=self._policy)

    def _role(self, name: str) -> dict[str, Any] | None:
        answer = unless(("NoSuchEntity",), self._iam.get_role, RoleName=name)
        role: dict[str, Any] | None = answer and answer["Role"]
        return role

    def _create(self, name: str, workload: str) -> dict[str, Any]:
        """The new role; or the one that another execution has made meanwhile."""
        # SageMaker alone, for this account alone: the confused deputy.
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {
                "StringEquals": {"aws:SourceAccount": self._settings.job_roles.split(":")[4]}
            },
        }
        tags = {
            **self._settings.tags,
            naming.ROLE_TAG_WORKLOAD: workload,
            naming.TAG_DEPLOYMENT: self._settings.stage,
        }
        create = partial(
            unless,
            ("EntityAlreadyExists",),
            self._iam.create_role,
            RoleName=name,
            Path=self._path,
            Description=f"Training jobs of {workload}, Compilegate {self._settings.stage}",
            AssumeRolePolicyDocument=json.dumps(
                {"Version": "2012-10-17", "Statement": [statement]}
            ),
            PermissionsBoundary=self._boundary,
            Tags=_tags(tags),
        )
        try:
            create()
        except ClientError as error:
            if error_code(error) != "LimitExceeded" or not self._delete_idle():
                raise
            create()
        created: dict[str, Any] = self._iam.get_role(RoleName=name)["Role"]
        return created

    def _delete_idle(self) -> bool:
        """Delete a role that no job can be using; returns whether there was one."""
        roles = [
            role["RoleName"]
            for role in listed(self._iam, "list_roles", "Roles", PathPrefix=self._path)
            if role["RoleName"].startswith(self._names)
        ]
        for name in roles[:LOOKED_AT]:
            role = self._role(name) or {}
            own = _by_key(role.get("Tags", ())).get(naming.TAG_DEPLOYMENT) == self._settings.stage
            used = role.get("RoleLastUsed", {}).get("LastUsedDate", role.get("CreateDate"))
            if own and datetime.now(UTC) - used > IDLE:
                call = partial(unless, ("NoSuchEntity",))  # another execution may do the same
                attached = call(self._iam.list_attached_role_policies, RoleName=name) or {}
                for one in attached.get("AttachedPolicies", ()):
                    call(self._iam.detach_role_policy, RoleName=name, PolicyArn=one["PolicyArn"])
                call(self._iam.delete_role, RoleName=name)
                logger.info("quota of roles used up: deleted %s, last used %s", name, used)
                return True
        return False


# The logs of training jobs: the lines that they print, and how long these are kept.

# SageMaker makes it with the account's first training job, without a retention.
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# SageMaker names a job's streams JOB/algo-NODE-SECONDS.
_FIRST_MACHINE = "algo-1-"


class JobLogs:
    """What training jobs print, in CloudWatch."""

    def __init__(self, logs: Any) -> None:
        self._logs = logs
        self._streams: dict[str, str] = {}

    def lines(self, job: str, token: str | None) -> tuple[Sequence[str], str | None]:
        """Lines printed since ``token`` by the job's first machine, and the next token."""
        stream = self._streams.get(job) or self._find_stream(job)
        if stream is None:
            return (), token
        self._streams[job] = stream
        position = {"nextToken": token} if token else {}
        page = self._logs.get_log_events(
            logGroupName=LOG_GROUP, logStreamName=stream, startFromHead=True, **position
        )
        return [str(event["message"]) for event in page["events"]], page["nextForwardToken"]

    def _find_stream(self, job: str) -> str | None:
        """The stream of the job's first machine; what others made beside it came later."""
        own = re.compile(rf"{re.escape(job)}/{_FIRST_MACHINE}[0-9]+")
        asked = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": f"{job}/{_FIRST_MACHINE}"}
        # The group appears with the first job that ever prints.
        streams = unless(
            ("ResourceNotFoundException",),
            lambda: [*listed(self._logs, "describe_log_streams", "logStreams", **asked)],
        )
        by_age = sorted(streams or (), key=lambda one: one["creationTime"])
        names = (str(one["logStreamName"]) for one in by_age)
        return next((name for name in names if own.fullmatch(name)), None)


class CloudWatchTrainingLogs:
    """The account's group of training logs; ``days`` is None where the deployment sets no limit."""

    def __init__(self, logs: Any, days: int | None) -> None:
        self._logs, self._days = logs, days

    def limit_retention(self) -> bool:
        """Give the group a retention, unless it has one; returns whether it was set."""
        if self._days is None:
            return False
        groups = self._logs.describe_log_groups(logGroupNamePrefix=LOG_GROUP)["logGroups"]
        if all("retentionInDays" in one for one in groups if one["logGroupName"] == LOG_GROUP):
            return False
        self._logs.put_retention_policy(logGroupName=LOG_GROUP, retentionInDays=self._days)
        return True


# SageMaker's training quotas of this account, from Service Quotas.

# A Lambda has a minute for all of its work.
MOST_SECONDS = 20
# A Lambda that is still warm serves later plans as well, which must see a quota that has changed.
LISTING_SECONDS = 60
SERVICE, NO_QUOTA = "sagemaker", ("NoSuchResourceException",)
# As the Service Quotas console lists them, for example "ml.g5.xlarge for training job usage".
_NAME = re.compile(r"(?P<type>ml\.\S+) for (?P<spot>spot )?training job usage")
logger = logging.getLogger(__name__)

Key = tuple[str, bool]  # instance type, spot


def training_quotas(quotas: Iterable[Mapping[str, Any]]) -> dict[Key, int]:
    """Instances that training jobs may run at once, by type and whether on spot capacity."""
    return {
        (match["type"], bool(match["spot"])): int(quota["Value"])
        for quota in quotas
        if (match := _NAME.fullmatch(quota.get("QuotaName", "")))
    }


class ServiceQuotas:
    """Quotas on AWS; one that cannot be read is unknown.

    The quota of a type whose code is known is read by that code. Any other is looked up in the
    listing of all of SageMaker's quotas, which is kept for a minute and may be cut off: what it has
    not reached is unknown. ``codes`` is called when a quota is first read.
    """

    def __init__(
        self,
        client: Any,
        codes: Callable[[], Mapping[Key, str]],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._codes, self._seconds = client, codes, seconds
        self._forget()

    def training_instances(self, instance_type: str, *, spot: bool) -> int | None:
        key = (instance_type, spot)
        if self._seconds() > self._forget_at:
            self._forget()
        by_code = self._by_code(key)
        return self._listed().get(key) if by_code is None else by_code

    def _forget(self) -> None:
        self._listing: dict[Key, int] | None = None
        self._answers = True
        self._forget_at = self._seconds() + LISTING_SECONDS

    def _by_code(self, key: Key) -> int | None:
        code = self._codes().get(key)
        if code is None:
            return None
        # A quota that was never changed may have no applied value, only a default.
        for operation in ("get_service_quota", "get_aws_default_service_quota"):
            if not self._answers:
                return None
            call = getattr(self._client, operation)
            try:
                answer = unless(NO_QUOTA, call, ServiceCode=SERVICE, QuotaCode=code)
            except Exception:  # what cannot be read is unknown
                logger.warning("quota %s could not be read", code, exc_info=True)
                self._answers = False  # a Lambda has no time to wait for it again
                return None
            if answer:
                limits = training_quotas([answer["Quota"]])
                if key not in limits:
                    logger.warning("quota %s is %s, not that of %s", code, list(limits), key[0])
                return limits.get(key)
        return None

    def _listed(self) -> Mapping[Key, int]:
        if self._listing is not None:
            return self._listing
        self._listing = {}
        try:
            deadline = self._seconds() + MOST_SECONDS
            for page in self._client.get_paginator("list_service_quotas").paginate(
                ServiceCode=SERVICE, PaginationConfig={"PageSize": PAGE_SIZE}
            ):
                self._listing |= training_quotas(page["Quotas"])
                if self._seconds() > deadline:
                    logger.warning(
                        "listing quotas took longer than %s s and was cut off", MOST_SECONDS
                    )
                    break
        except Exception:  # what cannot be read is unknown
            logger.warning("quotas could not be listed", exc_info=True)
        return self._listing
