"""The judge promotes what is proven and nothing else."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilegate.domain.decision import EXIT_CODES, FLAG_ACTIONS, FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judge import judge
from tests.domain.evidence_builder import GOOD, NOISY, WORSE, document, quality_run


def codes(decision: Any) -> set[str]:
    return {reason.code for reason in decision.reasons}


def arm(doc: dict[str, Any], name: str) -> dict[str, Any]:
    return next(arm for arm in doc["arms"] if arm["name"] == name)


def test_nothing_measured_asks_for_one_block_which_stops_most_losers() -> None:
    decision = judge(document(blocks=0))

    assert decision.verdict == Verdict.CONTINUE
    assert decision.next is not None
    assert (
        decision.next["stage"],
        decision.next["block"],
        decision.next["blocks"],
        decision.next["arms"],
    ) == ("speed", 0, 1, ["baseline", "compile"])


@pytest.mark.parametrize(("done", "blocks"), [(1, 2), (3, 1), (4, 2)])
def test_further_rounds_go_on_to_the_next_look(done: int, blocks: int) -> None:
    step = judge(document(speedup=1.16, blocks=done, compile_seconds=0)).next

    assert step is not None
    assert (done, blocks) == (step["block"], step["blocks"])


def test_a_fast_candidate_is_sent_to_two_full_runs_beside_production() -> None:
    decision = judge(document())

    assert Verdict.CONTINUE == decision.verdict
    assert decision.next is not None
    assert "quality" == decision.next["stage"]
    assert [("compile", 17), ("compile", 18)] == [
        (run["arm"], run["seed"]) for run in decision.next["runs"]
    ]


def test_without_production_beside_it_the_trial_pays_for_baseline_runs_of_the_same_seeds() -> None:
    decision = judge({**document(), "plan": {"production_beside": False}})

    assert decision.next is not None
    assert [("compile", 17), ("baseline", 17), ("compile", 18), ("baseline", 18)] == [
        (run["arm"], run["seed"]) for run in decision.next["runs"]
    ]


def test_fast_and_not_worse_is_promoted() -> None:
    decision = judge(document(metrics=GOOD))

    assert decision.verdict == Verdict.PROMOTE
    assert {"speedup_proven", "quality_held"} <= codes(decision)
    assert decision.speedup is not None
    low, high = decision.speedup["interval"]
    truth = 60 / (3 + 60 / 1.4)  # a minute of steps, 3 s of compilation

    assert low < truth < high
    assert decision.flag_action == FlagAction.ENABLE


def test_saving_follows_from_price_times_hours() -> None:
    decision = judge(document(metrics=GOOD))

    assert decision.saving is not None and decision.speedup is not None
    hours = (5 + 2000 * 0.03) / 3600
    expected = hours * 1.408 * (1 - 1 / decision.speedup["estimate"])
    assert pytest.approx(expected) == decision.saving["usd_per_run"]
    assert pytest.approx(expected * 2800 * 52) == decision.saving["usd_per_year"]


def test_a_loser_is_stopped_after_the_first_block() -> None:
    decision = judge(document(speedup=0.9, blocks=1))

    assert decision.verdict == Verdict.STAY_OFF
    assert decision.stage == "speed"


def test_steady_gain_eaten_by_compilation_stays_off() -> None:
    decision = judge(document(speedup=1.4, compile_seconds=60, full_run_steps=1000))

    assert decision.verdict == Verdict.STAY_OFF


def test_worse_quality_stays_off() -> None:
    decision = judge(document(metrics=WORSE))

    assert decision.verdict == Verdict.STAY_OFF
    assert "quality_worse" in codes(decision)
    assert decision.quality is not None
    assert decision.quality["estimate"] == pytest.approx(-0.0503, abs=1e-3)


def test_a_metric_that_varies_too_much_is_inconclusive_and_names_the_provable_margin() -> None:
    decision = judge(document(metrics=NOISY, goal="maximize", margin=0.005))

    assert decision.verdict == Verdict.INCONCLUSIVE
    assert decision.flag_action == FlagAction.KEEP
    assert decision.quality is not None
    assert decision.quality["provable_margin"] > 0.05
    assert decision.quality["runs_needed"] is None or decision.quality["runs_needed"] > 36


def test_faster_but_below_the_asked_speedup_stays_off_only_after_every_block() -> None:
    few = judge(document(speedup=1.16, blocks=3, compile_seconds=0))
    all_blocks = judge(document(speedup=1.16, blocks=6, compile_seconds=0))

    assert few.verdict == Verdict.CONTINUE
    assert {"speedup_below_promote"} == codes(all_blocks)
    assert all_blocks.verdict == Verdict.STAY_OFF


@pytest.mark.parametrize(("slower", "verdict"), [(1.4, "continue"), (1.8, "inconclusive")])
def test_whole_jobs_that_do_not_bear_the_gate_out_cannot_promote(
    slower: float, verdict: str
) -> None:
    """Node noise is given the chance to even out; what no noise explains ends the trial."""
    doc = document(metrics=GOOD)
    for run in arm(doc, "compile")["runs"]:
        if run["stage"] == "quality":
            run["wall_seconds"] *= slower

    assert verdict == judge(doc).verdict
    assert "full_run_disagrees" in codes(judge(doc))


def test_treatment_not_applied_is_invalid() -> None:
    doc = document(metrics=GOOD)
    arm(doc, "compile")["runs"][-1]["applied"] = False

    assert judge(doc).verdict == Verdict.INVALID
    assert {"treatment_not_applied"} == codes(judge(doc))


@pytest.mark.parametrize("key", ["gpu", "torch", "code_sha256", "data_sha256"])
@pytest.mark.parametrize("where", ["baseline", "compile"])
def test_arms_that_differ_in_more_than_the_change_are_invalid(key: str, where: str) -> None:
    doc = document(metrics=GOOD)
    arm(doc, where)["runs"][-1]["fingerprint"][key] = "other"

    assert judge(doc).verdict == Verdict.INVALID
    assert {"arms_differ"} == codes(judge(doc))


def test_a_missing_fingerprint_key_is_a_difference() -> None:
    doc = document(metrics=GOOD)
    del arm(doc, "compile")["runs"][0]["fingerprint"]["gpu"]

    assert {"arms_differ"} == codes(judge(doc))


def test_unequal_initial_loss_is_invalid() -> None:
    doc = document(metrics=GOOD)
    arm(doc, "compile")["runs"][-1]["initial_loss"] = 3.5

    assert {"unequal_initial_loss"} == codes(judge(doc))


def test_a_candidate_that_crashes_in_a_full_run_stays_off() -> None:
    doc = document(metrics=GOOD)
    crashed = arm(doc, "compile")["runs"][-1]
    crashed.update(finished=False, metric=None)

    assert judge(doc).verdict == Verdict.STAY_OFF
    assert "candidate_crashed" in codes(judge(doc))


def test_a_candidate_that_crashes_in_a_block_stays_off() -> None:
    doc = document()
    arm(doc, "compile")["runs"][1].update(finished=False, step_seconds=[])

    assert judge(doc).verdict == Verdict.STAY_OFF


def test_a_baseline_that_fails_in_a_block_proves_nothing() -> None:
    doc = document(metrics=GOOD)
    arm(doc, "baseline")["runs"][0].update(finished=False, step_seconds=[])

    assert Verdict.INCONCLUSIVE == judge(doc).verdict


def test_a_baseline_whose_full_runs_mostly_fail_proves_nothing() -> None:
    doc = document(metrics=GOOD)
    for run in arm(doc, "baseline")["runs"][-2:]:
        run.update(finished=False, metric=None)

    assert Verdict.INCONCLUSIVE == judge(doc).verdict


def test_a_finished_run_without_metric_counts_as_failed() -> None:
    doc = document(metrics=GOOD)
    arm(doc, "compile")["runs"][-1]["metric"] = None

    assert judge(doc).verdict == Verdict.STAY_OFF


def test_identical_metrics_everywhere_prove_nothing() -> None:
    same = {"baseline": [2.5] * 3, "compile": [2.5] * 3}

    assert judge(document(metrics=same)).verdict == Verdict.INCONCLUSIVE


def test_copied_blocks_prove_nothing() -> None:
    doc = document(blocks=1)
    for name in ("baseline", "compile"):
        runs = arm(doc, name)["runs"]
        runs += [{**copy.deepcopy(runs[0]), "block": block} for block in (1, 2, 3, 4, 5)]

    assert judge(doc).verdict == Verdict.INCONCLUSIVE


def test_a_segment_too_short_for_a_steady_state_is_not_counted() -> None:
    doc = document()
    for run in arm(doc, "compile")["runs"]:
        run["step_seconds"] = run["step_seconds"][:30]

    assert judge(doc).verdict == Verdict.CONTINUE


def test_blocks_that_cannot_be_used_are_not_asked_for_again_and_again() -> None:
    doc = document(blocks=6)
    for run in arm(doc, "compile")["runs"]:
        run["step_seconds"] = run["step_seconds"][:30]

    assert Verdict.INCONCLUSIVE == judge(doc).verdict
    assert "too short" in judge(doc).reasons[0].message


def test_a_segment_that_failed_before_it_could_tell_is_a_crash_not_a_missing_treatment() -> None:
    doc = document()
    arm(doc, "compile")["runs"][0].update(finished=False, step_seconds=[], applied=None)

    assert Verdict.STAY_OFF == judge(doc).verdict


def test_two_candidates_share_the_error_and_the_faster_proven_one_wins() -> None:
    doc = document(metrics=GOOD)
    second = copy.deepcopy(arm(document(speedup=1.6, metrics=GOOD), "compile"))
    second["name"] = "compile-b48"
    doc["arms"].append(second)

    decision = judge(doc)

    assert (decision.verdict, decision.candidate) == (Verdict.PROMOTE, "compile-b48")


def test_history_that_drifted_cannot_hide_a_loss() -> None:
    doc = document(metrics=WORSE)
    doc["quality"]["history"] = [2.9, 2.901, 2.899] * 4

    assert Verdict.STAY_OFF == judge(doc).verdict


def test_a_full_run_that_does_not_prove_its_compiler_is_invalid() -> None:
    doc = document(metrics=GOOD)
    for run in arm(doc, "compile")["runs"]:
        del run["applied"]

    assert {"treatment_not_applied"} == codes(judge(doc))


def test_a_run_without_fingerprint_among_runs_that_have_one_is_invalid() -> None:
    doc = document(metrics=GOOD)
    for run in arm(doc, "compile")["runs"]:
        del run["fingerprint"]

    assert {"arms_differ"} == codes(judge(doc))


def test_stages_that_ran_on_different_hardware_are_invalid() -> None:
    doc = document(metrics=GOOD)
    for item in doc["arms"]:
        for run in item["runs"]:
            if run["stage"] == "quality":
                run["fingerprint"]["gpu"] = "other"

    assert {"arms_differ"} == codes(judge(doc))


@pytest.mark.parametrize("key", ["block", "order"])
def test_runs_that_claim_to_be_the_same_run_are_invalid(key: str) -> None:
    doc = document(metrics=GOOD)
    stage = "speed" if key == "block" else "quality"
    runs = [run for run in arm(doc, "baseline")["runs"] if run["stage"] == stage]
    runs[1][key] = runs[0][key]

    assert Verdict.INVALID == judge(doc).verdict
    assert "runs_repeated" in codes(judge(doc))


@pytest.mark.parametrize(("key", "value"), [("node", "elsewhere"), ("samples_per_step", 8)])
def test_a_block_that_is_not_like_for_like_is_invalid(key: str, value: object) -> None:
    doc = document(metrics=GOOD)
    arm(doc, "compile")["runs"][0][key] = value

    assert {"arms_differ"} == codes(judge(doc))


def test_a_probation_that_names_no_arm_is_invalid_input() -> None:
    with pytest.raises(InvalidEvidenceError, match="promoted"):
        judge({**document(metrics=GOOD), "phase": "probation"})


def test_same_evidence_same_decision_to_the_bit() -> None:
    doc = document(metrics=GOOD)
    once = json.dumps(judge(doc).to_dict("/f"), sort_keys=True)
    again = json.dumps(judge(json.loads(json.dumps(doc))).to_dict("/f"), sort_keys=True)

    assert once == again


@given(order=st.permutations(range(6)))
@settings(max_examples=20, deadline=None)
def test_the_order_in_which_runs_are_listed_does_not_matter(order: list[int]) -> None:
    doc = document(metrics=GOOD)
    expected = judge(doc).to_dict("/f")
    runs = arm(doc, "compile")["runs"]
    arm(doc, "compile")["runs"] = [runs[index] for index in order]

    found = judge(doc).to_dict("/f")

    assert {**expected, "decision_id": ""} == {**found, "decision_id": ""}


@given(factor=st.floats(min_value=0.01, max_value=100))
@settings(max_examples=20, deadline=None)
def test_slower_hardware_changes_seconds_not_the_speedup(factor: float) -> None:
    doc = document(blocks=3)
    expected = judge(doc).speedup
    for item in doc["arms"]:
        for run in item["runs"]:
            run["compile_seconds"] *= factor
            run["step_seconds"] = [x * factor for x in run["step_seconds"]]

    found = judge(doc).speedup

    assert expected is not None and found is not None
    assert found["estimate"] == pytest.approx(expected["estimate"], rel=1e-9)


def test_turning_the_metric_around_turns_nothing_else() -> None:
    less = judge(document(metrics=GOOD)).quality
    flipped = {name: [-value for value in values] for name, values in GOOD.items()}
    more = judge(document(metrics=flipped, goal="maximize")).quality

    assert less is not None and more is not None
    assert less["estimate"] == pytest.approx(more["estimate"])


def test_a_figure_beyond_arithmetic_is_invalid_evidence_not_a_crash() -> None:
    doc = document(metrics=GOOD)
    arm(doc, "baseline")["runs"][0]["compile_seconds"] = 1e308

    with pytest.raises(InvalidEvidenceError, match="out of range"):
        judge(doc)


LEAVES = st.sampled_from([None, -1, 0, 1e308, "", "x", [], {}, True, float("nan"), float("inf")])


@given(data=st.data())
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_corruption_of_unpromotable_evidence_promotes(data: st.DataObject) -> None:
    """A slow candidate stays unpromoted whatever single field of its evidence is broken."""
    doc = document(speedup=1.0, metrics=GOOD)
    target: Any = doc
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(target[key], dict | list) and target[key] and data.draw(st.booleans()):
            target = target[key]
            continue
        break
    if data.draw(st.booleans()):
        del target[key]
    else:
        target[key] = data.draw(LEAVES)

    try:
        verdict = judge(doc).verdict
    except InvalidEvidenceError:
        return

    assert verdict != Verdict.PROMOTE


def test_without_three_whole_blocks_nothing_is_promoted() -> None:
    full = document(metrics=GOOD)
    for name in ("baseline", "compile"):
        for index in range(3):
            doc = copy.deepcopy(full)
            del arm(doc, name)["runs"][index]

            assert judge(doc).verdict != Verdict.PROMOTE, (name, index)


def test_a_run_of_another_seed_does_not_replace_a_missing_one_unseen() -> None:
    doc = document(metrics=GOOD)
    arm(doc, "compile")["runs"].append(quality_run(9, 99, math.nan, 60.0))

    with pytest.raises(InvalidEvidenceError, match="metric"):
        judge(doc)


def test_every_verdict_has_a_flag_action_and_an_exit_code() -> None:
    assert set(Verdict) == set(FLAG_ACTIONS) == set(EXIT_CODES)
    assert {Verdict.PROMOTE, Verdict.PERMANENT} == {
        verdict for verdict, action in FLAG_ACTIONS.items() if action is FlagAction.ENABLE
    }
