"""The template under cfn-lint, which knows CloudFormation's own schemas."""

import json

import pytest
from cfnlint import api

from tests.stacks.template import Template


def errors(template):
    """What it finds wrong; hints and warnings are not asked for."""
    found = api.lint(json.dumps(template.document), regions=["us-east-1"])
    return [str(match) for match in found if match.rule.id.startswith("E")]


@pytest.mark.parametrize("name", ["template", "changed"])
def test_it_finds_no_errors(request, name):
    assert [] == errors(request.getfixturevalue(name))


def test_it_finds_a_seeded_error(template):
    (key,) = template.of_type("AWS::SQS::Queue")
    queue = template.resources[key]
    too_long = {**queue["Properties"], "MessageRetentionPeriod": 15 * 24 * 3600}
    seeded = Template({"Resources": {key: {**queue, "Properties": too_long}}})

    assert 1 == len(errors(seeded))
