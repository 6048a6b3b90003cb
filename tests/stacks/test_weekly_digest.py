"""The digest comes by itself once a week, and may read and tell, nothing else."""

from tests.stacks.template import as_list


def test_a_rule_starts_it_on_monday_mornings_and_never_twice(template):
    (rule,) = [
        item["Properties"]
        for item in template.of_type("AWS::Events::Rule").values()
        if "cron(0 7 ? * MON *)" == item["Properties"].get("ScheduleExpression")
    ]

    (target,) = rule["Targets"]
    key, _ = template.function("weekly_digest")
    assert {"Ref": template.live(key)} == target["Arn"]
    assert 0 == target["RetryPolicy"]["MaximumRetryAttempts"]
    (async_calls,) = [
        item["Properties"]
        for item in template.of_type("AWS::Lambda::EventInvokeConfig").values()
        if {"Ref": key} == item["Properties"]["FunctionName"]
    ]
    assert 0 == async_calls["MaximumRetryAttempts"]


def test_it_reads_registrations_specs_decisions_and_the_ledger(template):
    reads = template.allowed("s3:GetObject")["weekly_digest"]
    assert [
        "/decisions/*", "/workloads/*/registration.json", "/workloads/*/specs/*",
    ] == sorted(arn.partition(">")[2] for arn in reads)  # fmt: skip


def test_it_changes_nothing(template):
    actions = {
        action
        for statement in template.statements("weekly_digest")
        for action in as_list(statement["Action"])
    }

    assert {
        "dynamodb:Query", "kms:Decrypt", "kms:GenerateDataKey", "logs:CreateLogStream",
        "logs:PutLogEvents", "s3:GetObject", "s3:ListBucket", "sns:Publish",
        "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage",
        "xray:PutTelemetryRecords", "xray:PutTraceSegments",
    } == actions  # fmt: skip


def test_no_machine_may_start_it(template):
    key, _ = template.function("weekly_digest")
    allowed = template.allowed("lambda:InvokeFunction")

    assert not [arn for arns in allowed.values() for arn in arns if key in arn]
