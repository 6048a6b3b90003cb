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
SEEN = EquivalenceFigures("passed", "why", 0.01234, 0.5, "cpu", 59, 2, "2026-11-26")
SPLIT = EvaluationSplit("split", 1000, 5.0, 4.0, 0.0, (None, None), 3.0, None, None, 8000, 12,
                        None, ())  # fmt: skip


def judged(**more):
    """Quality of a loss; the judge's figures are turned so that higher is better."""
    values = {"metric": "loss", "goal": "minimize", "margin": 0.0524, "estimate": -0.002,
              "interval": (-0.02, 0.01), "confidence": 0.98, "look": 2}  # fmt: skip
    return of(QualityFigures, **{**values, **more})


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


OF_SPEED = "1.34x (1.25 to 1.44), from"
LENGTH = "a run of 3 h: 1.25x (1.10 to 1.40), pays"
INTERVAL = f"interval {MINUS}0.01 to +0.02, "
AMONG = (
    "Of the spread between runs, 4 comes from the choice of 1,000 evaluation examples (64% of the "
    "variance) and about 3 from training itself"
)
# Spreads of 4 and 3 are variances of 16 and 9; those of 4.123 and 2.512 are 17 and 6.31.
ODD = replace(SPLIT, spread_of_evaluation=4.123, spread_of_training_expected=2.512)
NO_SPLIT = (None, EvaluationFinding("few"), replace(SPLIT, spread_of_evaluation=0.0))
WORSE = Claims(quality=QualityClaim.WORSE)


def to(interval, target=None):
    return replace(SPEED, interval=interval, target=target)


