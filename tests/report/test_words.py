"""The verdict in words: page, mail and pull request say the same thing."""

from __future__ import annotations

import pytest

from compilegate.domain.reasons.registry import headline as template
from compilegate.report.render import render
from compilegate.report.trial_report import read_trial_report
from compilegate.report.words import LONGEST, headline, lede
from tests.report import stories


def _headline(story):
    return headline(read_trial_report(story))


def _with_decision(story, **changes):
    return {**story, "decision": {**story["decision"], **changes}}


FIGURES = {
    "speed": "1.36x faster", "but": "1.36x faster, but ", "metric": "eval_loss", "margin": "0.05",
    "promote": "1.20x", "reject": "1.10x",
}  # fmt: skip


def _registered(code, variant=None):
    """The registry's headline with the figures of the promoted story; a later judge's own words."""
    return template(code, variant).format(**FIGURES) or "its own words"


def test_each_story_is_judged_as_it_is_told():
    assert stories.VERDICTS == {
        name: story()["decision"]["verdict"] for name, story in stories.STORIES.items()
    }


def test_a_promotion_names_the_gain_and_that_quality_held():
    assert _headline(stories.promote()) == "Turn the compiler on: 1.36x faster, quality held"


def test_a_candidate_without_a_compiler_is_not_called_one():
    story = stories.promote()
    story["evidence"]["arms"][1]["overrides"] = {"instance_type": "ml.p4d.24xlarge"}

    assert _headline(story).startswith("Switch to compile: 1.36x faster")


def test_a_slower_candidate_is_called_slower():
    assert _headline(stories.stay_off()) == "Leave it off: the candidate is slower, 0.84x"


@pytest.mark.parametrize(
    "code",
    ["speedup_too_small", "speedup_below_promote", "quality_worse", "candidate_crashed",
     "a_code_of_a_later_judge"],
)  # fmt: skip
def test_staying_off_says_why(code):
    story = stories.promote()
    speedup = {**story["decision"]["speedup"], "interval": None}
    reasons = [{"code": code, "message": "its own words."}]
    story = _with_decision(story, verdict="stay_off", reasons=reasons, speedup=speedup)

    assert _headline(story) == f"Leave it off: {_registered(code)}"


def test_the_reason_of_the_arm_that_decided_comes_before_another_arms():
    story = stories.promote()
    reasons = [
        {"code": "quality_worse", "message": "compile: worse"},
        {"code": "candidate_crashed", "message": "compile-b48: crashed"},
    ]

    found = _headline(_with_decision(story, verdict="stay_off", reasons=reasons))
    assert found == f"Leave it off: {_registered('quality_worse')}"


def test_an_ineligible_job_that_cannot_pay_is_told_apart_from_one_that_cannot_compile():
    story = stories.ineligible()
    too_short = [{"code": "run_too_short", "message": "Runs are too short."}]

    assert _headline(story) == "Leave it off: no compiler can help this job in its current form"
    assert (
        _headline(_with_decision(story, reasons=too_short))
        == "Leave it off: a trial here would cost more than a compiler can save"
    )


def test_a_failed_trial_says_what_failed_and_that_nothing_was_switched():
    report = read_trial_report(stories.failed())

    assert headline(report).startswith("The trial failed")
    assert lede(report)[0].startswith("ResourceLimitExceeded")


def test_a_promotion_explains_time_quality_and_money():
    assert lede(read_trial_report(stories.promote())) == [
        "A full production run with “compile” takes about 27% less time, measured in 3 blocks "
        "back to back (95% interval of the speed-up 1.33x to 1.40x).",
        "eval_loss is 0.0006 better on average; a loss of 0.05 or more is ruled out.",
        "That saves about $6.38 per year, and the trial is paid back after 41 runs.",
        "The flag was switched on (/compilegate/local/workloads/albert-docs/compiler).",
    ]


def test_a_probation_tells_the_speed_of_whole_production_jobs():
    first = lede(read_trial_report(stories.passed_probation()))[0]

    assert "less time, measured in production (95% interval of the speed-up" in first


OPEN = [
    ("trial_over_time", None),
    ("too_many_rounds", None),
    ("trial_over_budget", None),
    ("saving_below_trial_cost", None),
    ("underpowered", None),
    ("full_run_disagrees", None),
    ("full_run_unmeasured", None),
    ("speed_inconclusive", "faster_not_clearly"),
    ("quality_inconclusive", None),
    ("baseline_failed", None),
    ("a_code_of_a_later_judge", None),
]


def _decided(verdict, code):
    reasons = [
        {"code": code, "message": "its own words."},
        {"code": "quality_unsettled", "message": "compile: full runs are missing"},
        {"code": "speedup_proven", "message": "compile: 1.36x, proven above 1.10x"},
    ]
    return _with_decision(stories.promote(), verdict=verdict, reasons=reasons)


@pytest.mark.parametrize(("code", "variant"), OPEN)
def test_the_reason_that_ended_the_trial_is_the_headlines(code, variant):
    found = _headline(_decided("inconclusive", code))
    assert found == f"Not proven: {_registered(code, variant)}"


