"""Who may do what: the exact set of roles for everything that matters, nothing wider elsewhere."""

from fnmatch import fnmatch

import pytest

from compilegate.facts import read
from stacks.functions import STEPS
from stacks.training_role import TRAINING_IMAGES
from tests.stacks.template import ACCOUNT, REGION, as_list

JOBS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/cg-*"
# Actions that know no resources; each is narrowed by its own nature or by a condition.
UNNARROWABLE = {
    "cloudwatch:PutMetricData",
    "ecr:GetAuthorizationToken",
    "sagemaker:ListTrainingJobs",
    "servicequotas:ListServiceQuotas",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    # What Step Functions needs to deliver its logs, granted as AWS documents it.
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
}


def only_key(template, kind):
    (key,) = template.of_type(kind)
    return key


def test_only_apply_flag_may_write_the_flag(template):
    flags = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/compilegate/prod/workloads/*/compiler"

    assert {"apply_flag": [flags]} == template.allowed("ssm:PutParameter")
    assert {} == template.allowed("ssm:DeleteParameter")


def test_only_the_machine_may_pass_a_role_and_only_the_training_role_to_sagemaker(template):
    training = next(key for key, owner in template.role_owners().items() if owner == "training")

    assert {"evaluate": [f"<{training}.Arn>"]} == template.allowed("iam:PassRole")
    (statement,) = [
        statement
        for statement in template.statements("evaluate")
        if "iam:PassRole" in as_list(statement["Action"])
    ]
    expected = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    assert expected == statement["Condition"]


def test_only_the_machine_may_publish(template):
    topic = f"<{only_key(template, 'AWS::SNS::Topic')}>"

    assert {"evaluate": [topic]} == template.allowed("sns:Publish")


def test_only_the_machine_may_start_training_jobs(template):
    assert {"evaluate": [JOBS]} == template.allowed("sagemaker:CreateTrainingJob")


def test_whoever_cleans_up_may_stop_jobs(template):
    owners = ("abort_trial", "evaluate", "judge_arms", "settle_run")

    assert {owner: [JOBS] for owner in owners} == template.allowed("sagemaker:StopTrainingJob")


def test_the_machine_invokes_its_functions_and_no_others(template):
    expected = sorted(f"<{template.function(step.name)[0]}.Arn>" for step in STEPS)

    assert {"evaluate": expected} == template.allowed("lambda:InvokeFunction")


def test_the_machine_reads_requests_and_nothing_else_of_the_bucket(template):
    allowed = template.allowed("s3:GetObject")["evaluate"]

    assert ["/experiments/*/requests/*"] == [arn.partition(">")[2] for arn in allowed]
    assert "evaluate" not in template.allowed("s3:PutObject")


def test_the_machine_manages_only_the_rule_that_sync_needs(template):
    rule = (
        f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForSageMakerTrainingJobsRule"
    )

    assert {"evaluate": [rule]} == template.allowed("events:PutRule")


@pytest.mark.parametrize(
    ("action", "owners"),
    [
        (
            "dynamodb:PutItem",
            {
                "abort_trial",
                "acquire_lock",
                "apply_flag",
                "judge_arms",
                "open_canary",
                "record_decision",
            },
        ),
        ("dynamodb:DeleteItem", {"abort_trial", "release_lock"}),
        ("dynamodb:UpdateItem", set()),
        (
            "dynamodb:Query",
            {
                "abort_trial",
                "apply_flag",
                "check_eligibility",
                "judge_arms",
                "open_canary",
                "plan_trial",
                "release_models",
            },
        ),
        ("s3:DeleteObject", set()),
        ("servicequotas:ListServiceQuotas", {"plan_trial"}),
        (
            "s3:PutObject",
            {
                "check_eligibility",
                "judge_arms",
                "plan_trial",
                "settle_run",
                "training",
                "write_report",
            },
        ),
    ],
)
def test_exactly_these_may(template, action, owners):
    assert owners == set(template.allowed(action))


def test_settling_a_run_writes_down_what_it_stopped_and_nothing_else(template):
    writes = [arn.partition(">")[2] for arn in template.allowed("s3:PutObject")["settle_run"]]

    assert ["/experiments/*/stopped/*"] == writes


def test_history_can_be_added_to_but_not_removed(template):
    deletes = [
        statement
        for owner in template.role_owners().values()
        for statement in template.statements(owner)
        if "dynamodb:DeleteItem" in as_list(statement["Action"])
    ]

    for statement in deletes:
        keys = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
        assert ["lock#*"] == keys


def test_functions_that_look_for_what_may_be_absent_can_tell_absent_from_denied(template):
    """Without s3:ListBucket, S3 answers 403 where the code expects 404."""
    allowed = template.allowed("s3:ListBucket")

    expected = {
        "check_eligibility", "judge_arms", "plan_trial", "settle_run", "training", "write_report",
    }  # fmt: skip
    assert expected == set(allowed)


def test_training_touches_its_prefixes_only(template):
    reads = [arn.partition(">")[2] for arn in template.allowed("s3:GetObject")["training"]]
    writes = [arn.partition(">")[2] for arn in template.allowed("s3:PutObject")["training"]]

    expected = ["/compile-cache/*", "/experiments/*/*/jobs/checkpoints/*/*", "/workloads/*"]
    assert expected == reads
    # Not the requests, which the state machine executes as they are.
    assert ["/compile-cache/*", "/experiments/*/*/jobs/*"] == writes


def test_training_lists_its_prefixes_only(template):
    (statement,) = [
        statement
        for statement in template.statements("training")
        if "s3:ListBucket" in as_list(statement["Action"])
    ]

    expected = ["compile-cache/*", "experiments/*/*/jobs/*", "workloads/*"]
    assert expected == statement["Condition"]["StringLike"]["s3:prefix"]


def test_training_pulls_training_images_only(template):
    arns = template.allowed("ecr:BatchGetImage")["training"]

    assert all(arn.startswith(f"arn:aws:ecr:{REGION}:*:repository/") for arn in arns)
    assert "*" not in {arn.rpartition("/")[2] for arn in arns}
    assert "training" in template.allowed("ecr:GetAuthorizationToken")


def test_training_may_not_start_jobs_invoke_publish_or_touch_the_ledger(template):
    actions = {
        action
        for statement in template.statements("training")
        for action in as_list(statement["Action"])
    }

    assert {"cloudwatch", "ecr", "kms", "logs", "s3"} == {
        action.split(":")[0] for action in actions
    }


def test_buckets_that_hold_foreign_inputs_are_read_only(changed):
    assert "arn:aws:s3:::corpus/*" in changed.allowed("s3:GetObject")["training"]
    assert "arn:aws:s3:::corpus/*" not in changed.allowed("s3:PutObject")["training"]


def test_training_may_pull_the_images_that_the_deployment_brings(template, changed):
    def repositories(found):
        return set(found.allowed("ecr:BatchGetImage")["training"])

    own = "arn:aws:ecr:us-east-1:210987654321:repository"
    assert {f"{own}/team/train", f"{own}/train"} == repositories(changed) - repositories(template)


def test_no_statement_allows_everything(template):
    for owner in template.role_owners().values():
        for statement in template.statements(owner):
            actions = as_list(statement["Action"])
            assert not [action for action in actions if action.endswith(":*") or action == "*"]
            if "*" in as_list(statement["Resource"]):
                assert set(actions) <= UNNARROWABLE, (owner, actions)


def test_every_role_is_trusted_to_one_service_and_carries_no_managed_policy(template):
    for key, role in template.of_type("AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert ["Service"] == list(statement["Principal"]), key
        assert "ManagedPolicyArns" not in role["Properties"], key


def test_a_role_belongs_to_one_function(template):
    owners = template.role_owners()

    assert len(template.of_type("AWS::IAM::Role")) == len(owners)
    assert sorted({step.name for step in STEPS} | {"evaluate", "training"}) == sorted(
        owners.values()
    )


def test_training_may_pull_every_image_that_the_facts_know(template):
    """A repository that no pattern covers would fail every job at the pull."""
    patterns = TRAINING_IMAGES
    facts = (*read("framework_images")["images"], *read("compiler_versions")["versions"])
    for repository in {row["repository"] for row in facts}:
        assert any(fnmatch(repository, pattern) for pattern in patterns), repository
