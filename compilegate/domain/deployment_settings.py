"""What a deployment may choose, read from the CDK context and checked before anything is built."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Form, Problem, Section, key
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import FactOverrides, OwnImage
from compilegate.domain.workload.names import price_problems, tag_problems

FILE = "cdk.json"
STAGE = re.compile(r"[a-z][a-z0-9-]{0,15}")
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
SUBNET = re.compile(r"subnet-[0-9a-f]+")
SECURITY_GROUP = re.compile(r"sg-[0-9a-f]+")
KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+")
# What IAM takes (its service model: arnType, roleNameType, pathType). With a dash at the end it
# would be the beginning of an ARN (naming.job_role_arn); {workload} alone is every role there is.
JOB_ROLE_ARN = re.compile(
    r"arn:aws[a-z-]*:iam::\d{12}:role/(?!\{workload\}$)[\w+=,.@/-]*(\{workload\}[\w+=,.@-]*)?(?<!-)"
)
POLICY_ARN = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+")
ROLE_PREFIX = re.compile(r"[\w+=,.@-]{1,20}")
ROLE_PATH = re.compile(r"/([\w+=,.@-]+/)+")
FUNCTION_ARN = re.compile(r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:[\w-]+(:[\w$-]+)?")
# Of CDK's DefaultStackSynthesizer.
QUALIFIER = re.compile(r"[a-z0-9]{1,10}")
# Who makes the roles of training jobs: the functions, or the account's administrators.
MANAGED, PROVIDED = "managed", "provided"
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
# Of Amazon Q Developer in chat applications (its service model: SlackTeamId, SlackChannelId).
WORKSPACE = re.compile(r"[0-9A-Z]{1,255}")
CHANNEL = re.compile(r"[A-Za-z0-9]{1,255}")
# What the keys of numbers end with.
NUMBERS = ("_days", "_usd")
# The only values that CloudWatch Logs accepts.
LOG_RETENTION_DAYS = (
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
    3288, 3653,
)  # fmt: skip
MOST_DAYS = 3650
# Of a VPC, the ids that a training job takes at most.
MOST_IDS = {"subnet_ids": 16, "security_group_ids": 5}
# Keys of the CDK itself: feature flags, looked-up values.
FOREIGN_KEY = re.compile(r"[@:/]")


def _usable(pattern: re.Pattern[str], what: str) -> Form:
    return Form(pattern, "is not usable", f"give {what}; it must match {pattern.pattern}")


def _each(pattern: re.Pattern[str], what: str) -> Form:
    return Form(pattern, "", f"list {what}; each must match {pattern.pattern}")


def _of_slack(pattern: re.Pattern[str]) -> Form:
    fix = f"copy it from Slack; it must match {pattern.pattern}"
    return Form(pattern, "is not an id of Slack", fix)


_ADDRESS = Form(EMAIL, "is not an e-mail address", "give one such as team@example.com")


def _address_problems(addresses: Mapping[str, str]) -> Iterator[Problem]:
    for owner, address in addresses.items():
        problem = _ADDRESS.problem_of(address)
        if problem:
            yield owner, *problem


@dataclass(frozen=True)
class Vpc(Section):
    """Where training jobs, or functions, get their network interfaces."""

    subnet_ids: tuple[str, ...] = key(
        "of training jobs", default=(), form=_each(SUBNET, "subnet ids")
    )
    security_group_ids: tuple[str, ...] = key(
        "of their network interfaces", default=(), form=_each(SECURITY_GROUP, "security group ids")
    )

    def problems(self) -> Iterator[Problem]:
        """No ids, or more than a job takes."""
        for name, most in MOST_IDS.items():
            if not 1 <= len(getattr(self, name)) <= most:
                yield name, f"must hold 1 to {most} ids", "or leave `vpc` out: null"


@dataclass(frozen=True)
class JobRules(Section):
    """What an organisation demands of the network and the images of every training job."""

    network_isolation: bool = key("no connection from a job to anything outside", default=False)
    encrypt_between_instances: bool = key("what instances of a job send each other", default=False)
    registry_credentials: str | None = key(
        "function that signs in to a registry", default=None, form=_usable(FUNCTION_ARN, "its ARN")
    )


@dataclass(frozen=True)
class Slack(Section):
    """A channel of a workspace that Amazon Q Developer has access to."""

    workspace_id: str = key("of the workspace", form=_of_slack(WORKSPACE))
    channel_id: str = key("of the channel", form=_of_slack(CHANNEL))


@dataclass(frozen=True, kw_only=True)
class Settings(Section):
    """One deployment; days are calendar days, prices US dollars per instance and hour.

    ``notification_email`` gets every message, ``owner_emails`` those about workloads of one owner.
    ``training_log_retention_days`` is about the log group of all training jobs of the account,
    which None leaves as it is. ``customer_key`` is the ARN of a key, None the key that the stack
    makes itself. ``job_role_arn`` has ``{workload}`` where a workload's name belongs, or is one
    role for all.
    """

    stage: str = key(
        "name of the deployment: stack, functions, flags",
        default=naming.DEFAULT_STAGE,
        form=_usable(STAGE, "a lower-case name such as dev"),
    )
    region: str = key(
        "where it is deployed", form=_usable(REGION, "an AWS region such as us-east-1")
    )
    bucket_name: str | None = key(
        "name of the data bucket", default=None, form=_usable(BUCKET, "an S3 bucket name")
    )
    existing_bucket: bool = key("whether that bucket is there already", default=False)
    stack_key: bool = key("whether the stack makes a key", default=True)
    vpc: Vpc | None = key("of training jobs", default=None)
    functions_vpc: Vpc | None = key("of the functions", default=None)
    jobs: JobRules = key("what every training job follows", factory=JobRules)
    input_buckets: tuple[str, ...] = key(
        "other buckets that training jobs may read",
        default=(),
        form=_each(BUCKET, "S3 bucket names"),
    )
    price_overrides: Mapping[str, float] = key(
        "your own prices", factory=dict, check=price_problems
    )
    image_overrides: tuple[OwnImage, ...] = key("your own images", default=())
    notification_email: str | None = key("who gets messages", default=None, form=_ADDRESS)
    owner_emails: Mapping[str, str] = key(
        "who gets messages of an owner",
        factory=dict,
        example="ml: team@example.com",
        check=_address_problems,
    )
    slack: Slack | None = key("a channel that gets messages", default=None)
    log_retention_days: int = key(
        "logs of functions and state machines", "days", default=90, low=1, high=MOST_DAYS
    )
    training_log_retention_days: int | None = key(
        "logs of training jobs", "days", default=None, low=1, high=MOST_DAYS
    )
    monthly_budget_usd: float | None = key(
        "a budget with an alarm", "US dollars a month", default=None, above=0
    )
    customer_key: str | None = key(
        "a key of your own for data, ledger and logs",
        default=None,
        form=Form(
            KEY_ARN,
            "is not usable",
            "give false, or the ARN of a key (arn:aws:kms:REGION:ACCOUNT:key/ID)",
        ),
    )
    experiment_retention_days: int = key(
        "requests and job output of trials", "days", default=90, low=1, high=MOST_DAYS
    )
    compile_cache_retention_days: int = key(
        "compiled code", "days", default=30, low=1, high=MOST_DAYS
    )

    job_roles: str = key(
        "who makes the roles of training jobs", default=MANAGED, allowed=(MANAGED, PROVIDED)
    )
    job_role_arn: str | None = key(
        "their ARN where they are provided", default=None, form=_usable(JOB_ROLE_ARN, "an ARN")
    )
    permissions_boundary: str | None = key(
        "of every role", default=None, form=_usable(POLICY_ARN, "the ARN of a policy")
    )
    role_prefix: str = key(
        "of every role's name", default="", form=_usable(ROLE_PREFIX, "a beginning such as ml-")
    )
    role_path: str | None = key(
        "of every role", default=None, form=_usable(ROLE_PATH, "a path such as /ml/")
    )
    tags: Mapping[str, str] = key(
        "of every resource, job and role", factory=dict, example="team: ml", check=tag_problems
    )
    bootstrap_qualifier: str | None = key(
        "of CDK's bootstrap stack", default=None, form=_usable(QUALIFIER, "that of cdk bootstrap")
    )

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """Read the app's own keys; raises InvalidInputError naming key, value and fix."""
        own = {
            key: _decoded(key, value)
            for key, value in context.items()
            if not FOREIGN_KEY.search(key)
        }
        if isinstance(own.get("customer_key"), bool):  # the stack's own key encrypts everything
            del own["customer_key"]
        try:
            return Fields(own, "context").read(cls)
        except InvalidInputError as error:
            raise error.in_file(FILE) from None

    def problems(self) -> Iterator[Problem]:
        """A key of another region, and retentions that CloudWatch Logs does not offer."""
        for name in ("log_retention_days", "training_log_retention_days"):
            days = getattr(self, name)
            if days is not None and days not in LOG_RETENTION_DAYS:
                allowed = ", ".join(str(day) for day in LOG_RETENTION_DAYS)
                yield name, "is not a CloudWatch Logs retention", f"use one of {allowed}"
        if self.customer_key and self.customer_key.split(":")[3] != self.region:
            yield "customer_key", "is a key of another region", f"give one of {self.region}"

    @property
    def facts(self) -> FactOverrides:
        """The deployment's own prices and images."""
        return FactOverrides(self.price_overrides, self.image_overrides)

    def for_functions(self) -> str:
        """The part that Lambdas read, as the JSON of their SETTINGS variable."""
        vpc = self.vpc and asdict(self.vpc)
        document = {
            "region": self.region, "facts": asdict(self.facts), "vpc": vpc, "tags": self.tags,
            "boundary": self.permissions_boundary, "jobs": asdict(self.jobs),
        }  # fmt: skip
        return json.dumps(document, sort_keys=True)


def _decoded(key: str, value: Any) -> Any:
    """``cdk --context key=value`` passes text only: everything but text is JSON."""
    is_json = key.endswith(NUMBERS) or value in ("true", "false")
    if isinstance(value, str) and (value[:1] in ("[", "{") or is_json):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
