"""``demo-production``: the month as shown, and the messages when it goes wrong."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from compilegate.adapters.yaml_document import load_yaml
from compilegate.cli.common.cloud import Cloud
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.workload.file import parse_workload
from compilegate.usecases.flag.change_flag import flag_versions
from compilegate_local import demo
from tests.cli.production_script import Production
from tests.cli.project import write_project
from tests.domain.evidence_builder import NOISY, WORSE
from tests.fake_clouds import FakeProviders, cloud

NOTE = "Trained on this machine's CPU."


@pytest.fixture
def local(providers: FakeProviders, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A local cloud in memory; the data is taken as prepared."""

    monkeypatch.setattr(demo, "preparing_data", lambda command: nullcontext(lambda: None))
    providers.local_cloud = cloud("local", simulated=NOTE)
    return providers.local_cloud


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_project(tmp_path / "team")


def test_promotion_fault_alarm_revert_and_the_run_after(invoke, local, providers, file):
    Production(local)

    result = invoke("demo-production", "--workload", file)

    text = " ".join(result.stdout.split())
    assert 0 == result.exit_code, result.output
    assert providers.ended
    for expected in (
        f"Simulated: {NOTE}", "Simulated: the clock.", "Simulated: the fault.",
        f"{FAULT_VARIABLE}=learning_rate:0.2", "ALARM", "checks alarm", "flag off (reverted)",
        "The owner was notified:", "The whole history: s3://data/reports/bert-docs/history.html",
    ):  # fmt: skip
        assert expected in text
    assert "compilegate-reports/bert-docs-history/history.html" in result.stdout
    states = {
        word: [int(line.split()[0]) for line in result.stdout.splitlines() if f"  {word}  " in line]
        for word in ("ALARM", "faulty")
    }
    assert {"ALARM": [5, 6, 7, 8, 9, 10], "faulty": [11]} == states
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_as_json(invoke, local, file):
    Production(local)

    result = invoke("demo-production", "--workload", file, "--json")

    document = json.loads(result.stdout)
    nights = document["runs"]
    assert (True, None, "promote") == (
        document["as_planned"], document["wrong"], document["trial"]["verdict"],
    )  # fmt: skip
    assert ["baseline", "compile", "compile", "compile"] == [night["arm"] for night in nights[:4]]
    assert {None} == {night["injected_fault"] for night in nights[:4]}
    alarm = next(night for night in nights if night["alarm"])
    assert ("compile", "learning_rate:0.2") == (alarm["arm"], alarm["injected_fault"])
    assert 6 == sum(night["why"] == "confirm" for night in nights)
    assert ("revert", {"enabled": False, "state": "reverted"}) == (
        nights[-2]["verdict"], nights[-2]["flag"],
    )  # fmt: skip
    assert ("baseline", "scheduled") == (nights[-1]["arm"], nights[-1]["why"])
    assert len({night["stands_for"][:10] for night in nights}) == len(nights)
    page = json.loads(Path(document["history"]["json"]).read_text())
    assert page["headline"].startswith(
        "The candidate was turned off automatically: compile: eval_loss is worse"
    )
    assert page["simulated_clock"] is True
    kinds = [event["title"] for event in page["events"]]
    assert kinds.index("Fault injected on purpose") < kinds.index("Alarm")
    assert "Injected fault removed" in kinds


@pytest.mark.parametrize(
    ("verdict", "production"),
    [
        # The metric varies too much; the speed was not proven, so no full run was made.
        ("inconclusive", {"metrics": NOISY, "loss": 2.0}),
        ("stay_off", {"metrics": {}, "speedup": 1.04}),
    ],
)
def test_a_trial_that_proves_nothing_is_named_and_the_flag_is_turned_on_by_hand(
    invoke, local, file, verdict, production
):
    Production(local, **production)

    result = invoke("demo-production", "--workload", file, "--json")

    document = json.loads(result.stdout)
    assert 0 == result.exit_code, document["wrong"]
    assert (verdict, True) == (document["trial"]["verdict"], document["turned_on_by_hand"])
    assert "The trial did not prove the compiler, so it left the flag off." in result.stderr
    command = 'compilegate flag set bert-docs --candidate compile --reason "to show production'
    assert command in result.stderr
    (by_hand, *_) = [
        version for version in flag_versions("bert-docs", local.services) if version.flag.enabled
    ]
    assert "human:demo" == by_hand.by
    assert ["baseline", "compile"] == [night["arm"] for night in document["runs"][:2]]
    assert "reverted" == document["runs"][-1]["flag"]["state"]


def test_a_trial_that_finds_a_defect_is_reported_and_is_a_failure(invoke, local, file):
    Production(local, metrics=WORSE)

    result = invoke("demo-production", "--workload", file)

    text = " ".join(result.stdout.split())
    assert 1 == result.exit_code
    assert "did not go as planned: the trial did not turn the compiler on" in text
    assert "history.html" in text  # what there is to see can be seen


def test_a_fault_that_goes_undetected_is_reported_and_is_a_failure(invoke, local, file):
    Production(local, loss=0.0)

    result = invoke("demo-production", "--workload", file, "--json")

    assert 1 == result.exit_code
    assert "no revert within 18 faulty runs" == json.loads(result.stdout)["wrong"]


def test_a_run_that_fails_is_reported_and_is_a_failure(invoke, local, file):
    Production(local, broken=(1,))

    result = invoke("demo-production", "--workload", file, "--json")

    document = json.loads(result.stdout)
    assert 1 == result.exit_code
    assert "production run 1 did not finish training" == document["wrong"]
    assert 1 == len(document["runs"])


def test_a_second_month_on_the_same_cloud(invoke, local, tmp_path):
    file = write_project(tmp_path / "team", ("  margin: 0.005\n", NO_WAIT))
    Production(local)

    first = invoke("demo-production", "--workload", file, "--json", "--keep")
    again = invoke("demo-production", "--workload", file, "--json")

    assert (0, 0) == (first.exit_code, again.exit_code), again.stdout[:2000]


NO_WAIT = "  margin: 0.005\npolicy: {cooldown_days: 0}\n"


def test_ctrl_c_ends_the_cloud(invoke, local, providers, file):
    production = Production(local)

    def interrupt(payload: object) -> None:
        raise KeyboardInterrupt

    production.cloud.production.executions.on_start = interrupt  # type: ignore[attr-defined]

    result = invoke("demo-production", "--workload", file)

    assert (130, True) == (result.exit_code, providers.ended)
    assert "Stopping the demo" in result.stderr


def test_the_workload_that_is_shipped_has_no_fault_and_can_be_shown_twice():
    workload = parse_workload(load_yaml(demo.NIGHTLY))

    assert FAULT_VARIABLE not in workload.training.environment
    assert 0 == workload.policy.cooldown_days
