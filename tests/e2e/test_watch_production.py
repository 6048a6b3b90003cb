"""From a real trial's promotion on: TRAIN's runs are watched, and what is proven is done."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from compilegate.domain import naming
from compilegate.domain.judging.judge import judge
from compilegate.domain.production.registration import Registration
from compilegate.usecases.trial import to_json
from tests.e2e.conftest import Running
from tests.e2e.production import Production

pytestmark = pytest.mark.e2e


@dataclass
class Promoted(Production):
    """What a trial has turned on, registered as that trial had it."""

    running: Running | None = None

    def __post_init__(self) -> None:
        self.spec_key = self.running.record("plan")["spec_key"]
        found = Registration(self.name, self.spec_key, "x")
        self.app.store.put(naming.registration_key(self.name), to_json(found.to_dict()))

    def flag(self) -> dict:
        return self.running.flag()


@pytest.fixture
def promoted(app, trial):
    """Runs a trial to its promotion; ``probation_runs`` are watched afterwards."""

    def promote(probation_runs, **knobs):
        running = trial(policy={"probation_runs": probation_runs}, **knobs)
        found = running.wait(90)
        assert "promote" == json.loads(found["output"])["verdict"], found
        return Promoted(app, running.workload, running=running)

    return promote


def test_a_metric_that_drops_in_production_alarms_is_checked_and_turned_off(promoted, app, trial):
    workload = promoted(12, production_shift=0.2)
    for _ in range(12):
        ended = workload.run()
        assert "SUCCEEDED" == ended["status"], ended.get("cause")
        if not workload.flag()["enabled"]:
            break
    watches = workload.entries("watch")
    last = workload.entries("flag")[-1]
    place = f"decisions/{workload.name}/{workload.running.trial}/probation/{last['decision_id']}"
    decision = json.loads(app.store.get(f"{place}.json"))
    replayed = judge(json.loads(app.store.get(f"{place}-evidence.json")))

    assert ("revert", True) == (ended["output"]["verdict"], ended["output"]["flag_changed"])
    assert ("reverted", False) == (workload.flag()["state"], workload.flag()["enabled"])
    assert ["alarm", "revert"] == [entry["tell"] for entry in watches if entry["tell"]]
    assert ["baseline", "compile", "compile", "baseline", "baseline", "compile"] == [
        run.arm for run in workload.runs() if run.confirm
    ]
    assert ["quality_regressed"] == [reason["code"] for reason in decision["reasons"]]
    assert last["decision_id"] == replayed.decision_id
    assert ended["output"].get("watch_failed") is None
    assert app.store.exists(
        f"s3://{app.store.bucket}/"
        + naming.probation_report_key(
            workload.name, workload.running.trial, last["decision_id"], "html"
        )
    )

    again = json.loads(trial(name=workload.name).wait()["output"])

    assert ("inconclusive", False) == (again["verdict"], again["flag_enabled"])
    refused = [
        entry for entry in workload.entries("decision") if "policy.cooldown_days" in str(entry)
    ]
    assert 1 == len(refused)


def test_a_probation_that_held_is_permanent_and_the_next_job_change_makes_it_stale(promoted, app):
    workload = promoted(2)
    verdicts = []
    while "permanent" not in verdicts and len(verdicts) < 6:  # a baseline run may come first
        verdicts.append(workload.run()["output"]["verdict"])

    assert ["permanent"] == [verdict for verdict in verdicts if verdict != "continue"]
    assert ("permanent", True) == (workload.flag()["state"], workload.flag()["enabled"])

    other = json.loads(app.store.get(workload.spec_key))
    other["workload"]["training"]["batch_size"] = 64
    key = f"workloads/{workload.name}/specs/other.json"
    app.store.put(key, to_json(other))
    found = Registration(workload.name, key, "y")
    app.store.put(naming.registration_key(workload.name), to_json(found.to_dict()))
    workload.run()
    run = workload.runs()[-1]

    assert ("baseline", "stale") == (run.arm, run.why)
    assert ("stale", False) == (workload.flag()["state"], workload.flag()["enabled"])
    assert ["batch_size_changed"] == [
        reason["code"] for reason in workload.entries("watch")[-1]["changed"]
    ]
