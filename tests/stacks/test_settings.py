"""Context values: each wrong one gets an error that names key, value and fix."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

import app
from compilegate.domain.deployment_settings import FOREIGN_KEY, JobRules, Settings, Vpc
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request import build
from stacks.job_fields import check_job_fields

GOOD = {"stage": "prod", "region": "eu-west-1"}
FUNCTION = "arn:aws:lambda:eu-west-1:111122223333:function:sign-in"

VPC = {"subnet_ids": ["subnet-1"], "security_group_ids": ["sg-1"]}
WRONG = {
    "stage": ["Prod", "a" * 17, 3],
    "region": ["Frankfurt", None],
    "bucket_name": ["Has_Capitals", "two..dots"],
    "vpc": ["vpc-1"],
    "input_buckets": ["one-bucket", ["Has_Capitals"]],
    "notification_email": ["nobody"],
    "owner_emails": ["team@example.com"],
    "slack": ["C0123"],
    "log_retention_days": [31, "90d"],
    "experiment_retention_days": [0, 1.5],
    "compile_cache_retention_days": [-1],
    "training_log_retention_days": [31, 0],
    "monthly_budget_usd": [0, "much"],
    "functions_vpc": ["vpc-1"],
    "jobs": ["isolated"],
    "job_roles": ["mine"],
    "job_role_arn": [
        "role/mine",
        "arn:aws:iam::111122223333:role/ml-",
        "arn:aws:iam::111122223333:role/{workload}",  # every role of the account
    ],
    "permissions_boundary": ["Boundary"],
    "role_prefix": ["a b", "x" * 21],
    "role_path": ["ml", "/ml"],
    "tags": ["cost-centre"],
    "bootstrap_qualifier": ["my-qualifier"],
    "customer_key": ["alias/mine", "arn:aws:kms:ap-south-1:111122223333:key/1234abcd", 1],
}
# A wrong part of a section, and the place that is named.
WRONG_PARTS = [
    *(({"price_overrides": {"ml.g5.xlarge": usd}}, "context.price_overrides.ml.g5.xlarge")
      for usd in (0, -1, "1.41", True, None, 1e6)),
    ({"price_overrides": {"g5.xlarge": 1.0}}, "context.price_overrides.g5.xlarge"),
    ({"vpc": {"subnet_ids": ["subnet-1"]}}, "context.vpc.security_group_ids"),
    ({"vpc": {"security_group_ids": ["sg-1"]}}, "context.vpc.subnet_ids"),
    ({"vpc": {**VPC, "subnet_ids": ["sub-1"]}}, "context.vpc.subnet_ids"),
    ({"vpc": {**VPC, "id": 1}}, "context.vpc.id"),
    ({"owner_emails": {"ml": "nobody"}}, "context.owner_emails.ml"),
    ({"owner_emails": {"ml": None}}, "context.owner_emails.ml"),
    ({"slack": {"workspace_id": "T01"}}, "context.slack.channel_id"),
    ({"slack": {"workspace_id": "t 1", "channel_id": "C01"}}, "context.slack.workspace_id"),
    ({"slack": {"workspace_id": "T01", "channel_id": "#a"}}, "context.slack.channel_id"),
    ({"slack": {"workspace_id": "T0", "channel_id": "C0", "x": 1}}, "context.slack.x"),
    ({"jobs": {"network_isolation": "yes"}}, "context.jobs.network_isolation"),
    ({"jobs": {"registry_credentials": "sign-in"}}, "context.jobs.registry_credentials"),
    ({"tags": {"aws:x": "1"}}, "context.tags.aws:x"),
    ({"price_override": {}}, "did you mean `price_overrides`?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({key: value}, [f"cdk.json: context.{key}", "" if value is None else repr(value)])
          for key, values in WRONG.items() for value in values),
        *((changes, [place]) for changes, place in WRONG_PARTS),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_key_and_a_fix(changes, words):
    with pytest.raises(InvalidInputError) as caught:
        Settings.from_context({**GOOD, **changes})

    assert [] == [word for word in (*words, "Fix: ") if word not in str(caught.value)]


def test_cdk_json_and_the_page_of_settings_have_every_key():
    context = json.loads((app.REPOSITORY / "cdk.json").read_text())["context"]
    page = (app.REPOSITORY / "docs" / "deployment-settings.md").read_text()
    keys = list(Settings.keys())

    assert {name for name in context if not FOREIGN_KEY.search(name)} == set(keys)
    assert [] == [name for name in keys if f"`{name}`" not in page]


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
    assert settings.customer_key is None  # the stack's own key, as without it


def test_functions_get_what_they_need_as_json():
    more = {"tags": {"team": "ml"}, "permissions_boundary": "arn:aws:iam::aws:policy/x"}
    settings = Settings.from_context({**GOOD, "vpc": VPC, "price_overrides": {"ml.x.y": 2}, **more})

    facts = {"prices": {"ml.x.y": 2.0}, "images": []}
    expected = {"region": "eu-west-1", "vpc": VPC, "facts": facts}
    expected["jobs"] = asdict(JobRules())
    expected |= {"tags": {"team": "ml"}, "boundary": "arn:aws:iam::aws:policy/x"}
    assert expected == json.loads(settings.for_functions())


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


EVERY_RULE = JobRules(True, True, FUNCTION)


@pytest.mark.parametrize("rules", [JobRules(), EVERY_RULE], ids=["no rules", "every rule"])
@pytest.mark.parametrize("vpc", [None, Vpc(("subnet-1",), ("sg-1",))], ids=["no VPC", "VPC"])
def test_the_requests_of_a_deployment_have_supported_fields_only(vpc, rules):
    check_job_fields(Settings(stage="test", region="us-east-1", vpc=vpc, jobs=rules))


def test_a_field_that_step_functions_would_not_pass_on_is_refused(monkeypatch):
    extra = {"ProfilerConfig": {"S3OutputPath": ""}}
    monkeypatch.setattr(build, "_data", lambda *_: extra)

    with pytest.raises(InvalidInputError, match="ProfilerConfig"):
        check_job_fields(Settings(stage="test", region="us-east-1"))
