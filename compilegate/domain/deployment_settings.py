"""What a deployment may choose, read from the CDK context and checked before anything is built."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import FactOverrides
from compilegate.domain.workload.own_facts import own_images, prices

FILE = "cdk.json"
STAGE = re.compile(r"[a-z][a-z0-9-]{0,15}")
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
SUBNET = re.compile(r"subnet-[0-9a-f]+")
SECURITY_GROUP = re.compile(r"sg-[0-9a-f]+")
KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+")
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
# Keys of the CDK itself: feature flags, looked-up values.
FOREIGN_KEY = re.compile(r"[@:/]")


@dataclass(frozen=True)
class Vpc:
    """Where training jobs get their network interfaces."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


@dataclass(frozen=True)
class Slack:
    """A channel of a workspace that Amazon Q Developer has access to."""

    workspace_id: str
    channel_id: str


@dataclass(frozen=True)
class Recipients:
    """``email`` gets every message, ``owner_emails`` those about workloads of one owner."""

    email: str | None = None
    owner_emails: Mapping[str, str] = field(default_factory=dict)
    slack: Slack | None = None


@dataclass(frozen=True)
class Settings:
    """One deployment; days are calendar days, prices US dollars per instance and hour.

    ``training_log_retention_days`` is about the log group of all training jobs of the account,
    which None leaves as it is. ``customer_key`` is the ARN of a key for data, ledger and logs, None
    the key that the stack makes itself.
    """

    stage: str
    region: str
    bucket_name: str | None = None
    vpc: Vpc | None = None
    input_buckets: tuple[str, ...] = ()
    facts: FactOverrides = field(default_factory=FactOverrides)
    recipients: Recipients = field(default_factory=Recipients)
    log_retention_days: int = 90
    experiment_retention_days: int = 90
    compile_cache_retention_days: int = 30
    training_log_retention_days: int | None = None
    monthly_budget_usd: float | None = None
    customer_key: str | None = None

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """Read the app's own keys; raises InvalidInputError naming key, value and fix."""
        own = {
            key: _decoded(key, value)
            for key, value in context.items()
            if not FOREIGN_KEY.search(key)
        }
        fields = Fields(own, "context")
        try:
            settings = cls(
                stage=_matching(
                    fields, "stage", STAGE, "a lower-case name such as dev", naming.DEFAULT_STAGE
                ),
                region=_matching(fields, "region", REGION, "an AWS region such as us-east-1"),
                bucket_name=_matching(fields, "bucket_name", BUCKET, "an S3 bucket name", None),
                vpc=_vpc(fields.optional_section("vpc")),
                input_buckets=_list(fields, "input_buckets", BUCKET, "S3 bucket names"),
                facts=FactOverrides(
                    prices(fields, "price_overrides"), own_images(fields, "image_overrides")
                ),
                recipients=Recipients(
                    email=_email(fields, "notification_email", None),
                    owner_emails=_owner_emails(fields),
                    slack=_slack(fields.optional_section("slack")),
                ),
                log_retention_days=_log_retention(fields, "log_retention_days", 90),
                training_log_retention_days=_log_retention(
                    fields, "training_log_retention_days", None
                ),
                monthly_budget_usd=fields.number(
                    "monthly_budget_usd", "US dollars a month", above=0, default=None
                ),
                customer_key=_customer_key(fields),
                experiment_retention_days=_days(fields, "experiment_retention_days", 90),
                compile_cache_retention_days=_days(fields, "compile_cache_retention_days", 30),
            )
            fields.done()
        except InvalidInputError as error:
            raise error.in_file(FILE) from None
        return settings

    def for_functions(self) -> str:
        """The part that Lambdas read, as the JSON of their SETTINGS variable."""
        vpc = self.vpc and {
            "subnet_ids": list(self.vpc.subnet_ids),
            "security_group_ids": list(self.vpc.security_group_ids),
        }
        document = {"region": self.region, "facts": asdict(self.facts), "vpc": vpc}
        return json.dumps(document, sort_keys=True)


