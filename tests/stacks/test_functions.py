"""Every Lambda: bounded, observed, from one bundle; executions keep the code they began with."""

import json

import pytest
from botocore.config import Config

import app
from compilegate.adapters.stores import PATIENT
from lambdas import handlers
from stacks.assets import stage_bundle
from stacks.functions import STEPS
from stacks.states import LAMBDA_SECONDS
from tests.stacks.template import REGION, load
from tools.step import function_name

MACHINES = ("evaluate", "train")
VARIABLES = {
    "DATA_BUCKET", "DATA_KEY_ARN", "JOB_POLICY_ARN", "JOB_ROLES", "LEDGER_TABLE", "SETTINGS",
    "STAGE",
}  # fmt: skip


def functions(template):
    return template.properties("AWS::Lambda::Function")


def test_every_step_of_the_table_is_deployed_and_nothing_else(template):
    """By the name with which tools/step.py finds it."""
    deployed = {(item["Handler"], item["FunctionName"]) for item in functions(template)}

    assert deployed == {
        (f"lambdas.handlers.{step}", function_name(step, "prod")) for step in handlers.STEPS
    }


def test_a_call_of_aws_that_stalls_is_tried_again_within_the_time_of_every_function():
    config = Config(**PATIENT)

    assert 2 * (config.connect_timeout + config.read_timeout) < min(step.seconds for step in STEPS)


def test_functions_share_a_bundle_are_traced_and_log_json_into_their_own_group(template):
    groups = template.of_type("AWS::Logs::LogGroup")

    assert 1 == len({json.dumps(item["Code"]) for item in functions(template)})
    for item in functions(template):
        assert "python3.12" == item["Runtime"]
        assert {"Mode": "Active"} == item["TracingConfig"]
        assert "JSON" == item["LoggingConfig"]["LogFormat"]
        group = groups[item["LoggingConfig"]["LogGroup"].strip("<>")]["Properties"]
        assert f"/aws/lambda/{item['FunctionName']}" == group["LogGroupName"]


def test_a_function_times_out_before_the_state_that_waits_for_it(template):
    assert all(item["Timeout"] < LAMBDA_SECONDS for item in functions(template))


def test_the_environment_is_what_the_wiring_reads(template):
    for item in functions(template):
        variables = item["Environment"]["Variables"]
        publishes = item["Handler"].rpartition(".")[2] in ("sweep", "weekly_digest")
        assert VARIABLES | ({"TOPIC_ARN"} if publishes else set()) == set(variables)
        assert "prod" == variables["STAGE"]
        assert REGION == json.loads(variables["SETTINGS"])["region"]


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
    others = (*template.of_type("AWS::Lambda::Function"), *template.of_type("AWS::Lambda::Alias"))

    assert {template.function(step.name)[0] for step in STEPS if step.machine == machine} == {
        function for key, function in versions(template).items() if f'"{key}"' in text
    }
    assert not [key for key in others if f'"{key}"' in text]


def test_every_function_has_one_version_and_an_alias_that_names_it(template):
    assert set(template.of_type("AWS::Lambda::Function")) == set(versions(template).values())
    assert versions(template) == {
        alias["FunctionVersion"].partition(".")[0].strip("<"): alias["FunctionName"].strip("<>")
        for alias in template.properties("AWS::Lambda::Alias")
    }


def test_a_replaced_version_stays_while_executions_may_call_it(template):
    for resource in template.of_type("AWS::Lambda::Version").values():
        # Except where the deployment that published it fails.
        assert ("RetainExceptOnCreate", "Retain") == (
            resource["DeletionPolicy"], resource["UpdateReplacePolicy"],
        )  # fmt: skip


def test_changed_code_publishes_new_versions_and_keeps_every_other_logical_id(
    template, synthesise, monkeypatch
):
    def stage_changed(folder):
        stage_bundle(folder)
        (folder / "compilegate" / "changed.py").write_text("CHANGED = True\n")
        return folder

    monkeypatch.setattr(app, "stage_bundle", stage_changed)
    changed_code = load(synthesise())

    def ids(each):
        return set(each.resources) - set(versions(each))

    assert ids(template) == ids(changed_code)
    assert not set(versions(template)) & set(versions(changed_code))
