"""Profiled steps of two arms: the largest differences, and profiles that are none."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.codec import write
from compilegate.domain.judging.measured import measure
from compilegate.domain.where_time_goes import WhereTimeGoes, where_time_goes
from tests.domain.evidence_builder import document, judge


def profile(*times: tuple[str, str, float, str], **more: object) -> dict[str, Any]:
    """A profile of kernels, (graph, class, milliseconds, name) each; rows are all of their time."""
    kernels = [
        {"graph": graph, "kernel_class": kind, "seconds": milliseconds / 1e3, "name": name}
        for graph, kind, milliseconds, name in times
    ]
    rows = [{key: one[key] for key in ("graph", "kernel_class", "seconds")} for one in kernels]
    return {"schema": 1, "device": "cuda", "rows": rows, "kernels": kernels, **more}


EAGER = profile(
    ("eager", "matmul", 8.0, "gemm"),
    ("eager", "pointwise", 3.0, "add"),
    ("eager", "pointwise", 4.0, "mul"),
    ("eager", "idle", 1.0, ""),
    ("eager", "copy", 0.0, ""),
)
COMPILED = profile(
    ("graph 0/0", "matmul", 7.0, "gemm"),
    ("graph 0/0", "pointwise", 2.0, "triton_poi_0"),
    ("eager", "pointwise", 1.0, "add"),
    ("eager", "idle", 1.5, ""),
    ("graph 0/0", "reduction", 0.5, "triton_red_0"),
)


def compared(ours: list[object], theirs: list[object], **more: object) -> WhereTimeGoes | None:
    """Blocks with these profiles, None without one; ``more`` is of the candidate's blocks."""
    evidence = document(blocks=len(ours))
    for arm, profiles in zip(evidence["arms"], (ours, theirs), strict=True):
        speed = (run for run in arm["runs"] if run["stage"] == "speed")
        for run, made in zip(speed, profiles, strict=True):
            run.update({} if made is None else {"profile": made})
            run.update(more if arm is evidence["arms"][1] else {})
    measured, _ = measure(evidence, judge(evidence))
    assert measured is not None
    return where_time_goes(measured)


def rows(found: WhereTimeGoes | None) -> list[tuple[Any, ...]]:
    """(class, kernel, graphs, milliseconds of both, their difference, share)."""
    return [
        (
            one.kernel_class, one.kernel, one.baseline_graph, one.candidate_graph,
            *(round(seconds * 1e3, 6)
              for seconds in (one.baseline_seconds, one.candidate_seconds, one.seconds)),
            round(one.share, 6),
        )
        for one in found.differences
    ]  # fmt: skip


def test_the_largest_differences_come_first_with_the_kernel_that_moved_most_that_way():
    found = compared([EAGER], [COMPILED])

    assert [
        ("pointwise", "mul", "eager", "graph 0/0", 7.0, 3.0, -4.0, 0.666667),
        ("matmul", "gemm", "eager", "graph 0/0", 8.0, 7.0, -1.0, 0.166667),
        ("idle", "", "eager", "eager", 1.0, 1.5, 0.5, 0.083333),
        ("reduction", "triton_red_0", "", "graph 0/0", 0.0, 0.5, 0.5, 0.083333),
    ] == rows(found)
    assert ("compile", 1) == (found.candidate, found.blocks)
    assert {"baseline": {}, "compile": {}} == found.missing
    by_graph = {(one.graph, one.kernel_class): one.seconds for one in found.arms["compile"]}
    assert (0.002, 0.001) == (by_graph["graph 0/0", "pointwise"], by_graph["eager", "pointwise"])


def test_of_several_blocks_the_middle_one_counts_and_of_many_classes_five():
    slow = profile(*(("eager", kind, 90.0, "x") for kind in ("matmul", "pointwise", "idle")))
    assert rows(compared([EAGER], [COMPILED])) == rows(
        compared([EAGER, EAGER, EAGER], [COMPILED, slow, COMPILED])
    )
    many = profile(*(("eager", f"kind {n}", float(n), "x") for n in range(1, 8)))
    found = rows(compared([EAGER], [many]))
    assert ["matmul", "kind 7", "pointwise", "kind 6", "kind 5"] == [one[0] for one in found]


def test_a_step_of_twice_the_samples_is_scaled_to_the_baselines():
    found = rows(compared([EAGER], [COMPILED], samples_per_step=64))

    assert ("matmul", 8.0, 3.5) == (found[1][0], *found[1][4:6])


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ([], "broken"),
        (profile(), "broken"),
        ({**COMPILED, "schema": 2}, "broken"),
        ({**COMPILED, "rows": [{**COMPILED["rows"][0], "seconds": -1.0}]}, "broken"),
        ({**COMPILED, "kernels": [{**COMPILED["kernels"][0], "seconds": None}]}, "broken"),
        ({**COMPILED, "rows": 3}, "broken"),
        ({**COMPILED, "rows": COMPILED["rows"] * 12}, "broken"),
        (profile(("eager", "matmul", 1.0, "x" * 201)), "broken"),
        ({"schema": 1, "absent": "<b>"}, "broken"),
        ({"schema": 1, "absent": ["failed"]}, "broken"),
        ({"schema": 1, "absent": "time_exceeded"}, "time_exceeded"),
    ],
)
def test_a_broken_profile_is_none_and_named(broken, code):
    found = compared([EAGER, EAGER], [COMPILED, broken])
    alone = compared([EAGER], [broken])

    assert rows(compared([EAGER], [COMPILED])) == rows(found)
    assert {"baseline": {}, "compile": {code: 1}} == write(found.missing)
    assert ((), 0, {code: 1}) == (alone.differences, alone.blocks, alone.missing["compile"])


def test_without_any_profile_there_is_nothing_to_say():
    half = compared([EAGER], [None])
    later = compared([EAGER, None], [COMPILED, None])

    assert compared([None, None], [None, None]) is None
    assert ((), {"not_recorded": 1}) == (half.differences, half.missing["compile"])
    assert (1, {"not_recorded": 1}) == (later.blocks, later.missing["baseline"])
