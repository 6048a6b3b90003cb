"""What would change the verdict, checked against sums done another way."""

from __future__ import annotations

import math
import re

from compilegate.report.case import read_case
from compilegate.report.settle import what_would_change
from tests.report import stories


def _sentences(story, **decision):
    return what_would_change(read_case({**story, "decision": {**story["decision"], **decision}}))


def test_a_run_too_short_for_its_compile_time_is_told_the_length_it_needs():
    story = stories.promote()
    for arm in story["evidence"]["arms"][:2]:
        arm["full_run_steps"] = 150
    found = _sentences(story, verdict="stay_off",
                       reasons=[{"code": "speedup_too_small", "message": "x"}])  # fmt: skip
    needed = int(re.search(r"from ([\d,]+) steps on \(now 150\)", found[0])[1].replace(",", ""))
    measured = read_case(story).measured
    base, ours = measured.baseline.steady, measured.lead.steady

    def gain(steps):
        return sum(s.full_run_seconds(steps) for s in base) / sum(
            s.full_run_seconds(steps) for s in ours
        )

    assert gain(needed - 1) < 1.2 <= gain(needed)


def test_where_steps_gain_nothing_no_run_length_helps():
    assert _sentences(stories.stay_off())[0].startswith(
        "Not a longer run: even without any compile time a step is only 1.0"
    )


def test_an_unproven_quality_names_the_provable_margin():
    story = stories.inconclusive()
    found = _sentences(story)

    assert story["decision"]["quality"]["runs_needed"] is None
    assert "over 500 runs per arm" in found[0]
    assert "could be proven" in found[1]


def test_an_unproven_quality_within_reach_names_runs_and_their_price():
    story = stories.inconclusive()
    quality = {**story["decision"]["quality"], "runs_needed": 40}

    assert (
        "40 per arm would prove a margin of 0.005 with 80 % chance if nothing is lost, "
        "37 more than there are (about $3.70)" in _sentences(story, quality=quality)[0]
    )


def test_a_promotion_names_the_bound_the_margin_and_the_runs_that_would_undo_it():
    story = stories.promote()
    found = " ".join(_sentences(story))

    assert "were that 1.10x or less" in found
    assert f"Fewer than {math.ceil(story['decision']['saving']['payback_runs'])} further" in found
    assert "fingerprint" in found


def test_an_ineligible_job_is_told_the_fixes_once():
    assert _sentences(stories.ineligible()) == [
        "Use tree_method=hist or a larger instance instead."
    ]


def test_an_invalid_comparison_is_told_how_to_become_valid():
    assert _sentences(stories.invalid())[0].startswith("A run that proves the change was applied")


def test_an_open_trial_names_its_next_step_and_price():
    step = {"stage": "speed", "why": "3 more blocks", "usd": 0.06}
    found = _sentences(stories.promote(), verdict="continue", next=step)

    assert found[0] == "Next: 3 more blocks (about $0.06)."