def _customer_key(fields: Fields) -> str | None:
    """A flag is of releases whose stack's own key did not encrypt ledger and logs by default."""
    value = fields.text_or_flag("customer_key", default=False)
    if isinstance(value, bool):
        return None
    if not KEY_ARN.fullmatch(value):
        fix = "give false, or the ARN of a key (arn:aws:kms:REGION:ACCOUNT:key/ID)"
        raise fields.wrong("customer_key", "is not usable", fix)
    region = fields.text("region")
    if value.split(":")[3] != region:
        raise fields.wrong("customer_key", "is a key of another region", f"give one of {region}")
    return str(value)


def _decoded(key: str, value: Any) -> Any:
    """``cdk --context key=value`` passes text only: everything but text is JSON."""
    is_json = key.endswith(NUMBERS) or value in ("true", "false")
    if isinstance(value, str) and (value[:1] in ("[", "{") or is_json):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _matching(fields: Fields, key: str, pattern: re.Pattern[str], what: str, *default: Any) -> Any:
    value = fields.text(key, *default)
    if value is not None and not pattern.fullmatch(value):
        raise fields.wrong(key, "is not usable", f"give {what}; it must match {pattern.pattern}")
    return value


def _list(fields: Fields, key: str, pattern: re.Pattern[str], what: str) -> tuple[str, ...]:
    values: tuple[str, ...] = fields.texts(key)
    for value in values:
        if not pattern.fullmatch(value):
            fix = f"list {what}; each must match {pattern.pattern}"
            raise fields.wrong(key, f"holds {value!r}", fix)
    return values


def _vpc(fields: Fields | None) -> Vpc | None:
    if fields is None:
        return None
    vpc = Vpc(
        _list(fields, "subnet_ids", SUBNET, "subnet ids"),
        _list(fields, "security_group_ids", SECURITY_GROUP, "security group ids"),
    )
    for key, values, most in (
        ("subnet_ids", vpc.subnet_ids, 16),
        ("security_group_ids", vpc.security_group_ids, 5),
    ):
        if not 1 <= len(values) <= most:
            raise fields.wrong(key, f"must hold 1 to {most} ids", "or leave `vpc` out: null")
    fields.done()
    return vpc


def _owner_emails(fields: Fields) -> dict[str, str]:
    addresses: Mapping[str, object] = fields.mapping("owner_emails")
    section = Fields(addresses, fields.path("owner_emails"))
    return {owner: _email(section, owner) for owner in addresses}


def _email(fields: Fields, key: str, *default: None) -> Any:
    value = fields.text(key, *default)
    if value is not None and not EMAIL.fullmatch(value):
        raise fields.wrong(key, "is not an e-mail address", "give one such as team@example.com")
    return value


def _slack(fields: Fields | None) -> Slack | None:
    if fields is None:
        return None
    slack = Slack(fields.text("workspace_id"), fields.text("channel_id"))
    for key, value, pattern in (
        ("workspace_id", slack.workspace_id, WORKSPACE),
        ("channel_id", slack.channel_id, CHANNEL),
    ):
        if not pattern.fullmatch(value):
            fix = f"copy it from Slack; it must match {pattern.pattern}"
            raise fields.wrong(key, "is not an id of Slack", fix)
    fields.done()
    return slack


def _days(fields: Fields, key: str, default: int | None) -> Any:
    return fields.integer(key, "days", low=1, high=3650, default=default)


def _log_retention(fields: Fields, key: str, default: int | None) -> Any:
    """A retention that CloudWatch Logs offers; ``default`` where the key is absent or null."""
    days = _days(fields, key, default)
    if days is not None and days not in LOG_RETENTION_DAYS:
        allowed = ", ".join(str(day) for day in LOG_RETENTION_DAYS)
        raise fields.wrong(key, "is not a CloudWatch Logs retention", f"use one of {allowed}")
    return days
