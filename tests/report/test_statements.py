"""Figures and reasons as text: a dash, an empty text or nothing said where a part is unknown."""

from dataclasses import replace
from types import SimpleNamespace as Made

import pytest

from compilegate.domain.claims import NO_AMOUNT, Claims, MoneyClaim, QualityClaim
from compilegate.domain.decision import (
    Decision,
    EquivalenceFigures,
    EvaluationFinding,
    EvaluationSplit,
    QualityFigures,
    SavingFigures,
    Speedup,
    Verdict,
)
from compilegate.domain.economics import AtLength
from compilegate.domain.formats import MINUS, UNKNOWN
from compilegate.domain.judging.measured import ConfirmedFall
from compilegate.domain.judging.monitor import Fall
from compilegate.domain.reasons import Reason, advice, registry
from compilegate.report.statements import (
    ASSUMED,
    IN_CHECK,
    OF_ALL,
    QUALITY_WORDS,
    SCHEDULED,
    WHOLE_JOB,
    at_length,
    bounds,
    confidence_words,
    evaluation_words,
    fall_in_check,
    faster_or_slower,
    key_figures,
    proofs,
    quality,
    saving,
    shown_reasons,
    speed_name,
    speedup,
    split_of,
    with_sign,
)
from tests.report.test_tables import full, of, speed

HELD = Claims(quality=QualityClaim.HELD, money=MoneyClaim.SAVES)
CHECKED = Claims(quality=QualityClaim.WORSE, checked_worse=True)
SPEED = Speedup(1.34, (1.25, 1.44), 0.95, 1.21, 3, 6, Made(estimate=1.4), None, 0.5, 0.0)
SCHEDULE = AtLength(10_800.0, 1.25, (1.1, 1.4), 210.0)
SAVED = SavingFigures(1.0, None, 9.0, 1200.0, (900.0, 1500.0), None, None, None, None)
SEEN = EquivalenceFigures("passed", "why", 0.05, 0.2, "cpu", 59, 2, "2026-11-26")
SPLIT = EvaluationSplit("split", 1000, 5.0, 4.0, 0.0, (None, None), 3.0, None, None, 8000, 12,
                        None, ())  # fmt: skip


def judged(**known):
    """Quality of a loss; the judge's figures are turned so that higher is better."""
    values = {"metric": "loss", "goal": "minimize", "margin": 0.0524, "estimate": -0.002,
              "interval": (-0.02, 0.01), "confidence": 0.98, "look": 2}  # fmt: skip
    return of(QualityFigures, **{**values, **known})


def test_the_key_figures_have_a_line_each_and_what_is_unknown_has_none():
    decision = Decision("w", "d1", "1", "quality", Verdict.PROMOTE, "compile", (), SPEED,
                        judged(equivalence=SEEN), saving=SAVED, scheduled=SCHEDULE)  # fmt: skip
    said = {
        WHOLE_JOB: speedup(SPEED), SCHEDULED: at_length(SCHEDULE), "loss": quality(judged(), HELD),
        "Quality rests on": proofs(decision.quality, HELD), "Saving": saving(SAVED, HELD),
    }  # fmt: skip

    assert [f"{name}: {text}" for name, text in said.items()] == key_figures("loss", decision, HELD)
    nothing = replace(decision, speedup=None, quality=None, saving=None, scheduled=None)
    assert [] == key_figures("loss", nothing, HELD)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "3 short blocks and 6 full runs"), ({"full_runs": 0}, "3 short blocks"),
        ({"blocks": 0, "full_runs": 1}, "1 full run"),
    ],
)  # fmt: skip
def test_an_estimate_says_its_interval_and_of_which_runs_it_is(changes, words):
    assert f"1.34x (1.25 to 1.44), from {words}" == speedup(replace(SPEED, **changes))
    assert UNKNOWN == speedup(None)


