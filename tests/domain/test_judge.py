"""What follows from the answers of the gates: their order, the verdict and what is said first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain.decision import LayerGain
from compilegate.domain.judging import judge
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.equivalence import State
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import TrialFinding, judge_trial
from compilegate.domain.judging.quality import MetricFinding, QualityFinding, QualityOutcome
from compilegate.domain.judging.speed import SpeedFinding, SpeedOutcome
from compilegate.domain.judging.whole_job import Agreement, Confirmation, Source, WholeJob
from compilegate.domain.reasons import Reason
from tests.domain.evidence_builder import GOOD, add_candidate, arm, document, runs

PASSED, TOO_SLOW, MORE_BLOCKS = (
    SpeedOutcome.PASSED, SpeedOutcome.TOO_SLOW, SpeedOutcome.MORE_BLOCKS,
)  # fmt: skip
HELD, WORSE, MORE_RUNS = QualityOutcome.HELD, QualityOutcome.WORSE, QualityOutcome.MORE_RUNS
TOP5 = {"metric": "top5", "goal": "maximize", "margin": 0.02}
Put = Callable[..., None]


def speed(outcome: SpeedOutcome, speedup: float = 1.5) -> SpeedFinding:
    return SpeedFinding(outcome, (math.log(speedup),) if speedup else (), 0.01, "why")


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts answers in the place of those that are asked for; without one, all promotes."""

    def put(**answers: Any) -> None:
        for name, answer in answers.items():
            asked = answer if callable(answer) else lambda *_, said=answer, **__: said
            monkeypatch.setattr(judge, name, asked)

    put(
        judge_speed=speed(PASSED), estimate_whole_job=None, design_of=Design(0, 12, 0.05),
        judge_quality_of=QualityFinding(HELD, "why"), next_quality=None,
        confirm=Confirmation(Agreement.CONFIRMED, False, 1.1, None),
    )  # fmt: skip
    return put


def trial(*others: str, on: str = "", doc: Any = None, **keys: Any) -> Evidence:
    doc = {**(doc or document(blocks=1)), "on_top_of": on, **keys}
    for name in (*others, *([on] if on else [])):
        add_candidate(doc, name, speedup=1.0)
    return read_evidence(doc)


def codes(finding: TrialFinding) -> list[str]:
    return [reason.code for reason in finding.reasons]


@pytest.mark.parametrize(
    ("outcomes", "verdict", "said"),
    [
        ((TOO_SLOW, PASSED), "stay_off", ["speedup_too_small", "speedup_proven"]),
        ((PASSED, TOO_SLOW), "stay_off", ["speedup_too_small", "speedup_proven"]),
        ((MORE_BLOCKS, SpeedOutcome.INCONCLUSIVE), "inconclusive",
         ["speed_inconclusive", "speed_needs_blocks"]),
        ((SpeedOutcome.INCONCLUSIVE, MORE_BLOCKS), "inconclusive",
         ["speed_inconclusive", "speed_needs_blocks"]),
        ((TOO_SLOW, SpeedOutcome.CRASHED), "stay_off", ["speedup_too_small", "candidate_crashed"]),
    ],
)  # fmt: skip
def test_of_a_layers_two_speeds_the_graver_decides_and_comes_first(put, outcomes, verdict, said):
    first, second = map(speed, outcomes)
    put(judge_speed=lambda _, seen: first if seen.on_top_of else second)
    finding = judge_trial(trial(on="on"))

    assert (verdict, said, first) == (finding.verdict, codes(finding), finding.lead.speed)


def test_candidates_are_taken_by_what_they_save_and_blocks_asked_of_those_before_a_proof(put):
    speeds = {
        "compile": (MORE_BLOCKS, 1.1), "first": (MORE_BLOCKS, 1.6), "slow": (TOO_SLOW, 1.5),
        "open": (MORE_BLOCKS, 1.4), "proven": (PASSED, 1.3), "broken": (SpeedOutcome.CRASHED, 0.0),
        "quick": (SpeedOutcome.CRASHED, 1.7),
    }  # fmt: skip
    put(judge_speed=lambda one, _: speed(*speeds[one.name]))
    evidence = trial(*list(speeds)[1:])
    finding = judge_trial(evidence)

    said = ["speed_needs_blocks", "candidate_crashed"]
    assert ("first", said) == (finding.lead.arm.name, codes(finding))
    assert ("baseline", "first", "open") == finding.next.arms
    speeds = {name: (TOO_SLOW, speedup * 0.6) for name, (_, speedup) in speeds.items()}
    order = ["quick", "first", "slow", "open", "proven", "compile", "broken"]
    assert order == [one.arm.name for one in judge_trial(evidence).findings]


