"""What outlives a deployment: the key, the data bucket and the ledger."""

from __future__ import annotations

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from compilegate.domain import naming
from stacks.settings import Settings

NONCURRENT_VERSION_DAYS = 30
UNFINISHED_UPLOAD_DAYS = 7


class Storage(Construct):
    """Evidence in S3 and history in DynamoDB; all of it survives ``cdk destroy``."""

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
        self.bucket = s3.Bucket(
            self,
            "Data",
            bucket_name=settings.bucket_name,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
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
        )


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


def _alarms_may_publish() -> iam.PolicyStatement:
    """An alarm reaches an encrypted topic only if CloudWatch may use the topic's key."""
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["kms:Decrypt", "kms:GenerateDataKey*"],
        resources=["*"],
        conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
    )
