"""Partitions: what the template says there. What is refused before a template is made."""

import json
import re

import pytest

import app
from compilegate.domain.errors import InvalidInputError
from tests.stacks.template import TEMPLATE

PARTITIONS = {"cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"}


@pytest.fixture(scope="module", params=PARTITIONS)
def elsewhere(request, synthesise):
    """(region, text of the template there)."""
    return request.param, (synthesise(region=request.param) / TEMPLATE).read_text()


def test_every_arn_is_of_the_partition(elsewhere):
    region, text = elsewhere

    assert {PARTITIONS[region]} == set(re.findall(r"arn:(aws[a-z-]*):", text))
    assert f"arn:{PARTITIONS[region]}:states:::sagemaker:createTrainingJob.sync" in text


def test_names_of_services_have_the_suffix_of_the_partition(elsewhere):
    region, text = elsewhere
    suffix = "amazonaws.com.cn" if region == "cn-north-1" else "amazonaws.com"
    (key,) = [
        one["Properties"]["KeyPolicy"]
        for one in json.loads(text)["Resources"].values()
        if one["Type"] == "AWS::KMS::Key"
    ]
    here = {"Ref": "AWS::Region"}
    named = {"Fn::Join": ["", ["logs.", here, f".{suffix}"]]}
    through = {"Fn::Join": ["", ["dynamodb.", here, f".{suffix}"]]}

    assert named in [one["Principal"].get("Service") for one in key["Statement"]]
    assert json.dumps(through) in json.dumps(json.loads(text))


BOUNDARY = "arn:aws:iam::123456789012:policy/Boundary"
PRIVATE = {"framework": "pytorch", "version": "2.8.0", "uri": "registry.example.com:5000/train:1"}
SLACK = {"workspace_id": "T01ABC", "channel_id": "C02DEF"}


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"job_roles": "provided"}, "job_role_arn", "does not go with"),
        ({"stage": "s" * 16, "role_prefix": "x" * 6}, "role_prefix", "at most 5 characters"),
        ({"existing_bucket": True}, "existing_bucket", "give bucket_name"),
        ({"stack_key": False}, "stack_key", "give customer_key"),
        ({"image_overrides": [PRIVATE]}, "image_overrides", "registry.example.com"),
        ({"region": "eu-west-9"}, "region", "does not have cloudformation"),
        ({"region": "xx-nowhere-9"}, "region", "is no region of AWS"),
        ({"region": "us-gov-west-1", "monthly_budget_usd": 5}, "monthly_budget_usd", "Budgets"),
        ({"region": "cn-north-1", "slack": SLACK}, "slack", "chat"),
        ({"region": "cn-north-1", "permissions_boundary": BOUNDARY}, "permissions_boundary",
         "arn:aws-cn:"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named_before_anything_is_made(
    tmp_path, changes, field, words
):
    with pytest.raises(InvalidInputError, match=words) as caught:
        app.synthesise({**app.default_context(), **changes}, tmp_path)

    assert f"context.{field}" == caught.value.field
    assert [] == list(tmp_path.iterdir())
