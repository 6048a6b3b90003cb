"""The verdict in words: page, mail and pull request say the same."""

from dataclasses import replace

import pytest

from compilegate.domain.claims import ALARM, FLAG_STATES, VERDICTS
from compilegate.domain.codec import read
from compilegate.domain.formats import MINUS
from compilegate.domain.notes import SCRIPT_COMPILES, Note
from compilegate.domain.reasons import headline as template
from compilegate.domain.records.trials import FlagOutcome
from compilegate.report.statements import confidence_words
from compilegate.report.words import (
    LONGEST,
    Mark,
    control_sentences,
    figures_of,
    headline,
    label,
    lede,
    metric_cards,
)
from compilegate.usecases.reports import read_trial_report
from tests.decision_builder import control_figures
from tests.report import samples
from tests.report.samples import rendered, with_decision

FIGURES = {
    "speed": "1.34x faster", "times": "1.34x", "but": "1.34x faster, but ",
    "metric": "eval_loss", "margin": "0.05", "promote": "1.20x", "reject": "1.10x",
}  # fmt: skip
LATER = "a_code_of_a_later_judge"


def _headline(source):
    return headline(read_trial_report(source))


def _registered(code, variant=None):
    """The registry's headline with the promotion's figures; an unknown reason's own words."""
    return template(code, variant).format(**FIGURES) or "its own words"


def _decided(verdict, code, **changes):
    """The promotion's records, decided by a reason; two others follow it."""
    reasons = [
        {"code": code, "message": "its own words."},
        {"code": "quality_needs_runs", "message": "compile: full runs are missing"},
        {"code": "speedup_proven", "message": "compile: 1.34x, proven above 1.10x"},
    ]
    return with_decision(samples.promote(), verdict=verdict, reasons=reasons, **changes)


def another_first():
    """Before the candidate that won stands one that compiles."""
    source = samples.cheaper_cluster()
    arms = source["evidence"]["arms"]
    overrides = {"compiler": "torch_compile"}
    arms.insert(1, {**arms[0], "name": "compile", "overrides": overrides, "runs": []})
    return source


def unstarted(arms):
    """Of so many arms there are runs."""
    source = _decided("inconclusive", "underpowered")
    for arm in source["evidence"]["arms"][arms:]:
        arm["runs"] = []
    return source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (samples.promote, "Turn the compiler on: 1.34x faster, quality held"),
        (samples.cheaper_cluster, "Switch to g5-2x: 51% cheaper a run at 1.013x the speed, "
                                  "quality held"),
        (samples.ineligible, "Leave it off: no compiler can help this job in its current form"),
        (lambda: with_decision(samples.ineligible(), reasons=[{"code": "run_too_short"}]),
         "Leave it off: a trial here would cost more than a compiler can save"),
        (lambda: with_decision(samples.ineligible(),
                               reasons=[{"code": "saving_below_trial_cost"}]),
         "Leave it off: a trial here would cost more than a compiler can save"),
        (another_first, "Switch to g5-2x: 51% cheaper a run at 1.013x the speed, quality held"),
        (lambda: unstarted(0), f"Not tried: {_registered('underpowered')}"),
        (lambda: unstarted(1), f"Not proven: {_registered('underpowered')}"),
        (lambda: {**_decided("inconclusive", "underpowered"), "evidence": None},
         f"Not proven: {_registered('underpowered')}"),
        (samples.failed, "The trial failed: nothing was decided, the flag was left as it was"),
        (samples.underpowered,
         f"Not tried: {_registered('underpowered').replace('0.05', '0.02')}"),
        (lambda: with_decision(samples.promote(), verdict="continue", speedup=None),
         "In progress: nothing measured yet"),
    ],
)  # fmt: skip
def test_a_headline_says_what_to_do_and_why(source, expected):
    assert _headline(source()) == expected


@pytest.mark.parametrize(
    ("verdict", "code", "variant", "opening", "stage"),
    [
        ("stay_off", "speedup_too_small", None, "Leave it off", "quality"),
        ("stay_off", LATER, None, "Leave it off", "quality"),
        ("inconclusive", "trial_over_time", None, "Not proven", "quality"),
        ("inconclusive", "saving_below_trial_cost", None, "Not proven", "quality"),
        ("inconclusive", "speed_inconclusive", "faster_not_clearly", "Not proven", "quality"),
        ("revert", "candidate_crashed", "probation", "Turned back off", "probation"),
        ("continue", "alarm", None, "On probation", "probation"),
        ("stay_off", "candidate_crashed", None, "Leave it off", "quality"),
        ("inconclusive", "trial_over_budget", "plan", "Not tried", "plan"),
        ("inconclusive", "trial_over_budget", None, "Not proven", "quality"),
        ("inconclusive", "trial_over_time", None, "Not tried", "plan"),
    ],
)
def test_the_reason_that_decided_is_the_headlines(verdict, code, variant, opening, stage):
    source = _decided(verdict, code, stage=stage)

    assert _headline(source) == f"{opening}: {_registered(code, variant)}"
    assert len(_headline(source)) <= LONGEST
    if verdict == "inconclusive":
        assert not rendered(source).subject.endswith("...")


