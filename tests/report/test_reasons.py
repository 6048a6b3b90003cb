"""A failure comes first with its cause and fix, in report, message and terminal alike."""

import pytest

from compilegate.domain.reasons import advice
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
