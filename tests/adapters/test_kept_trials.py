"""What a local trial recorded is kept in a folder, and read as its cloud's records were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilegate.adapters.kept_trials import KeptTrials, NothingRuns, keep_trial
from compilegate.domain import naming
from compilegate.domain.errors import (
    EnvironmentNotReadyError,
    NotFoundError,
    UnreadableRecordError,
)
from compilegate.domain.records.trials import TrialDecided, TrialFailed, TrialStarted
from compilegate.ports import Services
from compilegate.usecases.records import Trial
from tests.fakes import services

FLAG = naming.flag_parameter("local", "w")
SPEC = "workloads/w/specs/1.json"


def kept(project: Path, trial: str, *entries: Any, workload: str = "w", **documents: str) -> Path:
    """A trial's folder; ``documents`` are what its records hold."""
    cloud: Services = services("local", "on a CPU")
    cloud.store.bucket = f"data-{trial}"
    one = Trial(workload, trial, SPEC)
    for name, text in documents.items():
        cloud.store.put(one.record_key(name), text.encode())
    cloud.store.put(SPEC, trial.encode())
    cloud.flags.write(FLAG, f"flag of {trial}")
    cloud.ledger.append(workload, TrialStarted(1, f"arn:{workload}-{trial}"))
    for entry in entries:
        cloud.ledger.append(workload, entry)
    return keep_trial(one, cloud, project)


def test_what_the_ledger_and_the_trial_name_is_kept_and_nothing_else(tmp_path: Path) -> None:
    cloud = services("local", "on a CPU")
    trial = Trial("w", "2", SPEC)
    named = [
        SPEC, naming.registration_key("w"), "decisions/w/1/decision.json", "evidence", "spec",
        *(trial.record_key(name) for name in
          ("eligibility", "plan", "evidence", "decision", "flag")),
        *(naming.report_key("w", "2", extension) for extension in ("html", "md", "json")),
    ]  # fmt: skip
    for key in (*named, "production/w/1.json", trial.record_key("other")):
        cloud.store.put(key, key.encode())
    cloud.ledger.append("w", TrialDecided(2, "1", "promote", decision_key=named[2]))
    cloud.ledger.append("w", TrialDecided(2, "0", "promote", decision_key="gone.json"))

    entry = {"kind": "later", "at": 1, "evidence_key": "evidence", "spec_key": "spec"}
    cloud.ledger.raw.put_once("w", "later", entry)

    folder = keep_trial(trial, cloud, tmp_path)
    assert "*\n" == (tmp_path / ".compilegate" / ".gitignore").read_text()
    (tmp_path / ".compilegate" / ".gitignore").write_text("own")
    keep_trial(trial, cloud, tmp_path)

    objects = folder / "objects"
    files = [str(path.relative_to(objects)) for path in objects.rglob("*") if path.is_file()]
    assert sorted(named) == sorted(files)
    assert tmp_path / ".compilegate" / "trials" / "w-2" == folder
    document = json.loads((folder / "records.json").read_text())
    assert {
        "schema": 1, "workload": "w", "trial": "2", "kept_at": cloud.clock.now(), "stage": "local",
        "region": "us-east-1", "bucket": "data", "simulated": "on a CPU", "flag": None,
    } == {key: value for key, value in document.items() if key != "ledger"}  # fmt: skip
    assert ["later", "decision", "decision"] == [one["kind"] for one in document["ledger"]]
    assert "own" == (tmp_path / ".compilegate" / ".gitignore").read_text()


def test_of_several_trials_the_newests_records_are_the_workloads(tmp_path: Path) -> None:
    kept(tmp_path, "2", TrialDecided(9, "2", "promote"), plan="second", evidence="e2")
    kept(tmp_path, "1", TrialFailed(5, "1"), plan="first")
    kept(tmp_path, "3", TrialFailed(5, "2"), workload="other")
    trials = KeptTrials(tmp_path)

    assert ["1", "2", "3"] == [one.document["trial"] for one in trials.trials]
    assert [True, True, False] == [one.ended for one in trials.trials]
    assert "flag of 2" == trials.read(FLAG)
    assert trials.read(naming.flag_parameter("prod", "w")) is None
    keys = ["trial#1#failed", "trial#1#started", "trial#2#decision", "trial#2#started"]
    found = [(entry["kind"], entry["at"]) for entry in trials.entries("w")]
    assert [("failed", 5), ("started", 1), ("decision", 9), ("started", 1)] == found
    assert keys == sorted(key for one in trials.trials[:2] for key in one.entries)
    assert found[2:] == [(e["kind"], e["at"]) for e in trials.entries("w", "trial#2#")]
    assert found[1:3] == [(e["kind"], e["at"]) for e in trials.entries("w", keys[1], keys[2])]
    assert [] == trials.entries("none")

    assert b"3" == trials.get(SPEC)  # the newest trial's
    assert b"first" == trials.get("decisions/w/1/plan.json")
    asked = (SPEC, "decisions/w/1/plan.json", "decisions/w/1")
    assert (True, True, False) == tuple(map(trials.has, asked))
    assert trials.exists(f"s3://data-3/{SPEC}")
    assert trials.exists("s3://data-3/decisions/w/1")
    assert not trials.exists("s3://data-3/decisions/w/4")
    assert not any(map(trials.exists, (f"s3://data/{SPEC}", SPEC)))
    assert ["1", "2"] == list(trials.folders("decisions/w/"))
    for missing in ("decisions/w/1", "decisions/w/4/plan.json", "../records.json"):
        with pytest.raises(NotFoundError, match=missing):
            trials.get(missing)
    assert ((), ()) == (trials.locks_of(["w"]), trials.items("fleet"))


def test_changes_of_a_flag_are_the_newest_trials_alone(tmp_path: Path) -> None:
    for trial in ("1", "2", "3"):
        folder = kept(tmp_path, trial)
        path = folder / "records.json"
        document = json.loads(path.read_text())
        document["ledger"].append({"kind": "swept", "at": int(trial)})
        path.write_text(json.dumps(document))

    kinds = [(e["kind"], e["at"]) for e in KeptTrials(tmp_path).entries("w")]
    assert [("swept", 3), *3 * [("started", 1)]] == kinds


def test_no_key_leads_out_of_the_folder(tmp_path: Path) -> None:
    cloud, key = services("local"), "../../../../stolen"
    cloud.store.put(key, b"x")
    cloud.ledger.append("w", TrialDecided(2, "1", "promote", decision_key=key))

    with pytest.raises(NotFoundError, match="is no key of an object that is kept"):
        keep_trial(Trial("w", "1", ""), cloud, tmp_path)

    assert [] == list(tmp_path.rglob("stolen*"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', "\xff", None])
def test_a_damaged_record_is_named(text: str | None, tmp_path: Path) -> None:
    path = kept(tmp_path, "1") / "records.json"
    if text is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(text.encode("latin-1"))

    with pytest.raises(UnreadableRecordError, match=r"w-1/records\.json"):
        KeptTrials(tmp_path)


def test_where_nothing_runs_nothing_is_done_and_nothing_kept_is_nothing(tmp_path: Path) -> None:
    assert ([], "") == (KeptTrials(tmp_path).trials, KeptTrials(tmp_path).bucket)
    with pytest.raises(EnvironmentNotReadyError, match="can only be read"):
        NothingRuns().put("k", b"x")
    with pytest.raises(AttributeError):
        NothingRuns().__len__()