@pytest.mark.parametrize(("code", "variant"), OPEN)
def test_a_headline_and_a_usual_subject_are_one_whole_line(code, variant):
    story = _decided("inconclusive", code)

    assert len(f"Not proven: {_registered(code, variant)}") <= LONGEST
    assert not render(story).subject.endswith("...")


def test_a_speed_up_that_differs_from_block_to_block_is_not_called_faster():
    story = _decided("inconclusive", "speed_inconclusive")
    speedup = {**story["decision"]["speedup"], "lower_bound": 1.02}

    assert (
        _headline(_with_decision(story, speedup=speedup))
        == f"Not proven: {_registered('speed_inconclusive')}"
    )


def test_a_long_reason_of_an_unknown_code_ends_between_words():
    story = stories.promote()
    reasons = [{"code": "a_code_of_a_later_judge", "message": "word " * 40}]
    found = _headline(_with_decision(story, verdict="inconclusive", reasons=reasons))

    assert len(found) <= LONGEST + 1
    assert found.endswith("word...")


def test_a_trial_that_was_refused_is_not_called_tried():
    assert (
        _headline(stories.underpowered())
        == f"Not tried: {_registered('underpowered').replace('0.05', '0.02')}"
    )


@pytest.mark.parametrize(
    ("verdict", "code", "variant", "opening"),
    [
        ("revert", "candidate_crashed", "probation", "Turned back off"),
        ("revert", "quality_regressed", None, "Turned back off"),
        ("revert", "speedup_gone", None, "Turned back off"),
        ("continue", "alarm", None, "On probation"),
        ("continue", "probation_goes_on", None, "On probation"),
    ],
)
def test_a_probation_says_what_production_showed(verdict, code, variant, opening):
    found = _headline(_with_decision(_decided(verdict, code), stage="probation"))
    assert found == f"{opening}: {_registered(code, variant)}"


@pytest.mark.parametrize("name", list(stories.STORIES))
def test_a_subject_is_one_line_of_ascii_within_the_limit(name):
    subject = render(stories.STORIES[name]()).subject

    assert subject.isascii()
    assert subject.isprintable()
    assert 0 < len(subject) <= 100


def test_a_long_subject_drops_the_speed_before_the_reason():
    story = stories.inconclusive()
    story["decision"]["workload"] = "w" * 31

    assert render(story).subject == (
        f"[compilegate local] {'w' * 31}: Not proven: "
        + template("quality_inconclusive").format(but="", metric="eval_accuracy")
    )


@pytest.mark.parametrize("length", [32, 60])
def test_a_subject_that_is_still_too_long_is_cut_and_says_so(length):
    """SNS takes less than 100 characters, and with 32 it would be 100."""
    story = stories.inconclusive()
    story["decision"]["workload"] = "w" * length
    subject = render(story).subject

    assert subject.endswith("...")
    assert len(subject) < 100


def test_the_message_has_verdict_reasons_figures_flag_and_how_to_see_the_report():
    lines = render(stories.promote()).message.splitlines()

    assert lines[0] == "albert-docs: Turn the compiler on: 1.36x faster, quality held."
    assert "- compile: eval_loss: a loss of 0.05 or more is ruled out" in lines
    assert lines[-1] == "See the report: compilegate report albert-docs --trial m2k4t7xz --local"
    assert len(lines) <= 14


def test_outside_the_laptop_the_message_names_no_local_flag():
    story = stories.promote()
    story["context"]["stage"] = "prod"

    assert render(story).message.splitlines()[-1].endswith("--trial m2k4t7xz")


APPROVED = {"approved": True, "by": "human:ana", "at": 1, "reason": "Go"}
REFUSED = {"approved": False, "by": "human:ana", "at": 1, "reason": "Not before the release."}
SILENCE = {"approved": False, "by": "nobody", "at": 1, "reason": "nobody answered"}
WORD = {"by": "human:ana", "at": 1, "reason": "Code freeze"}


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ({"approved": True, "approval": APPROVED}, "on (F). ana approved it: “Go”."),
        (
            {"approved": False, "approval": REFUSED},
            "left as it was (F). The promotion was not approved by ana: “Not before the release”.",
        ),
        (
            {"approved": False, "approval": SILENCE},
            "left as it was (F). The promotion was not approved: “nobody answered”.",
        ),
        (
            {"approved": False, "approval": None},
            "left as it was (F). The promotion was not approved.",
        ),
        (
            {"approved": True, "held_by": WORD},
            "left as it was (F). The change by ana outranks it, because it is newer than the "
            "evidence: “Code freeze”.",
        ),
        (
            {"approved": True, "held_by": {**WORD, "by": "train"}},
            "left as it was (F). The change by the production watch outranks it, because it is "
            "newer than the evidence: “Code freeze”.",
        ),
        (
            {"approved": True, "overrode": WORD},
            "on (F). Newer evidence replaced the change by ana: “Code freeze”.",
        ),
        ({"approved": True}, "on (F)."),
    ],
)
def test_what_people_had_to_say_about_the_flag_is_told_wherever_the_verdict_is(flag, told):
    story = _with_decision(stories.promote(), flag={"name": "F", "action": "enable"})
    report = render({**story, "flag": flag})

    assert lede(read_trial_report({**story, "flag": flag}))[-1].endswith(told)
    assert told in report.message
    assert told.split("“")[-1] in report.html
