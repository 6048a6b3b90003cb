"""Who may do what: the exact set of roles for everything that matters, nothing wider elsewhere."""

import json
import re
from fnmatch import fnmatch

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.facts import read
from stacks.functions import STEPS
from stacks.job_roles import TRAINING_IMAGES
from tests.stacks.template import ACCOUNT, REGION, as_list, refusals

MACHINES = ("evaluate", "train")
ARN = f"{REGION}:{ACCOUNT}"
JOBS = f"arn:aws:sagemaker:{ARN}:training-job/cg-*"
FLAGS = f"arn:aws:ssm:{ARN}:parameter/compilegate/prod/workloads/*/compiler"
SYNC_RULE = f"arn:aws:events:{ARN}:rule/StepFunctionsGetEventsForSageMakerTrainingJobsRule"
EVALUATE = f"arn:aws:states:{ARN}:stateMachine:compilegate-prod-evaluate"
EXECUTIONS = [f"arn:aws:states:{ARN}:execution:compilegate-prod-{name}:*" for name in MACHINES]
TRAINING_LOGS = f"arn:aws:logs:{ARN}:log-group:/aws/sagemaker/TrainingJobs"
OWN = "${aws:PrincipalTag/compilegate-workload}"
CHECKPOINTS = [
    f"/experiments/{OWN}/*/jobs/checkpoints/*/*",
    f"/production/{OWN}/*/jobs/checkpoints/*",
]
ROLES = f"arn:aws:iam::{ACCOUNT}:role/compilegate/prod-us-east-1-*"
MAKERS = ("build_request", "plan_trial")
# Actions that know no resources; each is narrowed by its own nature or by a condition.
UNNARROWABLE = {
    "cloudwatch:PutMetricData", "dynamodb:ListStreams", "ecr:GetAuthorizationToken",
    "iam:ListRoles", "sagemaker:ListTrainingJobs",
    "servicequotas:GetAWSDefaultServiceQuota", "servicequotas:GetServiceQuota",
    "servicequotas:ListServiceQuotas", "xray:PutTelemetryRecords", "xray:PutTraceSegments",
    "xray:GetSamplingRules", "xray:GetSamplingTargets",
    # What Step Functions needs to deliver its logs, granted as AWS documents it.
    "logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies", "logs:GetLogDelivery", "logs:ListLogDeliveries",
    "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
}  # fmt: skip


@pytest.mark.parametrize(
    ("action", "resources", "owners"),
    [
        ("ssm:PutParameter", [FLAGS], ("apply_flag", "begin_run", "record_run",
                                       "review_production")),
        ("ssm:DeleteParameter", [], ()),
        ("sagemaker:CreateTrainingJob", [JOBS], MACHINES),
        ("sagemaker:StopTrainingJob", [JOBS], (
            "abort_trial", "acquire_lock", "evaluate", "judge_arms", "record_run", "on_job_ended",
            "sweep", "train",
        )),
        ("events:PutRule", [SYNC_RULE], MACHINES),
        ("states:SendTaskSuccess", [EVALUATE], (
            "await_approval", "open_canary", "record_run", "sweep",
        )),
        ("states:DescribeExecution", EXECUTIONS, ("acquire_lock", "sweep")),
        ("dynamodb:GetRecords", ["<StorageLedger5E7CB2E3.StreamArn>"], ("project",)),
        ("logs:PutRetentionPolicy", [], ()),
        ("ec2:CreateNetworkInterface", [], ()),
        ("iam:PassRole", [ROLES], MACHINES),
        ("iam:CreateRole", [ROLES], MAKERS),
        ("iam:GetRole", [ROLES, ROLES.replace("compilegate/", "")], MAKERS),
        ("iam:TagRole", [ROLES], MAKERS),
        ("iam:AttachRolePolicy", [ROLES], MAKERS),
        ("iam:PutRolePermissionsBoundary", [ROLES], MAKERS),
        ("iam:PutRolePolicy", [], ()),
        ("iam:UpdateAssumeRolePolicy", [], ()),
        ("iam:DeleteRolePermissionsBoundary", [], ()),
        ("iam:DeleteRole", [ROLES], MAKERS),
        ("iam:DetachRolePolicy", [ROLES], MAKERS),
    ],
)  # fmt: skip
def test_an_action_is_allowed_to_exactly_these_roles_on_exactly_these_resources(
    template, action, resources, owners
):
    assert dict.fromkeys(sorted(owners), resources) == template.allowed(action)