@pytest.mark.parametrize(
    ("changes", "variant", "code"),
    [
        ({"lower_bound": 1.101}, "faster_not_clearly", "speed_inconclusive"),
        ({"lower_bound": 1.1}, None, "speed_inconclusive"),
        ({"lower_bound": None}, None, "speed_inconclusive"),
        (None, "no_steady_state", "speed_inconclusive"),
        ({"interval": [0.8, 0.9]}, "slower", "speedup_too_small"),
        ({"interval": [0.8, 0.9]}, "slower", "full_run_disagrees"),
    ],
)
def test_a_headline_says_how_the_speed_stands_to_what_is_required(changes, variant, code):
    source = _decided("stay_off", code)
    speed = changes and {**source["decision"]["speedup"], **changes}
    said = _headline(with_decision(source, speedup=speed))

    words = template(code, variant).partition("{")[0]
    assert said.startswith(f"Leave it off: {words}")
    other = template(code, "faster_not_clearly" if variant is None else None)
    assert other.format(**FIGURES) not in said


@pytest.mark.parametrize("code", ["speedup_too_small", "quality_worse", "speed_inconclusive"])
def test_what_the_records_do_not_say_is_named_in_a_headline(code):
    source = _decided("stay_off", code, quality=None)
    trial = read_trial_report({**source, "evidence": None})
    unknown = {"promote": "speed-up", "reject": "speed-up", "margin": "the size set",
               "metric": trial.metric}  # fmt: skip

    assert f"Leave it off: {template(code, None).format(**FIGURES | unknown)}" == headline(trial)
    assert None is metric_cards(trial)[0].bullet


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("b" * 56 + ".", "b" * 56), ("b" * 57, "Leave it off..."),
        (f"{'b' * 50} cccccc", f"{'b' * 50}..."), (f"{'b' * 53} ccc", f"{'b' * 53}..."),
        (f"{'b' * 30} {'c' * 24} dd", f"{'b' * 30}..."),
        (f"a {'b' * 48}, (cccccc", f"a {'b' * 48}..."),
        (f"two\n lines {'b' * 43}", f"two lines {'b' * 43}"),
    ],
)  # fmt: skip
def test_a_reason_of_a_later_judge_is_cut_between_words(message, words):
    source = with_decision(
        _decided("stay_off", LATER), reasons=[{"code": LATER, "message": message}]
    )
    whole = words if words.startswith("Leave") else f"Leave it off: {words}"

    assert whole == _headline(source)


def test_the_quality_card_says_how_sure_it_is_and_against_what():
    source = samples.with_history()
    trial = read_trial_report(source)
    note = metric_cards(trial)[1].note

    assert f"; {confidence_words(trial.judged.quality)}; reference: " in note
    assert trial.measured.reference.words in note


def test_only_the_reason_that_decided_is_a_failure_of_the_whole_trial():
    source = samples.promote()
    crashed = {"code": "candidate_crashed", "message": "It crashed."}
    first, *_ = source["decision"]["reasons"]
    sentences = lede(read_trial_report(with_decision(source, reasons=[first, crashed])))

    assert [] == [text for text in sentences if "It crashed" in text]


def test_labels_say_how_a_probation_and_a_failed_trial_stand():
    made = [
        _decided("continue", "alarm", stage="probation"), _decided("continue", "x"),
        _decided("continue", "x", stage="probation"), samples.failed(), samples.promote(),
    ]  # fmt: skip

    assert [ALARM, VERDICTS["continue"], FLAG_STATES["probation"], VERDICTS["failed"],
            VERDICTS["promote"]] == [label(read_trial_report(one)) for one in made]  # fmt: skip


def test_of_a_script_that_compiles_the_message_says_what_the_figures_are_against():
    source = samples.promote()
    place = {"script": "train.py", "line": 3, "source": "model = torch.compile(model)"}
    notes = (Note(SCRIPT_COMPILES, place),)
    compiling = {**source, "plan": replace(source["plan"], notes=notes)}

    assert "not against the job as it runs today" in rendered(compiling).message
    assert "already compiles" not in rendered(source).message


