"""Whether more evaluation examples would spare runs, as the judge says; no verdict needs them."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, EvaluationSplit, LargerEvaluation, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.design import Design, runs_for_one_look
from compilegate.domain.judging.evaluation import (
    Evaluation,
    Finding,
    Purchase,
    Split,
    df_over_chi_squared,
    evaluation_of,
    median_variance,
    split_of,
    tau_squared,
    weighed,
)
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.outcomes import BOUNDS, Outcomes, read_outcomes
from compilegate.domain.judging.quality import QualityFinding, QualityOutcome
from tests.domain.evidence_builder import arm, full_runs, judge, runs
from tests.domain.outcome_builder import SET, packed_bits, packed_losses, scored
from tests.fuzzing import at_most

ANOTHER = hashlib.sha256(b"another set").hexdigest()
HISTORY, NAMES = [0.7, 0.702, 0.699, 0.701], ("baseline", "compile")


def without_outcomes(evidence: dict[str, Any]) -> dict[str, Any]:
    bare = copy.deepcopy(evidence)
    for run in full_runs(bare):
        run.pop("outcomes", None)
    return bare


def evaluation(decision: Decision) -> Any:
    return write(decision.quality.evaluation) if decision.quality else None


def advice(decision: Decision) -> dict[str, str]:
    return {r.code: r.message for r in decision.reasons if r.code.startswith("evaluation_")}


def test_a_spread_that_comes_from_the_examples_is_bought_away():
    evidence = scored(0.0005)
    evidence["quality"]["history"] = HISTORY
    decision = judge(evidence)
    advised, said = evaluation(decision), advice(decision)["evaluation_limited"]

    assert advised["finding"] == "more_examples"
    assert advised["spread_of_evaluation"] > 3 * advised["spread_of_training"]
    assert advised["examples"] == 2000
    assert advised["best_examples"] in (4000, 8000)
    best = next(one for one in advised["larger"] if one["examples"] == advised["best_examples"])
    assert best["runs"] <= advised["runs_needed"] / 2
    assert advised["runs_saved"] == advised["runs_needed"] - best["runs"]
    instead = f"would need about {best['runs']} runs instead of {advised['runs_needed']}"
    assert f"your 2,000 evaluation examples; {advised['best_examples']:,} {instead}" in said
    today = math.hypot(advised["spread_of_training_expected"], advised["spread_of_evaluation"])
    assert advised["runs_needed"] == runs_for_one_look(today / 0.01, history=4, level=0.05)
    # Past runs were not scored on the larger set.
    assert best["runs"] == runs_for_one_look(best["spread"] / 0.01, history=0, level=0.05)


@pytest.mark.parametrize(
    ("mode", "theirs", "ours", "each"),
    [
        ("shadow", 3.0, 2.0, 4.0), ("hybrid", 3.0, 2.0, 2.0), ("hybrid", 3.0, 9.0, 0.0),
        ("shadow", 3.0, None, None), ("shadow", None, 2.0, None),
    ],
)  # fmt: skip
def test_a_run_spared_is_worth_the_pair_or_what_production_saves_on_it(mode, theirs, ours, each):
    """Runs of one hour and of half of it, at these prices of an hour."""
    evidence = scored(0.0005)
    evidence["policy"]["quality_runs"], evidence["usd_per_hour"] = mode, None
    for name, price, seconds in (("baseline", theirs, 3600.0), ("compile", ours, 1800.0)):
        arm(evidence, name)["usd_per_hour"] = price
        for run in runs(evidence, name):
            run["wall_seconds"] = seconds
    seen = read_evidence(evidence)
    found = evaluation_of(QualityFinding(QualityOutcome.MORE_RUNS, ""), seen.candidates[0], seen)

    assert found.usd_saved == (None if each is None else pytest.approx(found.fewer_runs * each))
    assert (", worth" in found.reasons[0].message) is bool(each)


@pytest.mark.parametrize(
    ("trial", "finding", "best", "said"),
    [
        # Half of the runs is enough.
        ((3, 0.0005, 0.01), Finding.MORE_EXAMPLES, 16000, ["evaluation_limited"]),
        ((3, 0.012, 0.005), Finding.NOT_EXAMPLES, None, ["evaluation_sufficient"]),
        ((3, 0.012, 0.01), Finding.UNCLEAR, None, []),  # training is the larger part
        ((8, 0.008, 0.005), Finding.NOT_EXAMPLES, None, []),  # the examples are
    ],
)
def test_an_open_proof_is_advised_where_it_is_clear_what_helps(trial, finding, best, said):
    of_runs, training_sd, margin = trial
    evidence = scored(training_sd, runs=of_runs, margin=margin)
    for run in full_runs(evidence):
        run["outcomes"]["per_outcome"] = 3
    seen = read_evidence(evidence)
    found = {
        outcome: evaluation_of(QualityFinding(outcome, ""), seen.candidates[0], seen)
        for outcome in QualityOutcome
    }
    one = found[QualityOutcome.MORE_RUNS]

    assert (finding, best) == (one.finding, one.best and one.best.examples)
    assert best is None or one.best.runs * 2 == one.today.runs
    assert all("your 6,000" in reason.message for reason in one.reasons)
    for outcome in ("more_runs", "underpowered", "inconclusive"):
        assert said == [reason.code for reason in found.pop(QualityOutcome(outcome)).reasons]
    assert not any(other.reasons for other in found.values())


def test_without_runs_left_for_a_proof_nothing_is_advised():
    seen = read_evidence({**scored(0.0005), "runs_remaining": 1})

    assert evaluation_of(QualityFinding(QualityOutcome.HELD, ""), seen.candidates[0], seen) is None


def test_sizes_are_of_examples_and_an_endless_range_has_no_end():
    split = Split(0.005, 6, 500, 500 * 0.004**2, per_outcome=4)
    sets = Purchase(500, 0.005, 20), Purchase(1000, 0.004, 9), Purchase(2000, 0.003, None)
    advised = Evaluation(Finding.MORE_EXAMPLES, split, sets[0], sets[1:], sets[1], 700, 8.0)

    assert advised.figures == EvaluationSplit(
        finding="more_examples", examples=2000, spread=0.005,
        spread_of_evaluation=pytest.approx(0.004), spread_of_training=split.training_sd,
        spread_of_training_interval=split.training_range,
        spread_of_training_expected=split.expected_training_sd, runs_needed=20,
        wanted_examples=2800, best_examples=4000, runs_saved=11, usd_saved=8.0,
        larger=(LargerEvaluation(4000, 0.004, 9), LargerEvaluation(8000, 0.003, None)),
    )  # fmt: skip
    none = replace(advised, split=replace(split, sd=1e154, df=3), best=None, wanted=None).figures
    low, high = none.spread_of_training_interval
    assert (none.wanted_examples, none.best_examples, none.runs_saved) == (None, None, None)
    assert 1e153 < low < 1e154
    assert high is None
    assert replace(advised, today=replace(sets[0], runs=None)).figures.runs_saved is None
    assert write(replace(advised, today=None).figures) == {"finding": "more_examples"}
    assert write(replace(advised, split=None).figures) == {"finding": "more_examples"}


@pytest.mark.parametrize(("intercept", "slope"), [(0.0, 100.0), (1.0, -1.0), (100.0, -100.0)])
def test_percentages_and_error_rates_are_the_same_outcomes(intercept, slope):
    plain = scored(0.0005)
    other = json.loads(json.dumps(plain))
    other["quality"]["margin"] *= abs(slope)
    other["quality"]["goal"] = "maximize" if slope > 0 else "minimize"
    for run in full_runs(other):
        run["metric"] = intercept + slope * run["metric"]
    as_shares, as_others = evaluation(judge(plain)), evaluation(judge(other))

    for key in ("spread", "spread_of_evaluation", "spread_of_training"):
        assert as_others[key] == pytest.approx(abs(slope) * as_shares[key])
    assert as_others["runs_needed"] == as_shares["runs_needed"]


def test_sets_that_change_from_run_to_run_are_not_split():
    evidence = scored(0.0005)
    for number, run in enumerate(full_runs(evidence)):
        run["outcomes"]["set_sha256"] = hashlib.sha256(bytes([number % 2])).hexdigest()
    decision = judge(evidence)

    assert evaluation(decision) == {"finding": "sets_vary"}
    assert not advice(decision)


@pytest.mark.parametrize(
    ("metric", "times", "known"),
    [(0.5, 1.00019, True), (0.5, 1.00021, False), (0.0, 3e-8, True), (0.0, 5e-8, False)],
)
def test_a_metric_may_be_rounded_to_four_digits(metric, times, known):
    evidence = scored(0.0005)
    for run in full_runs(evidence):
        run |= {"metric": metric, "outcomes": packed_bits(np.arange(2000) < 2000 * metric)}
    full_runs(evidence)[0]["metric"] = metric * times if metric else times
    seen = read_evidence(evidence)

    assert known is (split_of(seen.candidates[0], seen) is not Finding.OTHER_METRIC)


@pytest.mark.parametrize(
    ("theirs", "ours", "history", "enough"),
    [(3, 5, [], True), (3, 2, [], True), (2, 2, [], False), (1, 1, HISTORY, False)],
)
def test_a_split_takes_two_runs_on_one_set_and_three_degrees_of_freedom(
    theirs, ours, history, enough
):
    evidence = scored(0.0005, runs=5)
    evidence["quality"]["history"] = history
    for name, left in (("baseline", theirs), ("compile", ours)):
        for run in runs(evidence, name)[left:]:
            arm(evidence, name)["runs"].remove(run)
    for run in full_runs(evidence):
        run["outcomes"]["per_outcome"] = 4
    seen, found = read_evidence(evidence), [runs(evidence, name) for name in NAMES]
    split = split_of(seen.candidates[0], seen)

    if not enough:
        assert split is Finding.TOO_FEW_RUNS
        return
    df = theirs + ours - 2
    deviations = sum((len(made) - 1) * np.var([run["metric"] for run in made], ddof=1)
                     for made in found)  # fmt: skip
    tau = tau_squared([[read(run["outcomes"]) for run in made] for made in found])
    assert (split.sd, split.tau_squared) == pytest.approx((math.sqrt(deviations / df), tau))
    assert (split.df, split.examples, split.per_outcome) == (df, 2000, 4)


def test_runs_that_do_not_vary_say_too_little():
    evidence = scored(0.0005)
    for run in full_runs(evidence):
        run |= {key: full_runs(evidence)[0][key] for key in ("metric", "outcomes")}
    seen = read_evidence(evidence)

    assert split_of(seen.candidates[0], seen) is Finding.TOO_FEW_RUNS


@pytest.mark.parametrize("training_sd", [0.0005, 0.004, 0.012])
@pytest.mark.parametrize("margin", [0.002, 0.01, 0.03])
def test_no_verdict_depends_on_outcomes(training_sd, margin):
    evidence = scored(training_sd, margin=margin)
    known, unknown = judge(evidence), judge(without_outcomes(evidence))

    assert known.verdict == unknown.verdict
    assert known.quality is None or unknown.quality == replace(known.quality, evaluation=None)
    assert [r for r in known.reasons if r.code not in advice(known)] == list(unknown.reasons)
    assert known.next == unknown.next
    assert evaluation(unknown) is None


@pytest.mark.parametrize(
    ("share", "runs", "least", "most"),
    [(0.1, 3, 0, 0.01), (0.3, 3, 0, 0.1), (0.3, 8, 0, 0.1), (0.88, 5, 0.7, 1), (0.88, 8, 0.85, 1)],
)
def test_examples_are_advised_where_they_help_and_promise_no_more_than_they_bring(
    share, runs, least, most
):
    """1,000 trials of two arms, of known parts: how often advised, and the runs that it takes."""
    rng, margin, sd, design = np.random.default_rng(9), 0.005, 0.0047, Design(0, 36, 0.05)
    tau, df, said, wrong, kept = 2000 * share * sd**2, 2 * (runs - 1), 0, 0, []
    training = sd * np.sqrt(1 - share)
    for chance in rng.chisquare(df, 1000):
        split = Split(float(sd * np.sqrt(chance / df)), df, 2000, tau)
        evaluation = weighed(split, design, design, margin)
        best, wrong = evaluation.best, wrong + (evaluation.finding is Finding.NOT_EXAMPLES)
        if best is None or best.runs is None:
            continue
        said += 1
        true = float(np.sqrt(training**2 + tau / best.examples))
        kept.append((runs_for_one_look(true / margin, history=0, level=0.05) or 500) / best.runs)

    assert least <= said / 1000 <= most
    assert wrong / 1000 <= (0.05 if least else 1)
    if least:
        assert np.median(kept) <= 1


@pytest.mark.parametrize("known", ["abc", SET.upper(), SET + "0", 12])
def test_what_is_no_digest_of_a_set_is_refused(known):
    evidence = scored(0.0005)
    evidence["quality"]["history_set"] = known

    with pytest.raises(InvalidEvidenceError, match="history_set"):
        judge(evidence)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=900),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = ("kind", "examples", "per_outcome", "set_sha256", "mean", "data", "more")
JUDGED = {margin: scored(0.0005, margin=margin, runs=4) for margin in (0.01, 0.05)}


@given(
    margin=st.sampled_from(sorted(JUDGED)),
    changes=st.lists(st.tuples(st.integers(0, 7), st.sampled_from(KEYS), ANY), max_size=4),
)
@at_most(300)
def test_whatever_stands_there_outcomes_change_no_verdict(margin, changes):
    evidence = copy.deepcopy(JUDGED[margin])
    for number, key, value in changes:
        full_runs(evidence)[number]["outcomes"][key] = value
    try:
        decision = judge(evidence)
    except InvalidEvidenceError:  # of a value that JSON does not have
        return
    json.dumps(decision.to_dict("flag"), allow_nan=False)

    assert decision.verdict in (judge(JUDGED[margin]).verdict, Verdict.INVALID)


# The split of a metric's spread, against numpy and against simulated runs of known parts.


def read(document: dict[str, Any]) -> Outcomes:
    outcomes = read_outcomes(document)
    assert outcomes is not None
    return outcomes


@given(st.integers(2, 6), st.integers(2, 40), st.integers(0, 2**32))
def test_of_bits_is_numpys_variance_over_runs(runs, examples, seed):
    right = np.random.default_rng(seed).random((runs, examples)) < 0.7
    expected = right.var(axis=0, ddof=1).mean()

    assert tau_squared([[read(packed_bits(run)) for run in right]]) == pytest.approx(expected)


@given(st.integers(2, 6), st.integers(2, 40), st.integers(0, 2**32))
def test_of_losses_is_numpys_variance_over_runs(runs, examples, seed):
    losses = np.random.default_rng(seed).normal(3, 0.2, (runs, examples))
    expected = losses.astype("<f2").astype(float).var(axis=0, ddof=1).mean()

    assert tau_squared([[read(packed_losses(run)) for run in losses]]) == pytest.approx(expected)


def test_arms_are_pooled_by_their_degrees_of_freedom_and_one_run_has_none():
    rng = np.random.default_rng(1)
    arms = [rng.random((runs, 300)) < 0.8 for runs in (2, 5, 1)]
    expected = sum((len(a) - 1) * a.var(axis=0, ddof=1).mean() for a in arms[:2]) / 5
    packed = [[read(packed_bits(run)) for run in arm] for arm in arms]

    assert tau_squared(packed) == pytest.approx(expected)
    assert tau_squared(packed[2:]) is None
    assert tau_squared([]) is None


def test_wanted_examples_are_the_inverse_of_the_spread():
    split = Split(sd=0.0047, df=10**6, examples=2000, tau_squared=2000 * 0.0044**2)
    wanted = split.wanted(0.00275)

    assert split.per_outcome == 1
    assert split.evaluation_sd == pytest.approx(0.0044)
    assert split.training_sd == pytest.approx(0.00165, rel=0.01)
    assert Split(1.0, 10**6, 2, 1.0).training_sd == pytest.approx(1.0)  # of two examples
    assert wanted == pytest.approx(8000, rel=0.02)
    design = Design(0, 36, 0.05)
    asked = weighed(split, design, design, 0.01).wanted
    assert asked == split.wanted(0.01 / design.best_margin())
    assert split.at(wanted) <= 0.00275 < split.at(wanted - 1)
    assert split.wanted(0.99 * split.training_sd) is None
    assert split.wanted(split.expected_training_sd) is None


def test_a_spread_smaller_than_the_evaluations_leaves_nothing_for_training():
    few, many = (Split(0.004, df, 2000, 2000 * 0.0044**2) for df in (4, 10**4))

    assert few.training_sd == many.training_sd == 0
    assert few.at(8000) > 1.5 * many.at(8000)  # which four degrees of freedom cannot show
    assert many.at(8000) == pytest.approx(0.0022, rel=0.01)


@pytest.mark.parametrize("df", [3, 5, 14, 60])
@pytest.mark.parametrize("measured", [0.01, 0.3, 0.7, 1.0, 2.0, 9.0])
def test_the_median_of_a_variance_that_is_at_least_one_is_scipys(df, measured):
    left = stats.chi2.cdf(df * measured, df)
    exact = df * measured / stats.chi2.ppf(left / 2, df)

    assert median_variance(measured, df, 1.0) == pytest.approx(max(1.0, exact), rel=0.03)
    uncut = df * measured / stats.chi2.median(df)
    assert median_variance(measured, df, 0.0) == pytest.approx(uncut, rel=0.03)


@pytest.mark.parametrize("df", [3, 5, 10, 40])
@pytest.mark.parametrize("chance", [0.1, 0.9])
def test_chi_squared_limits_are_scipys(df, chance):
    z = stats.norm.ppf(chance)

    assert df_over_chi_squared(df, z) == pytest.approx(df / stats.chi2.ppf(chance, df), rel=0.02)
    assert df_over_chi_squared(2, -(1 - 2 / 18) / math.sqrt(2 / 18)) == math.inf


def test_the_range_of_the_training_part_covers_it():
    """2,000 splits of ten runs: the true part lies below the range in 10 %, above in 10 %."""
    rng, training_sd, examples, tau = np.random.default_rng(3), 0.004, 1000, 0.01
    noise = math.sqrt(training_sd**2 + tau / examples)
    sds = noise * np.sqrt(rng.chisquare(9, 2000) / 9)
    ranges = [Split(float(sd), 9, examples, tau).training_range for sd in sds]

    assert np.mean([low > training_sd for low, _ in ranges]) == pytest.approx(0.1, abs=0.03)
    assert np.mean([high < training_sd for _, high in ranges]) == pytest.approx(0.1, abs=0.03)


GOOD = packed_bits(np.arange(20) % 3 > 0)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "words"}, {"kind": None}, {"examples": 1}, {"examples": True}, {"examples": 2.0},
        {"examples": 10**30}, {"examples": 21}, {"examples": 25}, {"examples": -3},
        {"set_sha256": "x"}, {"set_sha256": SET.upper()}, {"set_sha256": None},
        {"mean": math.nan}, {"mean": "0.65"}, {"mean": 0.9}, {"mean": -1.0}, {"mean": True},
        {"data": "!" * 4}, {"data": GOOD["data"] * 2}, {"data": None}, {"data": "b29\u00e9"},
        {"data": base64.b64encode(b"\xff\xff\xff").decode()}, {"per_outcome": 0},
        {"kind": "losses"},
    ],
)  # fmt: skip
def test_what_is_broken_is_absent(change):
    assert read_outcomes(GOOD) is not None
    assert read_outcomes({**GOOD, **change}) is None


@pytest.mark.parametrize("document", [None, [], "outcomes", 3, {}])
def test_what_is_no_document_is_absent(document):
    assert read_outcomes(document) is None


def test_losses_that_are_not_finite_are_absent():
    losses = packed_losses(np.array([1.0, math.inf, 2.0]))

    assert read_outcomes({**losses, "mean": 1.0}) is None


def test_a_subsample_has_the_size_of_the_bound_whatever_the_document_says():
    right = np.random.default_rng(2).random(100_000) < 0.9
    outcomes = read(packed_bits(right))

    assert outcomes.kept == BOUNDS["bits"]
    assert outcomes.bits.bit_count() == int(right[:4096].sum())
    assert read_outcomes({**packed_bits(right), "examples": 4095}) is None
