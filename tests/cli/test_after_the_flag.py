"""What fails once the flag is set does not unsay the decision: ``run`` and ``status`` tell."""

import json
from functools import partial

import pytest

from compilegate.cli.common import outcome as outcome_module
from compilegate.domain import naming
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions, trial_of
from tests.domain.evidence_builder import GOOD
from tests.fake_clouds import cloud

CAUSE = json.dumps({"errorMessage": "a chart is broken", "errorType": "ValueError"})
REPORT_FAILED = {"report_failed": {"error": "ValueError", "cause": CAUSE}, "notify_failed": None}


@pytest.fixture
def aws(providers):
    """A cloud in which a trial is decided and its report is not written."""
    providers.aws_cloud = cloud()
    executions(providers.aws_cloud).on_start = partial(
        decided, providers.aws_cloud, metrics=GOOD, report=False
    )
    executions(providers.aws_cloud).outputs = {"bert-docs": REPORT_FAILED}
    return providers.aws_cloud


def text_of(result):
    return " ".join(result.stdout.split())


def cannot_render(*_):
    raise ZeroDivisionError("still broken here")


@pytest.mark.parametrize("here", [True, False])
def test_the_decision_stands_where_the_report_failed(here, tmp_path, invoke, aws, monkeypatch):
    """Made here, or where that fails too the command for later."""
    if not here:
        monkeypatch.setattr(outcome_module, "trial_report", cannot_render)
    result = invoke("run", write_project(tmp_path))

    text, page = (
        text_of(result),
        f"report compilegate-reports/bert-docs-{trial_of(aws)}/report.html",
    )
    assert "bert-docs: turn it on (promote)" in text
    assert (0 if here else 1, here) == (result.exit_code, page in text)
    if here:
        said = "could not write its report (ValueError: a chart is broken), so this one was made"
    else:
        said = "is missing (ValueError: a chart is broken). To write it again:"
        command = f"compilegate report bert-docs --trial {trial_of(aws)}"
        assert f"    {command}\n" in result.stdout
    assert said in text


def test_status_names_the_newest_decision_without_a_report(tmp_path, invoke, aws):
    """Not while its trial runs, which may still write it."""
    invoke("run", write_project(tmp_path))
    during = invoke("status")
    executions(aws).stopped = dict.fromkeys(executions(aws).started, "ended")
    command = f"compilegate report bert-docs --trial {trial_of(aws)}"
    before = invoke("status")
    place = naming.report_key("bert-docs", trial_of(aws), "html")
    aws.services.store.put(place, b"<html>")
    after = invoke("status")

    assert "The decision stands, its report is missing." in before.stdout
    assert f"      {command}\n" in before.stdout
    assert "missing" not in during.stdout + after.stdout
