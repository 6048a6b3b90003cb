"""A failure comes first with its cause and fix, in report, message and terminal alike."""

from dataclasses import replace

import pytest

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import Verdict
from compilegate.domain.formats import MINUS
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.reasons import Reason, advice, registry
from compilegate.report.statements import FAILURES, shown_reasons
from compilegate.report.words import lede
from compilegate.usecases.reports import read_trial_report, silent_arms
from tests.domain.evidence_builder import GOOD, add_candidate, arm, document, runs, sample
from tests.report import samples
from tests.report.samples import rendered
from tests.report.test_one_number import RATIO, trial_of

OUT_OF_MEMORY = "CUDA out of memory"


def crashed_block(evidence, arm):
    run = runs(evidence, arm, "speed")[1]
    run.update(finished=False, step_seconds=[], reason=OUT_OF_MEMORY)


def crashed_run(evidence, arm):
    run = runs(evidence, arm)[1]
    run.update(finished=False, metric=None, reason=OUT_OF_MEMORY)


def not_applied(evidence, arm):
    for run in runs(evidence, arm):
        run.update(applied=False, compiler={"applied": False, "proof": OUT_OF_MEMORY})


FAILED = [
    (crashed_block, "compile", "candidate_crashed", "short block 1"),
    (crashed_run, "compile", "candidate_crashed", "full run with seed 18"),
    (crashed_block, "baseline", "baseline_failed", "short block 1"),
    (not_applied, "compile", "treatment_not_applied", "full run with seed 17"),
]


@pytest.mark.parametrize(("fail", "arm", "code", "place"), FAILED)
def test_a_failure_is_told_with_what_the_job_said_and_what_helps(fail, arm, code, place):
    evidence = document(metrics={name: sample(3, 2.5, 0.001) for name in ("baseline", "compile")})
    fail(evidence, arm)
    trial = trial_of(evidence)
    first = trial.reasons[0]
    report = rendered(trial.source)
    said = f"({place}: {OUT_OF_MEMORY}). Fix: {advice(code).rstrip('.')}"

    assert (code, advice(code)) == (first.code, first.fix)
    assert said in report.message.split("\n\n")[1].splitlines()[0]
    assert said in lede(trial)[0]
    assert f"{place}: {OUT_OF_MEMORY}" in report.html.partition("</section>")[0]
    assert f"{place}: {OUT_OF_MEMORY}" in report.markdown


def test_a_failure_of_another_candidate_comes_before_what_only_explains():
    reasons = [
        {"code": "speedup_too_small", "arm": "compile", "message": "compile: 1.01x"},
        {"code": "start_unknown", "arm": "compile", "message": "compile: no seed"},
        {"code": "candidate_crashed", "arm": "compile-b48", "message": "compile-b48: crashed"},
    ]
    source = samples.with_decision(samples.promote(), verdict="stay_off", reasons=reasons)

    assert ["speedup_too_small", "candidate_crashed", "start_unknown"] == [
        reason.code for reason in read_trial_report(source).reasons
    ]


def test_where_whole_jobs_disagree_the_blocks_figure_is_called_that_of_short_blocks():
    evidence = document(metrics={name: sample(6, 2.5, 0.001) for name in ("baseline", "compile")})
    for run in runs(evidence):
        run["wall_seconds"] *= 1.5
    trial = trial_of(evidence)
    said = {one.code: one.message for one in trial.reasons}
    predicted, whole = trial.judged.speedup.predicted.estimate, trial.judged.speedup.estimate
    blocks = f"the short blocks alone predict {ratio(predicted)}"

    assert said["full_run_disagrees"].endswith(f"required is 1.10x; {blocks}")
    assert {ratio(whole), "1.10x", ratio(predicted)} == set(
        RATIO.findall(said["full_run_disagrees"])
    )
    assert said["speedup_proven"].startswith(f"compile: {blocks} and prove more than ")
    assert ratio(whole) not in said["speedup_proven"]


@pytest.mark.parametrize(
    ("recorded", "read"),
    [
        ("1.04x (0.89 to 1.21), significantly below the required 1.20x",
         "1.04x (0.89 to 1.21); the short blocks rule out an average of 1.20x"),
        ("1.15x (1.05 to 1.26), faster, but significantly below the required 1.20x in dollars",
         "1.15x (1.05 to 1.26), faster, but the short blocks rule out an average of 1.20x in "
         "dollars"),
        ("0.60x (0.55 to 0.65), it takes significantly longer than the baseline, which rules it "
         "out at any price",) * 2,
    ],
)  # fmt: skip
def test_what_is_ruled_out_by_short_blocks_is_not_said_of_the_whole_jobs_interval(recorded, read):
    for code in ("speedup_too_small", "speedup_below_promote"):
        reason = {"code": code, "arm": "compile-b48", "message": f"compile-b48: {recorded}"}
        source = samples.with_decision(samples.promote(), reasons=[reason])
        report = rendered(source)

        (shown,) = read_trial_report(source).reasons
        assert f"compile-b48: {read}" == shown.message
        assert all(read in page for page in (report.message, report.html, report.markdown))


def test_a_difference_below_0_has_the_minus_of_the_figures():
    recorded = "compile: eval_accuracy: not 0.005 at a difference of -0.006"
    reason = {"code": "quality_inconclusive", "arm": "compile", "message": recorded}
    source = samples.with_decision(samples.inconclusive(), reasons=[reason])

    (shown,) = read_trial_report(source).reasons
    assert recorded.replace("-", MINUS) == shown.message


