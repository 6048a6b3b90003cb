"""The decision document is the contract's, whatever the evidence was like."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from compilegate.domain.codec import SIGNIFICANT_DIGITS, rounded
from compilegate.domain.decision import FLAG_ACTIONS, FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from tests.domain.evidence_builder import (
    CENTRE,
    GOOD,
    NOISY,
    PROBATION_MARGIN,
    WORSE,
    arm,
    document,
    judge,
    probation_document,
    runs,
    watch,
)

FLAG = "/compilegate/prod/workloads/lm/compiler"
KEYS = [
    "schema", "workload", "decision_id", "judge_version", "stage", "verdict", "candidate",
    "reasons", "speedup", "quality", "arms", "saving", "next", "flag",
]  # fmt: skip


def not_applied() -> dict[str, Any]:
    doc = document(metrics=GOOD)
    runs(doc)[0]["applied"] = False
    return doc


def in_probation(*metrics: float | None) -> dict[str, Any]:
    doc = probation_document()
    for metric in metrics:
        watch(doc, metric=metric)
    return doc


EVIDENCE = {
    "nothing": document(blocks=0),
    "one block": document(blocks=1),
    "speed": document(),
    "slow": document(speedup=0.8),
    "promote": document(metrics=GOOD),
    "worse": document(metrics=WORSE),
    "noisy": document(metrics=NOISY, goal="maximize", margin=0.005),
    "invalid": not_applied(),
    "watched": in_probation(CENTRE),
    "alarm": in_probation(*[CENTRE - 3 * PROBATION_MARGIN] * 3),
    "permanent": in_probation(*[CENTRE] * 12),
    "revert": in_probation(None, None),
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_it_is_strict_json_of_the_contracts_keys_and_of_figures_of_ten_digits(name):
    decided = judge(EVIDENCE[name]).to_dict(FLAG)

    assert KEYS == list(decided)
    assert 1 == decided["schema"]
    assert {"name", "action"} == set(decided["flag"])
    assert all({"code", "arm", "message"} == set(reason) for reason in decided["reasons"])
    assert decided == json.loads(json.dumps(decided, allow_nan=False))
    for key, value in leaves(decided):
        if isinstance(value, float):
            assert float(f"{value:.{SIGNIFICANT_DIGITS}g}") == value, key


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    else:
        yield key, value


def test_only_proof_switches_on_and_only_proof_switches_off():
    def verdicts(action: FlagAction) -> set[Verdict]:
        return {verdict for verdict, own in FLAG_ACTIONS.items() if own is action}

    assert {Verdict.PROMOTE, Verdict.PERMANENT} == verdicts(FlagAction.ENABLE)
    assert {Verdict.STAY_OFF, Verdict.REVERT, Verdict.INELIGIBLE} == verdicts(FlagAction.DISABLE)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_rounded_to_unknown(value):
    assert {"a": [None, 1]} == rounded({"a": (value, 1)})


def test_ten_digits_of_any_size_are_kept():
    assert [1.23456789e-20, 123456789000.0, 7] == rounded([1.23456789e-20, 123456789000.0, 7])
    assert 0.3333333333 == rounded(1 / 3)


def test_evidence_nested_beyond_reading_is_invalid():
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]

    with pytest.raises(InvalidEvidenceError, match="nested"):
        judge({**document(metrics=GOOD), "note": nested})


def test_a_figure_beyond_arithmetic_is_invalid_evidence_not_a_crash():
    doc = document(metrics=GOOD)
    arm(doc, "baseline")["runs"][0]["compile_seconds"] = 1e308

    with pytest.raises(InvalidEvidenceError, match="out of range"):
        judge(doc)
