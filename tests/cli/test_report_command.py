"""``report``: a trial's report or a workload's history, saved and found again."""

import json
from functools import partial
from pathlib import Path

import pytest

from compilegate.cli.common.outcome import newest_decision
from compilegate.domain.records.trials import TrialDecided
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions, trial_of
from tests.domain.evidence_builder import GOOD
from tests.fake_clouds import cloud


@pytest.mark.usefixtures("registered")
def test_the_history_is_saved_beside_the_trials_reports(invoke):
    result = invoke("report", "bert-docs", "--history")
    named = json.loads(invoke("report", "bert-docs", "--history", "--json").stdout)

    page = Path("compilegate-reports/bert-docs-history/history.html")
    assert (0, f"{page}\n") == (result.exit_code, result.stdout)
    assert "bert-docs is registered, and production has not trained it yet" in page.read_text()
    ends = {"html": ".html", "json": ".json", "markdown": ".md"}
    assert {name: str(page.with_suffix(end)) for name, end in ends.items()} == named
    assert "bert-docs" == json.loads(Path(named["json"]).read_text())["workload"]
    assert "Registered" in Path(named["markdown"]).read_text()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--history"], 2, "compilegate report WORKLOAD --history"),
        (["bert-docs", "--trial", "0mabc123", "--history"], 2, "report WORKLOAD --history"),
        (["nobody", "--history"], 1, "nobody has no history"),
        (["bert-docs", "--trial", "00000000"], 1,
         "there is no decision of bert-docs trial 00000000 yet"),
        ([], 1, "there is no decision yet"),
    ],
)  # fmt: skip
def test_what_there_is_no_report_of_is_an_error(words, code, said, invoke):
    result = invoke("report", *words)

    assert code == result.exit_code
    assert said in result.stderr


def test_without_a_local_cloud_the_history_saved_before_is_named(invoke, providers, registered):
    providers.local_cloud = registered
    first = invoke("report", "bert-docs", "--history", "--local")
    providers.local_cloud = None

    again = invoke("report", "bert-docs", "--history", "--local")
    other = invoke("report", "other", "--history", "--local")

    assert (first.stdout, 0) == (again.stdout, again.exit_code)
    assert "this report was saved before" in again.stderr
    assert 1 == other.exit_code


def test_the_newest_decision_is_of_the_workloads_and_the_trial_asked_for():
    stage = cloud()
    for name, trial, at in (("a", "t1", 50), ("a", "t2", 30), ("b", "t3", 90), ("b", "t1", 10)):
        stage.services.ledger.append(name, TrialDecided(at, trial, "promote", "decisions/x.json"))
        stage.services.store.put(f"workloads/{name}/specs/1.json", b"{}")

    newest = {
        (name, trial): one and (one[0].workload, one[0].trial, one[1].at)
        for name, trial in ((None, None), ("a", None), (None, "t1"), ("a", "t3"))
        for one in [newest_decision(name, trial, stage)]
    }

    assert {
        (None, None): ("b", "t3", 90), ("a", None): ("a", "t1", 50),
        (None, "t1"): ("a", "t1", 50), ("a", "t3"): None,
    } == newest  # fmt: skip


def test_report_saves_the_newest(tmp_path, invoke, promoted):
    result = invoke("report", "--out", tmp_path / "r")

    path = Path(result.stdout.strip())
    assert tmp_path / "r" / f"bert-docs-{trial_of(promoted)}" / "report.html" == path
    assert {"report.html", "report.md", "report.json"} == {p.name for p in path.parent.iterdir()}


def test_report_is_rendered_again_from_the_records(tmp_path, invoke, providers):
    providers.aws_cloud = cloud()
    executions(providers.aws_cloud).on_start = partial(
        decided, providers.aws_cloud, metrics=GOOD, report=False
    )
    invoke("run", write_project(tmp_path))

    result = invoke("report", "bert-docs", "--json")

    saved = json.loads(result.stdout)
    assert "<html" in Path(saved["html"]).read_text(encoding="utf-8")
    headline = json.loads(Path(saved["json"]).read_text(encoding="utf-8"))["headline"]
    assert headline.startswith("Turn the compiler on: 1.")


def test_without_a_local_cloud_the_saved_reports_are_looked_through(tmp_path, invoke):
    for trial in ("0aaaaaaa", "0bbbbbbb"):
        folder = tmp_path / "compilegate-reports" / f"demo-lm-{trial}"
        folder.mkdir(parents=True)
        (folder / "report.html").write_text("<html>")

    newest = invoke("report", "demo-lm", "--local")
    older = invoke("report", "--trial", "0aaaaaaa", "--local")
    none = invoke("report", "other", "--local")

    assert "compilegate-reports/demo-lm-0bbbbbbb/report.html\n" == newest.stdout
    assert "compilegate-reports/demo-lm-0aaaaaaa/report.html\n" == older.stdout
    assert (1, "") == (none.exit_code, none.stdout)
    assert "The local cloud does not run" in none.stderr
