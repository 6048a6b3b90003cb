"""The quality gate: a loss of the margin is ruled out, proven, or unprovable."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.decision import IdenticalRuns, Verdict
from compilegate.domain.judging import quality
from compilegate.domain.judging.comparison import Comparison, Samples
from compilegate.domain.judging.design import FAIR, Design, runs_for_one_look, spent
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.identity import Identity
from compilegate.domain.judging.quality import (
    WORSE_LEVEL,
    MetricFinding,
    QualityFinding,
    QualityOutcome,
    chance_of_passing,
    design_of,
    first_runs,
    judge_full_runs,
    judge_quality,
    judge_quality_of,
    quality_figures,
    refuse_before_spending,
    underpowered,
)
from compilegate.domain.workload.quality import Metric
from tests.domain.evidence_builder import (
    GOOD,
    add_candidate,
    arm,
    document,
    judge,
    quality_run,
    runs,
    sample,
    step_of,
)

MARGIN = 0.02


def gate(
    candidate: list[float],
    baseline: list[float],
    history: tuple[float, ...] = (),
    margin: float = MARGIN,
    **changes: Any,
) -> QualityFinding:
    design = Design(**{"history": len(history), "n_max": 12, "error": 0.05, **changes})
    return judge_quality(Samples(candidate, baseline, history), margin, design)


def pair(n: int, loss: float, ours: float, theirs: float | None = None) -> tuple[Any, Any]:
    """As many runs of each arm: the loss and the spreads in margins."""
    spread = ours if theirs is None else theirs
    return sample(n, -loss * MARGIN, ours * MARGIN), sample(n, 0.0, spread * MARGIN)


# The one-sided t test at the level of the look at 5, by scipy: the spread that it just bears.
BEARS = 1 / (stats.t.isf(spent(5, 12, 0.05), 8) * math.sqrt(2 / 5))
PAST = tuple(sample(8, 0.0, 0.2 * MARGIN))
HELD, WORSE, MORE = QualityOutcome.HELD, QualityOutcome.WORSE, QualityOutcome.MORE_RUNS
GATES: dict[str, tuple[tuple[Any, ...], QualityOutcome]] = {
    "a spread that the look just bears": (pair(5, 0, 0.999 * BEARS), HELD),
    "a little more": (pair(5, 0, 1.001 * BEARS), MORE),
    "a proven loss below the margin, before it is held": (pair(5, 0.8, 0.3), WORSE),
    "a loss that would be proven at the level of a promotion": (pair(5, 0.8, 0.45), MORE),
    **{
        f"a calm metric {loss} margins off": (pair(5, loss, 0.0005), outcome)
        for loss, outcome in ((0, HELD), (0.9, HELD), (1.1, WORSE), (2, WORSE), (-3, HELD))
    },
    "one run each beside a long history, a large loss": (([-0.2], [0.0], PAST), WORSE),
    "a small one": (([-0.004], [0.0], PAST), MORE),
    "a gain": (([0.2], [0.0], PAST), MORE),
    "no baseline run of the same weeks": (([-0.2], [], PAST), MORE),
    "too few degrees of freedom": (([0.0, 0.001], [0.0]), MORE),
    "no degree of freedom": (([0.0, 0.001], []), MORE),
    "a disaster between looks": (
        ([*sample(3, -0.04, 0.010), -0.04], sample(4, 0.0, 0.005)), WORSE),
    "a margin that is hardly proven any more": (
        pair(8, 1, 1.2), QualityOutcome.INCONCLUSIVE),
    "one that may be": (pair(5, 0, 1.0), MORE),
    "the last look without a proof": (pair(12, 0.5, 0.5, 1.0), QualityOutcome.INCONCLUSIVE),
    "a look whose runs gave one metric, and a later one that did not": (
        ([0.5, 0.5], [0.5, 0.5, 0.505]), QualityOutcome.INCONCLUSIVE),
    "large metrics that agree to their last digits, and a later one of another size": (
        ([1e6, 1e6 + 1e-7, 0.0], [1e6], (1.0, 1.0)), QualityOutcome.INCONCLUSIVE),
    "metrics that differ by a little more than copies do": (
        ([1e-12, 0.0, -1e-12], [0.0, 0.0], (), 1.0), HELD),
    "two calm arms": (pair(3, 0, 0.1), HELD),
    "a candidate less stable than the baseline": (pair(3, 0, 1.0, 0.1), MORE),
    **{
        f"a history {drift / MARGIN:g} margins off today": (
            (*pair(5, 0, 0.25), tuple(sample(12, drift, 0.005))), HELD)
        for drift in (0.4, 0.1, 0.05)
    },
}  # fmt: skip


@pytest.mark.parametrize("what", GATES)
def test_the_gate_decides_on_what_the_runs_show(what):
    runs_of, outcome = GATES[what]

    assert outcome == gate(*runs_of).outcome


CALM = tuple(sample(8, 0.0, 1e-5))


@pytest.mark.parametrize(
    ("loss", "history", "outcome"),
    [
        # Half of the margin or more, beyond doubt.
        (0.6, CALM, WORSE),
        (0.5, CALM, WORSE),
        (0.4, CALM, MORE),
        # On three degrees of freedom at least, and a spread.
        (10, tuple(sample(4, 0.0, 1e-5)), WORSE),
        (10, tuple(sample(3, 0.0, 1e-5)), MORE),
        (10, (0.0,) * 8, MORE),
    ],
)
def test_before_a_look_only_a_loss_beyond_doubt_is_one(loss, history, outcome):
    assert outcome == gate([-loss * MARGIN], [0.0], history).outcome


@pytest.mark.parametrize(("metrics", "outcome"), [(1, WORSE), (2, MORE)])
def test_several_metrics_share_the_chance_of_a_false_loss(metrics, outcome):
    """Losses at 0.0004 before a look, of 0.0005, and at 0.8 of what the look at 5 may spend."""
    spread, df = stdev(PAST), len(PAST) - 1
    lost = stats.t.isf(0.0004, df) * spread * math.sqrt(2)
    assert outcome == gate([-lost], [0.0], PAST, MARGIN, metrics=metrics).outcome

    share = stats.t.isf(0.8 * spent(5, 12, WORSE_LEVEL), 8) * math.sqrt(2 / 5)
    at_look = pair(5, 0.8, 0.8 / share)
    assert outcome == gate(*at_look, metrics=metrics).outcome
    # What promotes is not shared.
    assert HELD == gate(*pair(5, 0, 0.999 * BEARS), metrics=metrics).outcome


def test_a_small_loss_is_none_however_strictly_a_promotion_is_proven():
    assert WORSE != gate(*pair(5, 0.4, 0.1), error=1e-6).outcome
    # Of half a margin, at 0.0007 of the 0.00105 that the look at 3 may spend.
    half = [-1.15625, -1.0, -0.84375], [-0.15625, 0.0, 0.15625]
    assert WORSE == gate(*half, margin=2.0, error=1e-6).outcome


def test_a_finding_says_what_its_runs_would_prove_and_how_many_it_takes():
    design = Design(history=0, n_max=12, error=0.05)
    two, five = gate(*pair(2, 0, 0.01)), gate(*pair(5, 0, 1.2))

    for finding, n in ((two, 2), (five, 5)):
        compared = finding.comparison
        assert compared is not None
        assert pytest.approx(design.provable_margin(n) * compared.spread) == finding.provable_margin
        assert finding.runs_needed == runs_for_one_look(
            compared.spread / MARGIN, history=0, level=design.level
        )
        assert (n, spent(n, 12, 0.05)) == (finding.look, finding.level)
    assert "significantly worse by 0.03" == gate(*pair(5, 1.5, 0.1)).reason
    assert None is gate([-0.2], [0.0], PAST).interval


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (5, 8), (3, 20), (14, 14)])
def test_the_chance_of_passing_is_that_of_the_last_look_at_todays_trend(ours, theirs):
    design = Design(history=0, n_max=12, error=0.05)
    compared = Comparison(-0.005, 0.02, 9.0, ours, theirs)

    trend = -0.005 * min(1, ours / 12)
    error = 0.02 * math.sqrt(1 / 12 + 1 / max(theirs, 12))
    bar = stats.t.isf(spent(12, 12, 0.05), 9 + 2 * (12 - ours))
    expected = stats.norm.cdf((trend + MARGIN) / error - bar)
    assert pytest.approx(expected) == chance_of_passing(compared, MARGIN, design)


@pytest.mark.parametrize(("chance", "given_up"), [(0.15, False), (0.149, True)])
def test_a_candidate_is_given_up_below_a_chance_of_15_percent(monkeypatch, chance, given_up):
    monkeypatch.setattr(quality, "chance_of_passing", lambda *_: chance)

    assert given_up is (gate(*pair(5, 0, 1.0)).outcome is QualityOutcome.INCONCLUSIVE)


def full_runs(**changes: list[dict[str, Any]]) -> tuple[Arm, Evidence]:
    """Two runs of each arm, or these, one arm's after the other's."""
    doc = document(metrics={"baseline": [2.5], "compile": [2.5]})
    place = 0
    for name in dict.fromkeys((*changes, "baseline", "compile")):
        own = arm(doc, name)["runs"]
        own[:] = [run for run in own if run["stage"] == "speed"]
        for n, change in enumerate(changes.get(name, [{}, {}])):
            own.append({**quality_run(place, 17 + n, 2.5 + n / 100, 60.0), **change})
            place += 1
    evidence = read_evidence(doc)
    return evidence.candidates[0], evidence


DESIGN = Design(history=0, n_max=12, error=0.05)
FAILED: dict[str, Any] = {"finished": False, "metric": None}


@pytest.mark.parametrize(
    ("failed", "done", "nothing"),
    [(1, 0, False), (2, 0, True), (2, 1, True), (2, 2, False), (3, 2, True)],
)
def test_a_baseline_that_mostly_fails_is_nothing_to_compare_with(failed, done, nothing):
    finding = judge_full_runs(*full_runs(baseline=[FAILED] * failed + [{}] * done), DESIGN)

    assert nothing is (finding.outcome is QualityOutcome.INCONCLUSIVE)
    assert nothing is finding.reason.startswith(f"{failed} full runs of the baseline failed")


SAME: dict[str, Any] = {"seed": 17}


@pytest.mark.parametrize(
    ("ours", "theirs", "repeating"),
    [
        ([SAME, SAME], [{}, {}], "compile"),
        ([{}], [SAME, SAME], "baseline"),
        ([SAME, SAME, {}, {}], [{}], None),
        ([SAME, SAME], [SAME, SAME], "compile and baseline"),
        ([{}, {}], [{**SAME, "mode": "production"}] * 2, None),
    ],
)
def test_an_arm_of_which_half_the_runs_repeat_a_seed_shows_nothing(ours, theirs, repeating):
    finding = judge_full_runs(*full_runs(compile=ours, baseline=theirs), DESIGN)

    assert (repeating is not None) is (finding.outcome is QualityOutcome.SEEDS_REPEATED)
    assert repeating is None or f"runs of {repeating} repeat a seed" in finding.reason


@pytest.mark.parametrize(
    ("ours", "theirs", "lacks"), [(1, 0, False), (2, 0, True), (5, 2, True), (5, 3, False)]
)
def test_a_look_may_lack_baseline_runs_alone(ours, theirs, lacks):
    finding = judge_full_runs(*full_runs(compile=[{}] * ours, baseline=[{}] * theirs), DESIGN)

    assert lacks is finding.lacks_baseline_only
    assert lacks is finding.reason.startswith("of ")


def test_one_full_run_that_failed_is_a_crash():
    finding = judge_full_runs(*full_runs(compile=[FAILED, {}]), DESIGN)

    assert QualityOutcome.CRASHED == finding.outcome
    few = gate([0.0, 0.001], [0.0])
    assert "too few runs to measure how much it varies" == few.reason


@pytest.mark.parametrize(("past", "first"), [(4, 2), (5, 1), (6, 1)])
def test_a_long_history_stands_for_a_first_run(past, first):
    _, evidence = full_runs()
    known = replace(evidence.quality, history=(0.9,) * past)

    assert first == first_runs(replace(evidence, quality=known))


def test_a_design_is_that_of_one_candidate_or_of_the_one_that_may_use_most(monkeypatch):
    doc = document(blocks=1)
    add_candidate(doc, "other", speedup=1.3)
    evidence = read_evidence(doc)
    monkeypatch.setattr(quality, "rho_of", lambda arm, _: 0.5 if arm.name == "other" else 0.9)
    rho = {one: design_of(evidence, evidence.arm(one)).rho for one in ("compile", "other")}

    metric = Metric("top5", "maximize", 0.02)
    guarded = replace(evidence, quality=replace(evidence.quality, guardrails=(metric,) * 2))

    assert {"compile": 0.9, "other": 0.5} == rho
    assert (1, 3) == (design_of(evidence).metrics, design_of(guarded).metrics)
    assert 0.5 == design_of(evidence).rho


def test_without_any_run_the_history_alone_refuses():
    doc = document(blocks=0)
    doc["quality"]["history"] = sample(8, 0.9, 0.1)
    evidence = read_evidence(doc)
    refusal = refuse_before_spending(evidence, replace(DESIGN, history=8))

    assert refusal is not None
    assert ("underpowered", True) == (refusal.code, refusal.message.startswith("eval_loss: "))
    doc["quality"]["history"] = []
    assert None is refuse_before_spending(read_evidence(doc), DESIGN)


COMPARED = Comparison(-0.001, 0.002, 4.0, 3, 3)


@pytest.mark.parametrize(
    ("outcome", "compared", "proven", "held"),
    [
        (MORE, COMPARED, True, True),
        (QualityOutcome.INCONCLUSIVE, None, True, True),
        (MORE, COMPARED, False, False),
        (MORE, COMPARED, None, False),
        # So clear a loss of all runs is not overruled by the pairs among them.
        (MORE, replace(COMPARED, difference=-0.02), True, False),
        (WORSE, COMPARED, True, False),
        (HELD, COMPARED, True, False),
        (QualityOutcome.CRASHED, None, True, False),
    ],
)
def test_the_same_models_prove_what_the_gate_leaves_open(
    monkeypatch, outcome, compared, proven, held
):
    finding = QualityFinding(outcome, "why", compared, 3, 0.01, lacks_baseline_only=True)
    same = None if proven is None else Identity(models=2, unequal=not proven)
    monkeypatch.setattr(quality, "judge_full_runs", lambda *_: finding)
    monkeypatch.setattr(quality, "identity_of", lambda *_: same)
    candidate, evidence = full_runs()
    seen = judge_quality_of(candidate, evidence, DESIGN)
    shown = quality_figures(seen, evidence, candidate, None)
    beside = replace(shown, equivalence=None, identical=None, outcome=seen.outcome)

    assert same == seen.identity
    assert beside == MetricFinding(evidence, candidate, seen).figures
    if held:
        assert (HELD, None, None, False) == (
            seen.outcome, seen.look, seen.level, seen.lacks_baseline_only,
        )  # fmt: skip
        assert seen.reason.startswith("both arms trained the same models")
        assert (0.0, None, None) == (shown.estimate, shown.confidence, shown.interval)
    else:
        assert replace(seen, identity=None) == finding
        assert (3, pytest.approx(0.98)) == (shown.look, shown.confidence)
        assert (compared and compared.difference) == shown.estimate
        assert (compared and compared.interval(0.01)) == shown.interval
    assert shown.identical == (same and IdenticalRuns(2, int(not proven), proven))


def test_figures_carry_what_a_proof_takes(monkeypatch):
    monkeypatch.setattr(quality, "equivalence_figures", lambda *_: "examined")
    candidate, evidence = full_runs()
    finding = QualityFinding(MORE, "why", COMPARED, 3, None, 0.7, 9)
    shown = quality_figures(finding, evidence, candidate, "evaluated")

    other = replace(finding, identity=Identity(models=2, unequal=1))
    assert -0.001 == quality_figures(other, evidence, candidate, None).estimate
    assert (0.7, 9, None) == (shown.provable_margin, shown.runs_needed, shown.confidence)
    assert ("examined", "evaluated") == (shown.equivalence, shown.evaluation)
    assert None is MetricFinding(evidence, candidate, finding).figures.equivalence
    none_left = replace(evidence, runs_remaining=0.0)
    assert None is quality_figures(finding, none_left, candidate, None).equivalence


def test_the_interval_holds_at_the_looks_own_level():
    finding = gate(GOOD["compile"], GOOD["baseline"])
    expected = stats.ttest_ind(GOOD["compile"], GOOD["baseline"]).confidence_interval(
        1 - 2 * spent(3, 12, 0.05)
    )

    assert pytest.approx((expected.low, expected.high), rel=1e-9) == finding.interval


@pytest.mark.parametrize(("n", "look"), [(2, 2), (3, 3), (4, 3), (7, 5), (11, 8), (20, 12)])
def test_only_looks_are_looked_at(n, look):
    """Runs past a look wait for the next, however well they would do."""
    steady = gate([*sample(look, 0.0, 0.001), *[9.0] * (n - look)], sample(n, 0.0, 0.001))

    assert (look, QualityOutcome.HELD) == (steady.look, steady.outcome)


@given(share=st.floats(0, 0.49), spread=st.floats(1e-4, 2), n=st.sampled_from([2, 3, 5, 8, 12]))
def test_a_loss_within_half_the_margin_is_never_proof_of_worse_quality(share, spread, n):
    ours, theirs = sample(n, -share * MARGIN, spread * MARGIN), sample(n, 0.0, spread * MARGIN)

    assert QualityOutcome.WORSE != gate(ours, theirs).outcome


def test_history_alone_refuses_what_no_number_of_runs_would_prove():
    history = sample(8, 0.9, 0.1)
    finding = underpowered(Samples((), (), history), 0.005, Design(8, 12, 0.05))
    margin = finding.provable_margin

    assert QualityOutcome.UNDERPOWERED == finding.outcome
    assert margin is not None
    assert f"{margin:.4g}" in finding.reason
    assert underpowered(Samples((), (), history), margin, Design(8, 12, 0.05)) is None
    assert underpowered(Samples((), (), history[:5]), 1e-6, Design(5, 12, 0.05)) is not None
    assert QualityOutcome.UNDERPOWERED == gate([0.9], [0.9], tuple(history), 0.005).outcome
    even = [1.0, -1.0] * 4 + [0.0]  # a spread of exactly 1
    assert underpowered(Samples((), (), even), 1e-6, Design(9, 12, 0.05)) is not None
    # A short one refuses nothing, nor does one without a spread.
    assert underpowered(Samples((), (), [0.9] * 8), 1e-6, Design(8, 12, 0.05)) is None
    assert underpowered(Samples((), (), history[:4]), 1e-6, Design(4, 12, 0.05)) is None


def test_runs_that_production_makes_anyway_are_refused_later():
    history = sample(8, 0.9, 0.1)
    margin = 0.1 * Design(8, 12, 0.05).best_margin(0.4)
    even, fair = Design(8, 12, 0.05), Design(8, 12, 0.05, least_chance=FAIR)

    assert underpowered(Samples((), (), history), 0.8 * margin, even) is not None
    assert underpowered(Samples((), (), history), 0.8 * margin, fair) is None


@given(margins=st.floats(1.0, 5.0), spread=st.floats(0.01, 0.2), n=st.sampled_from([2, 3, 5, 12]))
def test_samples_that_show_exactly_a_loss_of_the_margin_never_pass(margins, spread, n):
    finding = gate(sample(n, -margins * MARGIN, spread * MARGIN), sample(n, 0.0, spread * MARGIN))

    assert QualityOutcome.HELD != finding.outcome


def test_a_first_baseline_run_that_failed_is_made_again():
    doc = document(metrics={"baseline": GOOD["baseline"][:1], "compile": GOOD["compile"][:2]})
    runs(doc, "baseline")[0].update(finished=False, metric=None)
    decision = judge(doc)

    assert Verdict.CONTINUE == decision.verdict
    assert decision.next is not None
    assert "baseline" in [run["arm"] for run in (step_of(decision) or {})["runs"]]
