"""One setting: a customer-managed key for data, ledger and logs; without it nothing changes."""

import pytest

from tests.stacks.template import ACCOUNT, REGION, as_list, load

ARN = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-1111-2222-333344445555"


@pytest.fixture(scope="module")
def own(synthesise):
    """The stack's own key."""
    return load(synthesise(customer_key=True))


@pytest.fixture(scope="module")
def imported(synthesise):
    """A key of the team's."""
    return load(synthesise(customer_key=ARN))


def key_of(template):
    (key,) = template.of_type("AWS::KMS::Key")
    return f"<{key}.Arn>"


def encryption(template):
    """What each kind of storage is encrypted with."""
    bucket = template.one("AWS::S3::Bucket")["Properties"]["BucketEncryption"]
    (rule,) = bucket["ServerSideEncryptionConfiguration"]
    table = template.one("AWS::DynamoDB::Table")["Properties"].get("SSESpecification", {})
    groups = template.of_type("AWS::Logs::LogGroup").values()
    return template.resolve(
        {
            "bucket": rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"],
            "table": table.get("KMSMasterKeyId"),
            "logs": sorted({str(g["Properties"].get("KmsKeyId")) for g in groups}),
        }
    )


def test_by_default_the_ledger_and_the_logs_have_no_key_of_the_customer(template):
    expected = {"bucket": key_of(template), "table": None, "logs": ["None"]}

    assert expected == encryption(template)


def test_the_stacks_own_key_encrypts_data_ledger_and_logs(own):
    found = encryption(own)

    assert key_of(own) == found["bucket"] == found["table"]
    assert 1 == len(found["logs"])
    assert "GetAtt" in found["logs"][0]


def test_a_given_key_encrypts_data_ledger_and_logs(imported):
    assert {"bucket": ARN, "table": ARN, "logs": [ARN]} == encryption(imported)


@pytest.mark.parametrize("name", ["own", "imported"])
def test_every_resource_of_the_default_template_stays_in_place(template, request, name):
    """Key and encryption of a bucket, a table and a log group change without replacement."""

    def kept(found):
        return {
            key: resource["Type"]
            for key, resource in found.resources.items()
            if resource["Type"] != "AWS::Lambda::Version"
        }

    assert kept(template) == kept(request.getfixturevalue(name))


@pytest.mark.parametrize("name", ["own", "imported"])
def test_whoever_uses_the_ledger_may_use_its_key_through_dynamodb(request, name):
    template = request.getfixturevalue(name)
    key = ARN if name == "imported" else key_of(template)
    via = {"StringEquals": {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"}}

    for owner in template.allowed("dynamodb:Query") | template.allowed("dynamodb:PutItem"):
        grants = [
            statement
            for statement in template.statements(owner)
            if via == statement.get("Condition") and key in as_list(statement["Resource"])
        ]
        actions = {action for grant in grants for action in as_list(grant["Action"])}
        assert {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"} <= actions, owner


def test_logs_may_use_the_stacks_key_for_its_own_groups_only(own):
    statements = own.resolve(own.one("AWS::KMS::Key"))["Properties"]["KeyPolicy"]["Statement"]
    (logs,) = [
        statement
        for statement in statements
        if statement["Principal"] == {"Service": f"logs.{REGION}.amazonaws.com"}
    ]

    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:"
    patterns = [
        f"{group}/aws/lambda/compilegate-prod-*",
        f"{group}/aws/vendedlogs/states/compilegate-prod-*",
    ]
    condition = {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": patterns}}
    assert condition == logs["Condition"]
    names = [
        item["Properties"]["LogGroupName"] for item in own.of_type("AWS::Logs::LogGroup").values()
    ]
    prefixes = tuple(pattern.removeprefix(group).removesuffix("*") for pattern in patterns)
    assert all(name.startswith(prefixes) for name in names)


def test_what_the_stacks_key_has_encrypted_stays_readable_under_a_given_key(imported):
    """Objects keep the key that they were written with."""
    for owner in ("judge_arms", "training", "write_report"):
        keys = imported.allowed("kms:Decrypt")[owner]
        assert {ARN, key_of(imported)} <= set(keys), owner


def test_training_jobs_write_with_the_given_key(imported):
    _, function = imported.function("judge_arms")

    assert ARN == function["Properties"]["Environment"]["Variables"]["DATA_KEY_ARN"]
