"""``status`` and ``digest``: what runs, waits and was decided; the weekly digest."""

import json
import time
from dataclasses import replace

import pytest

from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.reasons import advice
from compilegate.domain.records.production import (
    BegunRun,
    CanaryRound,
    CapacityWait,
    IgnoredJob,
    ProductionRun,
    RegistrationChange,
)
from compilegate.domain.records.trials import ApprovalRequested
from tests.cli.test_list import stage_of
from tests.cli.trial_script import executions, trial_of
from tests.domain.fleet.test_listing import row
from tests.fake_clouds import cloud
from tests.usecases.production_ledger import DAY, NOW, ran, register


def test_status_says_what_a_trial_waits_for_production_to_train(shown, asked, promoted):
    services = promoted.services
    wanted = (RequestedFullRun("compile", 17), RequestedFullRun("baseline", 17))
    until = services.clock.now() + 86_400
    round_ = CanaryRound(trial_of(promoted), 5, wanted, {}, "j", until, 1, hold=True)
    services.ledger.append("bert-docs", round_)

    (running,) = asked("status")["running"]
    document = {"round": 5, "arms": ["compile", "baseline"], "until": until}
    assert document == running["canary_round"]
    said = "waits for production to train compile, baseline, at most until 20"
    assert said in shown("status")


def test_status_says_what_production_did_and_is_at(shown, promoted):
    services, now = promoted.services, int(time.time())
    failed = ProductionRun(
        run="r1", job="j", arm="compile", started_at=now - 90, ended_at=now, counts=True, at=now,
        why="flag", result={"finished": False}, status="Failed", reason="CUDA out of memory",
    )  # fmt: skip
    services.ledger.append("bert-docs", failed)
    for number, run in enumerate(("r2", "r3")):
        begun = BegunRun(
            at=now + 1 + number, run=run, execution="e", arm="baseline", why="refresh", seed=1,
            number=1, spec_key="s", source_key="s",
        )  # fmt: skip
        services.ledger.raw.put_once("bert-docs", BegunRun.key_of(run=run), begun.to_entry())
    wait = CapacityWait(now, "r3", 0, "j", "baseline", "no free instance", 0.0, 300, None)
    services.ledger.append("bert-docs", wait)

    screen = shown("status")
    assert ": compile, failed CUDA out of memory" in screen
    assert "bert-docs-r3: baseline, waits for machines no free instance" in screen
    assert "bert-docs-r2: baseline, under way a current baseline" in screen


def test_status_names_jobs_that_did_not_count_until_it_is_registered_again(shown, asked, promoted):
    services, now = promoted.services, promoted.services.clock.now()
    ignored = IgnoredJob(now, "nightly-7", "arn:x:role/etl", "job_of_another_role")
    services.ledger.append("bert-docs", ignored)

    (document,), screen = asked("status")["ignored_jobs"], shown("status")
    services.ledger.append("bert-docs", RegistrationChange(revision=9, active=True, at=now + 1))

    assert {"workload": "bert-docs", **ignored.to_entry(), "fix": advice(ignored.code)} == document
    assert "bert-docs: nightly-7 ran as arn:x:role/etl (job_of_another_role)" in screen
    assert "name its role as `schedule.team_role`" in screen
    assert [] == asked("status")["ignored_jobs"]


def test_of_a_large_stage_only_what_needs_a_person_is_looked_up(invoke, providers, monkeypatch):
    waiting = [row(f"w{number:02}", "off", ("approve", number)) for number in range(12)]
    trial = replace(row("in-trial"), trial="0mabc123", phase="canary")
    stage = stage_of(providers, [trial, *waiting, *(row(f"z{number}") for number in range(30))])
    ledger, locks = stage.services.ledger, stage.services.locks
    for name in ("in-trial", "w11", "z1"):
        asked = ApprovalRequested(NOW, NOW + 9, "0mabc123", "arn:x", "d1", candidate="compile")
        ledger.append(name, asked)
        locks.acquire(name, f"arn:x:{name}-0mabc123", now=0, expires_at=2_000_000_000)
    for name in ("in-trial", "z1"):
        executions(stage).start(f"{name}-0mabc123", {})
    read = []
    entries = ledger.raw.entries
    monkeypatch.setattr(
        ledger.raw, "entries", lambda name, *part: read.append(name) or entries(name, *part)
    )

    document = json.loads(invoke("status", "--json").stdout)
    shown = invoke("status").stdout

    assert {"in-trial": "canary", "z1": None} == {
        one["execution"].removesuffix("-0mabc123"): one["phase"] for one in document["running"]
    }
    assert ["in-trial"] == [lock["workload"] for lock in document["locks"]]
    assert {"_deployment", *(f"w{number:02}" for number in range(7, 12))} == set(read)
    assert (43, 23, 20) == (
        document["undetailed"], document["list"]["more"], len(document["list"]["rows"]),
    )  # fmt: skip
    assert "in-trial-0mabc123, for" in shown
    assert "and 11 more: compilegate list --need approve" in shown
    assert "compilegate status WORKLOAD" in shown
    assert "No trial has ended yet" not in shown


@pytest.fixture
def week(providers):
    providers.aws_cloud = cloud()
    services = providers.aws_cloud.services
    for name, owner in (("bert", "ml"), ("ads", "ads"), ("idle", "idle")):
        register(services, name, owner)
    for name in ("bert", "ads"):
        ran(services, name, NOW - DAY, "baseline")
    return providers.aws_cloud


def test_every_owner_is_shown_quiet_ones_too_or_one_as_the_body_of_the_message(invoke, week):
    shown = invoke("digest")
    (document,) = json.loads(invoke("digest", "--owner", "ml", "--json").stdout)

    assert 0 == shown.exit_code
    heads = [line for line in shown.stdout.splitlines() if line.startswith("Compilegate ")]
    assert [": ads", ": idle", ": ml"] == [line[line.rindex(":") :] for line in heads]
    assert "Nothing ran and nothing changed (1 workload)." in shown.stdout
    assert ("digest", "ml", {"baseline": 1}) == (
        document["kind"], document["owner"], document["figures"]["runs"],
    )  # fmt: skip


def test_all_workloads_as_one_page(invoke, asked, week, tmp_path):
    page = tmp_path / "pages" / "fleet.html"

    assert f"{page}\n" == invoke("digest", "--html", page).stdout
    assert all(f">{name}</th>" in page.read_text() for name in ("ads", "bert", "idle"))
    assert {"html": str(page)} == asked("digest", "--owner", "ml", "--html", page)
    assert ">ads</th>" not in page.read_text()


@pytest.mark.parametrize("command", ["digest", "list"])
def test_where_nothing_is_registered_it_says_how_to_begin(command, invoke, aws):
    assert "compilegate register" in invoke(command).stdout
