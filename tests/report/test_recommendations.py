"""What would change the verdict, checked against sums done another way."""

import re
import statistics

import pytest

from compilegate.domain.arithmetic import ratio
from compilegate.domain.formats import duration
from compilegate.domain.reasons import advice
from compilegate.report.words import recommendations
from compilegate.usecases.reports import read_trial_report
from tests.domain.evidence_builder import judge
from tests.report import samples


def _sentences(source, **decision):
    changed = samples.with_decision(source, **decision) if decision else source
    return recommendations(read_trial_report(changed))


def test_a_run_too_short_for_its_compile_time_names_the_length_it_needs():
    source = samples.promote()
    for arm in source["evidence"]["arms"][:2]:
        arm["full_run_steps"] = 150
    sentences = _sentences(source, verdict="stay_off",
                       reasons=[{"code": "speedup_too_small", "message": "x"}])  # fmt: skip
    needed = int(re.search(r"From ([\d,]+) steps on \(now 150\)", sentences[0])[1].replace(",", ""))
    measured = read_trial_report(source).measured
    base, ours = measured.baseline.steady, measured.lead.steady

    def gain(steps):
        return sum(s.full_run_seconds(steps) for s in base) / sum(
            s.full_run_seconds(steps) for s in ours
        )

    assert gain(needed - 1) < 1.2 <= gain(needed)


def _ended_by(code):
    return samples.ended_by(samples.over_time(), code, "ended")


SHORT = "Steadier or more short blocks"
# By the verdict, the reasons whose registered advice is what would help.
HELPED = {
    "stay_off": ["not_equivalent", "numerics_wrong", "guardrail_worse"],
    "inconclusive": [
        "saving_unproven", "full_run_unproven", "full_run_implausible", "guardrail_inconclusive",
        "guardrail_unreported", "evidence_missing", "trial_over_budget", "price_unknown",
        "trial_over_time", "too_many_rounds", "baseline_failed", "full_run_disagrees",
    ],
    "invalid": [
        "treatment_not_applied", "arms_differ", "runs_repeated", "unequal_initial_loss",
        "unequal_initial_weights", "unequal_work", "evaluation_sets_differ", "evidence_invalid",
        "clock_implausible", "evidence_overwritten",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "code"), [(verdict, code) for verdict, codes in HELPED.items() for code in codes]
)
def test_the_registered_advice_of_what_decided_would_help(verdict, code):
    assert advice(code) in _sentences(_ended_by(code), verdict=verdict)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("full_run_unmeasured", advice("full_run_disagrees")), ("speed_inconclusive", SHORT),
        ("speed_needs_blocks", SHORT), ("quality_inconclusive", "A wider margin"),
        ("quality_needs_runs", "A wider margin"), ("underpowered", "A wider margin"),
    ],
)  # fmt: skip
def test_what_is_open_says_what_would_close_it(code, words):
    reasons = [{"code": code, "message": "x"}]
    sentences = _sentences(samples.over_time(), verdict="inconclusive", reasons=reasons, next=None)

    assert [True] == [text.startswith(words) for text in sentences if text[:9] == words[:9]]
    if not code.startswith("full"):
        reasons.append({"code": "full_run_unmeasured", "message": "x"})
        both = _sentences(samples.over_time(), verdict="inconclusive", reasons=reasons, next=None)
        assert (words == SHORT) is any(text.startswith(words) for text in both)


@pytest.mark.parametrize(("steps", "longer"), [((150, 150), True), ((150, 300), False)])
def test_how_long_a_run_must_be_is_known_where_both_arms_do_the_same_steps(steps, longer):
    source = samples.promote()
    for arm, number in zip(source["evidence"]["arms"], steps, strict=False):
        arm["full_run_steps"] = number
    sentences = _sentences(source, verdict="stay_off",
                           reasons=[{"code": "speedup_too_small", "message": "x"}])  # fmt: skip

    assert longer is sentences[0].startswith("A longer run: ")


def test_where_no_run_would_be_long_enough_the_gain_of_a_step_is_said():
    trial = read_trial_report(samples.stay_off())
    base, ours = (arm.steady_step_seconds for arm in (trial.measured.baseline, trial.measured.lead))
    sentence = recommendations(trial)[0]

    assert sentence.startswith("Not a longer run: ")
    assert f"only {ratio(base / ours)} ({duration(base)} against {duration(ours)})" in sentence


def _named(sentences, opening):
    return next(text for text in sentences if text.startswith(opening))


@pytest.mark.parametrize(
    ("opening", "pattern", "change"),
    [
        ("A wider margin", r"margin: ([\d.]+) could",
         lambda evidence, value: evidence["quality"].update(margin=value * 1.01)),
        ("More runs", r"max_quality_runs of (\d+)",
         lambda evidence, value: evidence["policy"].update(max_quality_runs=int(value))),
        ("A metric that varies less", r"less: ([\d.]+) from",
         lambda evidence, value: _calm(evidence["quality"]["history"], value)),
    ],
)  # fmt: skip
def test_the_judge_begins_an_underpowered_trial_after_a_change(opening, pattern, change):
    source = samples.underpowered()
    text = _named(_sentences(source), opening)
    change(source["evidence"], float(re.search(pattern, text)[1]))

    assert judge(source["evidence"]).verdict == "continue"


def _calm(history, spread):
    centre, now = statistics.fmean(history), statistics.stdev(history)
    history[:] = [centre + (value - centre) * spread / now for value in history]


def test_a_trial_that_cannot_pay_names_the_runs_to_come_from_which_it_would():
    source = samples.underpowered()
    source["evidence"]["quality"]["history"] = []
    source["evidence"]["runs_remaining"] = 3
    decision = judge(source["evidence"])
    reasons = [{"code": r.code, "message": r.message} for r in decision.reasons]
    sentences = _sentences(source, reasons=reasons)
    needed = int(re.search(r"from ([\d,]+) on it would pay \(now 3\)", sentences[0])[1])

    assert [r["code"] for r in reasons] == ["saving_below_trial_cost"]
    assert _verdict_with(source, needed - 1) == "inconclusive"
    assert _verdict_with(source, needed) == "continue"


def _verdict_with(source, remaining):
    return judge({**source["evidence"], "runs_remaining": remaining}).verdict
