"""The dashboard shows metrics that are really written."""

import json

import pytest

from compilegate.domain import metrics
from compilegate.usecases.operations.metrics import measure_day
from tests.fakes import services


@pytest.fixture(scope="module")
def widgets(template):
    body = template.resolve(
        template.one("AWS::CloudWatch::Dashboard")["Properties"]["DashboardBody"]
    )
    return {
        widget["properties"]["title"]: widget["properties"]["metrics"]
        for widget in json.loads(body)["widgets"]
    }


def shown(widgets, namespace):
    """Names of the metrics of one namespace."""
    found = [metric for graph in widgets.values() for metric in graph]
    return {metric[1] for metric in found if metric[0] == namespace}


def test_it_is_named_as_the_stack(template):
    dashboard = template.one("AWS::CloudWatch::Dashboard")

    assert "compilegate-prod" == dashboard["Properties"]["DashboardName"]


def test_every_daily_figure_that_is_written_is_shown_and_no_other(widgets, caplog):
    cloud = services()
    with caplog.at_level("INFO"):
        measure_day(services=cloud)
    written = {
        item["Name"]
        for record in caplog.records
        if hasattr(record, "_aws")
        for item in record._aws["CloudWatchMetrics"][0]["Metrics"]
    }

    counted = {metrics.DECISIONS, metrics.FLAG_PROBLEMS}
    assert written | counted == shown(widgets, metrics.NAMESPACE)


def test_decisions_are_shown_by_verdict_of_this_stage(widgets):
    graph = widgets["Decisions by verdict, per day"]

    dimensions = [dict(zip(metric[2:-1:2], metric[3:-1:2], strict=True)) for metric in graph]
    assert {"prod"} == {found[metrics.STAGE] for found in dimensions}
    verdicts = {found[metrics.VERDICT] for found in dimensions}
    assert {"promote", "stay_off", "revert", "inconclusive", "failed"} <= verdicts
    assert "continue" not in verdicts  # never ends a trial


def test_executions_failures_and_lost_events_are_shown(widgets):
    assert {
        "ExecutionsStarted", "ExecutionsSucceeded", "ExecutionsFailed", "ExecutionsTimedOut",
        "ExecutionsAborted",
    } == shown(widgets, "AWS/States")  # fmt: skip
    assert {"ApproximateNumberOfMessagesVisible"} == shown(widgets, "AWS/SQS")
    assert {"InvocationDroppedCount"} == shown(widgets, "AWS/Scheduler")


def test_every_function_counts_among_the_failures(template, widgets):
    errors = [metric for metric in widgets["Failures"] if metric[:2] == ["AWS/Lambda", "Errors"]]

    named = {metric[3] for metric in errors}
    assert {f"<{key}>" for key in template.of_type("AWS::Lambda::Function")} == named


def test_a_function_that_nothing_called_for_an_hour_hides_no_errors_of_the_others(widgets):
    graph = widgets["Failures"]
    (total,) = [metric[0]["expression"] for metric in graph if isinstance(metric[0], dict)]
    ids = [metric[-1]["id"] for metric in graph if metric[:2] == ["AWS/Lambda", "Errors"]]

    # Lambda writes no figure for such an hour, and without one a sum has none either.
    assert [f"FILL({metric}, 0)" for metric in ids] == total.split(" + ")