@pytest.mark.parametrize(
    ("answers", "verdict", "said"),
    [
        ((PASSED, State.FAILED, None, 0.0), "stay_off", ["not_equivalent", "speedup_proven"]),
        ((TOO_SLOW, State.FAILED, None, 0.0), "stay_off", ["speedup_too_small", "not_equivalent"]),
        ((PASSED, None, "numerics_wrong", 2.0), "stay_off", ["numerics_wrong", "speedup_proven"]),
        ((MORE_BLOCKS, None, None, 1.0), "continue", ["speed_needs_blocks"]),
        ((MORE_BLOCKS, None, None, 1.1), "continue", ["speed_needs_blocks", "numerics_differ"]),
        ((MORE_BLOCKS, None, "numerics_differ", 0.0), "continue",
         ["speed_needs_blocks", "numerics_differ"]),
    ],
)  # fmt: skip
def test_a_wrong_arithmetic_decides_and_another_one_is_said(put, answers, verdict, said):
    outcome, state, older, share = answers
    worst = SimpleNamespace(share_of_bound=share, words="words")
    put(
        judge_speed=speed(outcome),
        equivalence_of=SimpleNamespace(state=state, reason="why", worst=worst),
        numerics_of=SimpleNamespace(code=older, words="words"),
    )
    finding = judge_trial(trial())

    assert (verdict, said) == (finding.verdict, codes(finding))


def test_a_candidate_with_too_few_runs_left_gives_way_to_the_next(put):
    speeds = {"fast": (PASSED, 2.0), "dear": (TOO_SLOW, 2.5), "compile": (PASSED, 1.5)}
    design = Design(0, 12, 0.05)
    put(
        judge_speed=lambda one, _: speed(*speeds[one.name]),
        design_of=lambda _, one=None: None if one and one.name == "fast" else design,
    )
    finding = judge_trial(trial("fast", "dear"))
    said = ["speedup_proven", "quality_held", "speedup_too_small", "saving_below_trial_cost",
            "speedup_proven"]  # fmt: skip

    assert ("promote", "compile", said) == (finding.verdict, finding.lead.arm.name, codes(finding))


GUARDED = [
    (HELD, HELD, "promote", ["speedup_proven", "guardrail_held", "quality_held"]),
    (HELD, WORSE, "stay_off", ["guardrail_worse", "quality_held", "speedup_proven"]),
    (WORSE, HELD, "stay_off", ["quality_worse", "guardrail_held", "speedup_proven"]),
    (MORE_RUNS, QualityOutcome.INCONCLUSIVE, "inconclusive",
     ["guardrail_inconclusive", "quality_needs_runs", "speedup_proven"]),
    (QualityOutcome.CRASHED, None, "stay_off", ["candidate_crashed", "speedup_proven"]),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "verdict", "said"), GUARDED)
def test_of_several_metrics_the_gravest_decides_and_comes_first(put, first, second, verdict, said):
    put(
        judge_quality_of=QualityFinding(first, "why"),
        judge_metric=lambda one, seen, *_: MetricFinding(seen, one, QualityFinding(second, "why")),
    )
    finding = judge_trial(trial(quality={**document()["quality"], "guardrails": [TOP5]}))

    assert (verdict, said) == (finding.verdict, codes(finding))
    assert len(said) == 2 + len(finding.lead.guardrails)


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (False, False)])
def test_the_look_of_any_metric_may_lack_baseline_runs_alone(put, first, second):
    asked: list[bool] = []
    lacks = QualityFinding(MORE_RUNS, "why", lacks_baseline_only=second)
    put(
        judge_quality_of=QualityFinding(MORE_RUNS, "why", lacks_baseline_only=first),
        judge_metric=lambda one, seen, *_: MetricFinding(seen, one, lacks),
        next_quality=lambda *_, lacks_baseline_only: asked.append(lacks_baseline_only),
    )
    judge_trial(trial(quality={**document()["quality"], "guardrails": [TOP5]}))

    assert [first or second] == asked


# A whole job 1.05 times as fast, 1.04 by full runs and 1.3 by blocks, at 1.2 times the price.
BLOCKS, FULL = (Source(math.log(one), 0.0, 9, 3, 3) for one in (1.3, 1.04))
WHOLE = WholeJob(math.log(1.05), 0.0, 9, 0.0, 1.0, 0.05, BLOCKS, FULL)
BETWEEN, MISSING = "1.05x (1.05 to 1.05)", "the wall clock of full runs is missing"


@pytest.mark.parametrize(
    ("agreement", "whole", "code", "text"),
    [
        (Agreement.UNPROVEN, WHOLE, "full_run_unproven", f"{BETWEEN}, not proven above 1.10x"),
        (Agreement.BELOW, WHOLE, "full_run_disagrees",
         f"{BETWEEN}, below 1.10x: they were 1.04x, although the short blocks were faster"),
        (Agreement.BELOW, replace(WHOLE, predicted=None), "full_run_disagrees",
         f"{BETWEEN}, below 1.10x"),
        (Agreement.IMPLAUSIBLE, WHOLE, "full_run_implausible",
         "1.04x, and the short blocks leave about 1.30x possible: they left something out"),
        (Agreement.MAY_LOSE, WHOLE, "saving_unproven",
         f"{BETWEEN}: a run may cost up to 14% more than today's"),
        (Agreement.UNMEASURED, WHOLE, "full_run_unmeasured", MISSING),
        (Agreement.UNPROVEN, replace(WHOLE, measured=None), "full_run_unmeasured", MISSING),
        (Agreement.UNPROVEN, None, "full_run_unmeasured", MISSING),
    ],
)  # fmt: skip
def test_why_whole_jobs_do_not_confirm_is_said_first(put, agreement, whole, code, text):
    doc = document(blocks=1)
    arm(doc)["usd_per_hour"] = 1.2 * doc["usd_per_hour"]
    put(confirm=Confirmation(agreement, False, 1.1, None), estimate_whole_job=whole)
    jobs = "" if text == MISSING else "full jobs, start-up and evaluation included, are "

    expected = Reason(code, f"compile: {jobs}{text}", "compile")
    assert expected == judge_trial(trial(doc=doc)).reasons[0]


