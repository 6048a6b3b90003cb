"""After every production run: what is judged, kept, done to the flag and told."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.reasons.registry import advice
from compilegate.usecases.trial.replay import find_decision, replay
from tests.domain.evidence_builder import CENTRE, judge
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    flag_entries,
    flag_of,
    follow,
    night,
    promote,
    say,
)
from tests.usecases.trial_builder import FLAG, TRIAL


def test_a_clean_run_is_judged_kept_and_told_to_nobody(services: Any) -> None:
    promote(services)
    answer = night(services, 1)
    (entry,) = [e for e in entries(services) if e["kind"] == "watch"]

    assert {"verdict": "continue", "decision_key": entry["decision_key"], "flag_changed": False,
            "tell": False} == answer  # fmt: skip
    assert [{"arm": "compile", "confirm": False}] == entry["next"]["runs"]
    assert "probation" == flag_of(services).state


def test_every_look_can_be_replayed_from_what_was_kept(services: Any) -> None:
    promote(services)
    key = night(services, 1)["decision_key"]
    kept = json.loads(services.store.get(key))
    place = f"decisions/{WORKLOAD}/{TRIAL}/probation/{kept['decision_id']}"
    evidence = json.loads(services.store.get(f"{place}-evidence.json"))
    again = judge(evidence).to_dict(FLAG)

    assert f"{place}.json" == key
    assert {**again, "trial": TRIAL} == kept


def test_the_replay_finds_what_the_watch_has_kept(services: Any) -> None:
    promote(services)
    follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    decision_id = str(flag_of(services).decision_id)
    found = find_decision(decision_id, [WORKLOAD], services)
    again = replay(found, services)

    assert "revert" == again.recorded["verdict"]
    assert again.comparison is not None
    assert again.comparison.equal


def test_a_regression_alarms_is_checked_in_turns_and_turned_off(services: Any) -> None:
    promote(services)
    answer = follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    looks = [e for e in entries(services) if e["kind"] == "watch"]
    last = flag_entries(services)[-1]

    assert ("revert", True) == (answer["verdict"], answer["flag_changed"])
    assert (False, "reverted", "compile") == (
        flag_of(services).enabled, flag_of(services).state, flag_of(services).candidate,
    )  # fmt: skip
    assert ["alarm", "revert"] == [e["tell"] for e in looks if e["tell"]]
    assert ("train", "revert", TRIAL) == (last["by"], last["action"], last["trial"])
    assert last["evidence_key"] in services.store.objects


def test_a_revert_tells_the_numbers_and_where_the_chart_is(services: Any) -> None:
    promote(services)
    answer = follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    body = json.loads(json.loads(answer["notification"]["message"])["default"])

    assert ("revert", "revert", False) == (body["kind"], body["verdict"], body["flag"]["enabled"])
    assert re.search(r"worse by 0\.04", answer["message"])
    assert body["report"] in answer["message"]
    assert "14 days (policy.cooldown_days)" in answer["message"]
    page = services.store.get(body["report"].removeprefix("s3://data/")).decode()
    assert page.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("kind", ["nothing promoted", "turned off by hand", "set by hand"])
def test_what_no_trial_has_turned_on_is_not_watched(services: Any, kind: str) -> None:
    if kind != "nothing promoted":
        promote(services)
        own = Flag(kind == "set by hand", "probation", "mine", {"precision": "fp8"})
        say(services, own)
    answer = night(services, 1)

    assert (None, False, False) == (answer["verdict"], answer["flag_changed"], answer["tell"])
    assert not [e for e in entries(services) if e["kind"] == "watch"]


def test_a_change_that_most_runs_do_without_is_told_and_at_the_second_falls_back(
    services: Any,
) -> None:
    promote(services)
    first = night(services, 1, applied=False)
    kept = flag_of(services)
    second = night(services, 2, applied=False)

    assert ("invalid", True, "probation") == (first["verdict"], kept.enabled, kept.state)
    assert advice("treatment_not_applied") in first["message"]
    assert ("invalid", False, "stale") == (
        second["verdict"], flag_of(services).enabled, flag_of(services).state,
    )  # fmt: skip


def test_a_baseline_that_keeps_failing_is_told_once_and_leaves_the_flag(services: Any) -> None:
    promote(services)
    kept = services.store.objects[naming.record_key(WORKLOAD, TRIAL, "evidence")]
    found = json.loads(kept)
    found["quality"]["history"] = []
    for arm in found["arms"]:
        arm["runs"] = [run for run in arm["runs"] if run["stage"] == "speed"]
    services.store.put(naming.record_key(WORKLOAD, TRIAL, "evidence"), json.dumps(found).encode())
    answers = [
        night(services, n, "baseline", finished=False, metric=None, wall_seconds=None)
        for n in range(1, 5)
    ]

    assert [False, False, True, False] == [answer["tell"] for answer in answers]
    assert advice("baseline_failed") in answers[2]["message"]
    assert "probation" == flag_of(services).state


def test_evidence_of_a_trial_that_cannot_be_read_leaves_the_flag_and_is_told(
    services: Any,
) -> None:
    promote(services)
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    found = json.loads(services.store.get(key))
    found["quality"]["margin"] = "small"
    services.store.put(key, json.dumps(found).encode())
    answer = night(services, 1)

    assert ("inconclusive", True, "probation") == (
        answer["verdict"], answer["tell"], flag_of(services).state,
    )  # fmt: skip
    assert "Repair what the job records" in answer["message"]


def test_without_the_trials_records_nothing_is_decided(services: Any) -> None:
    promote(services)
    del services.store.objects[naming.record_key(WORKLOAD, TRIAL, "evidence")]

    with pytest.raises(NotFoundError):
        night(services, 1)
    assert "probation" == flag_of(services).state


def test_runs_that_leave_nothing_to_judge_are_told_at_the_third_in_a_row(services: Any) -> None:
    promote(services)
    answers = [night(services, n, counts=False) for n in range(1, 5)]

    assert [False, False, True, False] == [answer["tell"] for answer in answers]
    assert "The last 3 runs of compile left nothing to judge" in answers[2]["message"]
    assert flag_of(services).enabled
