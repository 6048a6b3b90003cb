"""What must survive, stay private and not pile up."""

from tests.stacks.template import ACCOUNT


def test_the_key_rotates_and_is_retained(template):
    key = template.one("AWS::KMS::Key")

    assert key["Properties"]["EnableKeyRotation"] is True
    assert "Retain" == key["DeletionPolicy"] == key["UpdateReplacePolicy"]


def test_only_the_account_and_its_alarms_may_use_the_key_by_its_policy(template):
    statements = template.resolve(template.one("AWS::KMS::Key"))["Properties"]["KeyPolicy"][
        "Statement"
    ]

    principals = [statement["Principal"] for statement in statements]
    assert [
        {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        {"Service": "cloudwatch.amazonaws.com"},
    ] == principals
    assert {"StringEquals": {"aws:SourceAccount": ACCOUNT}} == statements[1]["Condition"]


def test_the_data_bucket_is_encrypted_versioned_private_and_retained(template):
    bucket = template.resolve(template.one("AWS::S3::Bucket"))
    properties = bucket["Properties"]
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert "Retain" == bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"]
    assert "aws:kms" == rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"]
    assert rule["BucketKeyEnabled"] is True
    assert {"Status": "Enabled"} == properties["VersioningConfiguration"]
    assert all(properties["PublicAccessBlockConfiguration"].values())
    assert 4 == len(properties["PublicAccessBlockConfiguration"])


def test_the_data_bucket_refuses_everything_without_tls(template):
    statements = template.one("AWS::S3::BucketPolicy")["Properties"]["PolicyDocument"]["Statement"]
    conditions = [
        statement["Condition"] for statement in statements if statement["Effect"] == "Deny"
    ]

    assert {"Bool": {"aws:SecureTransport": "false"}} in conditions
    assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in conditions


def test_experiments_and_caches_expire_while_decisions_and_reports_stay(template):
    rules = template.one("AWS::S3::Bucket")["Properties"]["LifecycleConfiguration"]["Rules"]

    expiring = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "Prefix" in rule}
    assert {"experiments/": 90, "compile-cache/": 30} == expiring
    (general,) = [rule for rule in rules if "Prefix" not in rule]
    assert {"NoncurrentDays": 30} == general["NoncurrentVersionExpiration"]
    assert "ExpirationInDays" not in general
    assert "AbortIncompleteMultipartUpload" in general


def test_the_ledger_is_on_demand_recoverable_and_retained(template):
    table = template.one("AWS::DynamoDB::Table")
    properties = table["Properties"]

    assert "Retain" == table["DeletionPolicy"] == table["UpdateReplacePolicy"]
    assert "PAY_PER_REQUEST" == properties["BillingMode"]
    assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert properties["DeletionProtectionEnabled"] is True
    assert ["pk", "sk"] == [key["AttributeName"] for key in properties["KeySchema"]]


def test_cloudformation_never_owns_a_flag(template):
    assert {} == template.of_type("AWS::SSM::Parameter")


def test_names_and_days_come_from_the_context(changed):
    bucket = changed.one("AWS::S3::Bucket")["Properties"]
    assert "my-data" == bucket["BucketName"]
    assert 7 == bucket["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"]
    groups = changed.of_type("AWS::Logs::LogGroup").values()
    assert {14} == {group["Properties"]["RetentionInDays"] for group in groups}
