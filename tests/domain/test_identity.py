"""Proof by identity: equal final weights prove equal quality, unequal ones mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilegate.domain.decision import IdenticalRuns, Verdict
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.identity import Identity, identity_of
from compilegate_judge.explanation import explain
from compilegate_judge.item import Section
from tests.domain.evidence_builder import codes, document, full_runs, judge, runs

Document = dict[str, Any]
# The baseline's runs vary by far more than the margin, and the candidate's are the same.
EQUAL = {"baseline": [0.70, 0.82], "compile": [0.70, 0.82]}


def with_weights(doc: Document) -> Document:
    """Every run has recorded weights; those of one seed end alike in both arms."""
    for name in ("baseline", "compile"):
        for run in runs(doc, name):
            seed = run["seed"]
            run |= {
                "job": f"{name}-{seed}",
                "initial_weights_sha256": f"initial-{seed}",
                "final_weights_sha256": f"final-{seed}",
                "final_start_sha256": f"start-{seed}",
            }
    return doc


def equal(**more: Any) -> Document:
    return with_weights(document(metrics=EQUAL, **more))


def test_two_identical_pairs_prove_quality_without_statistics():
    plain = judge(document(metrics=EQUAL))
    proven = judge(equal())

    assert Verdict.PROMOTE != plain.verdict
    assert Verdict.PROMOTE == proven.verdict
    assert {"weights_identical", "quality_held"} <= codes(proven)
    assert IdenticalRuns(models=2, unequal=0, proven=True) == proven.quality.identical
    assert (0.0, None) == (proven.quality.estimate, proven.quality.interval)


def test_identity_does_not_excuse_a_slow_candidate():
    assert Verdict.STAY_OFF == judge(equal(speedup=1.02)).verdict


def one(key: str, value: Any, *arms: str) -> Callable[[Document], None]:
    """The last run of each arm has that value."""

    def change(doc: Document) -> None:
        for name in arms or ("compile",):
            runs(doc, name)[-1][key] = value

    return change


def every(key: str, value: Any) -> Callable[[Document], None]:
    def change(doc: Document) -> None:
        for run in full_runs(doc):
            run[key] = value

    return change


def untrained(doc: Document) -> None:
    for run in full_runs(doc):
        run["final_start_sha256"] = run["initial_weights_sha256"]


def unrecorded_data(doc: Document) -> None:
    for item in doc["arms"]:
        for run in item["runs"]:
            del run["fingerprint"]["data_sha256"]


# With what is left of two pairs: models, and pairs that are unequal.
NOT_PROVEN: dict[str, tuple[Callable[[Document], None], tuple[int, int]]] = {
    "one pair ends otherwise": (one("final_weights_sha256", "other"), (1, 1)),
    "one run is not recorded": (one("final_weights_sha256", None), (1, 0)),
    "one of the baseline is not": (one("final_weights_sha256", None, "baseline"), (1, 0)),
    "one initial fingerprint is missing": (one("initial_weights_sha256", None), (1, 0)),
    "both are missing": (one("initial_weights_sha256", None, "baseline", "compile"), (1, 0)),
    "other data": (
        lambda doc: runs(doc)[-1]["fingerprint"].update(data_sha256="other"), (1, 0)),
    "the same weights scored a little otherwise": (one("metric", 0.8200000004), (1, 1)),
    "other initial weights": (one("initial_weights_sha256", "other"), (1, 0)),
    "another seed": (one("seed", 99), (1, 0)),
    "no seed": (one("seed", None, "baseline", "compile"), (1, 0)),
    "weights that never trained": (untrained, (0, 2)),
    "whether one trained is unknown": (one("final_start_sha256", None), (1, 1)),
    "whether that of the baseline did": (one("final_start_sha256", None, "baseline"), (1, 1)),
    "all seeds end in one model": (every("final_weights_sha256", "one"), (1, 0)),
    "data that is not recorded": (unrecorded_data, (0, 0)),
    "one job of both arms": (one("job", "same", "baseline", "compile"), (1, 0)),
    "the same weights scored otherwise": (one("metric", 0.8201), (1, 1)),
    "a fingerprint that is no text": (every("final_weights_sha256", ["a"]), (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize(("change", "left"), NOT_PROVEN.values(), ids=NOT_PROVEN.keys())
def test_what_is_not_plainly_identical_is_judged_by_statistics(change, left):
    doc = equal()
    change(doc)
    decision, evidence = judge(doc), read_evidence(doc)
    found = identity_of(evidence.candidates[0], evidence.baseline)

    assert left == ((found.models, found.unequal) if found else (0, 0))
    assert found is None or not found.proven
    assert Verdict.PROMOTE != decision.verdict
    assert "weights_identical" not in codes(decision)


def test_jobs_of_which_nothing_is_recorded_are_two():
    doc = equal()
    every("job", None)(doc)
    evidence = read_evidence(doc)

    expected = Identity(2, 0, tuple(run["seed"] for run in runs(doc)))
    assert expected == identity_of(evidence.candidates[0], evidence.baseline)
    assert expected.proven
    assert Identity() == Identity(0, 0)


def test_the_explanation_shows_no_look_that_was_not_asked():
    doc = equal()
    names = [item.name for item in explain(doc, judge(doc)) if item.section is Section.QUALITY]

    assert ["answer", "models that both arms trained"] == names
