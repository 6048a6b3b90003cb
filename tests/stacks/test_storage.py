"""What must survive, stay private and not pile up; whose keys encrypt it."""

import re

import pytest

from tests.stacks.template import ACCOUNT, REGION, as_list, load, refusals

ARN = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-1111-2222-333344445555"
NO_TLS = {"Bool": {"aws:SecureTransport": "false"}}
# What a destroyed stack leaves behind, and why.
RETAINED = {
    "AWS::DynamoDB::Table": "the ledger is the history of every decision",
    "AWS::IAM::ManagedPolicy": "functions have made roles of training jobs under it",
    "AWS::KMS::Key": "without it nothing in the bucket can be read",
    "AWS::Lambda::Version": "running executions call it; it goes with its function",
    "AWS::S3::Bucket": "models, evidence and reports",
}


@pytest.fixture(scope="module")
def imported(synthesise):
    """A key of the team's."""
    return load(synthesise(customer_key=ARN))


@pytest.fixture(scope="module")
def existing(synthesise):
    """A bucket and a key of the team's, and nothing of the stack's own beside them."""
    return load(synthesise(
        bucket_name="data-of-ours", existing_bucket=True, customer_key=ARN, stack_key=False
    ))  # fmt: skip


def test_a_bucket_and_a_key_that_exist_are_used_and_none_is_made(existing, template):
    assert {} == existing.of_type("AWS::S3::Bucket") | existing.of_type("AWS::S3::BucketPolicy")
    assert {} == existing.of_type("AWS::KMS::Key")
    (topic,) = existing.properties("AWS::SNS::Topic")
    assert topic["KmsMasterKeyId"].endswith(ARN.rpartition("/")[2])
    assert "data-of-ours" == existing.resolve(existing.document["Outputs"]["DataBucket"]["Value"])

    def elsewhere(arn):
        return arn.replace("arn:aws:s3:::data-of-ours", "<Data.Arn>")

    def usual(arn):
        return re.sub(r"<StorageData\w+\.Arn>", "<Data.Arn>", arn)

    for action in ("s3:PutObject", "s3:ListBucketVersions", "s3:GetObject"):
        mine, own = existing.allowed(action), template.allowed(action)
        assert {owner: [*map(elsewhere, mine[owner])] for owner in mine} == {
            owner: [*map(usual, own[owner])] for owner in own
        }
    assert {ARN} == {arn for arns in existing.allowed("kms:Decrypt").values() for arn in arns}


def key_of(template):
    (key,) = template.of_type("AWS::KMS::Key")
    return f"<{key}.Arn>"


def key_policy(template):
    return template.one("AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]


def test_only_what_has_a_reason_to_stay_is_retained(template, changed):
    for each in (template, changed):
        assert set(RETAINED) == {
            resource["Type"]
            for resource in each.resources.values()
            if resource.get("DeletionPolicy", "Delete") != "Delete"
        }


def test_only_the_account_its_alarms_and_its_logs_may_use_the_key_by_its_policy(template):
    statements = key_policy(template)

    assert [
        {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        {"Service": "cloudwatch.amazonaws.com"},
        {"Service": f"logs.{REGION}.amazonaws.com"},
    ] == [statement["Principal"] for statement in statements]
    assert {"StringEquals": {"aws:SourceAccount": ACCOUNT}} == statements[1]["Condition"]


def test_the_data_bucket_is_encrypted_versioned_and_private(template):
    (bucket,) = template.properties("AWS::S3::Bucket")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    (policy,) = template.properties("AWS::S3::BucketPolicy")

    assert "aws:kms" == rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"]
    assert {"Status": "Enabled"} == bucket["VersioningConfiguration"]
    assert [True] * 4 == list(bucket["PublicAccessBlockConfiguration"].values())
    assert NO_TLS in refusals(policy)
    assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in refusals(policy)


def test_experiments_and_caches_expire_while_decisions_and_reports_stay(template, changed):
    def expiring(each):
        (bucket,) = each.properties("AWS::S3::Bucket")
        rules = bucket["LifecycleConfiguration"]["Rules"]
        return {one.get("Prefix"): one.get("ExpirationInDays") for one in rules}

    # None: the rule for old versions and unfinished uploads, which expires no current object.
    assert {"experiments/": 90, "compile-cache/": 30, None: None} == expiring(template)
    assert 7 == expiring(changed)["experiments/"]


def test_the_ledger_is_recoverable_and_protected(template):
    (table,) = template.properties("AWS::DynamoDB::Table")

    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["DeletionProtectionEnabled"] is True


def test_cloudformation_never_owns_a_flag_or_a_schedule(template):
    assert {} == template.of_type("AWS::SSM::Parameter")
    assert {} == template.of_type("AWS::Scheduler::Schedule")


def test_no_log_group_is_kept_for_ever(template, changed):
    for each, days in ((template, 90), (changed, 14)):
        groups = each.properties("AWS::Logs::LogGroup")
        assert {days} == {group["RetentionInDays"] for group in groups}


def encryption(template):
    """What each kind of storage is encrypted with."""
    (bucket,) = template.properties("AWS::S3::Bucket")
    (table,) = template.properties("AWS::DynamoDB::Table")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    groups = template.properties("AWS::Logs::LogGroup")
    return (
        rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"],
        table.get("SSESpecification", {}).get("KMSMasterKeyId"),
        *sorted({str(group.get("KmsKeyId")) for group in groups}),
    )


def test_one_key_encrypts_data_ledger_and_logs(template, imported):
    assert (key_of(template),) * 3 == encryption(template)
    assert (ARN,) * 3 == encryption(imported)
    (variables,) = {
        item["Environment"]["Variables"]["DATA_KEY_ARN"]
        for item in imported.properties("AWS::Lambda::Function")
    }
    assert ARN == variables


def test_every_resource_of_the_default_template_stays_in_place(template, imported):
    """Key and encryption of a bucket, a table and a log group change without replacement."""

    def kept(each):
        return {
            key: resource["Type"]
            for key, resource in each.resources.items()
            if resource["Type"] != "AWS::Lambda::Version"
        }

    assert kept(template) == kept(imported)


def test_roles_that_use_the_ledger_may_use_its_key_through_dynamodb(template, imported):
    via = {"StringEquals": {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"}}

    for each, key in ((template, key_of(template)), (imported, ARN)):
        for owner in each.allowed("dynamodb:Query") | each.allowed("dynamodb:PutItem"):
            actions = {
                action
                for statement in each.statements(owner)
                if via == statement.get("Condition") and key in as_list(statement["Resource"])
                for action in as_list(statement["Action"])
            }
            assert {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"} <= actions, owner


def test_logs_may_use_the_stacks_key_for_its_own_groups_only(template):
    (logs,) = [
        statement
        for statement in key_policy(template)
        if statement["Principal"] == {"Service": f"logs.{REGION}.amazonaws.com"}
    ]

    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:"
    prefixes = ("/aws/lambda/compilegate-prod-", "/aws/vendedlogs/states/compilegate-prod-")
    patterns = [f"{group}{prefix}*" for prefix in prefixes]
    assert {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": patterns}} == logs["Condition"]
    names = [item["LogGroupName"] for item in template.properties("AWS::Logs::LogGroup")]
    assert all(name.startswith(prefixes) for name in names)
