"""A trial on top of what is on: from the plan to the flag, and what reverts meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.flag import Flag, Layer, parse_flag
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate
from compilegate.usecases.canary import tag_models
from compilegate.usecases.flag.change_flag import change_flag, latest_flag
from compilegate.usecases.planning import plan_for, plan_trial
from compilegate.usecases.records import Trial, to_json
from compilegate.usecases.trial.apply_flag import apply_flag
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import decision_document, speedup
from tests.domain.workload_builder import COMPILE, change
from tests.usecases.canary_builder import (
    CARRIED,
    asks,
    ended_with,
    next_slot,
    open_round,
    produce,
    register,
    tag_of,
)
from tests.usecases.flag_changes import flag_change
from tests.usecases.trial_builder import (
    EVENT,
    FLAG,
    TRIAL,
    arms_of,
    asked,
    call_judge,
    evidence,
    load,
    put_spec,
)

LARGER = Candidate(name="larger", batch_size=64, learning_rate_scaling="linear")
SMALL = change(CARRIED, candidates=(COMPILE, LARGER), policy__small_wins=1.005)
GAIN = {"on": "compile", "estimate": 1.02, "interval": [1.01, 1.03]}
LAYERS = (Layer("compile", "d4", 1.33), Layer("larger", "stacked", 1.02))


def turn(services: Any, *kinds: str) -> None:
    """These changes of the flag, in turn."""
    for kind in kinds:
        change_flag("bert-docs", flag_change(kind), services=services)


def planned(services: Any, *flag: str, workload: Any = SMALL) -> dict[str, Any]:
    """The plan of a trial after these changes of the flag."""
    turn(services, *(flag or ("enable", "permanent")))
    put_spec(services, workload)
    register(services)
    acquire_lock(EVENT, services=services)
    answer = plan_trial(EVENT, services=services)
    return load(services, "plan" if answer["verdict"] == "continue" else "decision")


def decided(services: Any, verdict: str, action: str, **changes: Any) -> dict[str, Any]:
    """ApplyFlag's answer to a decision on ``larger``."""
    key = naming.record_key("bert-docs", TRIAL, "decision")
    figures = decision_document(verdict, flag={"name": FLAG, "action": action})
    document = {
        **figures, "decision_id": "stacked", "candidate": "larger", "layer": GAIN,
        "speedup": speedup(1.33 * 1.02), **changes,
    }  # fmt: skip
    services.store.put(key, to_json(document))
    return apply_flag({**EVENT, "decision_key": key}, services=services)


