"""Every Lambda: right runtime, bounded, observed, from the one bundle."""

import json

from lambdas import handlers
from stacks.states import LAMBDA_SECONDS
from tests.stacks.conftest import VPC
from tests.stacks.template import REGION


def properties(template):
    return [item["Properties"] for item in template.of_type("AWS::Lambda::Function").values()]


def test_every_step_of_the_table_is_deployed_and_nothing_else(template):
    deployed = {item["Handler"] for item in properties(template)}

    assert deployed == {f"lambdas.handlers.{step}" for step in handlers.STEPS}


def test_all_share_one_bundle(template):
    assert 1 == len({json.dumps(item["Code"], sort_keys=True) for item in properties(template)})


def test_runtime_tracing_and_structured_logs(template):
    for item in properties(template):
        assert "python3.12" == item["Runtime"]
        assert {"Mode": "Active"} == item["TracingConfig"]
        assert "JSON" == item["LoggingConfig"]["LogFormat"]


def test_every_function_writes_to_a_log_group_with_retention(template):
    groups = template.of_type("AWS::Logs::LogGroup")
    for item in properties(template):
        group = groups[item["LoggingConfig"]["LogGroup"]["Ref"]]
        assert 90 == group["Properties"]["RetentionInDays"]
        assert f"/aws/lambda/{item['FunctionName']}" == group["Properties"]["LogGroupName"]


def test_no_log_group_is_kept_for_ever(template):
    for group in template.of_type("AWS::Logs::LogGroup").values():
        assert group["Properties"]["RetentionInDays"] > 0


def test_a_function_gives_up_before_the_state_that_waits_for_it(template):
    for item in properties(template):
        assert item["Timeout"] < LAMBDA_SECONDS


def test_the_environment_is_what_the_wiring_reads(template):
    for item in properties(template):
        variables = template.resolve(item["Environment"]["Variables"])
        expected = {
            "DATA_BUCKET", "DATA_KEY_ARN", "LEDGER_TABLE", "SETTINGS", "STAGE", "TRAINING_ROLE_ARN",
        }  # fmt: skip
        publishes = item["Handler"].rpartition(".")[2] in ("sweep", "weekly_digest")
        tells = {"TOPIC_ARN"} if publishes else set()
        assert expected | tells == set(variables)
        assert "prod" == variables["STAGE"]
        assert REGION == json.loads(variables["SETTINGS"])["region"]


def test_the_function_that_tells_the_deployed_vpc_has_the_name_that_the_command_asks_for(changed):
    _, function = changed.function("plan_trial")
    properties = function["Properties"]

    assert "compilegate-prod-plan-trial" == properties["FunctionName"]
    assert VPC == json.loads(properties["Environment"]["Variables"]["SETTINGS"])["vpc"]
