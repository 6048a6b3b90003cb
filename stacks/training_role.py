"""Whom training jobs run as."""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from compilegate.domain import naming
from stacks.settings import Settings
from stacks.storage import Storage

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
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# A spot job goes on from its own run's checkpoints; no job reads another's results.
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


def _data(storage: Storage) -> list[iam.PolicyStatement]:
    bucket = storage.bucket
    return [
        _allow(
            ["s3:GetObject"],
            [bucket.arn_for_objects(f"{prefix}*") for prefix in (*READS, *CHECKPOINTS)],
        ),
        # SageMaker deletes a checkpoint in S3 when the job deletes it; else every save would stay,
        # and all of them would be written to the volume of the job that goes on.
        _allow(
            ["s3:DeleteObject"], [bucket.arn_for_objects(f"{prefix}*") for prefix in CHECKPOINTS]
        ),
        _allow(
            ["s3:PutObject", "s3:AbortMultipartUpload"],
            [bucket.arn_for_objects(f"{prefix}*") for prefix in WRITES],
        ),
        _allow(
            ["s3:ListBucket"],
            [bucket.bucket_arn],
            {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in sorted({*READS, *WRITES})]}},
        ),
        _allow(["s3:GetBucketLocation"], [bucket.bucket_arn]),
        _allow(["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"], storage.key_arns),
    ]


def _foreign_inputs(settings: Settings) -> list[iam.PolicyStatement]:
    """Data that a workload file names by URI, in buckets that the deployment lists."""
    arns = [f"arn:{Aws.PARTITION}:s3:::{name}" for name in settings.input_buckets]
    if not arns:
        return []
    return [
        _allow(["s3:GetObject"], [f"{arn}/*" for arn in arns]),
        _allow(["s3:ListBucket", "s3:GetBucketLocation"], arns),
    ]


def _images(scope: Construct, settings: Settings) -> list[iam.PolicyStatement]:
    region = Stack.of(scope).region
    own = sorted({_repository(image.uri) for image in settings.facts.images})
    return [
        _allow(["ecr:GetAuthorizationToken"], ["*"]),  # knows no resources
        _allow(
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


def _logs_and_metrics(scope: Construct) -> list[iam.PolicyStatement]:
    group = Stack.of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{LOG_GROUP}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return [
        _allow(
            [
                "logs:CreateLogGroup",
                "logs:CreateLogStream",
                "logs:DescribeLogStreams",
                "logs:PutLogEvents",
            ],
            [group],
        ),
        _allow(
            ["cloudwatch:PutMetricData"],
            ["*"],  # knows no resources; the condition narrows it
            {"StringEquals": {"cloudwatch:namespace": LOG_GROUP}},
        ),
    ]


def _network(settings: Settings) -> list[iam.PolicyStatement]:
    """Inside a VPC a job brings its own network interfaces."""
    if settings.vpc is None:
        return []
    return [
        _allow(
            [
                "ec2:CreateNetworkInterface",
                "ec2:CreateNetworkInterfacePermission",
                "ec2:DeleteNetworkInterface",
                "ec2:DeleteNetworkInterfacePermission",
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcs",
            ],
            ["*"],  # as SageMaker documents it: interfaces do not exist beforehand
        )
    ]


def _allow(
    actions: list[str], resources: list[str], conditions: dict[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
