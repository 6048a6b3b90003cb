"""What one function may do, a sentence per grant."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam

from compilegate.domain import naming
from stacks.storage import Storage
from stacks.training_role import LOG_GROUP as TRAINING_LOG_GROUP

REGISTRATIONS = f"{naming.WORKLOADS_PREFIX}*/registration.json"
PRODUCTION_REQUESTS = f"{naming.PRODUCTION_PREFIX}*/*/requests/*"
PRODUCTION_OUTPUTS = f"{naming.PRODUCTION_PREFIX}*/*/jobs/*/output.tar.gz"
# Where SageMaker leaves the output of a team's own job, in buckets of the team's.
TEAM_OUTPUTS = "*/output/output.tar.gz"
SPECS = f"{naming.WORKLOADS_PREFIX}*/specs/*"
RECORDS = f"{naming.DECISIONS_PREFIX}*"
REQUESTS = f"{naming.EXPERIMENTS_PREFIX}*/requests/*"
# Which jobs a trial stopped itself.
STOPS = f"{naming.EXPERIMENTS_PREFIX}*/stopped/*"
JOB_OUTPUTS = f"{naming.EXPERIMENTS_PREFIX}*/jobs/*"
REPORTS = f"{naming.REPORTS_PREFIX}*"


class Permissions:
    """Builds the policy statements of one stage."""

    def __init__(self, storage: Storage, stage: str, input_buckets: Sequence[str] = ()) -> None:
        self._storage = storage
        self._stack = Stack.of(storage)
        self._stage = stage
        self._input_buckets = input_buckets

    def read(self, *patterns: str) -> list[iam.PolicyStatement]:
        """Read objects of the data bucket."""
        return [
            self._allow(["s3:GetObject"], self._objects(patterns)),
            self._allow(["kms:Decrypt"], self._storage.key_arns),
        ]

    def read_inputs(self) -> list[iam.PolicyStatement]:
        """Read what a team's own jobs left in the buckets that the deployment knows of.

        Under a key of the team's own that also needs the key's consent.
        """
        arns = [
            self._stack.format_arn(
                service="s3", region="", account="", resource=bucket, resource_name=TEAM_OUTPUTS
            )
            for bucket in self._input_buckets
        ]
        return [self._allow(["s3:GetObject"], arns)] if arns else []

    def write(self, *patterns: str) -> list[iam.PolicyStatement]:
        """Write objects of the data bucket."""
        return [
            self._allow(["s3:PutObject"], self._objects(patterns)),
            # Decrypt as well: S3 needs it for an upload in several parts.
            self._allow(["kms:GenerateDataKey", "kms:Decrypt"], self._storage.key_arns),
        ]

    def tell_absent_from_denied(self) -> list[iam.PolicyStatement]:
        """Without it S3 answers 403 for an object that is not there, instead of 404.

        No prefix condition: GetObject carries no prefix, so a condition would never hold.
        """
        return [self._allow(["s3:ListBucket"], [self._storage.bucket.bucket_arn])]

    def append_to_ledger(self) -> list[iam.PolicyStatement]:
        """Write an entry once and read the one that is already there; no update, no delete."""
        return self._table(["dynamodb:PutItem", "dynamodb:GetItem"], "workload#*")

    def read_ledger(self) -> list[iam.PolicyStatement]:
        """Read what earlier trials of a workload have decided."""
        return self._table(["dynamodb:Query"], "workload#*")

    def take_lease(self) -> list[iam.PolicyStatement]:
        """Take a workload's lease, or read who holds it."""
        return self._table(["dynamodb:PutItem", "dynamodb:GetItem"], "lock#*")

    def read_lease(self) -> list[iam.PolicyStatement]:
        """Read who holds a workload's lease."""
        return self._table(["dynamodb:GetItem"], "lock#*")

    def give_lease_back(self) -> list[iam.PolicyStatement]:
        """Release a workload's lease."""
        return self._table(["dynamodb:DeleteItem"], "lock#*")

    def write_flag(self) -> list[iam.PolicyStatement]:
        """Read and write the workloads' flags: the one grant this whole stack is built around."""
        name = naming.flag_parameter(self._stage, "*").removeprefix("/")
        arn = self._stack.format_arn(service="ssm", resource="parameter", resource_name=name)
        return [self._allow(["ssm:GetParameter", "ssm:PutParameter"], [arn])]

    def read_quotas(self) -> list[iam.PolicyStatement]:
        """Read this account's quotas, by code or in the listing, to lay rounds out within them."""
        actions = (
            "servicequotas:GetAWSDefaultServiceQuota",
            "servicequotas:GetServiceQuota",
            "servicequotas:ListServiceQuotas",
        )
        return [self._allow(list(actions), ["*"])]  # they know no resources

    def answer_tokens(self) -> list[iam.PolicyStatement]:
        """Let a trial that waits for production go on."""
        machine = self._stack.format_arn(
            service="states",
            resource="stateMachine",
            resource_name=f"{naming.stack_name(self._stage)}-evaluate",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return [self._allow(["states:SendTaskSuccess"], [machine])]

    def tag_models(self) -> list[iam.PolicyStatement]:
        """Say of a job's model whether it may be released; no other tag."""
        own: dict[str, object] = {
            "ForAllValues:StringEquals": {"aws:TagKeys": [naming.TAG_RELEASE]}
        }
        return [
            self._allow(["sagemaker:DescribeTrainingJob"], [self.training_jobs()]),
            self._allow(["sagemaker:AddTags"], [self.training_jobs()], own),
        ]

    def stop_jobs(self) -> list[iam.PolicyStatement]:
        """Find and stop this project's training jobs."""
        return [
            self._allow(["sagemaker:ListTrainingJobs"], ["*"]),  # knows no resources
            self._allow(
                ["sagemaker:DescribeTrainingJob", "sagemaker:StopTrainingJob"],
                [self.training_jobs()],
            ),
        ]

    def read_tags_of_jobs(self) -> list[iam.PolicyStatement]:
        """Read which execution started a job of this project."""
        return [self._allow(["sagemaker:ListTags"], [self.training_jobs()])]

    def read_executions(self) -> list[iam.PolicyStatement]:
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
        return [self._allow(["states:DescribeExecution"], arns)]

    def limit_training_logs(self) -> list[iam.PolicyStatement]:
        """Set how long the log group of SageMaker's training jobs keeps its events."""
        group = self._stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=TRAINING_LOG_GROUP,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return [
            self._allow(["logs:DescribeLogGroups"], ["*"]),  # narrower, it lists nothing
            self._allow(["logs:PutRetentionPolicy"], [f"{group}:*", group]),
        ]

    def look_at_team_jobs(self) -> list[iam.PolicyStatement]:
        """Describe any training job and read its tags: a team names its jobs as it likes."""
        arn = self._stack.format_arn(
            service="sagemaker", resource="training-job", resource_name="*"
        )
        return [self._allow(["sagemaker:DescribeTrainingJob", "sagemaker:ListTags"], [arn])]

    def training_jobs(self) -> str:
        """ARN pattern of the jobs that trials start."""
        return self._stack.format_arn(
            service="sagemaker", resource="training-job", resource_name=f"{naming.JOB_PREFIX}-*"
        )

    def _objects(self, patterns: tuple[str, ...]) -> list[str]:
        return [self._storage.bucket.arn_for_objects(pattern) for pattern in patterns]

    def _table(self, actions: list[str], keys: str) -> list[iam.PolicyStatement]:
        return [
            *self._table_key(),
            self._allow(
                actions,
                [self._storage.table.table_arn],
                {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [keys]}},
            ),
        ]

    def _table_key(self) -> list[iam.PolicyStatement]:
        """DynamoDB uses a customer-managed key in the name of whoever calls it.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
        """
        if self._storage.ledger_key is None:
            return []
        via: dict[str, object] = {
            "StringEquals": {"kms:ViaService": f"dynamodb.{Aws.REGION}.amazonaws.com"}
        }
        actions = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey",
                   "kms:ReEncryptFrom", "kms:ReEncryptTo"]  # fmt: skip
        return [self._allow(actions, [self._storage.ledger_key.key_arn], via)]

    @staticmethod
    def _allow(
        actions: list[str], resources: list[str], conditions: dict[str, object] | None = None
    ) -> iam.PolicyStatement:
        return iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
