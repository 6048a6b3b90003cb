"""The runs that are no result, and what is said of their end."""

from __future__ import annotations

import pytest

from compilegate.domain.judging.measured import measure
from tests.domain.evidence_builder import GOOD, document, judge, runs


@pytest.mark.parametrize(
    ("applied", "compiler", "said"),
    [
        (False, {"applied": False, "proof": "no graph"}, "no graph"),
        (False, {"applied": False, "proof": ""}, None),
        (False, "none", None),
        (True, {"applied": True, "proof": "kernels"}, None),
    ],
)
def test_the_first_run_without_the_change_is_named_with_its_compilers_words(
    applied, compiler, said
):
    evidence = document(metrics=GOOD)
    first, second, *_ = runs(evidence)
    first.update(finished=False, metric=None, applied=applied, compiler=compiler)
    second.update(applied=applied, compiler=compiler)
    measured, _ = measure(evidence, judge(evidence))

    ended = measured.lead.unapplied
    assert said == (ended and ended.said)
    assert ended is None or ended.run is measured.lead.arm.quality[1]


def test_the_first_run_that_failed_and_said_why_is_named():
    evidence = document(metrics=GOOD)
    sound, silent, loud, *_ = runs(evidence)
    sound.update(reason="a remark")
    silent.update(finished=False, metric=None, reason="")
    loud.update(finished=False, metric=None, reason="out of memory")
    measured, _ = measure(evidence, judge(evidence))

    assert (measured.lead.arm.quality[2], "out of memory") == (
        measured.lead.failed.run, measured.lead.failed.said,
    )  # fmt: skip
    assert measured.baseline.failed is None
