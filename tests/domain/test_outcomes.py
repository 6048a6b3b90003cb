"""Outcomes per example, as a job left them: what is read, kept, and agrees with the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compilegate.domain.judging.outcomes import outcomes_document, read_outcomes
from tests.domain.outcome_builder import packed_bits, packed_losses

FEW = packed_losses(np.array([1.0, 2.0, 4.0]))
MANY = packed_losses(np.arange(600) % 2 + 1.0)
RIGHT = packed_bits(np.array([True, False, False, True, True]))
SAMPLE = packed_bits(np.ones(5000, bool))
# The last batch may be smaller than the others.
BATCHES = {**FEW, "per_outcome": 2}
# Losses are rounded to a 1024th of the largest one.
ROOM = 4 / 1024
MEANS: list[tuple[dict[str, Any], list[float], list[float]]] = [
    (FEW, [7 / 3, 7 / 3 + 0.9 * ROOM, 7 / 3 - 0.9 * ROOM], [7 / 3 + 1.1 * ROOM, 2.0]),
    (BATCHES, [1.0, 4.0, 1 - 0.9 * ROOM, 4 + 0.9 * ROOM], [1 - 1.1 * ROOM, 4 + 1.1 * ROOM]),
    (MANY, [0.0, 1.5, 50.0], []),  # examples that were not kept may be anything
    (RIGHT, [0.6], [0.59, 0.61]),
    ({**RIGHT, "per_outcome": 2}, [0.0, 0.5, 1.0], [-0.01, 1.01]),
    (SAMPLE, [0.0, 0.5, 1.0], [-0.01, 1.01]),
]


@pytest.mark.parametrize(("document", "possible", "impossible"), MEANS)
def test_a_mean_agrees_with_the_outcomes_that_were_kept(document, possible, impossible):
    for mean in (*possible, *impossible):
        read = read_outcomes({**document, "mean": mean})
        assert (mean in possible) is (read is not None), mean


def test_bits_are_one_number_with_the_first_example_highest():
    read = read_outcomes(RIGHT)

    assert read is not None
    assert (0b10011, 5, 5, 1) == (read.bits, read.kept, read.examples, read.per_outcome)


def test_a_set_has_a_trillion_examples_at_most():
    assert read_outcomes({**SAMPLE, "examples": 10**12}) is not None
    assert read_outcomes({**SAMPLE, "examples": 10**12 + 1}) is None


def test_the_evidence_keeps_what_can_be_read_and_no_more():
    assert BATCHES == outcomes_document({**BATCHES, "more": 1})
    assert outcomes_document("words") is outcomes_document({**BATCHES, "mean": 9.0}) is None