@pytest.mark.parametrize(
    ("n_max", "seconds", "disproved", "short", "verdict"),
    [
        (5, 60.0, False, None, "continue"), (3, 60.0, False, None, "inconclusive"),
        (5, None, False, None, "inconclusive"), (5, 60.0, True, None, "inconclusive"),
        (5, 60.0, False, "target_few_runs", "continue"),
        (5, 60.0, False, "target_missed", "inconclusive"),
    ],
)  # fmt: skip
def test_more_runs_are_made_where_they_may_still_confirm(
    put, n_max, seconds, disproved, short, *, verdict
):
    doc = document(metrics=GOOD)
    runs(doc)[0]["wall_seconds"] = seconds
    put(
        design_of=Design(0, n_max, 0.05),
        confirm=Confirmation(Agreement.UNPROVEN, disproved, 1.1, None),
        estimate_whole_job=WHOLE,
        target_problem=short and Reason(short, "why", "compile"),
    )
    finding = judge_trial(trial(doc=doc))

    assert (verdict, short or "full_run_unproven") == (finding.verdict, codes(finding)[0])


def test_whole_jobs_confirm_a_layer_also_against_what_is_on(put):
    unproven = Confirmation(Agreement.UNPROVEN, False, 1.1, None)
    confirmed = replace(unproven, agreement=Agreement.CONFIRMED)
    put(
        confirm=lambda _, seen, __: confirmed if seen.on_top_of else unproven,
        estimate_whole_job=WHOLE,
    )
    finding = judge_trial(trial(on="on"))

    assert "continue" == finding.verdict
    assert finding.reasons[0].message.startswith("compile on top of on: full jobs")


def test_each_metric_is_refused_by_its_own_past(put):
    asked: list[int] = []
    put(refuse_before_spending=lambda _, own: asked.append(own.history))
    guarded = {"history": [2.5] * 3, "guardrails": [{**TOP5, "history": [0.9] * 7}]}
    judge_trial(trial(doc=document(blocks=0), quality={**document()["quality"], **guarded}))

    assert [3, 7] == asked


def test_a_trial_without_runs_left_is_refused_before_its_blocks_are_looked_at(put):
    put(design_of=None)
    doc = document(blocks=1)
    runs(doc, "baseline", "speed")[0].update(finished=False, step_seconds=[])

    assert ["saving_below_trial_cost"] == codes(judge_trial(trial(doc=doc)))


OWN = "policy.quality_runs is hybrid, but the trial ran its own full runs"


@pytest.mark.parametrize(
    ("asked", "why", "said"),
    [(None, None, []), ("shadow", "why", []), ("hybrid", None, [OWN]),
     ("hybrid", "not registered", [f"{OWN}: not registered"])],
)  # fmt: skip
def test_a_mode_that_policy_did_not_ask_for_and_an_unknown_start_are_said(put, asked, why, said):
    put(unknown_start=lambda *arms: Reason("start_unknown", " ".join(one.name for one in arms)))
    plan = {"asked_quality_runs": asked, "runs_as_shadow_because": why}
    finding = judge_trial(trial(plan=plan))

    assert ["speedup_proven", "quality_held"] == codes(finding)[:2]
    assert [*said, "compile baseline"] == [reason.message for reason in finding.reasons[2:]]


def test_a_decision_has_what_was_found_of_the_candidate_that_it_is_about(put):
    layered, reason = replace(WHOLE, log=math.log(1.02)), Reason("start_unknown", "beside")
    put(
        estimate_whole_job=lambda _, seen: WHOLE if seen.on_top_of else layered,
        evaluation_of=SimpleNamespace(reasons=(reason,), figures="evaluated"),
        spread_reasons=(replace(reason, message="spread"),),
        control_figures=lambda one, _: one.name,
    )
    evidence = trial(on="on")
    controls = tuple(replace(evidence.baseline, name=name) for name in ("one", "other"))
    decision = judge.judge(replace(evidence, history_left_out=2, controls=controls))

    assert LayerGain("on", pytest.approx(1.02), pytest.approx((1.02, 1.02))) == decision.layer
    assert ("evaluated", ("one", "other")) == (decision.quality.evaluation, decision.controls)
    assert ["beside", "2 past", "spread"] == [m[:6] for m in decision.messages[3:]]
