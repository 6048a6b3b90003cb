"""cfn-lint and AWS's own review of the template: findings are fixed, or accepted with a reason."""

import json

import pytest

import app
from stacks.assets import stage_bundle
from stacks.settings import Settings
from tests.stacks.template import Template, lint_template

ACCEPTED = {
    "AwsSolutions-IAM5": "patterns within one bucket, one job prefix and one parameter path; "
    "test_permissions.py pins every one",
    "AwsSolutions-L1": "Python 3.12 is what the packages of the bundle are locked for",
    "AwsSolutions-S1": "docs/decisions/0005-storage-that-stays.md",
    "AwsSolutions-SQS3": "the only queue is itself the dead-letter queue of rules and functions",
}


@pytest.mark.slow
def test_the_review_finds_nothing_that_is_not_accepted_with_a_reason(tmp_path):
    import cdk_nag  # noqa: PLC0415 - starts the CDK
    from aws_cdk import App, Validations  # noqa: PLC0415 - as above

    from stacks.stack import CompilegateStack  # noqa: PLC0415 - as above

    context = app.default_context()
    cdk = App(context=context, outdir=str(tmp_path / "assembly"))
    Validations.of(cdk).add_plugins(cdk_nag.AwsSolutionsChecks())
    bundle = stage_bundle(tmp_path / "bundle")
    CompilegateStack(cdk, settings=Settings.from_context(context), bundle=bundle)
    with pytest.raises(RuntimeError, match="ValidationFailed"):  # the accepted findings
        cdk.synth()

    (review,) = json.loads((tmp_path / "assembly" / "validation-report.json").read_text())[
        "pluginReports"
    ]
    rules = {violation["ruleName"].partition("[")[0] for violation in review["violations"]}
    assert set(ACCEPTED) == rules


def errors(template):
    """What cfn-lint finds wrong, without hints and warnings."""
    matches = lint_template(json.dumps(template.document))
    return [str(match) for match in matches if match.rule.id.startswith("E")]


@pytest.mark.parametrize("name", [pytest.param("template", marks=pytest.mark.slow), "changed"])
def test_the_linter_finds_no_errors(request, name):
    assert [] == errors(request.getfixturevalue(name))


def test_the_linter_finds_a_seeded_error(template):
    (key,) = template.of_type("AWS::SQS::Queue")
    queue = template.resources[key]
    too_long = {**queue["Properties"], "MessageRetentionPeriod": 15 * 24 * 3600}
    seeded = Template({"Resources": {key: {**queue, "Properties": too_long}}})

    assert 1 == len(errors(seeded))
