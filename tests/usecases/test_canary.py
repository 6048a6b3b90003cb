"""A round that production carries: opened, carried, closed, judged."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.usecases.trial.documents import to_json
from tests.usecases.canary_builder import (
    asks,
    begin,
    begun_round,
    ended_with,
    next_slot,
    open_round,
    produce,
    reason,
)
from tests.usecases.trial_builder import (
    TRIAL,
    call_judge,
    evidence,
    load,
    says,
)


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
    document["plan"]["usd_by_job"]["j"] = load(services, "plan")["max_trial_usd"] - 1
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))
    answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
    assert ("inconclusive", "trial_over_budget") == (answer["verdict"], reason(services))

    answer = call_judge(services, 5, [], asks("baseline 17"))
    assert "canary" == answer["next_stage"]