@pytest.mark.parametrize(
    ("interval", "target", "words"),
    [
        ((1.1, 1.4), None, "1.34x faster"), ((0.9, 1.4), None, "1.34x"),
        ((0.8, 0.9), None, "slower, 1.34x"), ((1.1, 1.4), 0.0, "1.34x faster to 0.0"),
        ((0.9, 1.4), 0.9, "1.34x to 0.9"), ((0.8, 0.9), 0.9, "slower to 0.9, 1.34x"),
    ],
)  # fmt: skip
def test_a_direction_is_said_only_where_the_interval_has_one(interval, target, words):
    speed = replace(SPEED, interval=interval, target=target)

    assert words == faster_or_slower(speed)
    assert (WHOLE_JOB if target is None else f"time to {target}") == speed_name(speed)
    assert "other" == speed_name(None, "other")


@pytest.mark.parametrize(
    ("pays", "words"), [(210.0, "pays from 3.5 min on"), (None, "pays at no length")]
)
def test_at_another_length_it_is_said_from_which_on_it_pays(pays, words):
    run = replace(SCHEDULE, pays_from_seconds=pays)

    assert f"a run of 3 h: 1.25x (1.10 to 1.40), {words}" == at_length(run)
    assert UNKNOWN == at_length(None)


@pytest.mark.parametrize(
    ("changes", "claims", "words"),
    [
        ({}, HELD, f"no regression (Δ +0.002, interval {MINUS}0.01 to +0.02, margin 0.052)"),
        ({"interval": None}, HELD, "no regression (Δ +0.002, margin 0.052)"),
        ({"goal": "maximize", "interval": None}, Claims(),
         f"not proven (Δ {MINUS}0.002, margin 0.052)"),
        ({"interval": None, "estimate": 0.0}, CHECKED,
         f"{QUALITY_WORDS[QualityClaim.WORSE]} {IN_CHECK} ({OF_ALL}Δ 0, margin 0.052)"),
        ({"estimate": None}, HELD, UNKNOWN),
    ],
)  # fmt: skip
def test_a_difference_stands_in_the_metrics_own_direction(changes, claims, words):
    assert words == quality(judged(**changes), claims)
    assert UNKNOWN == quality(None, claims)


@pytest.mark.parametrize(
    ("changes", "confidence"),
    [({}, "98% interval, holds at every look"), ({"look": None}, "98% interval"),
     ({"confidence": None}, ""), ({"interval": None}, "")],
)  # fmt: skip
def test_an_interval_has_its_confidence(changes, confidence):
    assert confidence == confidence_words(judged(**changes))


def test_what_quality_rests_on_has_both_numbers_and_what_they_assume():
    seen = judged(equivalence=SEEN)

    assert (
        "two proofs: of harmful changes at most 5% pass the equivalence check (it missed 2 of 59 "
        "faults for cpu, 2026-11-26), and of those at most 20% pass full runs, together 1%. "
        f"{ASSUMED}"
    ) == proofs(seen, HELD)
    odd = judged(equivalence=replace(SEEN, rho=0.01234, level=0.5))
    assert all(text in proofs(odd, HELD) for text in ("most 1.2% pass", "together 0.62%"))
    alone = judged(equivalence=replace(SEEN, rho=1.0))
    assert "full runs alone (why)" == proofs(alone, HELD)
    worse = Claims(quality=QualityClaim.WORSE)
    assert [UNKNOWN] * 3 == [proofs(None, HELD), proofs(judged(), HELD), proofs(seen, worse)]


@pytest.mark.parametrize(
    ("money", "ends", "words"),
    [
        (MoneyClaim.SAVES, (900.0, 1500.0), "$1,200 per year ($900.00 to $1,500)"),
        (MoneyClaim.IF_ON, None, "$1,200 per year if on"),
        (MoneyClaim.OFF, (900.0, 1500.0), f"not stated: {NO_AMOUNT[MoneyClaim.OFF]}"),
    ],
)
def test_an_amount_is_named_only_where_it_may_be(money, ends, words):
    claims = Claims(money=money)

    assert words == saving(replace(SAVED, interval_usd_per_year=ends), claims)
    assert UNKNOWN == saving(None, claims)


