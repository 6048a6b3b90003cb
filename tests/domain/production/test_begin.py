"""A run that begins: the arm that is next, or the baseline if its job cannot be built."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.production.begin import BeginInput, CheckJob, RunStart, choose_run
from compilegate.domain.production.history import history
from compilegate.domain.production.next_arm import FlagReading
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.runs import BegunRun
from tests.domain.workload_builder import SOUND

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
INPUTS = BeginInput(
    start=RunStart(SOUND.name, "execution", 1_793_500_000_000, None),
    reading=FlagReading(ON, ON.to_json()),
    history=history([]),
    job=TrainedJob(SOUND, "code"),
    spec_key="spec",
    source_key="source",
    now=1_793_500_000,
)


def refuse(*arms: str) -> CheckJob:
    def check(begun: BegunRun) -> None:
        if begun.arm in arms:
            raise InvalidInputError(f"{begun.arm} is refused")

    return check


def test_a_run_trains_the_flags_candidate_with_its_overrides() -> None:
    begun = choose_run(INPUTS, refuse())

    assert ("compile", "flag", ON.overrides, "d1", None) == (
        begun.arm, begun.why, begun.overrides, begun.decision_id, begun.flag_told,
    )  # fmt: skip


def test_a_candidate_whose_job_cannot_be_built_gives_way_to_the_baseline() -> None:
    begun = choose_run(INPUTS, refuse("compile"))

    assert ("baseline", "unfit", "unfit", {}, None) == (
        begun.arm, begun.why, begun.flag_problem, begun.overrides, begun.decision_id,
    )  # fmt: skip
    assert "compile is refused" in str(begun.flag_told)


def test_a_baseline_that_cannot_be_built_ends_the_run() -> None:
    with pytest.raises(InvalidInputError, match="baseline is refused"):
        choose_run(INPUTS, refuse("compile", "baseline"))


def test_a_candidate_that_is_no_longer_what_was_proven_is_stale() -> None:
    changed = replace(INPUTS, proven={"precision": "fp32"}, registered={"precision": "bf16"})

    begun = choose_run(changed, refuse())

    assert ("baseline", "stale", None) == (begun.arm, begun.why, begun.flag_problem)
    assert begun.flag_told == "precision: was fp32, is bf16"


def test_a_comparison_that_finds_no_difference_changes_nothing() -> None:
    same = replace(INPUTS, proven={"precision": "bf16"}, registered={"precision": "bf16"})

    assert choose_run(INPUTS, refuse()) == choose_run(same, refuse())
