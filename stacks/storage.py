"""What outlives a deployment: the key, the data bucket and the ledger."""

from __future__ import annotations

from typing import Any

from aws_cdk import ArnFormat, Aws, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from compilegate.domain import naming
from stacks.log_groups import LOG_GROUP_PREFIXES
from stacks.settings import Settings

NONCURRENT_VERSION_DAYS = 30
UNFINISHED_UPLOAD_DAYS = 7


class Storage(Construct):
    """Evidence in S3 and history in DynamoDB; all of it survives ``cdk destroy``.

    ``key`` encrypts the topic, ``data_key`` the bucket; ``ledger_key`` and ``log_key`` are None
    where the deployment asks for no customer-managed key.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.key = kms.Key(
            self,
            "Key",
            description=f"Compilegate {settings.stage}: data bucket and notifications",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        self.key.add_to_resource_policy(_alarms_may_publish())
        customer_key = self._customer_key(settings)
        self.data_key: kms.IKey = customer_key or self.key
        self.ledger_key = self.log_key = customer_key
        self.bucket = s3.Bucket(
            self,
            "Data",
            bucket_name=settings.bucket_name,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.data_key,
            bucket_key_enabled=True,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=RemovalPolicy.RETAIN,
            lifecycle_rules=_lifecycle(settings),
        )
        self.table = dynamodb.Table(
            self,
            "Ledger",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
            **self._table_encryption(),
        )

    @property
    def key_arns(self) -> list[str]:
        """Keys that objects of the bucket may be encrypted with, the newest first.

        What the stack's own key has encrypted stays readable where another one takes its place.
        """
        return list(dict.fromkeys((self.data_key.key_arn, self.key.key_arn)))

    def _customer_key(self, settings: Settings) -> kms.IKey | None:
        if settings.customer_key is None:
            return None
        if settings.customer_key.arn is not None:
            return kms.Key.from_key_arn(self, "CustomerKey", settings.customer_key.arn)
        self.key.add_to_resource_policy(_logs_may_encrypt(self, settings.stage))
        return self.key

    def _table_encryption(self) -> dict[str, Any]:
        if self.ledger_key is None:
            return {}
        return {
            "encryption": dynamodb.TableEncryption.CUSTOMER_MANAGED,
            "encryption_key": self.ledger_key,
        }


def _lifecycle(settings: Settings) -> list[s3.LifecycleRule]:
    """Decisions, reports and submitted sources have no rule: they are kept for good."""
    return [
        s3.LifecycleRule(
            id="experiments-expire",
            prefix=naming.EXPERIMENTS_PREFIX,
            expiration=Duration.days(settings.experiment_retention_days),
        ),
        s3.LifecycleRule(
            id="compile-cache-expires",
            prefix=naming.COMPILE_CACHE_PREFIX,
            expiration=Duration.days(settings.compile_cache_retention_days),
        ),
        s3.LifecycleRule(
            id="old-versions-and-unfinished-uploads-expire",
            noncurrent_version_expiration=Duration.days(NONCURRENT_VERSION_DAYS),
            abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_UPLOAD_DAYS),
        ),
    ]


def _logs_may_encrypt(scope: Construct, stage: str) -> iam.PolicyStatement:
    """CloudWatch Logs encrypts as itself, the log groups of this deployment alone.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
    """
    groups = [
        Stack.of(scope).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{prefix}{naming.stack_name(stage)}-*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        for prefix in LOG_GROUP_PREFIXES
    ]
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal(f"logs.{Aws.REGION}.amazonaws.com")],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*",
                 "kms:ReEncrypt*"],
        resources=["*"],
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )  # fmt: skip


def _alarms_may_publish() -> iam.PolicyStatement:
    """An alarm reaches an encrypted topic only if CloudWatch may use the topic's key."""
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["kms:Decrypt", "kms:GenerateDataKey*"],
        resources=["*"],
        conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
    )
