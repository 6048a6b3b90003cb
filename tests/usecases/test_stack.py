"""A trial on top of what is on: from the plan to the flag, and what reverts meanwhile."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.flag import Flag, Layer, parse_flag
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate
from compilegate.usecases.flag.change_flag import change_flag, latest_flag
from compilegate.usecases.planning import plan_for, plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.apply_flag import apply_flag
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import decision_document, speedup
from tests.domain.workload_builder import COMPILE, change
from tests.usecases.canary_builder import CARRIED, register
from tests.usecases.flag_changes import flag_change
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, load, put_spec

LARGER = Candidate(name="larger", batch_size=64, learning_rate_scaling="linear")
SMALL = change(CARRIED, candidates=(COMPILE, LARGER), policy__small_wins=1.005)
GAIN = {"on": "compile", "estimate": 1.02346, "interval": [1.01, 1.03]}
LAYERS = (Layer("compile", "d4", 1.3333), Layer("larger", "stacked", 1.0235))

OLDER = Layer("first", "d1", 1.1), Layer("compile", "d4", 1.2)


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
        "speedup": speedup(1.33333 * 1.02346), **changes,
    }  # fmt: skip
    services.store.put(key, to_json(document))
    return apply_flag({**EVENT, "decision_key": key}, services=services)


def test_a_layer_whose_flag_could_not_be_written_is_refused_at_planning(services: Any) -> None:
    on = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d4")
    wide = replace(
        LARGER,
        hyperparameters={"prompt": "x" * 1200, "mp_parameters": json.dumps({"a": "x" * 2450})},
    )
    workload = change(SMALL, candidates=(COMPILE, wide))

    assert isinstance(plan_for(workload, services.settings), Plan)
    alone = change(workload, policy__small_wins=0.0)
    assert isinstance(plan_for(alone, services.settings, on=on), Plan)
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


@pytest.mark.parametrize(
    ("small_wins", "last", "stands_on"),
    [(1.005, "permanent", 2), (0.0, "permanent", 0), (1.005, "revert", 0)],
)
def test_a_plan_says_on_how_many_changes_of_the_flag_it_stands(
    small_wins: float, last: str, stands_on: int, services: Any
) -> None:
    workload = change(SMALL, policy__small_wins=small_wins, policy__cooldown_days=0.0)
    plan = planned(services, "enable", last, workload=workload)

    assert stands_on == plan.get("stands_on", 0)


def test_what_was_reverted_is_not_tried_again_at_once(services: Any) -> None:
    decision = planned(services, "enable", "late revert")

    assert "cooling_down" == decision["reasons"][0]["code"]


@pytest.mark.parametrize(
    ("lacks", "below", "layers"),
    [
        ({}, {}, LAYERS),
        ({}, {"decision_id": None}, (replace(LAYERS[0], decision_id="stacked"), LAYERS[1])),
        ({}, {"layers": [asdict(one) for one in OLDER]}, (*OLDER, LAYERS[1])),
        ({"layer": None}, {}, ()),
        ({"speedup": None}, {}, ()),
    ],
)
def test_a_promoted_layer_is_on_with_all_below_it_and_says_what_each_gained(
    lacks: dict[str, None], below: dict[str, Any], layers: Any, services: Any
) -> None:
    planned(services)
    stands_on = services.ledger.raw.items["bert-docs", "flag#00000002"]
    stands_on["to"] = json.dumps({**json.loads(stands_on["to"]), **below})

    kept = {"changed": False, "enabled": True, "approval": None}
    assert kept == decided(services, "stay_off", "disable")
    assert {"changed": True, "enabled": True, "approval": None} == decided(
        services, "promote", "enable", **lacks
    )
    flag = parse_flag(services.flags.read(FLAG))
    assert ("probation", "larger", layers) == (flag.state, flag.candidate, flag.layers)
    rate = CARRIED.training.learning_rate * 2
    both = {"compiler": "torch_compile", "batch_size": 64, "learning_rate": rate}
    assert both == flag.overrides


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

    assert {"changed": False, "enabled": on, "approval": None} == decided(
        services, "promote", "enable"
    )
    assert before == services.flags.read(FLAG)
    assert f"because of {meanwhile}" == load(services, "flag")["held_by"]["reason"]
