"""What would change the verdict, checked against sums done another way."""

import re
import statistics

import pytest

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


@pytest.mark.parametrize("code", ["saving_unproven", "full_run_unproven"])
def test_whole_jobs_that_prove_too_little_say_what_would_help(code):
    assert advice(code) in recommendations(read_trial_report(_ended_by(code)))


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
