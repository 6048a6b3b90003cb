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