def test_a_number_with_its_sign_has_two_digits():
    assert ["+0.0012", f"{MINUS}0.0012", "0"] == list(map(with_sign, (0.00123, -0.00123, 0.0)))
    assert ["+0.01 to +0.02", ""] == [bounds(ends, with_sign) for ends in ((0.01, 0.02), None)]


def test_of_the_spread_it_is_said_what_the_examples_add():
    """Spreads of 4 and 3 are variances of 16 and 9; those of 4.123 and 2.5 are 17 and 6.25."""
    whole = (
        "Of the spread between runs, 4 comes from the choice of 1,000 evaluation examples (64% of "
        "the variance) and about 3 from training itself"
    )
    assert f"{whole}; 8,000 examples would spare 12 runs of each arm." == evaluation_words(SPLIT)
    for unknown in ("best_examples", "runs_saved"):
        assert f"{whole}." == evaluation_words(replace(SPLIT, **{unknown: None}))
    odd = evaluation_words(
        replace(SPLIT, spread_of_evaluation=4.123, spread_of_training_expected=2.5)
    )
    assert all(text in odd for text in ("runs, 4.1 comes", "(73% of"))
    training = evaluation_words(replace(SPLIT, spread_of_training_expected=3.123))
    assert "about 3.1 from" in training
    nothing = (None, EvaluationFinding("few"), replace(SPLIT, spread_of_evaluation=0.0))
    assert [""] * 3 == list(map(evaluation_words, nothing))
    decisions = (Made(quality=None), *(Made(quality=Made(evaluation=one)) for one in nothing))
    assert [None, None, None, nothing[2]] == list(map(split_of, decisions))


@pytest.mark.parametrize(
    ("theirs", "figure", "words"),
    [
        (3, {"speedup": 0.9}, "0.90x in the 3 runs of each arm that checked the alarm"),
        (2, {"delta": 0.054}, "Δ +0.054 in the 3 runs of the candidate that checked the alarm"),
    ],
)
def test_a_confirmed_fall_says_in_which_runs_it_was_seen(theirs, figure, words):
    checked = ConfirmedFall(Made(fall=Fall(0.1, 3, theirs)), **figure)

    assert words == fall_in_check(checked)


# Reasons as people read them.

CRASH = "candidate_crashed"


def decided(*reasons, speed=SPEED, verdict=Verdict.STAY_OFF):
    return Decision("w", "d1", "1", "quality", verdict, "compile", reasons, speed)


def arm(name, failed=None, unapplied=None):
    return Made(name=name, failed=failed, unapplied=unapplied)


def ended(said, run):
    return Made(run=run, said=said)


def test_behind_the_reason_that_decided_failures_come_first():
    codes = [code for code, kind in registry().items() if kind.page == "trial"]
    failures = {
        CRASH, "baseline_failed", "treatment_not_applied", "arms_differ",
        "arms_continue_each_other", "numerics_wrong", "not_equivalent", "runs_repeated",
        "unequal_initial_loss", "unequal_initial_weights", "unequal_work", "evaluation_sets_differ",
        "evidence_invalid", "evidence_missing", "clock_implausible", "evidence_overwritten",
        "request_refused", "quota_too_low", "flag_too_large",
    }  # fmt: skip
    first, *others = (Reason(code, f"{code}.") for code in ["speedup_too_small", *codes])
    shown = shown_reasons(decided(first, *others), None)

    assert [
        first.code, *(one for one in codes if one in failures),
        *(one for one in codes if one not in failures),
    ] == [reason.code for reason in shown]  # fmt: skip
    assert [advice(one.code) if one.code in failures else "" for one in shown] == [
        one.fix for one in shown
    ]
    assert {code for code in failures if not advice(code)} == set()
    own = Reason(CRASH, "broke.", fix="own")
    assert (own,) == shown_reasons(decided(own), None)


