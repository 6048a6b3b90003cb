"""Progress: what a trial looks like while it runs, from its jobs and their lines."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from compilegate.cli.trials import (
    JobLines,
    LineScreen,
    TrialWatcher,
    arm_rows,
    progress_table,
    screen,
)
from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.records.production import CanaryClosed, CanaryRound
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.usecases.records import Trial, save_record
from tests.fake_clouds import ScriptedLogs, cloud
from tests.fakes import start_job
from tests.plan_builder import plan_record

TRIAL = Trial("lm", "0abc1234", "workloads/lm/specs/x.json")
PREFIX = "cg-lm-0abc1234-"
BASELINE = ArmPlan(
    name="baseline", compiler="none", image="i", instance_type="ml.g5.xlarge", instance_count=1,
    devices=1, usd_per_hour=36.0, precision="fp32", batch_size=8, learning_rate=1e-3,
    distribution="none", overrides={},
)  # fmt: skip
COMPILE = replace(BASELINE, name="compile", compiler="torch_compile", usd_per_hour=72.0)


def line(**values):
    return "compilegate " + " ".join(f"{key}={value}" for key, value in values.items()) + ";"


def watched(*jobs):
    """A watcher on a planned trial with these jobs: run, status, lines."""
    aws = cloud(looks=99)
    arn = aws.executions.start("lm-0abc1234", {"workload": "lm"})
    save_record(aws.services.store, TRIAL, "plan", plan_record(BASELINE, COMPILE))
    assert isinstance(aws.logs, ScriptedLogs)
    for run, status, lines in jobs:
        times = {"started": 1000.0, "ended": None if status == "InProgress" else 1100.0}
        job = start_job(aws.services, "lm", TRIAL.trial, run, status=status, **times)
        aws.logs.printed[job] = lines
    return TrialWatcher(TRIAL, arn, aws)


@pytest.mark.parametrize("tag", ["[1,mpirank:0,algo-1]<stdout>:", "[1,0]<stdout>:"])
def test_lines_that_mpirun_tags_are_read_but_for_those_of_standard_error(tag):
    lines = JobLines()

    lines.take([tag + line(arm="compile", block=1), "compilegate", tag + line(step=5, loss="nan")])
    lines.take(["[1,mpirank:1,algo-2]<stderr>:" + line(step=9)])

    assert ("compile", 1, {"compile": {"step": 5.0}}) == (lines.arm, lines.block, lines.by_arm)


def test_while_production_carries_a_round_the_trial_waits():
    watcher = watched(("s0", "Completed", []))
    services = watcher._cloud.services
    save_record(services.store, TRIAL, "plan", plan_record(BASELINE, COMPILE, used="canary"))
    wanted = (RequestedFullRun("compile", 17), RequestedFullRun("baseline", 17))
    asked = CanaryRound(TRIAL.trial, 2, wanted, {}, "j", services.clock.now() + 10, 1, hold=True)
    services.ledger.append("lm", asked)
    waits = watcher.read().stage
    services.ledger.append("lm", CanaryClosed(1, TRIAL.trial, 2, "complete"))

    assert ["waits for production: compile, baseline", "judging"] == [waits, watcher.read().stage]


def test_a_trial_that_waits_for_a_person_says_so():
    watcher = watched(("s0", "Completed", []))
    ledger = watcher._cloud.services.ledger
    ledger.append("lm", ApprovalRequested(1, 2_000_000_000, TRIAL.trial))

    assert "waits for approval, see compilegate status" == watcher.read().stage


ROWS = {
    "a speed job, each arm with its own figures": ([("s0", "InProgress", [
        line(arm="baseline", block=1), line(step=160, steps=160, samples_per_second=400),
        line(arm="compile", block=1), line(step=80, steps=160, samples_per_second=500),
    ])], [
        ("  baseline", "waits its turn", "160/160", "400", "", "–", "–"),  # noqa: RUF001
        ("  compile", "block 2", "80/160", "500", "", "–", "–"),  # noqa: RUF001
    ]),
    "a first compilation is no block yet": ([("s0", "InProgress", [
        line(arm="compile", priming=20), line(block=0, arm="compile", step=10, steps=20),
    ])], [("  baseline", "waits its turn"), ("  compile", "first compilation", "10/20")]),
    "then the first block": ([("s0", "InProgress", [
        line(arm="compile", priming=20), line(block=0, blocks=3, arm="compile"),
    ])], [("  baseline", "waits its turn"), ("  compile", "block 1")]),
    "full runs are counted, timed and priced": ([
        ("s0", "Completed", []), ("q1a17", "Completed", [line(step=600, steps=600)]),
        ("q1b17", "Completed", []),
        ("q2b18", "InProgress", [line(step=30, steps=600, samples_per_second=512.3, loss=3.21)]),
    ], [
        ("  baseline", "full runs 1/1", "600/600", "", "", "1:40", "$1.00"),
        ("  compile", "full runs 1/2", "30/600", "512", "3.21", "2:30", "$3.00"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_each_arm_has_its_row(name):
    jobs, expected = ROWS[name]
    view = watched(*jobs).read()

    rows = list(arm_rows(view, 1050.0))

    assert expected == [row[: len(part)] for row, part in zip(rows, expected, strict=True)]
    assert ("full runs" if jobs[-1][0].startswith("q") else "speed gate") == view.stage


class Terminal(io.StringIO):
    """A screen in memory."""

    def isatty(self):
        return True


def test_a_terminal_gets_a_table_and_a_pipe_gets_lines():
    view = watched(("q1a17", "InProgress", [line(step=1, steps=600)])).read()
    texts = []
    for terminal in (True, False):
        file = Terminal() if terminal else io.StringIO()
        out = Console(file=file, force_terminal=terminal, width=80)
        with screen(out) as show:
            show([view])
        texts.append(out.file.getvalue())

    assert [True, False] == ["workload / arm" in text for text in texts]


def test_progress_has_every_column_in_80():
    lines = [line(step=12000, steps=52000, samples_per_second=51200.123, loss=3.2101)]
    view = watched(("q1a17", "InProgress", lines)).read()
    out = Console(file=io.StringIO(), width=80)
    out.print(progress_table([view], 5000.0, 80))

    assert "12000/52000" in out.file.getvalue()
    assert "…" not in out.file.getvalue()


def printed(watcher, times=3):
    """What a pipe gets of so many looks at the trial."""
    out = Console(file=io.StringIO(), width=80)
    lines = LineScreen(out)
    for _ in range(times):
        lines.show([watcher.read()])
    return [text.strip() for text in out.file.getvalue().splitlines()]


def test_a_line_is_printed_once_per_event():
    shown = printed(watched(("s0", "InProgress", [line(step=10, steps=160, loss=3.0)])))

    assert ["0:00 lm: speed gate", "0:00 lm: s0 speed gate: training"] == shown[:2]
    assert shown[2].startswith("0:00 lm: s0 speed gate: step 10/160, loss 3, ")
    assert 3 == len(shown)


def test_each_segment_of_a_speed_job_is_an_event():
    watcher = watched(("s0", "InProgress", [line(arm="compile", priming=20)]))
    printed_by_job = watcher._cloud.logs.printed[f"{PREFIX}s0-r0"]
    out = Console(file=io.StringIO(), width=80)
    lines = LineScreen(out)

    for addition in ([], [line(block=0, blocks=3, arm="baseline")], []):
        printed_by_job.extend(addition)
        for _ in range(2):
            lines.show([watcher.read()])

    printed = [text.partition("gate: ")[2] for text in out.file.getvalue().splitlines()]
    assert ["", "training", "compile, first compilation", "baseline, block 1"] == printed
