"""What would change the verdict, checked against sums done another way."""

from __future__ import annotations

import math
import re
import statistics

import pytest

from compilegate.domain.reasons.registry import advice
from compilegate.report.recommendations import REVERTED, recommendations
from compilegate.report.trial_report import read_trial_report
from tests.domain.evidence_builder import judge
from tests.report import stories


def _sentences(story, **decision):
    return recommendations(
        read_trial_report({**story, "decision": {**story["decision"], **decision}})
    )


def test_a_run_too_short_for_its_compile_time_is_told_the_length_it_needs():
    story = stories.promote()
    for arm in story["evidence"]["arms"][:2]:
        arm["full_run_steps"] = 150
    found = _sentences(story, verdict="stay_off",
                       reasons=[{"code": "speedup_too_small", "message": "x"}])  # fmt: skip
    needed = int(re.search(r"From ([\d,]+) steps on \(now 150\)", found[0])[1].replace(",", ""))
    measured = read_trial_report(story).measured
    base, ours = measured.baseline.steady, measured.lead.steady

    def gain(steps):
        return sum(s.full_run_seconds(steps) for s in base) / sum(
            s.full_run_seconds(steps) for s in ours
        )

    assert gain(needed - 1) < 1.2 <= gain(needed)


def test_where_steps_gain_nothing_no_run_length_helps():
    first = _sentences(stories.stay_off())[0]

    assert first.startswith("Not a longer run")
    assert re.search(r"only 1\.0\dx", first)


def test_an_unproven_quality_names_the_provable_margin():
    story = stories.inconclusive()
    found = _sentences(story)

    assert story["decision"]["quality"]["runs_needed"] is None
    assert "over 500 runs per arm" in found[0]
    assert "could be proven" in found[1]


def test_an_unproven_quality_within_reach_names_runs_and_their_price():
    story = stories.inconclusive()
    quality = {**story["decision"]["quality"], "runs_needed": 40}

    first = _sentences(story, quality=quality)[0]
    assert re.findall(r"\$?[\d.]*\d%?", first) == ["40", "0.005", "80%", "38", "$3.80"]


def test_a_promotion_names_the_bound_the_margin_and_the_runs_that_would_undo_it():
    story = stories.promote()
    found = " ".join(_sentences(story))

    assert "At 1.10x or less" in found
    assert f"Fewer than {math.ceil(story['decision']['saving']['payback_runs'])} further" in found
    assert "fingerprint" in found


def test_an_ineligible_job_is_told_the_fixes_once():
    assert _sentences(stories.ineligible()) == [
        "Use tree_method=hist or a larger instance instead."
    ]


def test_an_invalid_comparison_is_told_how_to_become_valid():
    assert _sentences(stories.invalid())[0] == advice("treatment_not_applied")


def test_an_open_trial_names_its_next_step_and_price():
    step = {"stage": "speed", "why": "3 more blocks", "usd": 0.06}
    found = _sentences(stories.promote(), verdict="continue", next=step)

    assert found[0] == "Next: 3 more blocks (about $0.06)."


def _named(sentences, opening):
    return next(text for text in sentences if text.startswith(opening))


def test_an_underpowered_trial_names_the_margin_that_the_judge_does():
    story = stories.underpowered()
    margin = re.search(r"margin of ([\d.]+),", story["decision"]["reasons"][0]["message"])[1]
    found = _named(_sentences(story), "A wider margin")

    assert float(re.search(r"margin: ([\d.]+) could", found)[1]) == pytest.approx(
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
def test_the_judge_begins_an_underpowered_trial_once_one_of_its_changes_is_made(
    opening, pattern, change
):
    story = stories.underpowered()
    found = _named(_sentences(story), opening)
    change(story["evidence"], float(re.search(pattern, found)[1]))

    assert judge(story["evidence"]).verdict == "continue"


def _calm(history, spread):
    centre, now = statistics.fmean(history), statistics.stdev(history)
    history[:] = [centre + (value - centre) * spread / now for value in history]


def test_a_trial_that_cannot_pay_names_the_runs_to_come_from_which_it_would():
    story = stories.underpowered()
    story["evidence"]["quality"]["history"] = []
    story["evidence"]["runs_remaining"] = 3
    decision = judge(story["evidence"])
    reasons = [{"code": r.code, "message": r.message} for r in decision.reasons]
    found = _sentences(story, reasons=reasons)
    needed = int(re.search(r"from ([\d,]+) on it would pay \(now 3\)", found[0])[1])

    assert [r["code"] for r in reasons] == ["saving_below_trial_cost"]
    assert _verdict_with(story, needed - 1) == "inconclusive"
    assert _verdict_with(story, needed) == "continue"


def _verdict_with(story, remaining):
    return judge({**story["evidence"], "runs_remaining": remaining}).verdict


def test_a_trial_out_of_time_names_the_job_limit_and_an_easier_proof():
    found = _sentences(stories.over_time())

    assert "training.max_runtime_hours" in found[0]
    assert _named(found, "A wider margin")
    assert _named(found, "A metric that varies less")
    assert not [text for text in found if text.startswith("More runs")]


def test_a_trial_out_of_rounds_is_told_to_use_fewer():
    story = stories.ended_by(stories.over_time(), "too_many_rounds", "not settled after 20 rounds")

    assert advice("too_many_rounds") in _sentences(story)


def test_a_proof_that_is_too_dear_names_a_cheaper_mode():
    found = _sentences(stories.ended_by(stories.over_time(), "saving_below_trial_cost", "too dear"))

    assert _named(found, "A cheaper mode")
    assert _named(found, "A shorter proof")


def test_whole_jobs_that_disagree_are_not_answered_with_more_runs():
    found = _sentences(stories.ended_by(stories.over_time(), "full_run_disagrees", "slower"))

    assert found == [advice("trial_over_time"), advice("full_run_disagrees")]


def test_a_candidate_that_was_turned_off_is_told_that_it_must_prove_itself_anew():
    assert [REVERTED] == _sentences(stories.reverted())
