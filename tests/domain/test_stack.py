"""Candidates on top of what is on: what is tried, and when a layer is proven."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain.codec import write
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError
from compilegate.domain.flag import MAX_BYTES, OFF, Flag, Layer, parse_flag
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.planning.plan import Choice, flag_too_large, stacked
from compilegate.domain.production.history import Promotion
from compilegate.domain.production.probation import Findings, flag_transition, probation_document
from compilegate.domain.reasons import Reason
from compilegate.domain.spreads import Spread, Spreads
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Candidate, Policy
from tests.domain.evidence_builder import judge, quality_run, speed_run
from tests.domain.trial.plans import arm as planned_arm
from tests.domain.workload_builder import SOUND, change

STEADY = Spreads(*(Spread(sd, "workload", "lm", 20, 1) for sd in (0.003, 0.003, 0.01)))
STEP, RUN_STEPS, MARGIN = 0.03, 2000, 0.02


def arm(
    name: str, speed: float, *, blocks: int, runs: int, loss: float = 0.0, **changed: Any
) -> dict[str, Any]:
    """An arm that is so many times as fast as the baseline and loses so much."""
    rng = random.Random(name)
    seconds = STEP / speed
    segments = [speed_run(block, seconds, seed=len(name)) for block in range(blocks)]
    full = [
        quality_run(
            3 * run, 17 + run, 2.5 + loss + 0.001 * rng.gauss(0, 1),
            RUN_STEPS * seconds * (1 + 0.002 * rng.gauss(0, 1)),
        ) for run in range(runs)
    ]  # fmt: skip
    overrides = {} if name == "baseline" else {"batch_size": 48}
    made = [{**run, **changed} for run in (*segments, *full)]
    return {"name": name, "overrides": overrides, "runs": made}


def document(*arms: dict[str, Any], **changed: Any) -> dict[str, Any]:
    placed = [
        {**one, "runs": [{**run, "order": run["order"] + place} if "order" in run else run
                         for run in one["runs"]]}
        for place, one in enumerate(arms)
    ]  # fmt: skip
    return {
        "schema": 1, "workload": "lm", "phase": "trial", "promoted": None,
        "policy": {"quality_runs": "canary", "small_wins": 1.005},
        "quality": {"metric": "eval_loss", "goal": "minimize", "margin": MARGIN},
        "usd_per_hour": 1.4, "runs_per_week": 50, "runs_remaining": 2500,
        "full_run_steps": RUN_STEPS, "plan": {"spreads": write(STEADY)},
        "arms": placed, "on_top_of": "on", **changed,
    }  # fmt: skip


def trial(
    more: float = 1.03, *, on_loses: float = 0.0, loses: float = 0.0, **changed: Any
) -> dict[str, Any]:
    """A trial of a layer that makes a stack of 1.3x so many times faster; losses in margins."""
    on, runs = 1.3, 8
    return document(
        arm("baseline", 1.0, blocks=6, runs=runs),
        arm("on", on, blocks=6, runs=runs, loss=on_loses * MARGIN),
        arm("fused", on * more, blocks=6, runs=runs, loss=(on_loses + loses) * MARGIN),
        **changed,
    )


def test_a_layer_is_promoted_for_what_it_gains_on_what_is_on():
    decision = judge(trial())

    assert ("promote", "fused") == (decision.verdict, decision.candidate)
    assert "on" == decision.layer.on
    assert ["fused: ", "fused o"] == [message[:7] for message in decision.messages[:2]]
    assert decision.layer.interval[0] < 1.03 < decision.layer.interval[1]
    assert pytest.approx(1.3 * 1.03, rel=0.01) == decision.speedup.estimate
    assert "promote" == judge({**trial(more=1.0), "on_top_of": ""}).verdict


@pytest.mark.parametrize("more", [1.0, 0.9])
def test_a_layer_that_gains_nothing_on_it_is_not_however_fast_the_stack_is(
    more,
):
    decision = judge(trial(more=more))

    assert ("stay_off", "speedup_too_small") == (decision.verdict, decision.reasons[0].code)
    assert "fused on top of on: " in decision.messages[0]
    speeds = {"baseline": 1.0, "on": 0.8, "fused": 0.9}
    slow = judge(document(*(arm(name, one, blocks=6, runs=8) for name, one in speeds.items())))
    assert ("stay_off", "fused: ") == (slow.verdict, slow.messages[0][:7])


@pytest.mark.parametrize(
    ("on_loses", "loses", "code"),
    [(0.3, 0.3, "speedup_proven"), (0.6, 0.6, "quality_worse"), (0.0, 1.2, "quality_worse")],
)
def test_the_stack_may_lose_one_margin_in_all_against_nothing(on_loses, loses, code):
    """Two layers that lose 0.6 of a margin each would both be held on top of one another."""
    assert code == judge(trial(on_loses=on_loses, loses=loses)).reasons[0].code


def test_what_is_on_has_to_be_as_sound_as_a_candidate():
    made = trial()
    made["arms"][1]["runs"][-1]["applied"] = False
    crashed = trial()
    crashed["arms"][1]["runs"][0] |= {"finished": False, "step_seconds": []}

    assert "invalid" == judge(made).verdict
    made["arms"][1]["runs"] = []
    assert ("continue", None) == (judge(made).verdict, judge(made).layer)
    text = "on failed in a speed block: nothing to compare with"
    assert ("inconclusive", (Reason("baseline_failed", text, "baseline"),)) == (
        judge(crashed).verdict, judge(crashed).reasons,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["baseline", "gone"])
def test_evidence_on_top_of_no_arm_is_refused(name):
    with pytest.raises(InvalidEvidenceError, match="on_top_of"):
        judge({**trial(), "on_top_of": name})
    alone = trial()
    with pytest.raises(InvalidEvidenceError, match="on_top_of"):
        judge({**alone, "arms": alone["arms"][:2]})


def test_production_watches_the_whole_stack_against_nothing():
    promotion = Promotion("t", "fused", at=0, since=0, flag=TWO, version=1)
    watched = read_evidence(probation_document(trial(), promotion, []))

    assert ("fused", "") == (watched.promoted, watched.on_top_of)
    assert ["baseline", "fused"] == [one.name for one in watched.arms]


@pytest.mark.parametrize(
    ("verdict", "state", "layers"),
    [(Verdict.REVERT, "reverted", 0), (Verdict.PERMANENT, "permanent", 2)],
)
def test_a_regression_turns_off_all_layers_and_a_good_probation_keeps_them(verdict, state, layers):
    promotion = Promotion("t", "fused", 0, 0, replace(TWO, state="probation"), version=1)
    findings = Findings(decision=replace(judge(trial()), verdict=verdict))
    change = flag_transition(promotion, findings, "keep")

    flag = parse_flag(change.value)
    assert (state, layers, layers > 0) == (flag.state, len(flag.layers), flag.enabled)


COMPILE = Candidate(name="compile", compiler="torch_compile")
TUNED = Candidate(name="tuned", compiler="torch_compile", compile_mode="max-autotune")
FUSED = Candidate(name="fused", hyperparameters={"optim": "fused"})
OTHER = Candidate(name="other", hyperparameters={"optim": "other", "x": 1})
LARGER = Candidate(name="larger", batch_size=64, learning_rate_scaling="linear")
PERMANENT = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d1")
BOTH = {"compiler": "torch_compile", "hyperparameters": {"optim": "fused"}}
TWO = Flag(
    True, "permanent", "fused", BOTH, "d2",
    layers=(Layer("compile", "d1", 1.3), Layer("fused", "d2", 1.02)),
)  # fmt: skip


def choice(
    flag: Flag, *candidates: Candidate, but: str = ""
) -> tuple[Choice | Reason, list[Candidate]]:
    """The choice, where all that is composed may be tried but one, and what was composed."""
    asked: list[Candidate] = []

    def check(composed: tuple[Candidate, ...]) -> Choice:
        asked.extend(composed)
        fit = tuple(one for one in composed if one.name != but)
        return Choice(fit, left_out=((but, "too large"),) if but else ())

    return stacked(Choice(candidates, left_out=(("gone", "has no price"),)), flag, check), asked


def test_each_candidate_is_tried_with_all_that_is_on():
    made, composed = choice(TWO, COMPILE, FUSED, OTHER, LARGER, TUNED)

    assert isinstance(made, Choice)
    assert "fused" == made.on
    on, larger, tuned = composed
    assert ("fused", BOTH) == (on.name, on.overrides())
    size = {"batch_size": 64, "learning_rate_scaling": "linear"}
    assert ("larger", {**BOTH, **size}) == (larger.name, larger.overrides())
    assert {**BOTH, "compile_mode": "max-autotune"} == tuned.overrides()
    assert "hyperparameters.optim" in dict(made.left_out)["other"]
    assert composed == list(made.candidates)
    assert {one.name for one in composed} == made.why.keys()


def test_what_follows_from_a_change_is_no_change_of_its_own():
    overrides = {"batch_size": 64, "learning_rate": 1e-4, "image": "larger:1"}
    made, _ = choice(Flag(True, "permanent", "larger", overrides), LARGER, COMPILE)

    assert isinstance(made, Choice)


def test_where_nothing_is_left_to_try_what_was_left_out_is_said():
    alone, (one_gone, _) = (
        stacked(Choice((COMPILE,)), PERMANENT, Choice),
        choice(PERMANENT, COMPILE),
    )

    text = "nothing is left to try on compile"
    assert Reason("stack_ends", text) == alone
    assert Reason("stack_ends", f"{text}: gone: has no price") == one_gone


def test_what_is_on_has_the_flags_name():
    _, composed = choice(replace(TWO, candidate="both"), COMPILE, FUSED, LARGER)

    assert ["both", "larger"] == [one.name for one in composed]


@pytest.mark.parametrize(
    ("flag", "candidates", "but", "code", "named"),
    [
        (Flag(True, "probation", "compile"), (COMPILE, FUSED), "", "stack_waits", "probation"),
        (Flag(True, "stale", "compile"), (COMPILE, FUSED), "", "stack_waits", "stale"),
        (TWO, (FUSED, LARGER), "", "stack_broken", "compile"),
        (Flag(True, "permanent", "gone"), (FUSED,), "", "stack_broken", "has no price"),
        (PERMANENT, (COMPILE, FUSED), "compile", "stack_broken", "too large"),
        (PERMANENT, (replace(TUNED, name="compile"), FUSED), "", "stack_broken", "another change"),
        (PERMANENT, (COMPILE, FUSED), "fused", "stack_ends", "too large"),
        (PERMANENT, (COMPILE,), "", "stack_ends", "compile"),
        (TWO, (COMPILE, FUSED, OTHER), "", "stack_ends", "hyperparameters.optim"),
    ],
)
def test_a_stack_that_cannot_grow_says_why(flag, candidates, but, code, named):
    made, _ = choice(flag, *candidates, but=but)

    assert isinstance(made, Reason)
    assert code == made.code
    assert named in made.message


DECIDED, GAIN = "0" * 16, 12.3456


@pytest.mark.parametrize(
    ("below", "layers"),
    [
        (OFF, ()),
        (PERMANENT, (Layer("compile", "d1", GAIN), Layer("wide", DECIDED, GAIN))),
        (replace(PERMANENT, decision_id=None),
         (Layer("compile", DECIDED, GAIN), Layer("wide", DECIDED, GAIN))),
        (TWO, (*TWO.layers, Layer("wide", DECIDED, GAIN))),
    ],
    ids=["alone", "on one", "on one by hand", "on two"],
)  # fmt: skip
def test_a_candidate_is_refused_whose_flag_would_be_a_byte_too_large(below, layers):
    changes = {"hyperparameters": {"p": ""}, "learning_rate": 0.2, "image": "wide:1"}
    flag = Flag(True, "permanent", "wide", changes, DECIDED, "2026-11-27T12:00:00Z", 0.0625, layers)
    room, codes = MAX_BYTES - len(flag.to_json()), []
    for size in (room, room + 1):
        values = {"hyperparameters": {"p": "x" * size}}
        wide = planned_arm("wide", overrides=values, learning_rate=0.2, image="wide:1", **values)
        others = [replace(wide, name=role, role=role) for role in ("control", "on")]
        arms = [planned_arm("baseline", role="baseline"), *others, planned_arm("compile"), wide]
        refused = flag_too_large(SimpleNamespace(arms=arms), below)  # type: ignore[arg-type]
        codes.append(refused and refused.code)

    assert [None, "flag_too_large"] == codes


def test_small_wins_stand_for_both_bars_and_stay_so_when_they_are_read_again():
    small = change(SOUND, policy__small_wins=1.005)
    policy = small.policy

    assert (1.005, 1.0) == (policy.min_mean_speedup, policy.min_proven_speedup)
    assert policy == parse_workload(small.to_dict()).policy
    assert "small_wins" not in Policy().to_dict()
    assert (1.2, 1.1) == (Policy().min_mean_speedup, Policy().min_proven_speedup)


@pytest.mark.parametrize("policy", [
    {"small_wins": 0.99}, {"small_wins": 1.01, "min_mean_speedup": 1.3},
])  # fmt: skip
def test_small_wins_below_one_or_beside_other_bars_are_refused(policy):
    with pytest.raises(InvalidInputError, match="small_wins"):
        parse_workload({**SOUND.to_dict(), "policy": policy})