@pytest.mark.parametrize(
    ("say", "of_what", "words"),
    [
        (speedup, (SPEED,), f"{OF_SPEED} 3 short blocks and 6 full runs"),
        (speedup, (replace(SPEED, full_runs=0),), f"{OF_SPEED} 3 short blocks"),
        (speedup, (replace(SPEED, blocks=0, full_runs=1),), f"{OF_SPEED} 1 full run"),
        (speedup, (None,), UNKNOWN),
        (speed_name, (SPEED,), WHOLE_JOB), (speed_name, (to((1, 2), 0.0),), "time to 0.0"),
        (speed_name, (None, "other"), "other"),
        (faster_or_slower, (to((1.1, 1.4)),), "1.34x faster"),
        (faster_or_slower, (to((0.9, 1.4)),), "1.34x"),
        (faster_or_slower, (to((0.8, 0.9)),), "slower, 1.34x"),
        (faster_or_slower, (to((1.1, 1.4), 0.0),), "1.34x faster to 0.0"),
        (faster_or_slower, (to((0.9, 1.4), 0.9),), "1.34x to 0.9"),
        (faster_or_slower, (to((0.8, 0.9), 0.9),), "slower to 0.9, 1.34x"),
        (at_length, (SCHEDULE,), f"{LENGTH} from 3.5 min on"), (at_length, (None,), UNKNOWN),
        (at_length, (replace(SCHEDULE, pays_from_seconds=None),), f"{LENGTH} at no length"),
        (quality, (judged(), HELD), f"no regression (Δ +0.002, {INTERVAL}margin 0.052)"),
        (quality, (judged(goal="maximize", interval=None), Claims()),
         f"not proven (Δ {MINUS}0.002, margin 0.052)"),
        (quality, (judged(interval=None, estimate=0.0), CHECKED),
         f"{QUALITY_WORDS[QualityClaim.WORSE]} {IN_CHECK} ({OF_ALL}Δ 0, margin 0.052)"),
        (quality, (judged(estimate=None), HELD), UNKNOWN), (quality, (None, HELD), UNKNOWN),
        (confidence_words, (judged(),), "98% interval, holds at every look"),
        (confidence_words, (judged(look=None),), "98% interval"),
        (confidence_words, (judged(confidence=None),), ""),
        (confidence_words, (judged(interval=None),), ""),
        (proofs, (judged(equivalence=SEEN), HELD),
         "two proofs: of harmful changes at most 1.2% pass the equivalence check (it missed 2 of "
         "59 faults for cpu, 2026-11-26), and of those at most 50% pass full runs, together 0.62%. "
         f"{ASSUMED}"),
        (proofs, (judged(equivalence=replace(SEEN, rho=1.0)), HELD), "full runs alone (why)"),
        (proofs, (None, HELD), UNKNOWN), (proofs, (judged(), HELD), UNKNOWN),
        (proofs, (judged(equivalence=SEEN), WORSE), UNKNOWN),
        (saving, (SAVED, HELD), "$1,200 per year ($900.00 to $1,500)"),
        (saving, (replace(SAVED, interval_usd_per_year=None), Claims(money=MoneyClaim.IF_ON)),
         "$1,200 per year if on"),
        (saving, (SAVED, Claims()), f"not stated: {NO_AMOUNT[MoneyClaim.OFF]}"),
        (saving, (None, HELD), UNKNOWN),
        (with_sign, (0.00123,), "+0.0012"), (with_sign, (-0.00123,), f"{MINUS}0.0012"),
        (with_sign, (0.0,), "0"), (bounds, (None, with_sign), ""),
        (evaluation_words, (SPLIT,),
         f"{AMONG}; 8,000 examples would spare 12 runs of each arm."),
        (evaluation_words, (replace(SPLIT, best_examples=None),), f"{AMONG}."),
        (evaluation_words, (replace(SPLIT, runs_saved=None),), f"{AMONG}."),
        (evaluation_words, (replace(ODD, runs_saved=None),),
         AMONG.replace("4 comes", "4.1 comes").replace("64%", "73%").replace("3 from", "2.5 from")
         + "."),
        *((evaluation_words, (one,), "") for one in NO_SPLIT),
        (split_of, (Made(quality=None),), None),
        *((split_of, (Made(quality=Made(evaluation=one)),), one) for one in (NO_SPLIT[2], SPLIT)),
        (split_of, (Made(quality=Made(evaluation=NO_SPLIT[1])),), None),
        (fall_in_check, (ConfirmedFall(Made(fall=Fall(0.1, 3, 3)), speedup=0.9),),
         "0.90x in the 3 runs of each arm that checked the alarm"),
        (fall_in_check, (ConfirmedFall(Made(fall=Fall(0.1, 3, 2)), delta=0.054),),
         "Δ +0.054 in the 3 runs of the candidate that checked the alarm"),
    ],
)  # fmt: skip
def test_each_figure_is_said_with_what_it_is_of_or_not_at_all(say, of_what, words):
    assert words == say(*of_what)


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


def test_a_candidate_without_a_result_has_the_reason_why_once():
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
        *((code, changes, None) for code in (PROVEN, DISAGREES) for changes in (
            {"speed": replace(SPEED, full_runs=0)}, {"speed": replace(SPEED, predicted=None)},
            {"speed": replace(SPEED, lower_bound=None)}, {"speed": None}, {"arm": "other"},
            {"verdict": Verdict.PROMOTE}, {"verdict": Verdict.PERMANENT},
        )),
        ("quality_held", {}, None),
    ],
)  # fmt: skip
def test_the_blocks_figure_is_called_theirs_where_whole_jobs_decide(code, changes, words):
    values = {"verdict": Verdict.STAY_OFF, "arm": "compile", "speed": SPEED, "lead": "compile"}
    values = {**values, "measured": Made(thresholds=(1.1, 1.2)), **changes}
    if measured := values["measured"]:
        measured.lead = Made(name=values["lead"])
    decision = decided(Reason(code, "as recorded", values["arm"]), speed=values["speed"],
                       verdict=values["verdict"])  # fmt: skip

    assert [words or "as recorded"] == [one.message for one in shown_reasons(decision, measured)]
