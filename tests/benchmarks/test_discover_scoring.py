from __future__ import annotations

import pytest

from benchmarks.discover.scoring import Score, score


@pytest.mark.parametrize(
    ("groups", "truths", "dollars", "expected"),
    [
        pytest.param("aab", ["x", "x", "y"], [3, 4, 5], Score(1.0, (), 0, 0), id="right"),
        pytest.param("aab", ["x", "x", "x"], [3, 4, 5], Score(7 / 12, (), 0, 0), id="split"),
        pytest.param("aaa", ["x", "x", "y"], [3, 4, 5], Score(7 / 12, ("a",), 0, 0), id="mixed"),
        pytest.param("aab", ["x", "y", "y"], [3, 4, 2], Score(4 / 9, ("a",), 0, 0), id="2-chiefs"),
        pytest.param("ba", [None, "x"], [4, 3], Score(1.0, (), 1, 0), id="taken-in"),
        pytest.param("aa", ["x", None], [3, 4], Score(1.0, (), 1, 0), id="taken-in-with-others"),
        pytest.param([None, "a"], ["x", "x"], [1, 3], Score(0.75, (), 0, 1), id="left-out"),
        pytest.param("aa", ["x/1", "x/2"], [3, 4], Score(1.0, (), 0, 0), id="parts-together"),
        pytest.param("ab", ["x/1", "x/2"], [3, 4], Score(1.0, (), 0, 0), id="parts-apart"),
        pytest.param(
            "abb", ["x/1", "x/1", "x/2"], [2, 3, 4], Score(7 / 9, (), 0, 0), id="parts-crossed"
        ),
        pytest.param(
            "abc", ["x/1", "x/1", "x/2"], [5, 1, 4], Score(9 / 10, (), 0, 0), id="parts-split"
        ),
        pytest.param(
            "aabc", ["x/1", "x/2", "x/2", "x/3"], [5, 4, 1, 6], Score(12 / 16, (), 0, 0),
            id="parts-half-together",
        ),
        pytest.param(
            "aaa", ["x/1", "x/2", "y"], [2, 2, 3], Score(4 / 7, ("a",), 0, 0), id="parts-are-chief"
        ),
        pytest.param("aa", ["x/1", "y/1"], [3, 4], Score(4 / 7, ("a",), 0, 0), id="parts-mixed"),
        pytest.param("ab", ["x", "x"], [0, 0], Score(None, (), 0, 0), id="no-dollars"),
        pytest.param(
            "aaab", ["x", "y", "y", "z"], [0, 0, 0, 1], Score(1.0, ("a",), 0, 0), id="free"
        ),
        pytest.param("", [], [], Score(None, (), 0, 0), id="nothing"),
    ],
)  # fmt: skip
def test_dollars_in_the_right_group(
    groups: list[str | None], truths: list[str | None], dollars: list[float], expected: Score
) -> None:
    assert score(groups, truths, dollars) == expected


def test_sequences_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        score(["a", "b"], ["x"], [1.0, 2.0])
