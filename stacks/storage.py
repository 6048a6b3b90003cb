"""The key, the data bucket and the ledger, which outlive a deployment; log groups, which do not."""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.region_info import RegionInfo
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.deployment_settings import LOG_RETENTION_DAYS, Settings

# The confused deputy: a service acts for this account only.
OWN_ACCOUNT = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
NONCURRENT_VERSION_DAYS = 30
UNFINISHED_UPLOAD_DAYS = 7
# Both in ascending order; CDK's names carry no number. Its last one, INFINITE, is not offered.
RETENTION = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))
FUNCTION_LOGS = "/aws/lambda/"
# The prefix keeps a group out of the account's limit on log policies.
MACHINE_LOGS = "/aws/vendedlogs/states/"
# Of SageMaker, and of the whole account.
TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"


class Storage(Construct):
    """Evidence in S3 and history in DynamoDB; all of it survives ``cdk destroy``.

    ``key`` encrypts the topic, ``data_key`` bucket, ledger and logs: the same, or the team's own.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self.key = self._key(settings)
        # An alarm reaches an encrypted topic only if CloudWatch may use the topic's key.
        self.let_publish("cloudwatch.amazonaws.com")
        self.data_key = self._data_key(settings)
        self.bucket = self._bucket(settings)
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
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED,
            encryption_key=self.data_key,
            # Which workloads have changed is all that is taken from it (stacks/projection.py).
            stream=dynamodb.StreamViewType.KEYS_ONLY,
        )

    @property
    def key_arns(self) -> list[str]:
        """Keys that objects of the bucket may be encrypted with, the newest first.

        What the stack's own key has encrypted stays readable where another one takes its place.
        """
        return list(dict.fromkeys((self.data_key.key_arn, self.key.key_arn)))

    def _key(self, settings: Settings) -> kms.IKey:
        """The key of the topic: the stack's own, or the team's where the stack makes none."""
        if settings.customer_key is not None and not settings.stack_key:
            return kms.Key.from_key_arn(self, "TopicKey", settings.customer_key)
        return kms.Key(
            self,
            "Key",
            description=f"Compilegate {settings.stage}: data, ledger, logs and notifications",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )

    def _bucket(self, settings: Settings) -> s3.IBucket:
        if settings.bucket_name is not None and settings.existing_bucket:
            return s3.Bucket.from_bucket_name(self, "ExistingData", settings.bucket_name)
        return s3.Bucket(
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

    def _data_key(self, settings: Settings) -> kms.IKey:
        if settings.customer_key is not None:
            return kms.Key.from_key_arn(self, "CustomerKey", settings.customer_key)
        self.key.add_to_resource_policy(_logs_may_encrypt(self, settings))
        return self.key

    def let_publish(self, service: str) -> None:
        """Let a service of AWS write to the encrypted topic, for this account alone."""
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(service)],
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                resources=["*"],
                conditions=OWN_ACCOUNT,
            )
        )

    def log_group(self, scope: Construct, construct_id: str, *, name: str) -> logs.LogGroup:
        """A log group with the deployment's retention and key; it goes with the stack."""
        return logs.LogGroup(
            scope,
            construct_id,
            log_group_name=name,
            retention=RETENTION[self._settings.log_retention_days],
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=self.data_key,
        )


def _lifecycle(settings: Settings) -> list[s3.LifecycleRule]:
    """Decisions, reports and submitted sources have no rule: they are kept permanently."""
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


def _logs_may_encrypt(scope: Construct, settings: Settings) -> iam.PolicyStatement:
    """CloudWatch Logs encrypts as itself, the log groups of this deployment alone.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
    """
    groups = [
        Stack.of(scope).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{prefix}{naming.stack_name(settings.stage)}-*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        for prefix in (FUNCTION_LOGS, MACHINE_LOGS)
    ]
    suffix = RegionInfo.get(settings.region).domain_suffix
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal(f"logs.{Aws.REGION}.{suffix}")],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*",
                 "kms:ReEncrypt*"],
        resources=["*"],
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )  # fmt: skip
