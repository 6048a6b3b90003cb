"""The temporary stack under CloudFormation's schemas and AWS's validator of the state language."""

from __future__ import annotations

import json

from tests.asl.node import run_script
from tests.stacks.template import lint_template
from tools.verify_aws.temporary import template

ROLE = "arn:aws:iam::123456789012:role/compilegate-prod-evaluate"
TEMPLATE = template(trial="abcd1234", bucket="a-bucket", role_arn=ROLE)
RESOURCES = json.loads(TEMPLATE)["Resources"]


def test_cloudformation_accepts_it() -> None:
    matches = lint_template(TEMPLATE)

    assert [] == [str(match) for match in matches if match.rule.id.startswith("E")]


def test_the_validators_accept_its_state_machines() -> None:
    definitions = {
        name: json.loads(resource["Properties"]["DefinitionString"]["Fn::Sub"])
        for name, resource in RESOURCES.items()
        if resource["Type"] == "AWS::StepFunctions::StateMachine"
    }

    assert {"Machine": [], "TokenMachine": []} == run_script("check_definitions.js", definitions)


def test_it_keeps_nothing_when_it_is_deleted() -> None:
    assert not [name for name, resource in RESOURCES.items() if "DeletionPolicy" in resource]
