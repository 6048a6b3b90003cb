"""``demo`` and ``demo-production``: what they show, and that they end what they started."""

import json
import os
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from compilegate.adapters.state_machines import ExecutionState
from compilegate.cli.trials import JobLines, JobView, View
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.usecases.flag.change_flag import flag_versions
from compilegate.usecases.records import Trial
from compilegate_local import demo
from compilegate_local.demo import seconds_by_part
from tests.cli.production_script import Production
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD, NOISY, WORSE
from tests.fake_clouds import cloud
from tests.report.browser import plain

METRICS = {"one": GOOD, "two": WORSE, "three": NOISY}
NOTE = "Trained on this machine's CPU."


@pytest.fixture
def local(providers, monkeypatch):
    """A local cloud that decides at once; the data is taken as prepared."""
    monkeypatch.setattr(demo, "preparing_data", lambda command: nullcontext(lambda: None))
    providers.local_cloud = cloud("local", simulated=NOTE)
    executions(providers.local_cloud).on_start = lambda payload: decided(
        providers.local_cloud, payload, metrics=METRICS[payload["workload"]]
    )
    return providers.local_cloud


def options(folder):
    words = []
    for name in METRICS:
        change = ("name: bert-docs", f"name: {name}")
        words += ["--workloads", str(write_project(folder / name, change))]
    return words


def test_three_verdicts_and_exit_0_whatever_they_are(tmp_path, invoke, local, providers):
    result = invoke("demo", *options(tmp_path))

    assert (0, True) == (result.exit_code, providers.ended), result.output
    for expected in (
        "Trials, all at once: one, two, three.", "turn it on", "leave it off", "not proven",
        "flag unchanged", "Not training: 100%", f"Simulated: {NOTE}",
    ):  # fmt: skip
        assert expected in " ".join(result.stdout.split())
    assert 3 == result.stdout.count("report.html")
    lines = result.stdout.splitlines()
    verdict = re.compile(r" +0:\d\d \w+: (Turn the|Leave it|Not proven)")
    verdicts = [at for at, line in enumerate(lines) if verdict.match(line)]
    assert 3 == len(verdicts)
    assert verdicts[-1] < lines.index("one: turn it on (promote)")
    assert [line for line in lines if len(line) > 80] == []


def test_what_the_demo_leaves_answers_commands(tmp_path, invoke, local, providers):
    assert 0 == invoke("demo", *options(tmp_path)).exit_code
    providers.local_cloud = None

    # The scripted cloud's report is no report: this one is written again.
    for report in Path(".compilegate/trials").glob("two-*/objects/reports/**/report.*"):
        report.unlink()
    saved = json.loads(invoke("report", "two", "--local", "--out", "saved", "--json").stdout)
    page = plain(Path(saved["html"]).read_text())
    (named,) = re.findall(r"Next: compilegate run (\S+) --local", page)
    assert "two/workloads/bert-docs.yaml" == named
    providers.local_cloud = local
    assert 10 == invoke("run", named, "--local").exit_code


def test_a_trial_without_a_verdict_is_reported_and_is_a_failure(tmp_path, invoke, local):
    executions(local).ends = {"two": "FAILED"}

    result = invoke("demo", *options(tmp_path))

    assert 1 == result.exit_code
    assert "trial failed" in result.stdout
    assert 2 == result.stdout.count("report.html")


def test_ctrl_c_ends_the_cloud(tmp_path, invoke, local, providers):
    def interrupt(arn):
        raise KeyboardInterrupt

    executions(local).on_look = interrupt

    result = invoke("demo", *options(tmp_path))

    assert (130, True) == (result.exit_code, providers.ended)
    assert "Stopping the trials and the embedded cloud" in result.stderr


def test_keep_leaves_the_cloud_and_says_how_to_end_it(tmp_path, invoke, local, providers):
    result = invoke("demo", *options(tmp_path), "--keep")

    assert not providers.ended
    assert "compilegate local down" in result.stdout


def job(started, ended):
    return JobView("j", "q1a17", "baseline", "Completed", "", started, ended, 1.0, JobLines())