@pytest.mark.parametrize(
    ("action", "owners"),
    [
        ("dynamodb:PutItem", {
            "abort_trial", "acquire_lock", "apply_flag", "ask_approval", "await_approval",
            "close_approval", "judge_arms", "open_canary", "project", "begin_run",
            "record_decision", "record_run", "sweep", "review_production",
        }),
        ("dynamodb:DeleteItem", {"abort_trial", "acquire_lock", "release_lock", "sweep"}),
        ("dynamodb:UpdateItem", set()),
        ("dynamodb:Query", {
            "abort_trial", "acquire_lock", "apply_flag", "await_approval", "build_request",
            "check_eligibility", "close_approval", "judge_arms", "open_canary", "plan_trial",
            "project", "begin_run", "record_run", "release_models", "sweep", "review_production",
            "weekly_digest",
        }),
        ("s3:DeleteObject", {"training"}),
        # For versions of 0.2.0 that running trials still call.
        ("sagemaker:ListTrainingJobs", {
            "abort_trial", "acquire_lock", "judge_arms", "record_run", "on_job_ended", "sweep",
        }),
        # Results are read by version, after a look whether there is but one.
        ("s3:GetObjectVersion", {"judge_arms", "record_run", "on_job_ended", "sweep"}),
        ("s3:ListBucketVersions", {"judge_arms", "record_run", "on_job_ended", "sweep"}),
        ("servicequotas:GetServiceQuota", {"plan_trial"}),
        ("servicequotas:GetAWSDefaultServiceQuota", {"plan_trial"}),
        ("servicequotas:ListServiceQuotas", {"plan_trial"}),
        ("s3:PutObject", {
            "apply_flag", "build_request", "check_eligibility", "judge_arms", "plan_trial",
            "on_job_ended", "training", "review_production", "write_report",
        }),
        # Without s3:ListBucket, S3 answers 403 where the code expects 404.
        ("s3:ListBucket", {
            "abort_trial", "acquire_lock", "check_eligibility", "judge_arms", "plan_trial",
            "project", "begin_run", "record_decision", "record_run", "on_job_ended", "sweep",
            "training", "review_production", "weekly_digest", "write_report",
        }),
    ],
)  # fmt: skip
def test_an_action_is_allowed_to_exactly_these_roles(template, action, owners):
    assert owners == set(template.allowed(action))


@pytest.mark.parametrize(
    ("owner", "action", "patterns"),
    [
        ("evaluate", "s3:GetObject", ["/experiments/*/requests/*"]),
        ("train", "s3:GetObject", ["/production/*/*/requests/*"]),
        ("on_job_ended", "s3:PutObject", [
            "/experiments/*/ended/*", "/experiments/*/requests/*", "/experiments/*/stopped/*",
        ]),
        ("training", "s3:GetObject",
         [f"/compile-cache/{OWN}/*", *CHECKPOINTS, f"/workloads/{OWN}/*"]),
        # Not the requests, which the state machine executes as they are.
        ("training", "s3:PutObject",
         [f"/compile-cache/{OWN}/*", f"/experiments/{OWN}/*/jobs/*",
          f"/production/{OWN}/*/jobs/*"]),
        ("training", "s3:DeleteObject", CHECKPOINTS),
        ("weekly_digest", "s3:GetObject",
         ["/decisions/*", "/workloads/*/registration.json", "/workloads/*/specs/*"]),
    ],
)  # fmt: skip
def test_a_role_reaches_only_these_keys_of_the_bucket(template, owner, action, patterns):
    arns = template.allowed(action)[owner]

    assert patterns == sorted(arn.partition(">")[2] for arn in arns)


def test_no_result_of_the_bucket_is_read_without_its_version(template):
    arns = [arn for found in template.allowed("s3:GetObject").values() for arn in found]

    assert [] == [arn for arn in arns if "output" in arn]


