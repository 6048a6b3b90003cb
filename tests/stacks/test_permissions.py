"""Who may do what: the exact set of roles for everything that matters, nothing wider elsewhere."""

from fnmatch import fnmatch

import pytest

from compilegate.facts import read
from stacks.functions import STEPS
from stacks.training_role import TRAINING_IMAGES
from tests.stacks.template import ACCOUNT, REGION, as_list

MACHINES = ("evaluate", "train")
JOBS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/cg-*"
# Actions that know no resources; each is narrowed by its own nature or by a condition.
UNNARROWABLE = {
    "cloudwatch:PutMetricData",
    "ecr:GetAuthorizationToken",
    "sagemaker:ListTrainingJobs",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
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


def test_only_those_that_decide_about_the_flag_may_write_it(template):
    flags = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/compilegate/prod/workloads/*/compiler"

    owners = ("apply_flag", "read_flag", "record_run", "watch_production")
    assert {owner: [flags] for owner in owners} == template.allowed("ssm:PutParameter")
    assert {} == template.allowed("ssm:DeleteParameter")


def test_only_machines_may_pass_a_role_and_only_the_training_role_to_sagemaker(template):
    training = next(key for key, owner in template.role_owners().items() if owner == "training")

    passed = {machine: [f"<{training}.Arn>"] for machine in MACHINES}
    assert passed == template.allowed("iam:PassRole")
    for machine in MACHINES:
        (statement,) = [
            statement
            for statement in template.statements(machine)
            if "iam:PassRole" in as_list(statement["Action"])
        ]
        expected = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
        assert expected == statement["Condition"]


def test_only_machines_and_scheduled_functions_may_publish(template):
    topic = f"<{only_key(template, 'AWS::SNS::Topic')}>"

    tellers = (*MACHINES, "sweep", "weekly_digest")
    assert {teller: [topic] for teller in tellers} == template.allowed("sns:Publish")


def test_only_machines_may_start_training_jobs(template):
    assert {machine: [JOBS] for machine in MACHINES} == template.allowed(
        "sagemaker:CreateTrainingJob"
    )


def test_whoever_cleans_up_may_stop_jobs(template):
    owners = (
        "abort_trial", "evaluate", "judge_arms", "record_run", "settle_run", "sweep", "train",
    )  # fmt: skip

    assert {owner: [JOBS] for owner in owners} == template.allowed("sagemaker:StopTrainingJob")


def test_a_machine_invokes_its_functions_and_no_others(template):
    expected = {
        machine: sorted(
            f"<{template.function(step.name)[0]}.Arn>{version}"
            for step in STEPS
            if step.machine == machine
            for version in ("", ":*")
        )
        for machine in MACHINES
    }

    assert expected == template.allowed("lambda:InvokeFunction")


@pytest.mark.parametrize(
    ("machine", "requests"),
    [("evaluate", "/experiments/*/requests/*"), ("train", "/production/*/*/requests/*")],
)
def test_a_machine_reads_its_requests_and_nothing_else_of_the_bucket(template, machine, requests):
    allowed = template.allowed("s3:GetObject")[machine]

    assert [requests] == [arn.partition(">")[2] for arn in allowed]
    assert machine not in template.allowed("s3:PutObject")


def test_machines_manage_only_the_rule_that_sync_needs(template):
    rule = (
        f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForSageMakerTrainingJobsRule"
    )

    assert {machine: [rule] for machine in MACHINES} == template.allowed("events:PutRule")


def test_a_teams_job_starts_production_runs_and_nothing_else(template):
    train, _ = template.machines()["train"]

    assert [f"<{train}>"] == template.allowed("states:StartExecution")["events"]


@pytest.mark.parametrize(
    ("action", "owners"),
    [
        (
            "dynamodb:PutItem",
            {
                "abort_trial",
                "acquire_lock",
                "apply_flag",
                "ask_approval",
                "await_approval",
                "close_approval",
                "judge_arms",
                "open_canary",
                "read_flag",
                "record_decision",
                "record_run",
                "sweep",
                "watch_production",
            },
        ),
        ("dynamodb:DeleteItem", {"abort_trial", "release_lock", "sweep"}),
        ("dynamodb:UpdateItem", set()),
        (
            "dynamodb:Query",
            {
                "abort_trial",
                "acquire_lock",
                "apply_flag",
                "await_approval",
                "build_request",
                "check_eligibility",
                "close_approval",
                "judge_arms",
                "open_canary",
                "plan_trial",
                "read_flag",
                "record_run",
                "release_models",
                "sweep",
                "watch_production",
                "weekly_digest",
            },
        ),
        ("s3:DeleteObject", {"training"}),
        ("servicequotas:GetServiceQuota", {"plan_trial"}),
        ("servicequotas:GetAWSDefaultServiceQuota", {"plan_trial"}),
        ("servicequotas:ListServiceQuotas", {"plan_trial"}),
        (
            "s3:PutObject",
            {
                "apply_flag",
                "build_request",
                "check_eligibility",
                "judge_arms",
                "plan_trial",
                "settle_run",
                "training",
                "watch_production",
                "write_report",
            },
        ),
    ],
)
def test_exactly_these_may(template, action, owners):
    assert owners == set(template.allowed(action))


def test_settling_a_run_writes_what_it_stopped_and_withdrew_and_nothing_else(template):
    writes = [arn.partition(">")[2] for arn in template.allowed("s3:PutObject")["settle_run"]]

    assert ["/experiments/*/requests/*", "/experiments/*/stopped/*"] == sorted(writes)


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
        "check_eligibility", "judge_arms", "plan_trial", "read_flag", "record_decision",
        "record_run", "settle_run", "sweep", "training", "watch_production", "weekly_digest",
        "write_report",
    }  # fmt: skip
    assert expected == set(allowed)


def test_training_touches_its_prefixes_only(template):
    reads = [arn.partition(">")[2] for arn in template.allowed("s3:GetObject")["training"]]
    writes = [arn.partition(">")[2] for arn in template.allowed("s3:PutObject")["training"]]

    expected = [
        "/compile-cache/*",
        "/experiments/*/*/jobs/checkpoints/*/*",
        "/production/*/*/jobs/checkpoints/*",
        "/workloads/*",
    ]
    assert expected == reads
    # Not the requests, which the state machine executes as they are.
    assert ["/compile-cache/*", "/experiments/*/*/jobs/*", "/production/*/*/jobs/*"] == writes


def test_training_deletes_checkpoints_only(template):
    deletes = [arn.partition(">")[2] for arn in template.allowed("s3:DeleteObject")["training"]]

    expected = ["/experiments/*/*/jobs/checkpoints/*/*", "/production/*/*/jobs/checkpoints/*"]
    assert expected == deletes


def test_training_lists_its_prefixes_only(template):
    (statement,) = [
        statement
        for statement in template.statements("training")
        if "s3:ListBucket" in as_list(statement["Action"])
    ]

    expected = [
        "compile-cache/*", "experiments/*/*/jobs/*", "production/*/*/jobs/*", "workloads/*",
    ]  # fmt: skip
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
    others = {*MACHINES, "training", "events", "scheduler"}
    assert sorted({step.name for step in STEPS} | others) == sorted(owners.values())


def test_training_may_pull_every_image_that_the_facts_know(template):
    """A repository that no pattern covers would fail every job at the pull."""
    patterns = TRAINING_IMAGES
    facts = (*read("framework_images")["images"], *read("compiler_versions")["versions"])
    for repository in {row["repository"] for row in facts}:
        assert any(fnmatch(repository, pattern) for pattern in patterns), repository
