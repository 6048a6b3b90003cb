"""A run that begins: the arm that is next, or the baseline if its job cannot be built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.begin import BeginInput, FlagReading, RunStart, choose_run
from compilegate.domain.production.history import history
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.request.build import JobSite
from compilegate.facts import load_facts
from compilegate.usecases.job_requests import request_limits
from tests.domain.workload_builder import SOUND

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
TRAINED = TrainedJob(SOUND, "code")
SITE = JobSite("prod", "data", "us-east-1", "arn:aws:iam::123456789012:role/compilegate-")
PROMOTION = Promotion("t", "compile", at=1, since=1, flag=ON, version=1)
INPUTS = BeginInput(
    start=RunStart(SOUND.name, "execution", 1_793_500_000_000, None),
    reading=FlagReading(ON, ON.to_json()),
    history=history([]),
    jobs=RunJobs(TRAINED, load_facts(), SITE, request_limits()),
    spec_key="spec",
    source_key="source",
    now=1_793_500_000,
)


@dataclass(frozen=True)
class Refusing(RunJobs):
    """The jobs of no run that trains one of these arms can be built."""

    arms: tuple[str, ...] = ()

    def request(self, begun: BegunRun, attempt: Attempt) -> dict[str, Any]:
        if begun.arm in self.arms:
            raise InvalidInputError(f"{begun.arm} is refused")
        return super().request(begun, attempt)


def refusing(*arms: str) -> BeginInput:
    return replace(INPUTS, jobs=Refusing(TRAINED, load_facts(), SITE, request_limits(), arms))


def compared(**proven: Any) -> BeginInput:
    """The flag follows a promotion that was measured on this."""
    reading = replace(INPUTS.reading, promotion=PROMOTION)
    return replace(INPUTS, reading=reading, proven=proven)


def test_a_run_trains_the_flags_candidate_with_its_overrides() -> None:
    begun = choose_run(INPUTS)

    assert ("compile", "flag", ON.overrides, "d1", None) == (
        begun.arm, begun.why, begun.overrides, begun.decision_id, begun.flag_told,
    )  # fmt: skip


def test_a_candidate_whose_job_cannot_be_built_gives_way_to_the_baseline() -> None:
    begun = choose_run(refusing("compile"))

    assert ("baseline", "unfit", "unfit", {}, None) == (
        begun.arm, begun.why, begun.flag_problem, begun.overrides, begun.decision_id,
    )  # fmt: skip
    assert "compile is refused" in str(begun.flag_told)


def test_a_baseline_that_cannot_be_built_ends_the_run() -> None:
    with pytest.raises(InvalidInputError, match="baseline is refused"):
        choose_run(refusing("compile", "baseline"))


def test_a_candidate_that_is_no_longer_what_was_proven_is_stale() -> None:
    changed = compared(precision="fp32")

    begun = choose_run(changed)

    assert ("baseline", "stale", None) == (begun.arm, begun.why, begun.flag_problem)
    assert begun.flag_told == "precision: was fp32, is bf16"


def test_a_comparison_that_finds_no_difference_changes_nothing() -> None:
    same = compared(precision="bf16")

    assert choose_run(INPUTS) == choose_run(same)
