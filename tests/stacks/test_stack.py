"""The stack as a whole: a pure function of the repository, the same on every stage."""

import json
import os
import re
import subprocess
import sys

import pytest

import app
from compilegate.domain import arithmetic
from compilegate.usecases.operations.sweep import measure_day
from tests.fakes import services
from tests.stacks.template import TEMPLATE


def files(assembly):
    return {
        path.relative_to(assembly).as_posix(): path.read_bytes()
        for path in assembly.rglob("*")
        if path.is_file() and path.name not in ("tree.json", "manifest.json")
    }


def test_the_same_repository_gives_the_same_assembly_at_any_time(assembly, synthesise, monkeypatch):
    source = app.REPOSITORY / "lambdas" / "handlers.py"
    before = source.stat()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    os.utime(source, (1_000_000_000, 1_000_000_000))
    try:
        again = synthesise()
    finally:
        os.utime(source, (before.st_atime, before.st_mtime))

    assert files(assembly) == files(again)


def test_the_local_stage_differs_in_its_name_only(assembly, synthesise):
    shipped = (assembly / TEMPLATE).read_text()
    local = (synthesise(stage="local") / TEMPLATE).read_text()

    def neutral(text, stage):
        # A version's logical id is made of what the version holds, the stage among it.
        return re.sub(r"CurrentVersion\w+", "VERSION", re.sub(rf"\b{stage}\b", "STAGE", text))

    assert neutral(shipped, "prod") == neutral(local, "local")


@pytest.mark.slow
def test_the_script_writes_what_the_function_does(assembly, tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CDK_")}
    subprocess.run(
        [sys.executable, "app.py"],
        cwd=app.REPOSITORY,
        env={**environment, "CDK_OUTDIR": str(tmp_path), "PATH": "/nonexistent"},
        check=True,
    )

    assert files(assembly) == files(tmp_path)


def test_the_outputs_are_those_that_commands_read(template):
    outputs = template.resolve(template.document["Outputs"])

    assert {
        "DataBucket", "DeadLetterQueue", "DecisionTopic", "EvaluateStateMachine", "JobPolicy",
        "JobRoles", "LedgerTable", "ScheduleGroup", "SchedulerRole", "Stage", "TrainStateMachine",
    } == set(outputs)  # fmt: skip
    assert "compilegate-prod" == outputs["ScheduleGroup"]["Value"]


def test_everything_that_can_carry_a_tag_names_its_deployment(template):
    for kind in (
        "AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::SNS::Topic",
        "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::StepFunctions::StateMachine",
        "AWS::Logs::LogGroup",
    ):  # fmt: skip
        for properties in template.properties(kind):
            tags = {tag["Key"]: tag["Value"] for tag in properties["Tags"]}
            assert ("compilegate", "prod") == (
                tags["application"], tags["compilegate:deployment"],
            ), kind  # fmt: skip


@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_a_machine_logs_everything_and_is_traced(template, name):
    machine = template.machines()[name][1]["Properties"]

    logging = machine["LoggingConfiguration"]
    assert ("ALL", True) == (logging["Level"], logging["IncludeExecutionData"])
    assert {"Enabled": True} == machine["TracingConfiguration"]


@pytest.fixture(scope="module")
def widgets(template):
    (dashboard,) = template.properties("AWS::CloudWatch::Dashboard")
    return {
        widget["properties"]["title"]: widget["properties"]["metrics"]
        for widget in json.loads(dashboard["DashboardBody"])["widgets"]
    }


def shown(widgets, namespace):
    """Names of the metrics of one namespace."""
    return {metric[1] for graph in widgets.values() for metric in graph if metric[0] == namespace}


def test_every_daily_figure_that_is_written_is_shown_and_no_other(widgets, caplog):
    with caplog.at_level("INFO"):
        measure_day(services=services())
    written = {
        item["Name"]
        for record in caplog.records
        if hasattr(record, "_aws")
        for item in record._aws["CloudWatchMetrics"][0]["Metrics"]
    }

    counted = {arithmetic.DECISIONS, arithmetic.FLAG_PROBLEMS}
    assert written | counted == shown(widgets, arithmetic.NAMESPACE)


def test_errors_of_every_function_are_added_up_and_an_idle_one_hides_none(template, widgets):
    graph = widgets["Failures"]
    errors = [metric for metric in graph if metric[:2] == ["AWS/Lambda", "Errors"]]
    (total,) = [metric[0]["expression"] for metric in graph if isinstance(metric[0], dict)]

    functions = template.of_type("AWS::Lambda::Function")
    assert {f"<{key}>" for key in functions} == {metric[3] for metric in errors}
    # Lambda writes no figure for an hour without a call, and without one a sum has none either.
    assert [f"FILL({metric[-1]['id']}, 0)" for metric in errors] == total.split(" + ")


def test_a_budget_counts_jobs_of_state_machines_and_notifies_the_topic(template, changed):
    assert {} == template.of_type("AWS::Budgets::Budget")
    (budget,) = changed.properties("AWS::Budgets::Budget")
    (topic,) = changed.of_type("AWS::SNS::Topic")

    assert {"Amount": 5000.5, "Unit": "USD"} == budget["Budget"]["BudgetLimit"]
    stages = ("speed", "quality", "production")  # not a team's own jobs
    tags = [f"user:compilegate:stage${stage}" for stage in stages]
    assert {"TagKeyValue": tags} == budget["Budget"]["CostFilters"]
    notifications = budget["NotificationsWithSubscribers"]
    kinds = [item["Notification"]["NotificationType"] for item in notifications]
    assert ["ACTUAL", "FORECASTED"] == kinds
    for item in notifications:
        assert [{"Address": f"<{topic}>", "SubscriptionType": "SNS"}] == item["Subscribers"]


def test_an_address_gets_every_message_an_owners_theirs_and_by_default_none(template, changed):
    filters = {
        item["Endpoint"]: item.get("FilterPolicy")
        for item in changed.properties("AWS::SNS::Subscription")
    }

    owner = {"owner": ["ml-platform"]}
    assert {"team@example.com": None, "ml@example.com": owner} == filters
    assert {} == template.of_type("AWS::SNS::Subscription")
    assert {} == template.of_type("AWS::Chatbot::SlackChannelConfiguration")
