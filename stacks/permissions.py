"""What one function may do, a sentence per grant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk.region_info import RegionInfo

from compilegate.domain import naming
from compilegate.domain.deployment_settings import Settings
from stacks.storage import TRAINING_LOGS, Storage

REGISTRATIONS = f"{naming.WORKLOADS_PREFIX}*/registration.json"
PRODUCTION_REQUESTS = f"{naming.PRODUCTION_PREFIX}*/*/requests/*"
PRODUCTION_OUTPUTS = f"{naming.PRODUCTION_PREFIX}*/*/jobs/*/output/output.tar.gz"
# Where SageMaker leaves the output of a team's own job, in buckets of the team's.
TEAM_OUTPUTS = "*/output/output.tar.gz"
SPECS = f"{naming.WORKLOADS_PREFIX}*/specs/*"
RECORDS = f"{naming.DECISIONS_PREFIX}*"
REQUESTS = f"{naming.EXPERIMENTS_PREFIX}*/requests/*"
# Which jobs a trial stopped itself.
STOPS = f"{naming.EXPERIMENTS_PREFIX}*/stopped/*"
# Which jobs of full runs have ended.
ENDS = f"{naming.EXPERIMENTS_PREFIX}*/ended/*"
JOB_OUTPUTS = f"{naming.EXPERIMENTS_PREFIX}*/*/jobs/*/output/output.tar.gz"
REPORTS = f"{naming.REPORTS_PREFIX}*"


Statements = list[iam.PolicyStatement]


def allow(
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, object] | None = None,
) -> iam.PolicyStatement:
    """One statement; ``conditions`` as IAM has them."""
    return iam.PolicyStatement(
        actions=list(actions), resources=list(resources), conditions=conditions
    )


class Permissions:
    """Builds the policy statements of one deployment."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._storage = storage
        self._stack = Stack.of(storage)
        self._stage = settings.stage
        self._input_buckets = settings.input_buckets
        self._suffix = RegionInfo.get(settings.region).domain_suffix

    def read(self, *patterns: str) -> Statements:
        """Read objects of the data bucket."""
        return [
            allow(["s3:GetObject"], self._objects(patterns)),
            allow(["kms:Decrypt"], self._storage.key_arns),
        ]

    def read_results(self, pattern: str) -> Statements:
        """Read what jobs left, and whether it was written once."""
        return [
            allow(["s3:GetObjectVersion"], self._objects((pattern,))),
            allow(["kms:Decrypt"], self._storage.key_arns),
            allow(
                ["s3:ListBucketVersions"],
                [self._storage.bucket.bucket_arn],
                {"StringLike": {"s3:prefix": [pattern]}},
            ),
        ]

    def read_inputs(self) -> Statements:
        """Read what a team's own jobs left in the buckets that the deployment knows of.

        Under a key of the team's own that also needs the key's consent.
        """
        arns = [
            self._stack.format_arn(
                service="s3", region="", account="", resource=bucket, resource_name=TEAM_OUTPUTS
            )
            for bucket in self._input_buckets
        ]
        return [allow(["s3:GetObject"], arns)] if arns else []

    def write(self, *patterns: str) -> Statements:
        """Write objects of the data bucket."""
        return [
            allow(["s3:PutObject"], self._objects(patterns)),
            # Decrypt as well: S3 needs it for an upload in several parts.
            allow(["kms:GenerateDataKey", "kms:Decrypt"], self._storage.key_arns),
        ]

    def tell_absent_from_denied(self) -> Statements:
        """Without it S3 answers 403 for an object that is not there, instead of 404.

        No prefix condition: GetObject carries no prefix, so a condition would never hold.
        """
        return [allow(["s3:ListBucket"], [self._storage.bucket.bucket_arn])]

    def append_to_ledger(self) -> Statements:
        """Write an entry once and read the one that is already there; no update, no delete."""
        return self._table(["dynamodb:PutItem", "dynamodb:GetItem"], "workload#*")

    def read_ledger(self) -> Statements:
        """Read what earlier trials of a workload have decided."""
        return self._table(["dynamodb:Query"], "workload#*")

    def keep_rows(self) -> Statements:
        """Replace a workload's row and its months, each as it was read."""
        return self._table(["dynamodb:GetItem", "dynamodb:PutItem"], "fleet#*", "month#*")

    def read_rows(self) -> Statements:
        """Read the rows of all workloads."""
        return self._table(["dynamodb:Query"], "fleet#*")

    def read_stream(self) -> Statements:
        """Read what has changed in the table; ListStreams knows no narrower resource."""
        stream = self._storage.table.table_stream_arn or ""
        actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
        return [
            *self._table_key(),
            allow(actions, [stream]),
            allow(["dynamodb:ListStreams"], ["*"]),
        ]

    def take_lock(self) -> Statements:
        """Take a workload's lock, or read who holds it."""
        return self._table(["dynamodb:PutItem", "dynamodb:GetItem"], "lock#*")

    def read_lock(self) -> Statements:
        """Read who holds workloads' locks, many at a time."""
        return self._table(["dynamodb:GetItem", "dynamodb:BatchGetItem"], "lock#*")

    def give_lock_back(self) -> Statements:
        """Release a workload's lock."""
        return self._table(["dynamodb:DeleteItem"], "lock#*")

    def write_flag(self) -> Statements:
        """Read and write the workloads' flags: the one grant this whole stack is built around."""
        name = naming.flag_parameter(self._stage, "*").removeprefix("/")
        arn = self._stack.format_arn(service="ssm", resource="parameter", resource_name=name)
        return [allow(["ssm:GetParameter", "ssm:PutParameter"], [arn])]

    def read_quotas(self) -> Statements:
        """Read this account's quotas, by code or in the listing, to lay rounds out within them."""
        actions = ("GetAWSDefaultServiceQuota", "GetServiceQuota", "ListServiceQuotas")
        return [allow([f"servicequotas:{action}" for action in actions], ["*"])]  # no resources

    def answer_tokens(self) -> Statements:
        """Resume a trial that waits for production."""
        machine = self._stack.format_arn(
            service="states",
            resource="stateMachine",
            resource_name=f"{naming.stack_name(self._stage)}-evaluate",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return [allow(["states:SendTaskSuccess"], [machine])]

    def tag_models(self) -> Statements:
        """Tag a job's model as released or not; no other tag."""
        own = {"ForAllValues:StringEquals": {"aws:TagKeys": [naming.TAG_RELEASE]}}
        return [
            allow(["sagemaker:DescribeTrainingJob"], [self.training_jobs()]),
            allow(["sagemaker:AddTags"], [self.training_jobs()], own),
        ]

    def stop_jobs(self) -> Statements:
        """Describe and stop this project's training jobs, by name."""
        actions = ["sagemaker:DescribeTrainingJob", "sagemaker:StopTrainingJob"]
        # A trial that began on 0.2.0 ends on the functions of 0.2.0, which list jobs.
        listing = allow(["sagemaker:ListTrainingJobs"], ["*"])  # knows no resources
        return [listing, allow(actions, [self.training_jobs()])]

    def read_tags_of_jobs(self) -> Statements:
        """Read which execution started a job of this project."""
        return [allow(["sagemaker:ListTags"], [self.training_jobs()])]

    def read_executions(self) -> Statements:
        """Read whether an execution of this deployment still runs, and how it ended."""
        arns = [
            self._stack.format_arn(
                service="states",
                resource="execution",
                resource_name=f"{naming.machine_name(self._stage, machine)}:*",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            for machine in naming.MACHINES
        ]
        return [allow(["states:DescribeExecution"], arns)]

    def limit_training_logs(self) -> Statements:
        """Set how long the log group of SageMaker's training jobs keeps its events."""
        group = self._stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=TRAINING_LOGS,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return [
            allow(["logs:DescribeLogGroups"], ["*"]),  # narrower, it lists nothing
            allow(["logs:PutRetentionPolicy"], [f"{group}:*", group]),
        ]

    def publish(self, topic: sns.ITopic) -> Statements:
        """Publish to the encrypted topic."""
        return [
            allow(["sns:Publish"], [topic.topic_arn]),
            allow(["kms:Decrypt", "kms:GenerateDataKey"], [self._storage.key.key_arn]),
        ]

    def read_team_jobs(self) -> Statements:
        """Describe any training job and read its tags: a team names its jobs as it likes."""
        arn = self._stack.format_arn(
            service="sagemaker", resource="training-job", resource_name="*"
        )
        return [allow(["sagemaker:DescribeTrainingJob", "sagemaker:ListTags"], [arn])]

    def training_jobs(self) -> str:
        """ARN pattern of the jobs that trials start."""
        return self._stack.format_arn(
            service="sagemaker", resource="training-job", resource_name=f"{naming.JOB_PREFIX}-*"
        )

    def _objects(self, patterns: tuple[str, ...]) -> list[str]:
        return [self._storage.bucket.arn_for_objects(pattern) for pattern in patterns]

    def _table(self, actions: list[str], *keys: str) -> Statements:
        return [
            *self._table_key(),
            allow(
                actions,
                [self._storage.table.table_arn],
                {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}},
            ),
        ]

    def _table_key(self) -> Statements:
        """DynamoDB uses a customer-managed key on behalf of its caller.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
        """
        # AWS documents names with this suffix; where endpoints have another, that may be it.
        suffixes = dict.fromkeys(("amazonaws.com", self._suffix))
        names = [f"dynamodb.{Aws.REGION}.{suffix}" for suffix in suffixes]
        via = {"StringEquals": {"kms:ViaService": names if len(names) > 1 else names[0]}}
        actions = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey",
                   "kms:ReEncryptFrom", "kms:ReEncryptTo"]  # fmt: skip
        return [allow(actions, self._storage.key_arns, via)]


# What a function may do: the statements, once the deployment is known.
Grant = Callable[[Permissions], Statements]


def read(*patterns: str) -> Grant:
    """Read objects of the data bucket."""
    return lambda permissions: permissions.read(*patterns)


def read_results(pattern: str) -> Grant:
    """Read what jobs left, and whether it was written once."""
    return lambda permissions: permissions.read_results(pattern)


def write(*patterns: str) -> Grant:
    """Write objects of the data bucket."""
    return lambda permissions: permissions.write(*patterns)