def roles(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [(arm["name"], arm["role"]) for arm in plan["arms"]]


def test_candidates_are_tried_on_top_of_a_permanent_flag(services: Any) -> None:
    plan = planned(services)

    assert [("baseline", "baseline"), ("compile", "on"), ("larger", "candidate")] == roles(plan)
    assert 2 == plan["stands_on"]
    both = {"compiler": "torch_compile", "batch_size": 64, "learning_rate_scaling": "linear"}
    assert both == plan["arms"][2]["overrides"]
    call_judge(services, 0, [], asks("larger 1", "compile 1", "baseline 1"))
    assert "compile" == evidence(services)["on_top_of"]
    bars = [evidence(services)["policy"][f"min_{one}_speedup"] for one in ("mean", "proven")]
    assert [1.005, 1.0] == bars


@pytest.mark.parametrize("flag", [("enable", "permanent"), ("human revert",)])
def test_without_small_wins_or_with_nothing_on_a_trial_is_as_ever(
    flag: tuple[str, ...], services: Any
) -> None:
    workload = SMALL if flag == ("human revert",) else change(SMALL, policy__small_wins=0.0)
    plan = planned(services, *flag, workload=workload)

    assert ["baseline", "candidate", "candidate"] == [role for _, role in roles(plan)]
    assert "stands_on" not in plan
    assert {"compiler": "torch_compile"} == plan["arms"][1]["overrides"]
    call_judge(services, 0, [], asks("larger 1", "baseline 1"))
    assert "on_top_of" not in evidence(services)


def test_the_judge_asks_for_blocks_of_all_three_side_by_side(services: Any) -> None:
    planned(services)
    answer = judge_arms({**EVENT, "round": 0, "runs": []}, services=services)

    (request,) = asked(services, answer).values()
    assert ["baseline", "compile", "larger"] == arms_of(request)


def test_the_price_has_the_runs_of_what_is_on_beside_each_candidate(services: Any) -> None:
    plan = planned(services, workload=change(SMALL, policy__quality_runs="shadow"))
    _, on, larger = plan["estimate"]["arms"]

    assert plan["quality_runs"] * SMALL.schedule.run_hours < on["hours"]["expected"]
    assert pytest.approx(larger["hours"]["expected"], rel=0.01) == on["hours"]["expected"]
    assert "pairs" not in plan


def test_a_layer_whose_flag_could_not_be_written_is_refused_at_planning(services: Any) -> None:
    on = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d4")
    wide = replace(
        LARGER,
        hyperparameters={"prompt": "x" * 1200, "mp_parameters": json.dumps({"a": "x" * 2450})},
    )
    workload = change(SMALL, candidates=(COMPILE, wide))

    assert isinstance(plan_for(workload, services.settings), Plan)
    refused = plan_for(workload, services.settings, on=on)
    assert isinstance(refused, Reason)
    assert "flag_too_large" == refused.code


def test_a_flag_that_is_another_change_than_its_layers_make_today_carries_nothing(
    services: Any,
) -> None:
    moved = replace(COMPILE, compile_mode="max-autotune")
    decision = planned(services, workload=change(SMALL, candidates=(moved, LARGER)))

    assert ("inconclusive", "stack_broken") == (
        decision["verdict"], decision["reasons"][0]["code"],
    )  # fmt: skip
    assert latest_flag("bert-docs", services)[0].enabled


def test_a_promoted_layer_is_on_with_all_below_it_and_says_what_each_gained(services: Any) -> None:
    planned(services)

    assert {"changed": True, "enabled": True} == {
        key: decided(services, "promote", "enable")[key] for key in ("changed", "enabled")
    }
    flag = parse_flag(services.flags.read(FLAG))
    assert ("probation", "larger", LAYERS) == (flag.state, flag.candidate, flag.layers)
    rate = CARRIED.training.learning_rate * 2
    both = {"compiler": "torch_compile", "batch_size": 64, "learning_rate": rate}
    assert both == flag.overrides


def test_the_next_layer_comes_on_top_of_both(services: Any) -> None:
    on = Flag(True, "permanent", "larger", decision_id="d2", layers=LAYERS, overrides={
        "compiler": "torch_compile", "batch_size": 64,
        "learning_rate": CARRIED.training.learning_rate * 2,
    })  # fmt: skip
    change_flag("bert-docs", replace(flag_change("enable"), value=on.to_json()), services=services)
    third = Candidate(name="third", precision="fp16")
    put_spec(services, change(SMALL, candidates=(COMPILE, LARGER, third)))
    plan_trial(EVENT, services=services)

    expected = [("baseline", "baseline"), ("larger", "on"), ("third", "candidate")]
    assert expected == roles(load(services, "plan"))
    decided(services, "promote", "enable", candidate="third", layer={**GAIN, "on": "larger"})
    flag = parse_flag(services.flags.read(FLAG))
    assert (*LAYERS, Layer("third", "stacked", 1.02)) == flag.layers


@pytest.mark.parametrize(
    ("meanwhile", "on"),
    [("revert", False), ("late stale", False), ("human revert", False), ("other enable", True)],
)
def test_what_was_tried_on_a_stack_that_has_gone_is_not_turned_on(
    meanwhile: str, on: bool, services: Any
) -> None:
    """Its first layer was reverted, or production changed below it, or another is on."""
    planned(services)
    turn(services, meanwhile)
    before = services.flags.read(FLAG)

    assert {"changed": False, "enabled": on} == {
        key: decided(services, "promote", "enable")[key] for key in ("changed", "enabled")
    }
    assert before == services.flags.read(FLAG)
    assert f"because of {meanwhile}" == load(services, "flag")["held_by"]["reason"]


def test_a_layer_that_loses_leaves_what_is_on(services: Any) -> None:
    planned(services)

    assert not decided(services, "stay_off", "disable")["changed"]
    assert latest_flag("bert-docs", services)[0].enabled


def test_models_of_what_is_on_do_not_wait_for_the_verdict_on_a_layer(services: Any) -> None:
    planned(services)
    answer = call_judge(services, 4, [], asks("larger 17", "compile 17", "baseline 17"))
    open_round(services, answer)
    tags = []
    for position, arm in enumerate(("larger", "compile", "baseline")):
        slot = next_slot(services)
        assert arm == slot.arm
        tags.append(naming.TAG_RELEASE in slot.tags)
        overrides = dict(slot.overrides)
        assert ("compiler" in overrides) == (arm != "baseline")
        produce(services, f"r{position}", arm, position)

    assert [True, False, False] == tags
    assert "complete" == ended_with(services)
    assert ["cg-bert-docs-r0-p0-r0"] == tag_models(Trial.from_event(EVENT), "larger", services)[
        "released"
    ]


@pytest.mark.parametrize("meanwhile", ["revert", "human revert", "other enable", "permanent"])
def test_production_makes_no_run_of_a_stack_that_has_gone(meanwhile: str, services: Any) -> None:
    planned(services)
    open_round(services, call_judge(services, 4, [], asks("larger 17", "compile 17")))
    turn(services, meanwhile)
    stands = meanwhile == "permanent"

    assert stands == (next_slot(services) is not None)
    produce(services, "r1", "baseline", None)
    assert (None if stands else "changed") == ended_with(services)
    late = [produce(services, arm, arm, at) for at, arm in enumerate(("larger", "compile"))]
    assert [stands, True] == [tag_of(services, run.job) is None for run in late]
