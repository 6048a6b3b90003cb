"""The demo's table and figures, and that it ends what it started."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from compilegate.adapters.state_machines import ExecutionState
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.trials import JobLines, JobView, View
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.usecases.records import Trial
from compilegate_local import demo
from compilegate_local.demo import seconds_by_part
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD, NOISY, WORSE
from tests.fake_clouds import FakeProviders, cloud
from tests.report.browser import plain

METRICS = {"one": GOOD, "two": WORSE, "three": NOISY}
NOTE = "Trained on this machine's CPU."


@pytest.fixture
def local(providers: FakeProviders, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A local cloud that decides at once; the data is taken as prepared."""

    monkeypatch.setattr(demo, "preparing_data", lambda command: nullcontext(lambda: None))
    providers.local_cloud = cloud("local", simulated=NOTE)
    executions(providers.local_cloud).on_start = lambda payload: decided(
        providers.local_cloud, payload, metrics=METRICS[payload["workload"]]
    )
    return providers.local_cloud


def options(folder: Path) -> list[str]:
    words = []
    for name in METRICS:
        change = ("name: bert-docs", f"name: {name}")
        words += ["--workloads", str(write_project(folder / name, change))]
    return words


def test_three_verdicts_each_outcome_and_exit_0_whatever_they_are(
    tmp_path, invoke, local, providers
):
    result = invoke("demo", *options(tmp_path))

    assert 0 == result.exit_code, result.output
    assert providers.ended
    for expected in (
        "Trials, all at once: one, two, three.",
        "turn it on",
        "leave it off",
        "not proven",
        "flag unchanged",
        "Not training: 100%",
        f"Simulated: {NOTE}",
    ):
        assert expected in " ".join(result.stdout.split())
    assert 3 == result.stdout.count("report.html")
    lines = result.stdout.splitlines()
    verdict = re.compile(r" +0:\d\d \w+: (Turn the|Leave it|Not proven)")
    verdicts = [at for at, line in enumerate(lines) if verdict.match(line)]
    assert 3 == len(verdicts)
    assert verdicts[-1] < lines.index("one: turn it on (promote)")
    assert [line for line in lines if len(line) > 80] == []


def test_what_the_demo_leaves_answers_the_command_that_its_reports_name(
    tmp_path, invoke, local, providers
):
    assert 0 == invoke("demo", *options(tmp_path)).exit_code
    providers.local_cloud = None

    for command in (("flag", "show", "one"), ("status", "two"), ("report", "three", "--history")):
        assert 0 == invoke(*command, "--local").exit_code, command
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


def test_as_json(tmp_path, invoke, local):
    result = invoke("demo", *options(tmp_path), "--json")

    document = json.loads(result.stdout)
    verdicts = [outcome["verdict"] for outcome in document["outcomes"]]
    assert ["promote", "stay_off", "inconclusive"] == verdicts
    assert {"total", "setup", "deploy", "training", "loop", "overhead"} == set(document["seconds"])
    assert NOTE == document["simulated"]


def test_ctrl_c_ends_the_cloud(tmp_path, invoke, local, providers):
    def interrupt(arn: str) -> None:
        raise KeyboardInterrupt

    executions(local).on_look = interrupt

    result = invoke("demo", *options(tmp_path))

    assert (130, True) == (result.exit_code, providers.ended)
    assert "Stopping the trials and the embedded cloud" in result.stderr


def test_keep_leaves_the_cloud_and_says_how_to_end_it(tmp_path, invoke, local, providers):
    result = invoke("demo", *options(tmp_path), "--keep")

    assert not providers.ended
    assert "compilegate local down" in result.stdout


def job(started: float, ended: float) -> JobView:
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


def test_data_preparation_never_outlives_its_block(python, tmp_path):
    pid = tmp_path / "pid"
    code = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with demo.preparing_data([python, "-c", code]):
        while not pid.exists() or not pid.read_text():
            time.sleep(0.05)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


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
