"""The probation: alarms are checked before they revert, and silence is not proof."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from compilegate.domain.decision import Decision, FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import FIRST, LAST
from compilegate.domain.judging.probation import LEAST_REFERENCE, computable, judge_probation
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
    words,
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


def without_reference(policy: dict[str, Any] | None = None) -> dict[str, Any]:
    doc = probation_document(history=0, policy=policy)
    arm(doc, "baseline")["runs"] = runs(doc, "baseline", "speed")
    return doc


def made(doc: dict[str, Any], production: str) -> dict[str, Any]:
    """With these runs: ``c-2!`` is the candidate's, two margins down, to check an alarm.

    ``bx`` is one of the baseline that crashed.
    """
    for run in production.split():
        who, off = {"b": "baseline", "c": "compile"}[run[0]], run[1:].rstrip("!")
        metric = None if off == "x" else CENTRE + float(off or 0) * PROBATION_MARGIN
        watch(doc, who, metric=metric, confirm=run.endswith("!"))
    return doc


ALARM, GOES_ON, FALL = {"alarm"}, {"probation_goes_on"}, "c-2 c-2 c-2 "
CHECK = "b! c-.4! c-.4! b! b! c-.4! "
STANDS: dict[str, tuple[dict[str, Any], set[str], list[str]]] = {
    "nothing yet": (probation_document(), GOES_ON, ["compile"]),
    "a fall of two margins": (made(probation_document(), FALL), ALARM, IN_TURN),
    "a check half done": (
        made(probation_document(), FALL + "b! c! b!"), ALARM, ["baseline", "compile", "compile"]),
    "a baseline that fails in the check": (
        made(probation_document(), FALL + "bx!"), ALARM, IN_TURN),
    "one that fails twice in it": (
        made(probation_document(), FALL + "c! c! c! bx! bx!"), ALARM, ["baseline"] * FIRST),
    "good runs that check nothing": (
        made(probation_document(), FALL + "c9 c9 c9 c9"), ALARM, IN_TURN),
    "one that fails all through the check": (
        made(probation_document(), FALL + "c! c! c! bx! bx! bx!"),
        {"probation_goes_on", "alarm_cleared"}, ["compile"]),
    "one that fails before the check's last run": (
        made(probation_document(), FALL + "b! b! c! c! c! bx! bx! bx!"),
        {"probation_goes_on", "alarm_cleared"}, ["compile"]),
    "one that fails in a check that needed more pairs": (
        made(probation_document(sd=PROBATION_MARGIN),
             2 * FALL + "b! b! c-.4! c-.4! c-.4! bx! bx! bx!"),
        {"probation_goes_on", "alarm_cleared"}, ["compile"]),
    "a check that an earlier judge had closed after three pairs": (
        made(probation_document(sd=PROBATION_MARGIN), 2 * FALL + CHECK + "c c"),
        ALARM, ["compile", "baseline"]),
    "a crash": (made(probation_document(), "cx"), ALARM, IN_TURN),
    "a second crash": (made(probation_document(), "cx cx"), {"candidate_crashed"}, []),
    "crashes of the baseline": (made(probation_document(), "bx bx bx"), GOES_ON, ["compile"]),
    "one baseline run far off": (made(probation_document(), "b2 c c c"), GOES_ON, ["compile"]),
    "two of them": (made(probation_document(), "b2 b2 c c c"), ALARM, IN_TURN),
    "no baseline run to compare with": (
        made(without_reference(), "c-50 " * NEEDED),
        {"probation_goes_on", "quality_not_watched", "speed_not_watched"}, ["baseline"]),
    "the baseline runs of a check as a reference": (
        made(without_reference({"probation_runs": LAST + 1}), "cx " + "b! c! " * LAST),
        {"probation_goes_on", "alarm_cleared"}, ["compile"]),
}  # fmt: skip


@pytest.mark.parametrize("what", STANDS)
def test_what_production_has_run_decides_what_is_asked_for_next(what):
    doc, expected, asked = STANDS[what]
    decision = judge(doc)
    step = step_of(decision) or {"runs": []}
    why = {"baseline": "a baseline run to compare with"}.get(
        "".join(asked),
        "to check the alarm" if expected == ALARM else "the next scheduled production run",
    )

    assert expected == codes(decision)
    assert not asked or why == step["why"]
    # What got worse: a loss that is minimised rises.
    assert not any(" fell" in message for message in decision.messages)
    assert (asked, "probation") == (requested_arms(decision), decision.stage)
    assert all(run["confirm"] == ("alarm" in expected) for run in step["runs"])
    assert (Verdict.CONTINUE if asked else Verdict.REVERT) == decision.verdict
    assert (FlagAction.KEEP if asked else FlagAction.DISABLE) == decision.flag_action


def test_a_check_looks_at_what_raised_the_alarm_after_each_of_its_pairs():
    doc, _, _ = STANDS["a check that an earlier judge had closed after three pairs"]

    checks = judge_probation(read_evidence(doc), None).checks
    assert [("quality", FIRST)] == [(one.monitor, one.pairs) for one in checks]


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
def test_a_probation_ends_by_what_is_true_of_the_candidate_alone(world, verdict, code):
    decision, made = follow(probation_document(), **world)

    assert verdict == decision.verdict
    assert code in codes(decision)
    # The candidate was 1.4 times as fast.
    assert ("jobs are only 0.8" in words(decision)) == (world == {"mine": 1.6})
    assert decision.next is None
    assert decision.saving is not None
    assert ("baseline" in made) == (world not in ({}, {"both": 0.5}, {"both": 1.1}))


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
def test_pairs_that_say_little_are_followed_by_more_and_the_last_one_decides(share, code):
    decision, requests = undecided(share)
    pair, turned = ["compile", "baseline"], ["baseline", "compile"]

    assert code in codes(decision)
    assert [IN_TURN, *[pair, turned] * LAST][: LAST - FIRST + 1] == requests


@pytest.mark.parametrize(
    ("applied", "verdict"),
    [([False], "invalid"), ([False, True], "continue"), ([False, True, None], "invalid"),
     ([True, False, None, True], "continue")],
)  # fmt: skip
def test_more_than_half_of_the_runs_without_the_change_decide_nothing(applied, verdict):
    doc = watch(probation_document(), "baseline", applied=None)
    for one in applied:
        watch(doc, applied=one)
    decision = judge(doc)

    goes_on = GOES_ON if verdict == "continue" else set()
    assert (verdict, {"treatment_not_applied"} | goes_on) == (decision.verdict, codes(decision))
    without = sum(one is not True for one in applied)
    assert f"{without} production runs ran without the change" in words(decision)


def test_a_false_alarm_is_cleared_and_the_count_goes_on():
    decision, made = follow(alarmed())

    assert Verdict.PERMANENT == decision.verdict
    assert {"probation_passed", "alarm_cleared"} == codes(decision)
    assert "1 alarm checked and not confirmed" in decision.messages
    assert NEEDED - 3 == made.count("compile")
    assert FIRST == made.count("baseline")


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


def test_a_calm_metric_is_not_on_trial_because_the_jobs_grew():
    assert {"alarm_cleared", "probation_goes_on"} == codes(judge(grown(0.6)))


def test_a_metric_that_was_suspicious_too_is():
    decision = judge(grown(0.8, before=0.75))

    assert (Verdict.REVERT, {"quality_regressed"}) == (decision.verdict, codes(decision))


def test_one_crash_among_good_runs_is_survived():
    decision, _ = follow(watch(probation_document(), metric=None))

    assert Verdict.PERMANENT == decision.verdict


def test_a_sum_that_stands_high_at_the_end_is_checked_before_permanence():
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


def test_baseline_runs_are_requested_until_there_are_enough():
    made = follow(without_reference())[1]

    assert ["baseline"] * LEAST_REFERENCE == made[:LEAST_REFERENCE]
    assert ["compile"] * NEEDED == made[LEAST_REFERENCE:]


def test_a_metric_too_noisy_to_watch_is_reported_beside_what_is_on():
    decision = judge(probation_document(sd=2 * PROBATION_MARGIN))

    assert "probation_weak" in codes(decision)
    arms = [one.name for one in decision.arms]
    assert ("compile", ["baseline", "compile"]) == (decision.candidate, arms)
    assert pytest.approx(1.4, rel=0.03) == decision.speedup.estimate


@pytest.mark.parametrize("loss", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("mine", [1.0, 1.5])
def test_a_later_run_never_rewrites_an_earlier_alarm(loss, mine):
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


# Runs that the judge cannot request, or cannot fully see.


def without_wall_clock(doc: dict[str, Any], runs_made: int, loss: float = 0.0) -> Decision:
    for run in runs(doc):
        run["wall_seconds"] = None
    for number in range(runs_made):
        decision = judge(doc)
        if decision.verdict is not Verdict.CONTINUE:
            return decision
        name = requested_arms(decision)[0]
        confirm = (step_of(decision) or {})["runs"][0]["confirm"]
        metric = NORMAL[number] - (loss if name != "baseline" else 0.0)
        watch(doc, name, metric=metric, confirm=confirm)
        runs(doc, name, "probation")[-1]["wall_seconds"] = None
    return judge(doc)


def test_a_job_that_records_no_wall_clock_is_never_permanent_and_reported():
    decision = without_wall_clock(without_reference(), 40)
    reason = next(r for r in decision.reasons if r.code == "speed_not_watched")

    assert Verdict.CONTINUE == decision.verdict
    assert ["compile"] == requested_arms(decision)
    assert "in 37 production runs" in reason.message


def test_a_job_that_records_no_wall_clock_is_still_watched_on_quality():
    decision = without_wall_clock(probation_document(), 40, loss=2 * PROBATION_MARGIN)

    assert Verdict.REVERT == decision.verdict


def test_runs_without_a_wall_clock_do_not_count_and_the_others_do():
    doc = probation_document(policy={"probation_runs": 4})
    for number in range(7):
        watch(doc, metric=NORMAL[number])
        if number % 2:
            runs(doc, "compile", "probation")[-1]["wall_seconds"] = None

    assert {"probation_passed", "speed_not_watched"} == codes(judge(doc))


def by_team(doc: dict[str, Any], runs_made: int, loss: float) -> tuple[Decision, int]:
    """A team's own pipeline: every sixth job is a baseline, the arms do not take turns."""
    for number in range(1, runs_made + 1):
        mine = number % 6 > 0
        metric = NORMAL[number % 60] - (loss if mine else 0.0)
        watch(doc, "compile" if mine else "baseline", metric=metric, launched_by="team")
        decision = judge(doc)
        if decision.verdict is not Verdict.CONTINUE:
            return decision, number
    return decision, runs_made


@pytest.mark.parametrize("margins", [1, 2])
def test_a_fall_in_jobs_that_a_team_launches_is_reverted(margins):
    decision, runs_made = by_team(probation_document(), 60, margins * PROBATION_MARGIN)

    assert Verdict.REVERT == decision.verdict
    assert {"quality_regressed"} == codes(decision)
    assert runs_made <= 30


def test_a_teams_job_before_an_alarm_checks_nothing():
    doc = probation_document()
    for _ in range(FIRST):
        watch(doc, "baseline", launched_by="team")
    for _ in range(3):
        watch(doc, metric=CENTRE - 2 * PROBATION_MARGIN, launched_by="team")

    assert FIRST == requested_arms(judge(doc)).count("baseline")


@pytest.mark.parametrize("error", [OverflowError, ValueError])
def test_figures_that_nothing_can_be_computed_from_are_refused(error):
    with pytest.raises(InvalidEvidenceError, match="beyond what can be computed"), computable():
        raise error
