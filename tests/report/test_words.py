"""The verdict in words: page, mail and pull request say the same thing."""

from __future__ import annotations

import pytest

from compilegate.report import render
from compilegate.report.case import read_case
from compilegate.report.words import headline, lede
from tests.report import stories


def _headline(story):
    return headline(read_case(story))


def _with_decision(story, **changes):
    return {**story, "decision": {**story["decision"], **changes}}


def test_each_story_is_judged_as_it_is_told():
    assert {name: name for name in stories.STORIES} == {
        name: story()["decision"]["verdict"] for name, story in stories.STORIES.items()
    }


def test_a_promotion_names_the_gain_its_interval_and_that_quality_held():
    assert (
        _headline(stories.promote())
        == "Turn the compiler on: 1.36x faster (95 % interval 1.35 to 1.37), quality held"
    )


def test_a_candidate_without_a_compiler_is_not_called_one():
    story = stories.promote()
    story["evidence"]["arms"][1]["overrides"] = {"instance_type": "ml.p4d.24xlarge"}

    assert _headline(story).startswith("Switch to compile: 1.36x faster")


def test_a_slower_candidate_is_called_slower():
    assert (
        _headline(stories.stay_off())
        == "Leave it off: the candidate is slower, 0.84x (95 % interval 0.83 to 0.84)"
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("speedup_too_small", "1.36x faster, less than the 1.10x worth having"),
        ("speedup_below_promote", "1.36x faster, real but below the 1.20x asked for"),
        ("quality_worse", "1.36x faster, but eval_loss gets worse beyond chance"),
        ("candidate_crashed", "the candidate's training crashed or diverged"),
        ("a_code_of_a_later_judge", "its own words"),
    ],
)
def test_staying_off_says_why(code, expected):
    story = stories.promote()
    speedup = {**story["decision"]["speedup"], "interval": None}
    reasons = [{"code": code, "message": "its own words."}]
    story = _with_decision(story, verdict="stay_off", reasons=reasons, speedup=speedup)

    assert _headline(story) == f"Leave it off: {expected}"


def test_the_reason_of_the_arm_that_decided_comes_before_another_arms():
    story = stories.promote()
    reasons = [
        {"code": "quality_worse", "message": "compile: worse"},
        {"code": "candidate_crashed", "message": "compile-b48: crashed"},
    ]

    assert "gets worse" in _headline(_with_decision(story, verdict="stay_off", reasons=reasons))


def test_an_ineligible_job_that_cannot_pay_is_told_apart_from_one_that_cannot_compile():
    story = stories.ineligible()
    too_short = [{"code": "run_too_short", "message": "Runs are too short."}]

    assert _headline(story) == "Leave it off: no compiler can help this job as it stands"
    assert (
        _headline(_with_decision(story, reasons=too_short))
        == "Leave it off: on this job a compiler cannot earn back what trying it costs"
    )


def test_a_failed_trial_says_what_failed_and_that_nothing_was_switched():
    case = read_case(stories.failed())

    assert headline(case) == "The trial failed: nothing was decided, the flag was left as it was"
    assert lede(case)[0].startswith("ResourceLimitExceeded")


def test_a_promotion_explains_time_quality_and_money():
    assert lede(read_case(stories.promote())) == [
        "A full production run with “compile” takes about 27 % less time, measured in 6 blocks "
        "back to back.",
        "eval_loss is 0.0006 better on average; a loss of 0.05 or more is ruled out.",
        "That saves about $6.36 per year, and the trial is paid back after 24 runs.",
        "The flag was switched on (/compilegate/local/workloads/albert-docs/compiler).",
    ]


@pytest.mark.parametrize("name", list(stories.STORIES))
def test_a_subject_is_one_line_of_ascii_within_the_limit(name):
    subject = render(stories.STORIES[name]()).subject

    assert subject.isascii()
    assert subject.isprintable()
    assert 0 < len(subject) <= 100


def test_a_long_subject_is_cut_and_says_so():
    story = stories.inconclusive()
    story["decision"]["workload"] = "w" * 32
    subject = render(story).subject

    assert subject.endswith("...")
    assert len(subject) <= 100


def test_the_message_has_verdict_reasons_figures_flag_and_how_to_see_the_report():
    lines = render(stories.promote()).message.splitlines()

    assert lines[0] == (
        "albert-docs: Turn the compiler on: 1.36x faster (95 % interval 1.35 to 1.37), "
        "quality held."
    )
    assert "- compile: eval_loss: a loss of 0.05 or more is ruled out" in lines
    assert lines[-1] == "See the report: compilegate report albert-docs --trial m2k4t7xz --local"
    assert len(lines) <= 14


def test_outside_the_laptop_the_message_names_no_local_flag():
    story = stories.promote()
    story["context"]["stage"] = "prod"

    assert render(story).message.splitlines()[-1].endswith("--trial m2k4t7xz")