APPROVED = {"approved": True, "by": "human:ana", "at": 1, "reason": "Go"}
REFUSED = {"approved": False, "by": "human:ana", "at": 1, "reason": "Not before the release."}
CHANGE = {"by": "human:ana", "at": 1, "reason": "Code freeze"}


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ({"approved": True, "approval": APPROVED}, "on (F). ana approved it: “Go”."),
        ({"approved": False, "approval": REFUSED},
         "left as it was (F). The promotion was not approved by ana: “Not before the release”."),
        ({"approved": False, "approval": None},
         "left as it was (F). The promotion was not approved."),
        ({"approved": True, "held_by": CHANGE},
         "left as it was (F). The change by ana outranks it, because it is newer than the "
         "evidence: “Code freeze”."),
        ({"approved": True, "overrode": CHANGE},
         "on (F). Newer evidence replaced the change by ana: “Code freeze”."),
    ],
)  # fmt: skip
def test_answers_and_manual_changes_stand_wherever_the_verdict_does(flag, words):
    source = with_decision(samples.promote(), flag={"name": "F", "action": "enable"})
    source["flag"] = read(FlagOutcome, flag)
    report = rendered(source)

    assert lede(read_trial_report(source))[-1].endswith(words)
    assert words in report.message
    assert words.split("“")[-1] in report.html


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ({"speedup": 0.91, "compiler_speedup": 1.4},
         "0.91x of the baseline; the compiler alone on them: 1.40x."),
        ({"speedup": None, "compiler_speedup": None, "reason": "out of memory."},
         "not measured: out of memory."),
    ],
)  # fmt: skip
def test_a_control_says_what_was_measured_of_it(control, words):
    assert control_sentences([control_figures("native", **{"reason": None, **control})]) == [
        f"The same versions without the compiler (native): {words}"
    ]


@pytest.mark.parametrize(
    ("estimate", "interval", "low", "high"),
    [
        (1.4, (1.2, 1.5), 1.0, 1.5),
        (0.8, (0.7, 0.9), 0.7, 1.1),
        (1.2, (1.1, 1.2), 1.0, 1.2),
        (1.2, (0.1, 9.0), 0.7, 1.5),  # one and a half of the 0.2 between 1x and 1.2x beyond them
    ],
)
def test_a_scale_of_the_speed_up_holds_limits_estimate_and_what_has_room_of_the_interval(
    estimate, interval, low, high
):
    """Eight percent of what is between the ends are left on both sides."""
    source = samples.promote()
    speed = {**source["decision"]["speedup"], "estimate": estimate, "interval": list(interval)}
    cards = metric_cards(read_trial_report(with_decision(source, speedup=speed)))
    bullet = cards[0].bullet

    def at(value):
        return pytest.approx(100 * ((value - low) / (high - low) + 0.08) / 1.16, abs=0.02)

    ends = (max(low, interval[0]), min(high, interval[1]))
    assert (at(estimate), at(ends[0])) == (bullet.point, bullet.band[0])
    assert bullet.band[0] == round(bullet.band[0], 2)
    assert at(ends[1]) == sum(bullet.band)
    apart = 100 * 0.1 / (high - low) / 1.16 >= 17
    sides = ("middle", "middle") if apart else ("end", "start")
    limits = [(at(1.0), "1x", "plain"), (at(1.1), "1.10x", "bad")]
    assert [Mark(*one, side) for one, side in zip(limits, sides, strict=True)] == bullet.marks
    assert figures_of(cards)[0] == (cards[0].name, f"{estimate:.2f}x", cards[0].note)


@pytest.mark.parametrize(
    ("goal", "estimate", "interval", "ends", "marks"),
    [
        ("minimize", 0.01, (-0.02, 0.04), (-0.04, 0.05), [(0.0, "equal"), (0.05, "+0.05")]),
        ("maximize", 0.01, (-0.02, 0.04), (-0.05, 0.04), [(-0.05, f"{MINUS}0.05"), (0.0, "equal")]),
        ("minimize", -0.2, None, (0.0, 0.2), [(0.0, "equal"), (0.05, "+0.05")]),
    ],
)
def test_a_scale_of_quality_goes_from_equal_to_the_margin(goal, estimate, interval, ends, marks):
    """The decision's figures are in the direction of the goal, those of the scale the metric's."""
    source = samples.promote()
    judged = {**source["decision"]["quality"], "goal": goal, "estimate": estimate,
              "interval": interval and list(interval)}  # fmt: skip
    trial = read_trial_report(with_decision(source, quality=judged))
    bullet, (low, high) = metric_cards(trial)[1].bullet, ends

    def at(value):
        return pytest.approx(100 * ((value - low) / (high - low) + 0.08) / 1.16, abs=0.02)

    assert at(trial.judged.quality.delta) == bullet.point
    assert [(at(x), text) for x, text in marks] == [(m.at, m.text) for m in bullet.marks]
    assert ["bad" if text != "equal" else "plain" for _, text in marks] == [
        mark.kind for mark in bullet.marks
    ]
    seen = trial.judged.quality.delta_interval
    assert bullet.band is None if seen is None else True
    if seen:
        assert (at(seen[0]), at(seen[1])) == (bullet.band[0], sum(bullet.band))