def test_training_is_the_time_in_which_any_job_trained():
    state = ExecutionState("arn", "SUCCEEDED", 0.0, 100.0)
    jobs = (job(10, 30), job(20, 40), job(25, 28), job(60, 70))
    view = View(Trial("w", "t", "k"), state, ("baseline",), jobs)

    seconds = seconds_by_part([view], ready=20.0, deploy=5.0, total=100.0)

    assert {
        "total": 100.0, "setup": 15.0, "deploy": 5.0, "training": 40.0, "loop": 40.0,
        "overhead": 60.0,
    } == seconds  # fmt: skip


def test_data_that_cannot_be_written_quotes_the_script(python):
    with demo.preparing_data([python, "-c", "1"]) as wait:
        wait()
    with (
        demo.preparing_data([python, "-c", "1/0"]) as wait,
        pytest.raises(EnvironmentNotReadyError, match="ZeroDivisionError"),
    ):
        wait()


def test_a_busy_machine_is_named_before_anything_starts(tmp_path, invoke, local, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    commands = (("demo", *options(tmp_path)), ("run", options(tmp_path)[1], "--local"))
    monkeypatch.setattr(os, "getloadavg", lambda: (6.04, 1.0, 1.0))
    busy = [invoke(*command).stdout for command in commands]
    monkeypatch.setattr(os, "getloadavg", lambda: (1.9, 9.0, 9.0))
    quiet = [invoke(*command).stdout for command in commands]

    for text in busy:
        assert " ".join(text.split()).startswith("This machine is busy (load 6.0 on 2 cores): ")
    assert ["Preparing", "Starting"] == [text.split()[0] for text in quiet]


@pytest.fixture
def month(local, tmp_path, invoke):
    """The command on a month with these figures."""
    file = write_project(tmp_path / "team", ("  margin: 0.005\n", NO_WAIT))

    def call(*options, **figures):
        Production(local, **figures)
        return invoke("demo-production", "--workload", file, *options)

    return call


NO_WAIT = "  margin: 0.005\npolicy: {cooldown_days: 0}\n"


def test_promotion_fault_alarm_revert_and_the_run_after(month, providers):
    result = month()

    text = " ".join(result.stdout.split())
    assert (0, True) == (result.exit_code, providers.ended), result.output
    for expected in (
        f"Simulated: {NOTE}", "Simulated: the clock.", "Simulated: the fault.",
        f"{FAULT_VARIABLE}=learning_rate:0.2", "ALARM", "checks alarm", "flag off (reverted)",
        "The owner was notified:", "The whole history: s3://data/reports/bert-docs/history.html",
        "compilegate-reports/bert-docs-history/history.html",
    ):  # fmt: skip
        assert expected in text
    lines = result.stdout.splitlines()
    states = {
        word: [int(line.split()[0]) for line in lines if f"  {word}  " in line]
        for word in ("ALARM", "faulty")
    }
    assert {"ALARM": [5, 6, 7, 8, 9, 10], "faulty": [11]} == states
    assert [line for line in lines if len(line) > 80] == []


def test_after_a_trial_that_proves_nothing_a_person_turns_it_on(month, local):
    result = month("--json", metrics=NOISY, loss=2.0)

    document = json.loads(result.stdout)
    assert (0, None, "inconclusive", True) == (
        result.exit_code, document["wrong"], document["trial"]["verdict"],
        document["turned_on_by_hand"],
    )  # fmt: skip
    assert "The trial did not prove the compiler, so it left the flag off." in result.stderr
    assert "human:demo" in [one.by for one in flag_versions("bert-docs", local.services)]
    assert "reverted" == document["runs"][-1]["flag"]["state"]


@pytest.mark.parametrize(
    ("figures", "wrong"),
    [
        ({"metrics": WORSE}, "the trial did not turn the compiler on"),
        ({"loss": 0.0}, "no revert within 18 faulty runs"),
        ({"broken": (1,)}, "production run 1 did not finish training"),
    ],
)
def test_what_does_not_go_as_planned_is_reported_and_a_failure(figures, wrong, month):
    result = month(**figures)

    text = " ".join(result.stdout.split())
    assert 1 == result.exit_code
    assert f"did not go as planned: {wrong}" in text
    assert "history.html" in text  # what there is to see can be seen


def test_ctrl_c_in_the_month_ends_the_cloud(month, local, providers):
    def interrupt(*_):
        raise KeyboardInterrupt

    local.production.executions.start = interrupt

    result = month()

    assert (130, True) == (result.exit_code, providers.ended)
    assert "Stopping the demo" in result.stderr
