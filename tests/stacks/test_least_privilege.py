"""Every statement of every role is needed: without it, some call of the loop would be refused.

The calls were recorded (calls.py). What AWS's services do on their own with a role, which the
embedded cloud leaves out, stands below with its source.
"""

import pytest

from stacks.machine import SYNC_RULE
from tests.stacks.calls import TAG, TRIAL, WORKLOAD, recorded
from tests.stacks.policies import Call, allowed
from tests.stacks.template import ACCOUNT, REGION

IMAGES = f"arn:aws:ecr:{REGION}:763104351884:repository"
JOB = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/cg-{WORKLOAD}-{TRIAL}-q0a7-r0"
OUTPUT = f"production/{WORKLOAD}/{TRIAL}/jobs/name/output/output.tar.gz"
RELEASE = {"aws:TagKeys": ["compilegate:release"]}
EVALUATE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:compilegate-prod-evaluate"
FLAG = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/compilegate/prod/workloads/{WORKLOAD}/compiler"
GROUP = "/aws/sagemaker/TrainingJobs"
OWN = {TAG: WORKLOAD}
THROUGH_DYNAMODB = {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"}
# S3 asks for it to tell an object that is not there (API reference, GetObject).
TELLS_ABSENT = (
    "check_eligibility", "judge_arms", "plan_trial", "project", "begin_run", "record_decision",
    "record_run", "on_job_ended", "review_production", "write_report",
)  # fmt: skip


def by_services(owner, template):
    """Calls that a service makes with the role, or that only some accounts need."""
    (key,) = (f"<{one}.Arn>" for one in template.of_type("AWS::KMS::Key"))
    (bucket,) = (f"<{one}.Arn>" for one in template.of_type("AWS::S3::Bucket"))
    # S3, SNS and DynamoDB use the key for their caller: AWS KMS Developer Guide, "How AWS services
    # use AWS KMS".
    calls = [
        Call("kms:Decrypt", key), Call("kms:GenerateDataKey", key),
        Call("kms:Encrypt", key, THROUGH_DYNAMODB),
        # Active tracing of a function and a state machine: AWS X-Ray Developer Guide.
        Call("xray:PutTraceSegments"), Call("xray:GetSamplingRules"),
    ]  # fmt: skip
    if owner in TELLS_ABSENT:
        calls.append(Call("s3:ListBucket", bucket))
    if owner in ("plan_trial", "build_request"):
        # IAM checks it for a role that is created with tags: IAM User Guide, "Tag IAM roles".
        role = f"arn:aws:iam::{ACCOUNT}:role/compilegate/prod-us-east-1-{WORKLOAD}"
        calls.append(Call("iam:TagRole", role, {"aws:TagKeys": ["compilegate-workload"]}))
        # adapters/sagemaker.py: in an account whose quota of roles is used up
        calls += [Call("iam:ListRoles"), Call("iam:DeleteRole", role)]
    if owner == "project":
        # What Lambda reads the stream with: Lambda Developer Guide, "Using AWS Lambda with Amazon
        # DynamoDB", execution role permissions.
        (table,) = template.of_type("AWS::DynamoDB::Table")
        calls += [
            Call("dynamodb:GetRecords", f"<{table}.StreamArn>"), Call("dynamodb:ListStreams"),
        ]  # fmt: skip
    if owner == "training":
        prefix = f"{bucket}/production/{WORKLOAD}/{TRIAL}/jobs/checkpoints"
        calls += [
            # SageMaker AI Developer Guide, "CreateTrainingJob API: execution role permissions".
            Call("ecr:GetAuthorizationToken"),
            Call("ecr:BatchGetImage", f"{IMAGES}/pytorch-training"),
            Call("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": GROUP}),
            Call("s3:GetBucketLocation", bucket, OWN),
            Call("kms:Encrypt", key),
            # Of a spot job that continues.
            Call("s3:DeleteObject", f"{prefix}/p0/step-1", OWN),
            Call("s3:GetObject", f"{prefix}/p0/step-1", OWN),
        ]  # fmt: skip
    if owner in ("evaluate", "train"):
        # Step Functions delivers its logs, and learns of a job's end by a rule that it makes:
        # Step Functions Developer Guide, "Logging", "Create and manage SageMaker AI jobs".
        rule = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{SYNC_RULE}"
        calls += [Call("logs:CreateLogDelivery"), Call("events:PutRule", rule)]
    elif owner not in ("training", "events", "scheduler"):
        (group,) = (
            f"<{key}.Arn>"
            for key, one in template.of_type("AWS::Logs::LogGroup").items()
            if one["Properties"]["LogGroupName"].endswith(f"-prod-{owner.replace('_', '-')}")
        )
        calls.append(Call("logs:PutLogEvents", group))
    (queue,) = (f"<{one}.Arn>" for one in template.of_type("AWS::SQS::Queue"))
    if owner in ("abort_trial", "project", "record_run", "sweep", "weekly_digest"):
        calls.append(Call("sqs:SendMessage", queue))  # of a call that failed for good
    machines = {name: f"<{key}>" for name, (key, _) in template.machines().items()}
    if owner in ("events", "scheduler"):
        calls.append(Call("states:StartExecution", machines["train"]))
    return calls


