"""A failure comes first with its cause and fix, in report, message and terminal alike."""

from dataclasses import replace

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.reasons import Reason, advice, registry
from compilegate.report.statements import FAILURES, shown_reasons
from compilegate.report.words import lede
from tests.domain.evidence_builder import document, runs, sample
from tests.report.samples import rendered
from tests.report.test_one_number import trial_of

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


def test_a_failure_of_no_arm_has_the_baselines_cause():
    evidence = document(metrics={name: sample(3, 2.5, 0.001) for name in ("baseline", "compile")})
    for who in ("baseline", "compile"):
        runs(evidence, who, "speed")[0].update(finished=False, step_seconds=[], reason=f"of {who}.")
    trial = trial_of(evidence)
    judged = replace(trial.judged, reasons=(Reason("candidate_crashed", "broke."),))
    (shown,) = shown_reasons(judged, trial.measured)

    assert "broke (short block 0: of baseline)" == shown.message


@pytest.mark.parametrize("code", ["speedup_proven", "full_run_disagrees"])
@pytest.mark.parametrize(
    "changes",
    [{"full_runs": 0}, {"predicted": None}, {"lower_bound": None}, {"verdict": "promote"}],
)
def test_the_blocks_figure_is_as_recorded_where_a_part_of_the_sentence_is_unknown(code, changes):
    evidence = document(metrics={name: sample(6, 2.5, 0.001) for name in ("baseline", "compile")})
    for run in runs(evidence):
        run["wall_seconds"] *= 1.5
    trial = trial_of(evidence)
    speed = trial.judged.speedup
    recorded = Reason(code, "as recorded", "compile")
    judged = replace(trial.judged, reasons=(recorded,), speedup=speed)
    if "verdict" in changes:
        judged = replace(judged, verdict=Verdict(changes["verdict"]))
    else:
        judged = replace(judged, speedup=replace(speed, **changes))

    assert "as recorded" == shown_reasons(judged, trial.measured)[0].message
    whole = replace(trial.judged, reasons=(recorded,))
    assert "as recorded" != shown_reasons(whole, trial.measured)[0].message
    other = replace(whole, candidate="other", reasons=(replace(recorded, arm="other"),))
    for one, measured in ((whole, None), (other, trial.measured)):
        rephrased = "as recorded" != shown_reasons(one, measured)[0].message
        assert rephrased == (code == "speedup_proven")


def test_every_failure_is_registered_and_says_what_helps():
    assert {code for code in FAILURES if not registry()[code].fix} == set()
