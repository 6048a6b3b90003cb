"""The template under cfn-lint, which knows CloudFormation's own schemas."""

import json

import pytest

from tests.stacks.template import Template, lint_template


def errors(template):
    """What it finds wrong; hints and warnings are not asked for."""
    matches = lint_template(json.dumps(template.document))
    return [str(match) for match in matches if match.rule.id.startswith("E")]


@pytest.mark.parametrize("name", [pytest.param("template", marks=pytest.mark.slow), "changed"])
def test_it_finds_no_errors(request, name):
    assert [] == errors(request.getfixturevalue(name))


def test_it_finds_a_seeded_error(template):
    (key,) = template.of_type("AWS::SQS::Queue")
    queue = template.resources[key]
    too_long = {**queue["Properties"], "MessageRetentionPeriod": 15 * 24 * 3600}
    seeded = Template({"Resources": {key: {**queue, "Properties": too_long}}})

    assert 1 == len(errors(seeded))