BOUNDED = {"StringEquals": {"iam:PermissionsBoundary": "<JobsPolicy>"}}
# Under which conditions; <JobsPolicy> is the policy of jobs.
WHOLE_CONDITIONS = [
    (MACHINES, "iam:PassRole",
     {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}),
    (MAKERS, "iam:CreateRole", BOUNDED),
    (MAKERS, "iam:AttachRolePolicy", {"ArnEquals": {"iam:PolicyARN": "<JobsPolicy>"}, **BOUNDED}),
    (("abort_trial", "record_run", "release_models"), "sagemaker:AddTags",
     {"ForAllValues:StringEquals": {"aws:TagKeys": ["compilegate:release"]}}),
]  # fmt: skip
# Beside others.
CONDITIONS = [
    # History can be added to, but not removed.
    (("abort_trial", "acquire_lock", "release_lock", "sweep"), "dynamodb:DeleteItem",
     {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["lock#*"]}}),
    (("training",), "s3:ListBucket", {"StringLike": {"s3:prefix": [
        f"compile-cache/{OWN}/*", f"experiments/{OWN}/*/jobs/*", f"production/{OWN}/*/jobs/*",
        f"workloads/{OWN}/*",
    ]}}),
]  # fmt: skip


def by_owner(rows):
    return [(owner, *rest) for owners, *rest in rows for owner in owners]


def statement_of(template, owner, action):
    """The one statement that allows it, with the name of the policy of jobs in its condition."""
    (policy,) = template.of_type("AWS::IAM::ManagedPolicy")
    (statement,) = [one for one in template.statements(owner) if action in as_list(one["Action"])]
    condition = json.dumps(statement["Condition"]).replace(policy, "JobsPolicy")
    return {**statement, "Condition": json.loads(condition)}


@pytest.mark.parametrize(("owner", "action", "condition"), by_owner(WHOLE_CONDITIONS))
def test_a_role_may_do_it_under_this_condition_alone(template, owner, action, condition):
    statement = statement_of(template, owner, action)

    assert condition == statement["Condition"]
    if action == "sagemaker:AddTags":
        assert JOBS == statement["Resource"]


@pytest.mark.parametrize(("owner", "action", "condition"), by_owner(CONDITIONS))
def test_a_role_may_do_it_under_this_condition_at_least(template, owner, action, condition):
    assert condition.items() <= statement_of(template, owner, action)["Condition"].items()


def test_the_policy_of_jobs_fits_what_iam_takes(template, changed):
    """IAM counts at most 6,144 characters of a managed policy, without white space."""
    names = "x" * 64  # of a generated bucket or key
    for each in (template, changed):
        document = each.one("AWS::IAM::ManagedPolicy")["Properties"]["PolicyDocument"]
        text = re.sub(r"<\w+>", names, json.dumps(document, separators=(",", ":")))
        assert len(text) < 6144 * 0.8


def test_more_buckets_than_the_policy_has_room_for_are_refused_by_name(synthesise):
    many = [f"corpus-{number:02}-of-a-company" for number in range(30)]
    with pytest.raises(InvalidInputError, match=r"input_buckets.*Fix: name fewer"):
        synthesise(input_buckets=many)


def test_only_machines_and_scheduled_functions_may_publish(template):
    (topic,) = template.of_type("AWS::SNS::Topic")
    owners = (*MACHINES, "sweep", "weekly_digest")

    assert {owner: [f"<{topic}>"] for owner in owners} == template.allowed("sns:Publish")


def test_a_machine_invokes_every_version_of_its_functions_and_no_others(template):
    assert {
        machine: sorted(
            f"<{template.function(step.name)[0]}.Arn>{version}"
            for step in STEPS
            if step.machine == machine
            for version in ("", ":*")
        )
        for machine in MACHINES
    } == template.allowed("lambda:InvokeFunction")


def test_schedules_and_events_start_production_runs_and_nothing_else(template):
    train, _ = template.machines()["train"]

    expected = {"events": [f"<{train}>"], "scheduler": [f"<{train}>"]}
    assert expected == template.allowed("states:StartExecution")
    assert {"states:StartExecution"} == template.actions("scheduler")


