"""The role that training jobs run as."""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from compilegate.domain import naming
from stacks.permissions import Statements, allow
from stacks.settings import Settings
from stacks.storage import TRAINING_LOGS, Storage

# AWS publishes these under one account per region; a registry's account says nothing more.
TRAINING_IMAGES = (
    "huggingface-*-training",
    "pytorch",
    "pytorch-training",
    "pytorch-trcomp-training",
    "tensorflow-training",
    "sagemaker-scikit-learn",
    "sagemaker-xgboost",
)
# A spot job continues from its own run's checkpoints; no job reads another's results.
CHECKPOINTS = (
    naming.checkpoint_prefix("*", "*", "*"),
    f"{naming.production_jobs_prefix('*', '*')}/checkpoints/",
)
READS = (naming.WORKLOADS_PREFIX, naming.COMPILE_CACHE_PREFIX)
# Not the requests beside the jobs' output: the state machine executes those as they are.
WRITES = (
    f"{naming.EXPERIMENTS_PREFIX}*/*/jobs/",
    f"{naming.production_jobs_prefix('*', '*')}/",
    naming.COMPILE_CACHE_PREFIX,
)


class TrainingRole(iam.Role):
    """The SageMaker execution role: the bucket's prefixes, the images, logs and metrics."""

    def __init__(
        self, scope: Construct, construct_id: str, *, storage: Storage, settings: Settings
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description=f"Compilegate {settings.stage}: what a training job may touch",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            ),
        )
        for statement in (
            *_data(storage),
            *_foreign_inputs(settings),
            *_images(self, settings),
            *_logs_and_metrics(self),
            *_network(settings),
        ):
            self.add_to_policy(statement)


def _data(storage: Storage) -> Statements:
    bucket = storage.bucket
    return [
        allow(
            ["s3:GetObject"],
            [bucket.arn_for_objects(f"{prefix}*") for prefix in (*READS, *CHECKPOINTS)],
        ),
        # SageMaker deletes a checkpoint in S3 when the job deletes it; else every save would stay,
        # and all of them would be written to the volume of the job that continues.
        allow(
            ["s3:DeleteObject"], [bucket.arn_for_objects(f"{prefix}*") for prefix in CHECKPOINTS]
        ),
        allow(
            ["s3:PutObject", "s3:AbortMultipartUpload"],
            [bucket.arn_for_objects(f"{prefix}*") for prefix in WRITES],
        ),
        allow(
            ["s3:ListBucket"],
            [bucket.bucket_arn],
            {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in sorted({*READS, *WRITES})]}},
        ),
        allow(["s3:GetBucketLocation"], [bucket.bucket_arn]),
        allow(["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"], storage.key_arns),
    ]


def _foreign_inputs(settings: Settings) -> Statements:
    """Data that a workload file names by URI, in buckets that the deployment lists."""
    arns = [f"arn:{Aws.PARTITION}:s3:::{name}" for name in settings.input_buckets]
    if not arns:
        return []
    return [
        allow(["s3:GetObject"], [f"{arn}/*" for arn in arns]),
        allow(["s3:ListBucket", "s3:GetBucketLocation"], arns),
    ]


def _images(scope: Construct, settings: Settings) -> Statements:
    region = Stack.of(scope).region
    own = sorted({_repository(image.uri) for image in settings.facts.images})
    return [
        allow(["ecr:GetAuthorizationToken"], ["*"]),  # knows no resources
        allow(
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            [
                f"arn:{Aws.PARTITION}:ecr:{region}:*:repository/{repository}"
                for repository in TRAINING_IMAGES
            ]
            + own,
        ),
    ]


def _repository(uri: str) -> str:
    """ARN of the repository that an image of the team's own lies in."""
    registry, _, image = uri.partition("/")
    account, _, _, region, *_ = registry.split(".")
    name = image.partition("@")[0].partition(":")[0]
    return f"arn:{Aws.PARTITION}:ecr:{region}:{account}:repository/{name}"


def _logs_and_metrics(scope: Construct) -> Statements:
    group = Stack.of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{TRAINING_LOGS}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    actions = ("CreateLogGroup", "CreateLogStream", "DescribeLogStreams", "PutLogEvents")
    return [
        allow([f"logs:{action}" for action in actions], [group]),
        allow(
            ["cloudwatch:PutMetricData"],
            ["*"],  # knows no resources; the condition narrows it
            {"StringEquals": {"cloudwatch:namespace": TRAINING_LOGS}},
        ),
    ]


def _network(settings: Settings) -> Statements:
    """Inside a VPC a job brings its own network interfaces."""
    if settings.vpc is None:
        return []
    actions = (
        "CreateNetworkInterface", "CreateNetworkInterfacePermission", "DeleteNetworkInterface",
        "DeleteNetworkInterfacePermission", "DescribeDhcpOptions", "DescribeNetworkInterfaces",
        "DescribeSecurityGroups", "DescribeSubnets", "DescribeVpcs",
    )  # fmt: skip
    # All resources, as SageMaker documents it: the interfaces do not exist beforehand.
    return [allow([f"ec2:{action}" for action in actions], ["*"])]
