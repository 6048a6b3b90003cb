"""The probation: alarms are checked before they revert, and silence is not proof."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from compilegate.domain.decision import Decision, FlagAction, Verdict
from compilegate.domain.judging.monitor import FIRST, LAST
from compilegate.domain.judging.probation import CRASHES, LEAST_REFERENCE
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

NEEDED = Policy().probation_runs
# Both arms see nearly the same weeks: a steady drift moves them apart by a third of a run.
IN_TURN = ["baseline", "compile", "compile", "baseline", "baseline", "compile"]
NORMAL = sample(60, CENTRE, PROBATION_SD)


def requested_arms(decision: Decision) -> list[str]:
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
    """Make every production run that is asked for, in a world of known truth, until it ends.

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


@pytest.mark.parametrize(
    ("world", "verdict", "code"),
    [
        ({}, "permanent", "probation_passed"),
        ({"loss": PROBATION_MARGIN}, "revert", "quality_regressed"),
        ({"loss": 2 * PROBATION_MARGIN}, "revert", "quality_regressed"),
        ({"mine": 1.4}, "revert", "speedup_gone"),
        ({"mine": 1.6}, "revert", "speedup_gone"),
        ({"mine": 1.4, "both": 2.0}, "revert", "speedup_gone"),
        # The data grew, or got harder: the candidate is as good as it ever was.
        *(({"both": grown}, "permanent", "probation_passed") for grown in (0.5, 1.1, 1.5, 5.0)),
        *(
            ({"both_lose": margins * PROBATION_MARGIN}, "permanent", "probation_passed")
            for margins in (1, 2, 5)
        ),
    ],
)
def test_a_probation_ends_by_what_is_true_of_the_candidate_alone(
    world: dict[str, float], verdict: str, code: str
) -> None:
    decision, made = follow(probation_document(), **world)

    assert verdict == decision.verdict
    assert code in codes(decision)
    assert decision.next is None
    assert ("baseline" in made) == (world not in ({}, {"both": 0.5}, {"both": 1.1}))


@pytest.mark.parametrize("needed", [4, 20])
def test_the_policy_says_how_many_runs_are_watched(needed: int) -> None:
    doc = probation_document(policy={"probation_runs": needed})

    assert ["compile"] * needed == follow(doc)[1]


def test_a_fall_of_two_margins_alarms_and_is_checked_in_turns() -> None:
    decision = judge(alarmed())

    assert (Verdict.CONTINUE, FlagAction.KEEP) == (decision.verdict, decision.flag_action)
    assert "alarm" in codes(decision)
    assert IN_TURN == requested_arms(decision)
    assert all(run["confirm"] for run in (step_of(decision) or {})["runs"])


@pytest.mark.parametrize(("share", "verdict"), [(0.3, "permanent"), (0.7, "revert")])
def test_a_check_tolerates_half_a_margin(share: float, verdict: str) -> None:
    assert verdict == follow(alarmed(), loss=share * PROBATION_MARGIN)[0].verdict


def undecided(share: float) -> tuple[Decision, list[list[str]]]:
    """A noisy metric, the candidate a share of a margin down in every pair; what was requested."""
    doc = probation_document(sd=PROBATION_MARGIN, policy={"probation_runs": 3 * LAST})
    for _ in range(6):
        watch(doc, metric=CENTRE - 2 * PROBATION_MARGIN)
    requests = []
    while "alarm" in codes(decision := judge(doc)):
        requests.append(requested_arms(decision))
        for name in requests[-1]:
            low = share * PROBATION_MARGIN * (name == "compile")
            watch(doc, name, metric=CENTRE - low, confirm=True)
    return decision, requests


@pytest.mark.parametrize(
    ("share", "code"), [(0.5, "alarm_cleared"), (0.6, "quality_regressed"), (0.4, "alarm_cleared")]
)
def test_pairs_that_say_little_are_followed_by_more_and_the_last_one_decides(
    share: float, code: str
) -> None:
    decision, requests = undecided(share)
    pair, turned = ["compile", "baseline"], ["baseline", "compile"]

    assert code in codes(decision)
    assert [IN_TURN, *[pair, turned] * LAST][: LAST - FIRST + 1] == requests


def test_a_check_that_an_earlier_judge_had_closed_goes_on() -> None:
    """Its runs are read; three pairs were enough then, whatever they said."""
    doc = probation_document(sd=PROBATION_MARGIN)
    for _ in range(6):
        watch(doc, metric=CENTRE - 2 * PROBATION_MARGIN)
    for name in IN_TURN:
        watch(doc, name, metric=CENTRE - 0.4 * PROBATION_MARGIN * (name == "compile"), confirm=True)
    watch(watch(doc))

    assert ["compile", "baseline"] == requested_arms(judge(doc))


