"""Context values: each wrong one gets an error that names key, value and fix."""

import json
import os
import subprocess
import sys

import pytest

import app
from compilegate.domain.errors import InvalidInputError
from stacks.settings import CustomerKey, Settings, Vpc

GOOD = {"stage": "prod", "region": "eu-west-1"}


def error_of(**changes):
    with pytest.raises(InvalidInputError) as caught:
        Settings.from_context({**GOOD, **changes})
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stage", "Prod"),
        ("stage", "a" * 17),
        ("stage", 3),
        ("region", "Frankfurt"),
        ("region", None),
        ("bucket_name", "Has_Capitals"),
        ("bucket_name", "two..dots"),
        ("vpc", "vpc-1"),
        ("input_buckets", "one-bucket"),
        ("input_buckets", ["Has_Capitals"]),
        ("notification_email", "nobody"),
        ("owner_emails", "team@example.com"),
        ("slack", "C0123"),
        ("log_retention_days", 31),
        ("log_retention_days", "90d"),
        ("experiment_retention_days", 0),
        ("experiment_retention_days", 1.5),
        ("compile_cache_retention_days", -1),
        ("training_log_retention_days", 31),
        ("training_log_retention_days", 0),
        ("monthly_budget_usd", 0),
        ("monthly_budget_usd", "much"),
        ("customer_key", "alias/mine"),
        ("customer_key", "arn:aws:kms:ap-south-1:111122223333:key/1234abcd"),
        ("customer_key", 1),
    ],
)
def test_a_wrong_value_is_named_with_its_key_and_a_fix(key, value):
    message = error_of(**{key: value})

    assert f"cdk.json: context.{key}" in message
    assert "Fix: " in message
    if value is not None:
        assert repr(value) in message


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"owner_emails": {"ml": "nobody"}}, "context.owner_emails.ml"),
        ({"owner_emails": {"ml": None}}, "context.owner_emails.ml"),
        ({"slack": {"workspace_id": "T01"}}, "context.slack.channel_id"),
        ({"slack": {"workspace_id": "t 1", "channel_id": "C01"}}, "context.slack.workspace_id"),
        ({"slack": {"workspace_id": "T01", "channel_id": "#a"}}, "context.slack.channel_id"),
        ({"slack": {"workspace_id": "T0", "channel_id": "C0", "x": 1}}, "context.slack.x"),
    ],
)
def test_a_wrong_recipient_is_named_with_its_key_and_a_fix(changes, place):
    message = error_of(**changes)

    assert place in message
    assert "Fix: " in message


@pytest.mark.parametrize("usd", [0, -1, "1.41", True, None, 1e6])
def test_a_price_that_is_no_price_is_named_with_its_instance(usd):
    message = error_of(price_overrides={"ml.g5.xlarge": usd})

    assert "context.price_overrides.ml.g5.xlarge" in message


def test_a_price_for_something_that_is_no_instance_is_refused():
    assert "context.price_overrides.g5.xlarge" in error_of(price_overrides={"g5.xlarge": 1.0})


@pytest.mark.parametrize(
    ("vpc", "key"),
    [
        ({"subnet_ids": ["subnet-1"]}, "vpc.security_group_ids"),
        ({"security_group_ids": ["sg-1"]}, "vpc.subnet_ids"),
        ({"subnet_ids": ["sub-1"], "security_group_ids": ["sg-1"]}, "vpc.subnet_ids"),
        ({"subnet_ids": ["subnet-1"], "security_group_ids": ["sg-1"], "id": 1}, "vpc.id"),
    ],
)
def test_a_vpc_needs_subnets_and_security_groups_and_nothing_else(vpc, key):
    assert f"context.{key}" in error_of(vpc=vpc)


def test_a_misspelt_key_is_refused_with_the_likely_one():
    assert "did you mean `price_overrides`?" in error_of(price_override={})


def test_the_cdks_own_keys_are_left_alone():
    Settings.from_context({**GOOD, "@aws-cdk/core:flag": True, "aws:cdk:x": 1})


def test_a_missing_region_is_named():
    with pytest.raises(InvalidInputError, match=r"context\.region: is missing"):
        Settings.from_context({"stage": "prod"})


def test_what_the_command_line_hands_over_as_text_is_read_as_json():
    given = {
        **GOOD,
        "vpc": '{"subnet_ids": ["subnet-1a"], "security_group_ids": ["sg-2b"]}',
        "price_overrides": '{"ml.g5.xlarge": 1.2}',
        "log_retention_days": "30",
        "monthly_budget_usd": "1500.5",
        "customer_key": "true",
    }

    settings = Settings.from_context(given)

    assert Vpc(("subnet-1a",), ("sg-2b",)) == settings.vpc
    assert {"ml.g5.xlarge": 1.2} == settings.facts.prices
    assert 30 == settings.log_retention_days
    assert 1500.5 == settings.monthly_budget_usd
    assert CustomerKey() == settings.customer_key


def test_functions_get_what_they_need_as_json():
    vpc = {"subnet_ids": ["subnet-1"], "security_group_ids": ["sg-1"]}
    settings = Settings.from_context({**GOOD, "vpc": vpc, "price_overrides": {"ml.x.y": 2}})

    facts = {"prices": {"ml.x.y": 2.0}, "images": []}
    expected = {"region": "eu-west-1", "vpc": vpc, "facts": facts}
    assert expected == json.loads(settings.for_functions())


def test_the_shipped_context_is_valid():
    assert "prod" == Settings.from_context(app.default_context()).stage


def test_the_app_ends_with_one_line_and_no_traceback():
    result = subprocess.run(
        [sys.executable, "app.py"],
        cwd=app.REPOSITORY,
        env={**os.environ, "CDK_CONTEXT_JSON": json.dumps({**GOOD, "stage": "NO"})},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == result.returncode
    assert result.stderr.startswith("error: cdk.json: context.stage: is not usable (got 'NO').")
    assert 1 == len(result.stderr.splitlines())
