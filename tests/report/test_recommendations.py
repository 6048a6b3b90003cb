"""What would change the verdict, checked against sums done another way."""

import math
import re
import statistics

import pytest

from compilegate.domain.codec import write
from compilegate.domain.decision import SpeedStep
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


def _next_step():
    step = SpeedStep(3, 3, 100, ("baseline", "compile"), usd=0.06, why="3 more blocks")
    return samples.with_decision(samples.promote(), verdict="continue", next=write(step))


@pytest.mark.parametrize(
    ("source", "first", "openings"),
    [
        (samples.ineligible, "Use tree_method=hist or a larger instance instead.", []),
        (samples.invalid, advice("treatment_not_applied"), []),
        (samples.reverted, "Remove the cause above", []),
        (samples.failed, "Fix this and rerun", []),
        (_next_step, "Next: 3 more blocks (about $0.06).", []),
        (samples.stay_off, "Not a longer run: even without compile time a step is only 1.0", []),
        (samples.inconclusive, "More runs would not help: eval_accuracy varies so much",
         ["A wider margin"]),
        (samples.over_time, advice("trial_over_time"),
         ["A wider margin", "A metric that varies less"]),
        (lambda: _ended_by("too_many_rounds"), advice("trial_over_time"),
         [advice("too_many_rounds")]),
        (lambda: _ended_by("saving_below_trial_cost"), advice("trial_over_time"),
         ["A cheaper mode", "A shorter proof"]),
        (lambda: _ended_by("full_run_disagrees"), advice("trial_over_time"),
         [advice("full_run_disagrees")]),
    ],
)  # fmt: skip
def test_the_most_useful_change_comes_first(source, first, openings):
    sentences = _sentences(source())

    assert sentences[0].startswith(first)
    assert all(_named(sentences, opening) for opening in openings)


@pytest.mark.parametrize("code", ["saving_unproven", "full_run_unproven"])
def test_whole_jobs_that_prove_too_little_say_what_would_help(code):
    assert advice(code) in recommendations(read_trial_report(_ended_by(code)))


@pytest.mark.parametrize("source", [samples.over_time, lambda: _ended_by("full_run_disagrees")])
def test_more_runs_are_not_advised_where_they_cannot_help(source):
    assert not [text for text in _sentences(source()) if text.startswith("More runs")]


def test_an_unproven_quality_within_reach_names_runs_and_their_price():
    source = samples.inconclusive()
    quality = {**source["decision"]["quality"], "runs_needed": 40}

    first = _sentences(source, quality=quality)[0]
    assert re.findall(r"\$?[\d.]*\d%?", first) == ["40", "0.005", "80%", "38", "$3.80"]


@pytest.mark.parametrize(
    ("source", "bar"),
    [
        (samples.promote, "1.10x"),
        pytest.param(samples.cheaper_cluster, "0.55x", id="at half the price an hour"),
    ],
)
def test_a_promotion_names_the_bound_the_margin_and_the_runs_that_would_undo_it(source, bar):
    source = source()
    text = " ".join(_sentences(source))
    payback = math.ceil(source["decision"]["saving"]["payback_runs"])

    assert f"At {bar} or less" in text
    assert f"Fewer than {payback} further" in text
    assert "fingerprint" in text


def _named(sentences, opening):
    return next(text for text in sentences if text.startswith(opening))


def test_an_underpowered_trial_names_the_margin_that_the_judge_does():
    source = samples.underpowered()
    margin = re.search(r"margin of ([\d.]+),", source["decision"]["reasons"][0]["message"])[1]
    text = _named(_sentences(source), "A wider margin")

    assert float(re.search(r"margin: ([\d.]+) could", text)[1]) == pytest.approx(
        float(margin), rel=0.01
    )


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