def test_a_false_alarm_is_cleared_and_the_count_goes_on() -> None:
    decision, made = follow(alarmed())

    assert Verdict.PERMANENT == decision.verdict
    assert {"probation_passed", "alarm_cleared"} == codes(decision)
    assert NEEDED - 3 == made.count("compile")
    assert FIRST == made.count("baseline")


def test_a_check_half_done_requests_what_is_missing() -> None:
    doc = alarmed()
    watch(doc, "baseline", confirm=True)
    watch(doc, confirm=True)
    watch(doc, "baseline", confirm=True)

    assert ["baseline", "compile", "compile"] == requested_arms(judge(doc))


def test_a_baseline_that_fails_while_an_alarm_is_checked_runs_again() -> None:
    doc = alarmed()
    watch(doc, "baseline", confirm=True, metric=None)

    assert IN_TURN == requested_arms(judge(doc))


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

    assert (Verdict.CONTINUE, 2 * FIRST) == (first.verdict, len(requested_arms(first)))
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
    for _ in range(NEEDED - 1):
        watch(doc)
    watch(doc, metric=CENTRE - 1.4 * PROBATION_MARGIN)
    decision = judge(doc)
    reached, limit = re.findall(r"[0-9.]+(?=, close|\))", decision.reasons[0].message)

    assert float(reached) < float(limit)
    assert (Verdict.CONTINUE, 2 * FIRST) == (
        decision.verdict,
        len(requested_arms(decision)),
    )
    assert Verdict.REVERT == follow(copy.deepcopy(doc), loss=2 * PROBATION_MARGIN)[0].verdict
    assert Verdict.PERMANENT == follow(doc)[0].verdict


def without_reference(policy: dict[str, Any] | None = None) -> dict[str, Any]:
    doc = probation_document(history=0, policy=policy)
    arm(doc, "baseline")["runs"] = runs(doc, "baseline", "speed")
    return doc


def test_baseline_runs_are_requested_until_there_are_enough() -> None:
    made = follow(without_reference())[1]

    assert ["baseline"] * LEAST_REFERENCE == made[:LEAST_REFERENCE]
    assert ["compile"] * NEEDED == made[LEAST_REFERENCE:]


def test_the_baseline_runs_of_a_check_are_a_reference_from_then_on() -> None:
    doc = watch(without_reference({"probation_runs": LAST + 1}), metric=None)
    for _ in range(LAST):
        watch(doc, "baseline", confirm=True)
        watch(doc, confirm=True)

    assert ["compile"] == requested_arms(judge(doc))


@pytest.mark.parametrize(("baselines", "alarms"), [(1, False), (2, True)])
def test_one_baseline_run_far_off_does_not_outweigh_all_earlier_ones(
    baselines: int, alarms: bool
) -> None:
    doc = probation_document()
    for _ in range(baselines):
        watch(doc, "baseline", metric=CENTRE + 2 * PROBATION_MARGIN)
    for _ in range(3):
        watch(doc)

    assert alarms == ("alarm" in codes(judge(doc)))


def test_runs_that_nothing_could_be_compared_with_do_not_count() -> None:
    doc = without_reference()
    for _ in range(NEEDED):
        watch(doc, metric=CENTRE - 50 * PROBATION_MARGIN)

    assert Verdict.CONTINUE == judge(doc).verdict
    assert ["baseline"] == requested_arms(judge(doc))


def test_a_metric_too_noisy_to_watch_is_reported() -> None:
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
    decisions = [judge(until(doc, order)) for order in orders]
    final = [
        index for index, decision in enumerate(decisions) if decision.verdict is Verdict.REVERT
    ]
    cleared = ["alarm_cleared" in codes(decision) for decision in decisions]

    assert not final or list(range(final[0], len(decisions))) == final
    assert len({decisions[index].reasons for index in final}) <= 1
    assert cleared[: final[0] if final else None] == sorted(cleared[: final[0] if final else None])


def until(doc: dict[str, Any], order: int) -> dict[str, Any]:
    """The evidence as it was when the run of that order came in."""
    earlier = copy.deepcopy(doc)
    for item in earlier["arms"]:
        item["runs"] = [r for r in item["runs"] if r["stage"] != "probation" or r["order"] <= order]
    return earlier


def test_the_figures_that_these_tests_go_by() -> None:
    assert 3 == LEAST_REFERENCE