def in_code(owner, template):
    """Calls of rare paths, by the use case that makes them."""
    (bucket,) = (f"<{one}.Arn>" for one in template.of_type("AWS::S3::Bucket"))
    (table,) = (f"<{one}.Arn>" for one in template.of_type("AWS::DynamoDB::Table"))
    stop, tag = Call("sagemaker:StopTrainingJob", JOB), Call("sagemaker:AddTags", JOB, RELEASE)
    answer = Call("states:SendTaskSuccess", EVALUATE)
    # usecases/started_jobs.py: the requests of a trial, and what is recorded of its jobs
    find = [
        Call("s3:ListBucket", bucket),
        Call("s3:GetObject", f"{bucket}/decisions/{WORKLOAD}/{TRIAL}/evidence.json"),
    ]
    return {
        "abort_trial": find,
        "acquire_lock": [stop, tag, *find],  # usecases/trial/lock.py: a lock that is taken over
        "plan_trial": [  # usecases/planning.py: what other workloads' trials have shown
            Call("dynamodb:Query", table, {"dynamodb:LeadingKeys": ["fleet#0"]})
        ],
        "open_canary": [answer],  # usecases/canary.py
        "await_approval": [answer],  # usecases/flag/approval.py
        "record_run": [tag],  # usecases/canary.py: close_after_run
        "review_production": [Call("ssm:PutParameter", FLAG)],  # a reversal
        "weekly_digest": [  # usecases/operations/weekly_digest.py
            Call("dynamodb:Query", table, {"dynamodb:LeadingKeys": ["fleet#0"]})
        ],
        "sweep": [  # usecases/operations/sweep.py: a production run whose event was lost
            tag,
            answer,
            *find,
            Call("s3:GetObject", f"{bucket}/workloads/{WORKLOAD}/registration.json"),
            Call("s3:GetObjectVersion", f"{bucket}/{OUTPUT}"),
            Call("s3:ListBucketVersions", bucket, {"s3:prefix": OUTPUT}),
            # usecases/fleet/project.py: all rows, and one that has to be folded anew.
            Call("dynamodb:Query", table, {"dynamodb:LeadingKeys": ["fleet#0"]}),
            Call("dynamodb:GetItem", table, {"dynamodb:LeadingKeys": ["month#2026-11#0"]}),
        ],
    }.get(owner, [])


def unneeded(statements, calls):
    """Statements without which every call that was allowed would still be."""
    made = [call for call in calls if allowed(call, statements)]
    return [
        one
        for index, one in enumerate(statements)
        if all(allowed(call, [*statements[:index], *statements[index + 1 :]]) for call in made)
    ]


@pytest.fixture(scope="module")
def calls(template):
    """Every call by its owner."""
    owners = {**template.role_owners(), "training": "training"}
    known = {owners[role]: found for role, found in recorded().items()}
    return {
        owner: [*known.get(owner, ()), *by_services(owner, template), *in_code(owner, template)]
        for owner in template.owners()
    }


def test_no_statement_of_any_role_can_be_left_out(template, calls):
    spare = {owner: unneeded(template.statements(owner), calls[owner]) for owner in calls}

    assert {} == {owner: found for owner, found in spare.items() if found}


def test_what_was_recorded_is_still_allowed(template):
    """A narrower policy would refuse the loop what it needs."""
    owners = {**template.role_owners(), "training": "training"}
    refused = [
        (owners[role], call)
        for role, found in recorded().items()
        for call in found
        if not allowed(call, template.statements(owners[role]))
    ]

    assert [] == refused
