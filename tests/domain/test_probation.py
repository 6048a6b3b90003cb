"""The probation: alarms are checked before they revert, and silence is not proof."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from compilegate.domain.decision import Decision, FlagAction, Verdict
from compilegate.domain.judging.probation import CONFIRMATIONS, CRASHES, LEAST_REFERENCE
from compilegate.domain.workload.model import Policy
from tests.domain.evidence_builder import (
    BASE_WALL,
    CENTRE,
    MINE_WALL,
    PROBATION_MARGIN,
    PROBATION_SD,
    arm,
    codes,
    judge,
    probation_document,
    runs,
    sample,
    step_of,
    watch,
)

WANTED = Policy().probation_runs
# Both arms see nearly the same weeks: a steady drift moves them apart by a third of a night.
IN_TURN = ["baseline", "compile", "compile", "baseline", "baseline", "compile"]
NORMAL = sample(60, CENTRE, PROBATION_SD)


def asked_arms(decision: Decision) -> list[str]:
    return [run["arm"] for run in (step_of(decision) or {"runs": []})["runs"]]


def follow(
    doc: dict[str, Any],
    *,
    loss: float = 0.0,
    both_lose: float = 0.0,
    mine: float = 1.0,
    both: float = 1.0,
    most: int = 60,
) -> tuple[Decision, list[str]]:
    """Make every production run that is asked for, in a world of known truth, until settled.

    ``loss`` and ``mine`` concern the candidate (metric, run time), the others both arms.
    """
    made: list[str] = []
    while (decision := judge(doc)).verdict is Verdict.CONTINUE and len(made) < most:
        for run in (step_of(decision) or {})["runs"]:
            candidate = run["arm"] != "baseline"
            wall = (MINE_WALL * mine if candidate else BASE_WALL) * both
            metric = NORMAL[len(made) % 60] - both_lose - (loss if candidate else 0.0)
            watch(doc, run["arm"], metric=metric, wall_seconds=wall, confirm=run["confirm"])
            made.append(run["arm"])
    return decision, made


def alarmed(**keys: Any) -> dict[str, Any]:
    """Three runs two margins down raise the alarm."""
    doc = probation_document(**keys)
    for _ in range(3):
        watch(doc, metric=CENTRE - 2 * PROBATION_MARGIN)
    return doc


def test_a_probation_begins_with_the_next_scheduled_run() -> None:
    decision = judge(probation_document())

    assert (Verdict.CONTINUE, "probation") == (decision.verdict, decision.stage)
    assert {"probation_goes_on"} == codes(decision)
    assert {"stage": "probation", "runs": [{"arm": "compile", "confirm": False}],
            "why": "the next scheduled production run"} == step_of(decision)  # fmt: skip


def test_clean_runs_end_in_permanence() -> None:
    decision, made = follow(probation_document())

    assert (Verdict.PERMANENT, FlagAction.ENABLE) == (decision.verdict, decision.flag_action)
    assert {"probation_passed"} == codes(decision)
    assert ["compile"] * WANTED == made
    assert decision.next is None


@pytest.mark.parametrize("wanted", [4, 20])
def test_the_policy_says_how_many_runs_are_watched(wanted: int) -> None:
    doc = probation_document(policy={"probation_runs": wanted})

    assert ["compile"] * wanted == follow(doc)[1]


def test_a_fall_of_two_margins_alarms_and_is_checked_in_turns() -> None:
    decision = judge(alarmed())

    assert (Verdict.CONTINUE, FlagAction.KEEP) == (decision.verdict, decision.flag_action)
    assert "alarm" in codes(decision)
    assert IN_TURN == asked_arms(decision)
    assert all(run["confirm"] for run in (step_of(decision) or {})["runs"])


def test_an_alarm_that_is_borne_out_reverts() -> None:
    decision, made = follow(probation_document(), loss=2 * PROBATION_MARGIN)

    assert (Verdict.REVERT, FlagAction.DISABLE) == (decision.verdict, decision.flag_action)
    assert {"quality_regressed"} == codes(decision)
    assert CONFIRMATIONS == made.count("baseline")
    assert len(made) <= 2 * CONFIRMATIONS + 4


def test_a_loss_of_one_margin_is_caught_within_the_probation() -> None:
    assert Verdict.REVERT == follow(probation_document(), loss=PROBATION_MARGIN)[0].verdict


@pytest.mark.parametrize(("share", "verdict"), [(0.3, "permanent"), (0.7, "revert")])
def test_a_check_tolerates_half_a_margin(share: float, verdict: str) -> None:
    assert verdict == follow(alarmed(), loss=share * PROBATION_MARGIN)[0].verdict


def test_a_false_alarm_is_cleared_and_the_count_goes_on() -> None:
    decision, made = follow(alarmed())

    assert Verdict.PERMANENT == decision.verdict
    assert {"probation_passed", "alarm_cleared"} == codes(decision)
    assert WANTED - 3 == made.count("compile")
    assert CONFIRMATIONS == made.count("baseline")


def test_a_check_half_done_asks_for_what_is_missing() -> None:
    doc = alarmed()
    watch(doc, "baseline", confirm=True)
    watch(doc, confirm=True)
    watch(doc, "baseline", confirm=True)

    assert ["baseline", "compile", "compile"] == asked_arms(judge(doc))


def test_a_baseline_that_fails_while_an_alarm_is_checked_runs_again() -> None:
    doc = alarmed()
    watch(doc, "baseline", confirm=True, metric=None)

    assert IN_TURN == asked_arms(judge(doc))


@pytest.mark.parametrize("mine", [1.4, 1.6])
def test_a_speed_gain_that_is_gone_reverts(mine: float) -> None:
    decision, _ = follow(probation_document(), mine=mine)

    assert (Verdict.REVERT, {"speedup_gone"}) == (decision.verdict, codes(decision))


@pytest.mark.parametrize("both", [0.5, 1.1, 1.3, 1.5, 2.0, 5.0])
def test_runs_that_grew_in_both_arms_do_not_revert(both: float) -> None:
    """The data grew: the candidate is as much faster as it ever was."""
    decision, made = follow(probation_document(), both=both)

    assert Verdict.PERMANENT == decision.verdict
    assert ("baseline" in made) == (both > 1.1)


@pytest.mark.parametrize("margins", [1, 2, 5])
def test_a_metric_that_fell_in_both_arms_does_not_revert(margins: int) -> None:
    decision, _ = follow(probation_document(), both_lose=margins * PROBATION_MARGIN)

    assert Verdict.PERMANENT == decision.verdict


def test_a_fall_of_the_candidate_alone_reverts_although_both_grew_slower() -> None:
    decision, _ = follow(probation_document(), mine=1.4, both=2.0)

    assert Verdict.REVERT == decision.verdict


def grown(share: float, *, before: float = 0.0) -> dict[str, Any]:
    """Runs that grew in both arms alarm; in the check the candidate's metric is low by chance.

    ``share`` is by how much of a margin, ``before`` by how much it was low when the alarm came.
    """
    doc = probation_document()
    for _ in range(3):
        watch(doc, metric=CENTRE - before * PROBATION_MARGIN, wall_seconds=MINE_WALL * 1.5)
    assert "alarm" in codes(judge(doc))
    for name in IN_TURN:
        wall = BASE_WALL if name == "baseline" else MINE_WALL
        low = share * PROBATION_MARGIN * (name == "compile")
        watch(doc, name, metric=CENTRE - low, wall_seconds=wall * 1.5, confirm=True)
    return doc


def test_a_calm_metric_is_not_on_trial_because_the_jobs_grew() -> None:
    assert {"alarm_cleared", "probation_goes_on"} == codes(judge(grown(0.6)))


def test_a_metric_that_was_suspicious_too_is() -> None:
    decision = judge(grown(0.8, before=0.75))

    assert (Verdict.REVERT, {"quality_regressed"}) == (decision.verdict, codes(decision))


def test_a_metric_that_was_calm_and_really_fell_alarms_by_itself_afterwards() -> None:
    decision, _ = follow(grown(2.0), loss=2 * PROBATION_MARGIN, both=1.5)

    assert (Verdict.REVERT, {"quality_regressed"}) == (decision.verdict, codes(decision))


def test_one_crash_alarms_and_a_second_reverts() -> None:
    doc = watch(probation_document(), metric=None)
    first = judge(doc)
    second = judge(watch(doc, metric=None))

    assert (Verdict.CONTINUE, 2 * CONFIRMATIONS) == (first.verdict, len(asked_arms(first)))
    assert "crashed" in first.reasons[0].message
    assert 2 == CRASHES
    assert (Verdict.REVERT, {"candidate_crashed"}) == (second.verdict, codes(second))


def test_one_crash_among_good_runs_is_survived() -> None:
    decision, _ = follow(watch(probation_document(), metric=None))

    assert Verdict.PERMANENT == decision.verdict


def test_a_crash_of_the_baseline_says_nothing_of_the_candidate() -> None:
    doc = probation_document()
    for _ in range(3):
        watch(doc, "baseline", metric=None)

    assert {"probation_goes_on"} == codes(judge(doc))


def test_a_sum_that_stands_high_at_the_end_is_checked_before_permanence() -> None:
    """The fall began late: too little for an alarm, too much to be taken for granted."""
    doc = probation_document(sd=PROBATION_MARGIN / 2)
    for _ in range(WANTED - 1):
        watch(doc)
    watch(doc, metric=CENTRE - 1.4 * PROBATION_MARGIN)
    decision = judge(doc)
    reached, limit = re.findall(r"[0-9.]+(?=, close|\))", decision.reasons[0].message)

    assert float(reached) < float(limit)
    assert (Verdict.CONTINUE, 2 * CONFIRMATIONS) == (decision.verdict, len(asked_arms(decision)))
    assert Verdict.REVERT == follow(copy.deepcopy(doc), loss=2 * PROBATION_MARGIN)[0].verdict
    assert Verdict.PERMANENT == follow(doc)[0].verdict


def without_reference() -> dict[str, Any]:
    doc = probation_document(history=0)
    arm(doc, "baseline")["runs"] = runs(doc, "baseline", "speed")
    return doc


def test_without_a_reference_a_baseline_run_is_asked_for() -> None:
    decision = judge(without_reference())

    assert ["baseline"] == asked_arms(decision)
    assert "compare" in (step_of(decision) or {})["why"]


def test_baseline_runs_are_asked_for_until_there_are_enough() -> None:
    made = follow(without_reference())[1]

    assert ["baseline"] * LEAST_REFERENCE == made[:LEAST_REFERENCE]
    assert ["compile"] * WANTED == made[LEAST_REFERENCE:]


def test_the_baseline_runs_of_a_check_are_a_reference_from_then_on() -> None:
    doc = watch(without_reference(), metric=None)
    for _ in range(CONFIRMATIONS):
        watch(doc, "baseline", confirm=True)
        watch(doc, confirm=True)

    assert ["compile"] == asked_arms(judge(doc))


def test_runs_that_nothing_could_be_compared_with_do_not_count() -> None:
    doc = without_reference()
    for _ in range(WANTED):
        watch(doc, metric=CENTRE - 50 * PROBATION_MARGIN)

    assert Verdict.CONTINUE == judge(doc).verdict
    assert ["baseline"] == asked_arms(judge(doc))


def test_a_metric_too_noisy_to_watch_is_told() -> None:
    decision = judge(probation_document(sd=2 * PROBATION_MARGIN))

    assert "probation_weak" in codes(decision)


@pytest.mark.parametrize("loss", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("mine", [1.0, 1.5])
def test_a_later_run_never_rewrites_an_earlier_alarm(loss: float, mine: float) -> None:
    """Judged after every run, the states only go forward, and a final one stays."""
    doc = alarmed()
    follow(doc, loss=loss * PROBATION_MARGIN, mine=mine)
    for _ in range(4):
        watch(doc, "baseline", metric=CENTRE - 3 * PROBATION_MARGIN)
        watch(doc, metric=CENTRE + PROBATION_MARGIN)
    orders = sorted(run["order"] for item in doc["arms"] for run in item["runs"]
                    if run["stage"] == "probation")  # fmt: skip
    found = [judge(until(doc, order)) for order in orders]
    final = [index for index, decision in enumerate(found) if decision.verdict is Verdict.REVERT]
    cleared = ["alarm_cleared" in codes(decision) for decision in found]

    assert not final or list(range(final[0], len(found))) == final
    assert len({found[index].reasons for index in final}) <= 1
    assert cleared[: final[0] if final else None] == sorted(cleared[: final[0] if final else None])


def until(doc: dict[str, Any], order: int) -> dict[str, Any]:
    """The evidence as it was when the run of that order came in."""
    earlier = copy.deepcopy(doc)
    for item in earlier["arms"]:
        item["runs"] = [r for r in item["runs"] if r["stage"] != "probation" or r["order"] <= order]
    return earlier