def test_a_candidate_that_was_given_up_has_the_reason_why_once():
    waits = [Reason("speed_needs_blocks", "waits", name) for name in ("a", "b", "c")]
    others = [Reason("quality_needs_runs", "runs", "a"), Reason("evidence_missing", "b", "b")]
    why = {name: Reason("request_refused", name, name, fix="x") for name in "ab"}
    shown = shown_reasons(decided(*waits, *others), None, silent=why)

    assert [("request_refused", "a"), ("evidence_missing", "b"), ("speed_needs_blocks", "b"),
            ("speed_needs_blocks", "c"), ("quality_needs_runs", "a")] == [
        (one.code, one.arm) for one in shown
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "about", "cause"),
    [
        (CRASH, "compile", " (short block 4: Out of memory)"),
        (CRASH, "other", "."),
        (CRASH, None, " (full run: of the baseline)"),
        ("treatment_not_applied", "compile", " (full run with seed 17: eager)"),
        ("treatment_not_applied", "baseline", "."),
        ("quality_worse", "compile", "."),
    ],
)
def test_a_failure_has_what_its_first_run_said(code, about, cause):
    arms = [
        arm("baseline", ended("of the baseline.", full())),
        arm("compile", ended("Out of memory.", speed(4)), ended("eager", full(seed=17))),
        arm("other"),
    ]
    (shown,) = shown_reasons(decided(Reason(code, "It broke.", about)), Made(arms=arms))

    assert f"It broke{cause}" == shown.message


@pytest.mark.parametrize(
    ("recorded", "read"),
    [
        ("1.1x, significantly below the required 1.2x",
         "1.1x; the short blocks rule out an average of 1.2x"),
        ("fast but significantly below the required 1.2x",
         "fast but the short blocks rule out an average of 1.2x"),
        ("lost at a difference of -0.1, -1", f"lost at a difference of {MINUS}0.1, -1"),
    ],
)  # fmt: skip
def test_recorded_words_are_read_as_what_they_say(recorded, read):
    assert read == shown_reasons(decided(Reason("speedup_too_small", recorded)), None)[0].message


PROVEN, DISAGREES = "speedup_proven", "full_run_disagrees"
ALONE = "compile: the short blocks alone predict 1.40x and prove more than 1.21x; whole jobs decide"
WHOLE = (
    "compile: whole jobs, start-up and evaluation included, are 1.34x (1.25 to 1.44), from 3 short "
    "blocks and 6 full runs, required is 1.10x; the short blocks alone predict 1.40x"
)


@pytest.mark.parametrize(
    ("code", "changes", "words"),
    [
        (PROVEN, {}, ALONE), (DISAGREES, {}, WHOLE), (PROVEN, {"measured": None}, ALONE),
        (DISAGREES, {"measured": None}, None), (DISAGREES, {"lead": "other"}, None),
        *((code, {name: value}, None) for code in (PROVEN, DISAGREES) for name, value in (
            ("full_runs", 0), ("predicted", None), ("lower_bound", None), ("speed", None),
            ("verdict", Verdict.PROMOTE), ("verdict", Verdict.PERMANENT), ("arm", "other"),
        )),
        ("quality_held", {}, None),
    ],
)  # fmt: skip
def test_the_blocks_figure_is_called_theirs_where_whole_jobs_decide(code, changes, words):
    values = {"verdict": Verdict.STAY_OFF, "arm": "compile", "speed": SPEED, "lead": "compile"}
    values |= {"measured": Made(thresholds=(1.1, 1.2))} | changes
    of_speed = {name: changes[name] for name in changes.keys() & vars(SPEED).keys()
                if name != "measured"}  # fmt: skip
    speed = values["speed"] and replace(SPEED, **of_speed)
    measured = values["measured"]
    if measured:
        measured.lead = Made(name=values["lead"])
    reason = Reason(code, "as recorded", values["arm"])
    (shown,) = shown_reasons(decided(reason, speed=speed, verdict=values["verdict"]), measured)

    assert (words or "as recorded") == shown.message