def test_only_schedules_of_the_stages_group_can_assume_their_role(template):
    (group,) = template.of_type("AWS::Scheduler::ScheduleGroup")
    (role,) = [key for key, owner in template.role_owners().items() if owner == "scheduler"]
    properties = template.resolve(template.resources[role]["Properties"])
    (statement,) = properties["AssumeRolePolicyDocument"]["Statement"]

    assert {
        "StringEquals": {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": f"<{group}.Arn>"}
    } == statement["Condition"]


def test_training_may_not_start_jobs_invoke_publish_or_touch_the_ledger(template):
    services = {action.split(":")[0] for action in template.actions("training")}

    assert {"cloudwatch", "ecr", "kms", "logs", "s3"} == services


def test_training_pulls_every_image_that_the_facts_know_and_no_repository_at_large(template):
    """A repository that no pattern covers would fail every job at the pull."""
    arns = template.allowed("ecr:BatchGetImage")["training"]
    facts = (*read("framework_images")["images"], *read("compiler_versions")["versions"])

    assert all(arn.startswith(f"arn:aws:ecr:{REGION}:*:repository/") for arn in arns)
    assert "*" not in {arn.rpartition("/")[2] for arn in arns}
    for repository in {row["repository"] for row in facts}:
        assert any(fnmatch(repository, pattern) for pattern in TRAINING_IMAGES), repository


def test_training_may_pull_the_images_that_the_deployment_brings(template, changed):
    def repositories(each):
        return set(each.allowed("ecr:BatchGetImage")["training"])

    own = "arn:aws:ecr:us-east-1:210987654321:repository"
    assert {f"{own}/team/train", f"{own}/train"} == repositories(changed) - repositories(template)


def test_the_channels_role_reads_metrics_and_nothing_else(changed):
    assert {
        "cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics",
        "cloudwatch:ListMetrics",
    } == changed.actions("chatbot")  # fmt: skip


def test_services_of_this_account_may_publish_to_the_encrypted_topic(template, changed):
    services = {"cloudwatch.amazonaws.com", "budgets.amazonaws.com"}
    for each, expected in ((template, {"cloudwatch.amazonaws.com"}), (changed, services)):
        (topic,) = each.properties("AWS::SNS::Topic")
        (policy,) = each.properties("AWS::SNS::TopicPolicy")
        (key,) = each.properties("AWS::KMS::Key")

        assert "KmsMasterKeyId" in topic
        statements = policy["PolicyDocument"]["Statement"]
        assert expected == publishers(statements, "sns:Publish")
        assert expected == publishers(key["KeyPolicy"]["Statement"], "kms:GenerateDataKey*")
        assert {"Bool": {"aws:SecureTransport": "false"}} in refusals(policy)


def publishers(statements, action):
    """Services that may do ``action`` for this account alone."""
    return {
        service
        for one in statements
        if one["Effect"] == "Allow"
        and action in as_list(one["Action"])
        and {"StringEquals": {"aws:SourceAccount": ACCOUNT}} == one.get("Condition")
        for service in as_list(one["Principal"]["Service"])
    }


def test_no_statement_allows_everything(template):
    for owner in template.owners():
        for statement in template.statements(owner):
            actions = as_list(statement["Action"])
            assert not [action for action in actions if action.endswith(":*") or action == "*"]
            if "*" in as_list(statement["Resource"]):
                assert set(actions) <= UNNARROWABLE, (owner, actions)


def test_every_role_is_trusted_to_one_service_and_carries_no_managed_policy(changed):
    for key, role in changed.of_type("AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert ["Service"] == list(statement["Principal"]), key
        assert "ManagedPolicyArns" not in role["Properties"], key


def test_a_role_belongs_to_one_function_or_service(template):
    owners = template.role_owners()

    assert len(template.of_type("AWS::IAM::Role")) == len(owners)
    others = {*MACHINES, "events", "scheduler"}
    assert sorted({step.name for step in STEPS} | others) == sorted(owners.values())
