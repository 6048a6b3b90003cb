"""A running execution finishes on the code that it began with."""

import json

import pytest

import app
from stacks.assets import stage_bundle
from stacks.functions import STEPS
from tests.stacks.template import as_list, load

MACHINES = ("evaluate", "train")


def versions(template):
    """Version's logical id → its function's."""
    return {
        key: resource["Properties"]["FunctionName"]["Ref"]
        for key, resource in template.of_type("AWS::Lambda::Version").items()
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_a_definition_names_versions_only(template, machine):
    _, resource = template.machines()[machine]
    text = json.dumps(resource["Properties"]["DefinitionString"])
    functions = template.of_type("AWS::Lambda::Function")

    of_machine = {step.name for step in STEPS if step.machine == machine}
    named = {function for key, function in versions(template).items() if f'"{key}"' in text}
    assert {template.function(name)[0] for name in of_machine} == named
    assert not [key for key in functions if f'"{key}"' in text]
    assert not [key for key in template.of_type("AWS::Lambda::Alias") if f'"{key}"' in text]


def test_a_replaced_version_stays_while_executions_may_call_it(template):
    for resource in template.of_type("AWS::Lambda::Version").values():
        # Except where the deployment that published it fails.
        assert "RetainExceptOnCreate" == resource["DeletionPolicy"]
        assert "Retain" == resource["UpdateReplacePolicy"]


def test_every_function_has_one_version_and_an_alias_that_names_it(template):
    functions = set(template.of_type("AWS::Lambda::Function"))
    aliases = template.of_type("AWS::Lambda::Alias").values()

    assert functions == set(versions(template).values())
    assert versions(template) == {
        alias["Properties"]["FunctionVersion"]["Fn::GetAtt"][0]: (
            alias["Properties"]["FunctionName"]["Ref"]
        )
        for alias in aliases
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_may_call_every_version_of_its_functions(template, machine):
    (resources,) = [
        set(as_list(statement["Resource"]))
        for statement in template.statements(machine)
        if "lambda:InvokeFunction" in as_list(statement["Action"])
    ]

    of_machine = [step.name for step in STEPS if step.machine == machine]
    arns = {f"<{template.function(name)[0]}.Arn>" for name in of_machine}
    assert arns | {f"{arn}:*" for arn in arns} == resources


def test_changed_code_publishes_new_versions_and_keeps_every_other_logical_id(
    template, changed_code
):
    def ids(found):
        return set(found.resources) - set(versions(found))

    assert ids(template) == ids(changed_code)
    assert not set(versions(template)) & set(versions(changed_code))


@pytest.fixture(scope="module")
def changed_code(synthesise):
    """The template of a bundle with one more file."""

    def stage_changed(folder):
        stage_bundle(folder)
        (folder / "compilegate" / "changed.py").write_text("CHANGED = True\n")
        return folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "stage_bundle", stage_changed)
        return load(synthesise())