CAUSES = {
    "its own arm's": ("compile", "", "compile: broke (short block 0: of compile)"),
    "of no arm: the baseline's": (None, "", "compile: broke (short block 0: of baseline)"),
    "of an arm without evidence": ("other", "", "compile: broke."),
    "with a fix of its own": ("compile", "do it", "compile: broke (short block 0: of compile)"),
}


@pytest.mark.parametrize("name", CAUSES)
def test_a_failure_has_the_cause_of_its_own_arm_and_its_own_fix(name):
    evidence = document(metrics=GOOD)
    for who in ("baseline", "compile"):
        runs(evidence, who, "speed")[0].update(finished=False, step_seconds=[], reason=f"of {who}.")
    trial, (of, fix, message) = trial_of(evidence), CAUSES[name]
    recorded = Reason("candidate_crashed", "compile: broke.", of, fix=fix)
    (shown,) = shown_reasons(replace(trial.judged, reasons=(recorded,)), trial.measured)

    assert (message, fix or advice("candidate_crashed")) == (shown.message, shown.fix)


@pytest.mark.parametrize("code", ["speedup_proven", "full_run_disagrees"])
@pytest.mark.parametrize(
    "changes",
    [{"full_runs": 0}, {"predicted": None}, {"lower_bound": None}, None, {"verdict": "promote"},
     {"arm": "other"}],
)  # fmt: skip
def test_the_blocks_figure_is_as_recorded_where_a_part_of_the_sentence_is_unknown(code, changes):
    evidence = document(metrics={name: sample(6, 2.5, 0.001) for name in ("baseline", "compile")})
    for run in runs(evidence):
        run["wall_seconds"] *= 1.5
    trial = trial_of(evidence)
    speed = trial.judged.speedup
    recorded = Reason(code, "as recorded", "compile")
    judged = replace(trial.judged, reasons=(recorded,), speedup=speed)
    if changes is None:
        judged = replace(judged, speedup=None)
    elif "verdict" in changes:
        judged = replace(judged, verdict=Verdict(changes["verdict"]))
    elif "arm" in changes:
        judged = replace(judged, reasons=(replace(recorded, arm="other"),))
    else:
        judged = replace(judged, speedup=replace(speed, **changes))

    assert "as recorded" == shown_reasons(judged, trial.measured)[0].message
    whole = replace(trial.judged, reasons=(recorded,))
    assert "as recorded" != shown_reasons(whole, trial.measured)[0].message
    other = replace(whole, candidate="other", reasons=(replace(recorded, arm="other"),))
    for one, measured in ((whole, None), (other, trial.measured)):
        rephrased = "as recorded" != shown_reasons(one, measured)[0].message
        assert rephrased == (code == "speedup_proven")


def test_without_evidence_reasons_are_as_recorded_with_what_helps():
    decision = read_trial_report(samples.invalid()).decision
    (shown,) = shown_reasons(decision, None)

    assert (decision.reasons[0].message, advice(shown.code)) == (shown.message, shown.fix)
    assert read_evidence(samples.invalid()["evidence"]) is not None


def test_every_failure_is_registered_and_says_what_helps():
    assert {code for code in FAILURES if not registry()[code].fix} == set()


@pytest.mark.parametrize(
    ("jobs", "code"),
    [(3, "evidence_missing"), (2, "speed_needs_blocks"), (0, "speed_needs_blocks")],
)
def test_a_candidate_that_left_nothing_is_told_by_its_own_reason_where_another_decides(jobs, code):
    evidence = document(metrics=GOOD)
    add_candidate(evidence, "silent", speedup=1.2)
    arm(evidence, "silent")["runs"] = []
    names = [f"s{number}" for number in range(jobs)]
    other = {"s9": ["compile"]}
    evidence["plan"] = {"unmeasured_by_job": {**{name: ["silent"] for name in names}, **other}}
    trial = trial_of(evidence)
    said = {reason.arm: reason for reason in trial.reasons}

    assert ("promote", "compile") == (trial.verdict, trial.candidate)
    assert (code, "speedup_proven") == (said["silent"].code, trial.reasons[0].code)
    assert (advice(code) if jobs == 3 else "") == said["silent"].fix
    assert (jobs == 3) == all(name in said["silent"].message for name in ["3 speed jobs", *names])


def test_where_that_ended_the_trial_it_is_said_once():
    evidence = document(blocks=1)
    arm(evidence)["runs"] = []
    evidence["plan"] = {"unmeasured_by_job": {f"s{number}": ["compile"] for number in range(3)}}
    unsettled = trial_of(evidence)
    ended = shown_reasons(
        replace(unsettled.decision, reasons=(own := silent_arms(evidence)["compile"],
                                             *unsettled.decision.reasons)),
        None, silent=silent_arms(evidence),
    )  # fmt: skip

    assert [own.code, "speed_needs_blocks"] == [reason.code for reason in ended]


@pytest.mark.parametrize(
    "plan", [None, 1, {"unmeasured_by_job": 1}, {"unmeasured_by_job": {"s": 1}}]
)
def test_evidence_that_is_broken_names_no_arm_that_left_nothing(plan):
    assert {} == silent_arms({"plan": plan}) == silent_arms({}) == silent_arms(None)
