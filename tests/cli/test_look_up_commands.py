"""``status``, ``report`` and ``flag`` show what a trial left behind."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from compilegate.cli.common.cloud import Cloud
from compilegate.domain import ledger_keys
from compilegate.domain.records.canary import CanaryRound, RequestedRun
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD
from tests.fakes import FakeProviders, cloud


@pytest.fixture
def promoted(tmp_path: Path, invoke: Invoke, providers: FakeProviders) -> Cloud:
    """A cloud after one promoted trial of bert-docs."""
    providers.aws_cloud = cloud()
    executions(providers.aws_cloud).on_start = partial(decided, providers.aws_cloud, metrics=GOOD)
    assert 0 == invoke("run", write_project(tmp_path)).exit_code
    return providers.aws_cloud


def trial_of(found: Cloud) -> str:
    (payload,) = executions(found).started.values()
    return str(payload["trial"])


def test_status_shows_what_runs_what_is_locked_and_what_was_decided(
    invoke: Invoke, promoted: Cloud
) -> None:
    promoted.services.locks.acquire("other", "arn:x:other-dead", now=0, expires_at=2_000_000_000)

    result = invoke("status")

    assert f"  bert-docs-{trial_of(promoted)}, for " in result.stdout
    assert "other is locked by other-dead, which is not running" in result.stdout
    assert f"bert-docs-{trial_of(promoted)}: turn it on" in result.stdout
    assert "compile: eval_loss" in result.stdout  # quality's reason, not the speed's alone
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_status_says_what_a_trial_waits_for_production_to_train(
    invoke: Invoke, promoted: Cloud
) -> None:
    services = promoted.services
    asked = CanaryRound(
        trial=trial_of(promoted), round=5,
        runs=(RequestedRun("compile", 17), RequestedRun("baseline", 17)),
        arms={}, job="j", until=services.clock.now() + 86_400, slot_seconds=1, hold=True,
    )  # fmt: skip
    services.ledger.put_once("bert-docs", asked.key, asked.to_entry())

    (running,) = json.loads(invoke("status", "--json").stdout)["running"]
    assert {"round": 5, "arms": ["compile", "baseline"], "until": asked.until} == running["carried"]
    shown = " ".join(invoke("status").stdout.split())
    assert "waits for production to train compile, baseline, at most until 20" in shown


def test_status_says_what_production_did_and_is_at(invoke: Invoke, promoted: Cloud) -> None:
    services, now = promoted.services, int(time.time())
    ended = ProductionRun(
        run="r1", job="cg-bert-docs-r1-p0-r0", arm="compile", started_at=now - 90, ended_at=now,
        result={"finished": False}, counts=True, why="flag", status="Failed",
        reason="CUDA out of memory",
    )  # fmt: skip
    services.ledger.put_once(
        "bert-docs", ledger_keys.run_entry(ended.run, ended.job), replace(ended, at=now).to_entry()
    )
    for number, run in enumerate(("r2", "r3")):
        begun = BegunRun(
            at=now - 60 + number, run=run, execution="e", arm="baseline", why="refresh", seed=1,
            number=1, spec_key="s", source_key="s",
        )  # fmt: skip
        services.ledger.put_once("bert-docs", ledger_keys.begun_entry(run), begun.to_entry())
    wait = CapacityWait(now, "r3", 0, "j", "baseline", "no free instance", 0.0, 300, None)
    services.ledger.put_once("bert-docs", wait.key, wait.to_entry())

    found = json.loads(invoke("status", "--json").stdout)["production"]
    assert [("r3", "waits for machines"), ("r2", "under way"), ("r1", "Failed")] == [
        (one["run"], one["status"]) for one in found
    ]
    shown = " ".join(invoke("status").stdout.split())
    assert "bert-docs-r1: compile, failed CUDA out of memory" in shown
    assert "bert-docs-r3: baseline, waits for machines no free instance" in shown
    assert "bert-docs-r2: baseline, under way a current baseline" in shown


def test_status_of_one_workload_as_json(invoke: Invoke, promoted: Cloud) -> None:
    document = json.loads(invoke("status", "bert-docs", "--json").stdout)
    nothing = json.loads(invoke("status", "unknown", "--json").stdout)

    assert ["promote"] == [entry["verdict"] for entry in document["trials"]]
    assert ([], [], []) == (nothing["running"], nothing["locks"], nothing["trials"])


def test_flag_show_and_history(invoke: Invoke, promoted: Cloud) -> None:
    shown = invoke("flag", "show", "bert-docs")
    history = invoke("flag", "history", "bert-docs")

    assert shown.stdout.startswith("bert-docs: on (probation, candidate compile)\n")
    assert "compiler         torch_compile" in shown.stdout
    assert "/compilegate/dev/workloads/bert-docs/compiler" in shown.stdout
    (entry,) = promoted.services.ledger.entries("bert-docs", "flag#")
    told = " ".join(shown.stdout.split())
    assert f"by a trial (EVALUATE) why {entry['reason']} decision" in told
    assert f"since {json.loads(entry['to'])['since']} by" in told
    assert "off -> on (probation), candidate compile, enable by" in history.stdout
    assert f"trial {trial_of(promoted)}" in history.stdout
    assert f"s3://data/decisions/bert-docs/{trial_of(promoted)}/evidence.json" in history.stdout


def test_flag_as_json(invoke: Invoke, promoted: Cloud) -> None:
    shown = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)
    promoted.services.ledger.put_once(
        "other", "trial#t#started", {"kind": "started", "at": 1, "execution": "other-t"}
    )
    absent = json.loads(invoke("flag", "show", "other", "--json").stdout)
    history = json.loads(invoke("flag", "history", "bert-docs", "--json").stdout)

    assert (True, True, {"compiler": "torch_compile"}) == (
        shown["set"], shown["enabled"], shown["overrides"],
    )  # fmt: skip
    assert (1, True, "evaluate", "enable", None) == (
        shown["version"], shown["agrees"], shown["change"]["by"], shown["change"]["action"],
        shown["human"],
    )  # fmt: skip
    assert (False, False, "off") == (absent["set"], absent["enabled"], absent["state"])
    assert ["enable"] == [entry["action"] for entry in history]


def test_a_flag_never_set_is_said_so(invoke: Invoke, promoted: Cloud) -> None:
    promoted.services.ledger.put_once(
        "other", "trial#t#started", {"kind": "started", "at": 1, "execution": "other-t"}
    )

    assert "other: off (never set" in invoke("flag", "show", "other").stdout
    assert "has never been changed" in invoke("flag", "history", "other").stdout


@pytest.mark.parametrize("command", ["show", "history", "repair"])
def test_a_misspelt_name_is_no_flag_that_was_never_set(
    command: str, invoke: Invoke, promoted: Cloud
) -> None:
    result = invoke("flag", command, "bert-dosc")

    assert (2, "") == (result.exit_code, result.stdout)
    told = " ".join(result.stderr.split())
    assert "WORKLOAD: is not a workload of this stage (got 'bert-dosc')" in told
    assert "did you mean bert-docs?" in told


def test_report_saves_the_newest(tmp_path: Path, invoke: Invoke, promoted: Cloud) -> None:
    result = invoke("report", "--out", tmp_path / "r")

    path = Path(result.stdout.strip())
    assert tmp_path / "r" / f"bert-docs-{trial_of(promoted)}" / "report.html" == path
    assert {"report.html", "report.md", "report.json"} == {p.name for p in path.parent.iterdir()}


def test_report_is_rendered_again_from_the_records(
    tmp_path: Path, invoke: Invoke, providers: FakeProviders
) -> None:
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


def test_a_report_that_is_not_there_is_said_so(invoke: Invoke, promoted: Cloud) -> None:
    result = invoke("report", "bert-docs", "--trial", "00000000")

    assert 1 == result.exit_code
    assert "there is no decision of bert-docs trial 00000000 yet" in result.stderr


def test_without_a_local_cloud_the_saved_reports_are_looked_through(
    tmp_path: Path, invoke: Invoke
) -> None:
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
