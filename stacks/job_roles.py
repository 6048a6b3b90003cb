"""The roles that training jobs run as: what each may reach, and who may make one.

Functions make the roles themselves, one for each workload (compilegate/adapters/sagemaker.py),
unless they are provided; the stack owns their policy. It names the workload by a tag of the role,
so that a deployment changes what all of them may do at once.
"""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.deployment_settings import PROVIDED, Settings
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.names import PRIVATE_IMAGE
from stacks.checked_settings import job_role_names
from stacks.permissions import Statements, allow
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
# Where IAM keeps the roles of training jobs: a grant on this path is one on them alone.
PATH = "/compilegate/"
# The workload that a role was made for. A role without the tag matches nothing.
OWN = f"${{aws:PrincipalTag/{naming.ROLE_TAG_WORKLOAD}}}"
# IAM takes 6,144 characters of a managed policy; the rest of this one has at most 4,000.
ROOM = 2000
# A spot job continues from its own run's checkpoints; no job reads another's results.
CHECKPOINTS = (
    naming.checkpoint_prefix(OWN, "*", "*"),
    f"{naming.production_jobs_prefix(OWN, '*')}/checkpoints/",
)
READS = (f"{naming.WORKLOADS_PREFIX}{OWN}/", naming.compile_cache_prefix(OWN))
# Not the requests beside the jobs' output: the state machine executes those as they are.
WRITES = (
    f"{naming.jobs_prefix(OWN, '*')}/",
    f"{naming.production_jobs_prefix(OWN, '*')}/",
    naming.compile_cache_prefix(OWN),
)


class JobRoles(Construct):
    """``policy`` is what every job's role may do, and its boundary if there is no other.

    It stays when the stack goes: roles that functions have made are still under it. ``names`` are
    the roles as naming.job_role_arn takes them.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, storage: Storage, settings: Settings
    ) -> None:
        super().__init__(scope, construct_id)
        _check_room(settings)
        self.policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"Compilegate {settings.stage}: what a training job may touch",
            statements=[
                *_data(storage),
                *_foreign_inputs(settings),
                *_images(self, settings),
                *_logs_and_metrics(self),
                *_network(settings),
                *_registry(settings),
            ],
        )
        self.policy.apply_removal_policy(RemovalPolicy.RETAIN)
        self._settings = settings
        self._path = settings.role_path or PATH
        own = f"{self._path}{job_role_names(settings)}"
        self.names = settings.job_role_arn or (
            f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role{own}"
        )

    @property
    def all(self) -> str:
        """ARN pattern of the roles of every workload."""
        return naming.job_role_arn(self.names, "*")

    def environment(self) -> dict[str, str]:
        """What functions read of the roles: without a policy, they make none."""
        roles = {"JOB_ROLES": self.names}
        if self._settings.job_roles == PROVIDED:
            return roles
        return {**roles, "JOB_POLICY_ARN": self.policy.managed_policy_arn}

    def make(self) -> Statements:
        """Make a role that can do no more than ``policy``, delete one; no other change of any."""
        if self._settings.job_roles == PROVIDED:
            return []
        arn = self.policy.managed_policy_arn
        boundary = self._settings.permissions_boundary or arn
        bounded = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
        # "application" is a tag of what ran before the deployment, and may still run.
        tags = [
            naming.ROLE_TAG_WORKLOAD, naming.TAG_DEPLOYMENT, "application", *self._settings.tags,
        ]  # fmt: skip
        own_tags = {"ForAllValues:StringEquals": {"aws:TagKeys": tags}}
        return [
            # A role that is not there yet has no path to be found by.
            allow(["iam:GetRole"], [self.all, self.all.replace(self._path, "/", 1)]),
            allow(["iam:ListAttachedRolePolicies"], [self.all]),
            # One that is idle makes room for another where the account's quota is used up.
            allow(["iam:ListRoles"], ["*"]),  # knows no resources
            allow(["iam:DetachRolePolicy", "iam:DeleteRole"], [self.all]),
            allow(["iam:CreateRole", "iam:PutRolePermissionsBoundary"], [self.all], bounded),
            # A role is created with its tags; IAM knows no condition on its boundary here.
            allow(["iam:TagRole"], [self.all], own_tags),
            allow(
                ["iam:AttachRolePolicy"],
                [self.all],
                {"ArnEquals": {"iam:PolicyARN": arn}, **bounded},
            ),
        ]


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


def _check_room(settings: Settings) -> None:
    """Refuse, at synthesis, more buckets and images than the policy has room for."""
    arn = len('arn:aws-us-gov:s3:::/*",')
    buckets = sum(2 * (arn + len(name)) for name in settings.input_buckets)
    images = sum(len(one) for one in _repositories(settings))
    if buckets + images > ROOM:
        raise InvalidInputError(
            f"needs, with image_overrides, {buckets + images} characters of the policy of training "
            f"jobs, which has room for {ROOM}",
            field="input_buckets",
            value=len(settings.input_buckets),
            fix="name fewer buckets, or collect their data in one",
        )


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
    own = sorted({*_repositories(settings)})
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


def _repositories(settings: Settings) -> list[str]:
    """ARN of the repository of each image of the team's own that lies in ECR."""
    return [
        _repository(one.uri) for one in settings.facts.images if not PRIVATE_IMAGE.match(one.uri)
    ]


def _repository(uri: str) -> str:
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
    own = [
        Stack.of(scope).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{TRAINING_LOGS}:log-stream:{jobs}",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        for jobs in naming.job_patterns(OWN)
    ]
    actions = ("CreateLogGroup", "CreateLogStream", "DescribeLogStreams")
    return [
        allow([f"logs:{action}" for action in actions], [group]),
        allow(["logs:PutLogEvents"], own),
        allow(
            ["cloudwatch:PutMetricData"],
            ["*"],  # knows no resources; the condition narrows it
            {"StringEquals": {"cloudwatch:namespace": TRAINING_LOGS}},
        ),
    ]


def _registry(settings: Settings) -> Statements:
    """SageMaker signs in to a registry outside of ECR as the job's role.

    https://docs.aws.amazon.com/sagemaker/latest/dg/docker-containers-adapt-your-own-private-registry-authentication.html
    """
    function = settings.jobs.registry_credentials
    return [allow(["lambda:InvokeFunction"], [function])] if function else []


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
