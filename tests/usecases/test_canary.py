"""A trial whose full runs production carries: opened, carried, closed, judged, given up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import Decision
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.production.canary import canary_rounds, job_digest, open_slot
from compilegate.domain.production.registration import Registration
from compilegate.domain.production.runs import CanarySlot, ProductionRun
from compilegate.usecases.abort_trial import abort_trial
from compilegate.usecases.acquire_lock import acquire_lock
from compilegate.usecases.plan_trial import plan_trial
from compilegate.usecases.production.canary import open_canary, record_canary
from compilegate.usecases.production.release_models import release_models
from compilegate.usecases.trial import to_json
from compilegate.usecases.workload_document import read_document
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import (
    EVENT,
    SPEC,
    TRIAL,
    call_judge,
    evidence,
    load,
    put_spec,
    says,
)

CARRIED = change(SOUND, schedule__cron="rate(1 day)")
JOB = job_digest(read_document(CARRIED.to_dict()), "workloads/bert-docs/s.tgz")


def register(services: Any, **changes: Any) -> None:
    """What production trains is what the trial measures, unless said otherwise."""
    values: dict[str, Any] = {
        "workload": "bert-docs", "spec_key": SPEC, "source_digest": "d",
        "schedule": CARRIED.schedule.cron, **changes,
    }  # fmt: skip
    document = Registration(**values).to_dict()
    services.store.put(naming.registration_key("bert-docs"), to_json(document))


def asks(*runs: str) -> Decision:
    wanted = [run.split() for run in runs]
    step = {
        "stage": "quality", "mode": "canary", "usd": 0.0, "why": "",
        "runs": [{"arm": arm, "seed": int(seed)} for arm, seed in wanted],
    }  # fmt: skip
    return says("continue", step)


def begin(services: Any, workload: Any = CARRIED) -> dict[str, Any]:
    """A planned trial whose judge asks production for one run of each arm."""
    put_spec(services, workload)
    register(services)
    acquire_lock(EVENT, services=services)
    plan_trial(EVENT, services=services)
    return call_judge(services, 4, [], asks("compile 17", "baseline 17"))


def open_round(services: Any, answer: dict[str, Any], token: str = "first") -> dict[str, Any]:
    services.tokens.waiting.add(token)
    return open_canary({**EVENT, **answer["canary"], "token": token}, services=services)


def begun_round(services: Any) -> None:
    open_round(services, begin(services))


def produce(
    services: Any,
    run: str,
    arm: str,
    position: int | None,
    *,
    job: str | None = JOB,
    **changes: Any,
) -> ProductionRun:
    """A production run in the ledger, and the step that follows it."""
    services.clock.seconds += 3600
    now = services.clock.now()
    result = {
        "stage": "quality", "finished": True, "applied": True, "seed": 17, "metric": 0.91,
        "wall_seconds": 1800.0, "fingerprint": {"gpu": "g"}, **changes.pop("result", {}),
    }  # fmt: skip
    slot = None if position is None else CanarySlot(TRIAL, 4, position)
    values = {
        "run": run, "job": f"cg-bert-docs-{run}-p0-r0", "arm": arm, "started_at": now - 1800.0,
        "ended_at": float(now), "result": result, "counts": True, "why": "canary", "canary": slot,
        "usd": 10.0, "billable_seconds": 1800.0, **changes,
    }  # fmt: skip
    made = ProductionRun(**values)
    begun = {"kind": "run_begun", "run": run, "at": now - 1800, "spec_key": SPEC, "canary": None}
    services.ledger.put_once("bert-docs", naming.begun_entry(run), begun)
    services.ledger.put_once("bert-docs", naming.run_entry(run, made.job), made.to_entry(now))
    services.jobs.add(made.job, "Completed", now - 1800, now)
    services.jobs.descriptions[made.job]["TrainingJobArn"] = f"arn:{made.job}"
    record_canary("bert-docs", made, job=job, services=services)
    return made


def next_slot(services: Any) -> Any:
    entries = services.ledger.entries("bert-docs")
    return open_slot(entries, now=services.clock.now(), job=JOB)


def ended_with(services: Any) -> str | None:
    return canary_rounds(services.ledger.entries("bert-docs"))[-1].closed


def reason(services: Any) -> str:
    return str(load(services, "decision")["reasons"][0]["code"])


# Which mode a trial has.


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({"schedule": None}, "schedule.cron is not set"),
        ({"active": False}, "retired"),
        ({"spec_key": "workloads/bert-docs/specs/other.json"}, "training.learning_rate"),
        ({"spec_key": "workloads/bert-docs/specs/gone.json"}, "not registered"),
    ],
)
def test_production_carries_runs_only_where_it_trains_the_same_job(
    services: Any, changes: dict[str, Any], told: str | None
) -> None:
    put_spec(services, CARRIED)
    other = change(CARRIED, training__learning_rate=1.0)
    body = {"workload": other.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put("workloads/bert-docs/specs/other.json", to_json(body))
    register(services, **changes)
    plan_trial(EVENT, services=services)
    mode = load(services, "plan")["quality_mode"]

    used = "hybrid" if told is None else "shadow"
    assert ("hybrid", used, told is None) == (mode["asked"], mode["used"], mode["beside"])
    assert (told or "") in (mode["why"] or "")


def test_without_a_schedule_a_run_that_went_through_train_shows_that_more_will(
    services: Any,
) -> None:
    put_spec(services, CARRIED)
    register(services, schedule=None)
    produce(services, "r0", "baseline", None)
    plan_trial(EVENT, services=services)

    assert "hybrid" == load(services, "plan")["quality_mode"]["used"]


def test_a_workload_that_nobody_registered_makes_its_runs_itself_and_says_why(
    services: Any,
) -> None:
    plan_trial(EVENT, services=services)
    call_judge(services, 0, [], says("stay_off"))

    document = evidence(services)
    assert ("shadow", "hybrid") == (
        document["policy"]["quality_runs"], document["plan"]["asked_quality_runs"],
    )  # fmt: skip
    assert "not registered" in document["plan"]["runs_as_shadow_because"]


def test_what_production_carries_costs_the_plan_nothing_and_takes_as_long_as_the_schedule(
    services: Any,
) -> None:
    put_spec(services, change(CARRIED, policy__quality_runs="canary"))
    plan_trial(EVENT, services=services)
    shadow = load(services, "plan")["estimate"]
    register(services)
    plan_trial(EVENT, services=services)
    canary = load(services, "plan")["estimate"]

    assert shadow["quality_usd"] > 0
    assert canary["quality_usd"] == pytest.approx(0)
    assert canary["hours"] > shadow["hours"]


# A round.


def test_the_judge_asks_production_and_starts_nothing(services: Any) -> None:
    answer = begin(services)

    assert ("canary", 5, []) == (answer["next_stage"], answer["round"], answer["runs"])
    wanted = [{"arm": "compile", "seed": 17}, {"arm": "baseline", "seed": 17}]
    assert (4, wanted) == (answer["canary"]["round"], answer["canary"]["runs"])


def test_an_open_round_gives_production_the_job_that_the_flag_would_give(services: Any) -> None:
    begun_round(services)
    slot = next_slot(services)

    assert ("compile", 17, {"compiler": "torch_compile"}) == (slot.arm, slot.seed, slot.overrides)
    assert "hold" == slot.tags["compilegate:release"]


def test_the_trial_goes_on_once_every_run_is_in_and_knows_all_of_them(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    assert {} == services.tokens.answers
    produce(services, "r2", "baseline", 1)
    assert {"first": {"round": 4, "reason": "complete"}} == services.tokens.answers

    call_judge(services, 5, [], says("promote"))
    runs = {arm["name"]: arm["runs"] for arm in evidence(services)["arms"]}
    (mine,), (theirs,) = runs["compile"], runs["baseline"]
    assert ("canary", 0, 17, 0.91) == (mine["mode"], mine["order"], mine["seed"], mine["metric"])
    assert ("canary", 1) == (theirs["mode"], theirs["order"])
    assert pytest.approx(0) == evidence(services)["plan"]["spent_usd"]


def test_the_runs_that_production_made_no_longer_remain(services: Any) -> None:
    begun_round(services)
    before = evidence(services)["runs_remaining"]
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    for _ in range(2):
        call_judge(services, 5, [], says("promote"))

    assert before - 2 == evidence(services)["runs_remaining"]


def test_a_candidate_that_crashed_ends_the_round_and_costs_the_trial_its_night(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0, result={"finished": False, "metric": None})
    assert "lost" == services.tokens.answers["first"]["reason"]
    assert next_slot(services) is None

    call_judge(services, 5, [], says("stay_off"))
    (run,) = evidence(services)["arms"][1]["runs"]
    assert ("canary", False, None) == (run["mode"], run["finished"], run["metric"])
    assert pytest.approx(10.0) == evidence(services)["plan"]["spent_usd"]


def test_a_run_that_could_not_be_had_leaves_its_place_to_the_next(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0, counts=False)

    assert 0 == next_slot(services).slot.position
    assert {} == services.tokens.answers


def test_production_that_moved_on_to_another_job_ends_the_trial_undecided(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "baseline", None, job="another")
    assert "changed" == services.tokens.answers["first"]["reason"]

    answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
    assert ("inconclusive", "production_changed") == (answer["verdict"], reason(services))


def test_a_run_of_before_the_round_says_nothing_of_what_production_trains_now(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "baseline", None, job="another", started_at=0.0)

    assert {} == services.tokens.answers


def test_a_round_that_nobody_finished_ends_the_trial_undecided_and_keeps_its_runs(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    answer = call_judge(services, 5, [], asks("baseline 17"))

    assert ("inconclusive", "canary_overdue") == (answer["verdict"], reason(services))
    assert "overdue" == ended_with(services)
    assert [0, 1] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_a_verdict_needs_no_further_round_however_the_last_one_ended(services: Any) -> None:
    begun_round(services)

    assert "stay_off" == call_judge(services, 5, [], says("stay_off"))["verdict"]


def test_a_late_repetition_of_the_judge_leaves_the_round_that_it_began(services: Any) -> None:
    begun_round(services)
    call_judge(services, 4, [], asks("compile 17", "baseline 17"))

    assert ended_with(services) is None
    assert next_slot(services) is not None


def test_the_second_round_is_turned_round(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    open_round(services, call_judge(services, 5, [], asks("compile 18", "baseline 18")), "second")

    assert "baseline" == next_slot(services).arm


def test_production_carries_no_round_whose_lost_candidate_the_budget_could_not_bear(
    services: Any,
) -> None:
    begin(services)
    document = evidence(services)
    document["plan"]["spent_usd"] = load(services, "plan")["max_trial_usd"] - 1
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))
    answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
    assert ("inconclusive", "trial_over_budget") == (answer["verdict"], reason(services))

    answer = call_judge(services, 5, [], asks("baseline 17"))
    assert "canary" == answer["next_stage"]


# Waiting, repeated and broken off.


def test_the_lease_is_held_for_as_long_as_the_round_may_last(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer)

    until = services.locks.held["bert-docs"][1]
    assert until > services.clock.now() + answer["canary"]["timeout_seconds"]
    with pytest.raises(WorkloadLockedError):
        acquire_lock({**EVENT, "trial": "another1", "execution": "x"}, services=services)


def test_of_two_waits_the_newer_one_is_told(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    services.tokens.waiting.clear()
    open_round(services, answer, "second")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)

    assert {"second"} == set(services.tokens.answers)
    assert 1 == len(canary_rounds(services.ledger.entries("bert-docs")))


def test_a_wait_that_begins_after_the_end_is_told_at_once(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    found = open_round(services, answer, "second")

    assert "complete" == found["closed"]
    assert {"first", "second"} == set(services.tokens.answers)


@pytest.mark.parametrize("broken", ["put_once", "send_success"])
def test_what_a_crash_left_undone_the_next_production_run_does(
    services: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    place = services.ledger if broken == "put_once" else services.tokens
    sound = getattr(place, broken)

    def crash(*arguments: Any) -> Any:
        if broken == "send_success" or "#closed" in arguments[1]:
            raise ConnectionError
        return sound(*arguments)

    monkeypatch.setattr(place, broken, crash)
    with pytest.raises(ConnectionError):
        produce(services, "r2", "baseline", 1)
    monkeypatch.setattr(place, broken, sound)
    assert {} == services.tokens.answers

    produce(services, "r3", "baseline", None)
    assert {"first": {"round": 4, "reason": "complete"}} == services.tokens.answers


class Crashing:
    """Ends the process at one boundary: before or after the n-th thing that leaves it."""

    def __init__(self, boundary: int, *, after: bool) -> None:
        self.left, self.after = boundary, after

    def around(self, call: Any) -> Any:
        def crash(*arguments: Any) -> Any:
            self.left -= 1
            if self.left == -1 and not self.after:
                raise ConnectionError
            answer = call(*arguments)
            if self.left == -1:
                raise ConnectionError
            return answer

        return crash


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("boundary", range(9))
def test_a_crash_at_any_boundary_is_repaired_by_running_the_step_again(
    services: Any, monkeypatch: pytest.MonkeyPatch, boundary: int, after: bool
) -> None:
    answer = begin(services)
    crashing = Crashing(boundary, after=after)
    monkeypatch.setattr(services.ledger, "put_once", crashing.around(services.ledger.put_once))
    told = crashing.around(services.tokens.send_success)
    monkeypatch.setattr(services.tokens, "send_success", told)
    steps = [
        lambda: open_round(services, answer),
        lambda: produce(services, "r1", "compile", 0, started_at=1e9),
        lambda: produce(services, "r2", "baseline", 1, started_at=2e9),
    ]
    crashes = 0
    for step in steps:
        try:
            step()
        except ConnectionError:
            crashes += 1
            step()

    assert 1 == crashes
    assert {"first": {"round": 4, "reason": "complete"}} == services.tokens.answers
    (found,) = canary_rounds(services.ledger.entries("bert-docs"))
    assert ("complete", True, ("first",)) == (found.closed, found.told, found.tokens)
    assert ["r1", "r2"] == [
        entry["run"] for entry in services.ledger.entries("bert-docs") if entry["kind"] == "run"
    ]


def test_telling_is_repeated_by_nobody_once_it_is_written_down(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    done = produce(services, "r2", "baseline", 1)
    services.tokens.waiting.add("first")
    record_canary("bert-docs", done, job=JOB, services=services)

    assert {"first"} == services.tokens.waiting


# Given up.


def test_an_aborted_trial_gives_production_back_at_once_and_keeps_what_was_recorded(
    services: Any,
) -> None:
    begun_round(services)
    made = produce(services, "r1", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert next_slot(services) is None
    assert "aborted" == ended_with(services)
    entries = services.ledger.entries("bert-docs")
    assert [made.job] == [entry["job"] for entry in entries if entry["kind"] == "run"]
    assert "rejected" == tag_of(services, made.job)


def test_models_that_cannot_be_tagged_do_not_keep_the_lease(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)

    def crash(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(services.jobs, "tag", crash)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)
    assert {} == services.locks.held


# Released or not.


def tag_of(services: Any, job: str) -> str | None:
    tags = {tag["Key"]: tag["Value"] for tag in services.jobs.describe(job).get("Tags", ())}
    return tags.get(naming.TAG_RELEASE)


@pytest.mark.parametrize(
    ("verdict", "candidate", "enabled", "tag"),
    [
        ("promote", "compile", True, "released"),
        ("promote", "compile", False, "rejected"),  # a person did not approve
        ("promote", "another", True, "rejected"),
        ("stay_off", "compile", True, "rejected"),
        ("inconclusive", "compile", True, "rejected"),
    ],
)
def test_models_are_released_with_the_promotion_of_their_own_candidate_and_never_else(
    services: Any, verdict: str, candidate: str, enabled: bool, tag: str
) -> None:
    begun_round(services)
    mine = produce(services, "r1", "compile", 0)
    theirs = produce(services, "r2", "baseline", 1)
    decision = {"verdict": verdict, "candidate": candidate}
    services.store.put("decision.json", json.dumps(decision).encode())
    event = {**EVENT, "decision_key": "decision.json", "flag_enabled": enabled}
    told = release_models(event, services=services)

    assert tag == tag_of(services, mine.job)
    assert [mine.job] == told[tag]
    assert tag_of(services, theirs.job) is None


def test_where_policy_holds_no_models_none_is_tagged(services: Any) -> None:
    open_round(services, begin(services, change(CARRIED, policy__hold_models=False)))
    mine = produce(services, "r1", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert tag_of(services, mine.job) is None


def test_a_model_that_comes_after_its_trial_was_given_up_is_rejected(services: Any) -> None:
    begun_round(services)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)
    assert tag_of(services, produce(services, "r2", "baseline", 1).job) is None


# Beside a trial that makes its own runs.


def measured(services: Any, fingerprint: dict[str, Any]) -> None:
    """The trial has a first block of its baseline."""
    document = evidence(services)
    speed = {
        "job": "j", "stage": "speed", "block": 0, "fingerprint": fingerprint,
        "node": "n", "finished": True, "step_seconds": [1.0], "compile_seconds": 0.0,
    }  # fmt: skip
    document["arms"][0]["runs"].append(speed)
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))


def test_productions_own_baseline_runs_are_evidence_while_the_trial_lasts(services: Any) -> None:
    put_spec(services, change(CARRIED, policy__quality_runs="shadow"))
    register(services)
    produce(services, "r0", "baseline", None)
    services.clock.seconds += 7200
    plan_trial(EVENT, services=services)
    call_judge(services, 0, [], asks("baseline 17"))
    measured(services, {"gpu": "g"})
    services.clock.seconds += 7200
    produce(services, "r1", "baseline", None)
    produce(services, "r2", "baseline", None, result={"finished": False})
    produce(services, "r3", "compile", None)
    call_judge(services, 1, [], says("promote"))

    baseline, candidate = evidence(services)["arms"]
    _, beside = baseline["runs"]
    assert ("r1", "production") == (beside["production_run"], beside["mode"])
    assert [] == candidate["runs"]


@pytest.mark.parametrize(("key", "count"), [("data_sha256", 1), ("image", 0)])
def test_a_run_beside_the_trial_that_is_made_of_something_else_is_left_out(
    services: Any, key: str, count: int
) -> None:
    begin(services)
    measured(services, {"gpu": "g", key: "old"})
    produce(services, "r1", "baseline", None, result={"fingerprint": {"gpu": "g", key: "new"}})
    call_judge(services, 5, [], says("promote"))

    runs = evidence(services)["arms"][0]["runs"]
    assert count == len([run for run in runs if run["stage"] == "quality"])


def test_runs_of_another_job_beside_the_trial_are_none_of_its_evidence(services: Any) -> None:
    begin(services)
    measured(services, {"gpu": "g"})
    other = change(CARRIED, training__learning_rate=1.0)
    body = {"workload": other.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put("other.json", to_json(body))
    entry = {"kind": "run_begun", "run": "r1", "at": 0, "spec_key": "other.json", "canary": None}
    services.ledger.put_once("bert-docs", naming.begun_entry("r1"), entry)
    produce(services, "r1", "baseline", None)
    call_judge(services, 5, [], says("promote"))

    assert [1, 0] == [len(arm["runs"]) for arm in evidence(services)["arms"]]
