"""``judge --plan``: what a proof of quality takes, as a table or for one case."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import load_yaml
from compilegate.cli.judge_files import STANDARD, read_json
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.judging.evidence import metrics
from compilegate.domain.judging.evidence_file import parse_evidence
from compilegate.domain.judging.noninferiority import Samples
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Policy, Quality
from compilegate.explain.planning import (
    Question,
    answer,
    default_policies,
    planning_table,
    shadow_too,
)

WEEKS_PER_YEAR = 52
# Beyond these the t quantiles lose their digits, or nobody would ask.
BOUNDS = {
    "--spread": (1e-12, 1e12),
    "--margin": (1e-12, 1e12),
    "--history": (0, 100_000),
    "--max-runs": (2, 100_000),
    "--candidates": (1, 100),
    "--alpha": (1e-4, 0.5),
}


@dataclass(frozen=True)
class Given:
    """The options as the user gave them; None where one was left out."""

    spread: float | None = None
    margin: float | None = None
    history: int | None = None
    max_runs: int | None = None
    candidates: int | None = None
    alpha: float | None = None

    def named(self) -> dict[str, float]:
        """Those that were given, by the option's name."""
        found = {f"--{key.replace('_', '-')}": value for key, value in vars(self).items()}
        return {name: value for name, value in found.items() if value is not None}


def plan(file: str | None, given: Given) -> dict[str, Any]:
    """The table, or the answer for the case that the options or the file describe."""
    _check(given)
    if file is not None:
        return answer(_from_file(file, given))
    if given.spread is None and given.margin is None:
        _refuse_halves(given)
        return planning_table(given.alpha or Policy().alpha, given.candidates or 1)
    if given.spread is None or given.margin is None:
        missing = "--spread" if given.spread is None else "--margin"
        raise InvalidInputError(
            "is missing", field=missing, fix="--spread and --margin make one case, give both"
        )
    return answer(
        Question(
            spread=given.spread,
            margin=given.margin,
            history=given.history or 0,
            candidates=given.candidates or 1,
            policies=default_policies(given.alpha or Policy().alpha, given.max_runs),
            label=_label(given),
        )
    )


def _check(given: Given) -> None:
    for name, (low, high) in BOUNDS.items():
        value = given.named().get(name)
        if value is not None and not low <= value <= high:
            raise InvalidInputError(
                "is out of range", field=name, value=value, fix=f"use {low:g} to {high:g}"
            )


def _refuse_halves(given: Given) -> None:
    for name in ("--history", "--max-runs"):
        if name in given.named():
            raise InvalidInputError(
                "belongs to one case, and none is given", field=name, value=given.named()[name],
                fix="add --spread and --margin, or name a FILE that tells them",
            )  # fmt: skip


def _from_file(file: str, given: Given) -> Question:
    """What the file tells, where no option says otherwise."""
    told = _told(file)
    policy = told.policy if given.alpha is None else replace(told.policy, alpha=given.alpha)
    policies = told.policies(policy)
    if given.max_runs is not None:
        policies = [replace(policy, quality_runs="hybrid", max_quality_runs=given.max_runs)]
    spread = given.spread if given.spread is not None else told.spread
    if not spread:
        raise InvalidInputError(
            "tells no spread: it takes two past results of the metric that differ", file=file,
            field="quality.history", fix="add past results of the baseline, or give --spread",
        )  # fmt: skip
    return Question(
        spread=spread,
        margin=given.margin if given.margin is not None else told.margin,
        history=given.history if given.history is not None else told.history,
        candidates=given.candidates or told.candidates,
        policies=policies,
        runs_remaining=told.runs_remaining,
        label=_label(given),
    )


def _label(given: Given) -> str | None:
    """A limit of the user's own is no mode's."""
    return None if given.max_runs is None else "allowed"


def _told(file: str) -> _Told:
    if file != STANDARD and Path(file).suffix in (".yaml", ".yml"):
        try:
            workload = parse_workload(load_yaml(Path(file)))
        except InvalidInputError as error:
            raise error if error.file else error.in_file(file) from error
        samples = Samples((), (), workload.quality.history)
        return _Told(
            workload.policy, workload.quality, samples, max(1, len(workload.candidates)),
            workload.schedule.runs_per_week * WEEKS_PER_YEAR, both_modes=True,
        )  # fmt: skip
    evidence = parse_evidence(read_json(file))
    found = Samples((), metrics(evidence.baseline.full_runs), evidence.quality.history)
    return _Told(
        evidence.policy, evidence.quality, found, len(evidence.candidates), evidence.runs_remaining
    )


@dataclass(frozen=True)
class _Told:
    """What an evidence document or a workload file says of the case."""

    policy: Policy
    quality: Quality
    samples: Samples
    candidates: int
    runs_remaining: float | None
    both_modes: bool = False

    @property
    def spread(self) -> float | None:
        """Pooled over history and today's baseline, as the judge does."""
        variance = self.samples.pooled_variance
        return None if variance is None else math.sqrt(variance)

    @property
    def margin(self) -> float:
        """The margin that must not be lost."""
        return self.quality.margin

    @property
    def history(self) -> int:
        """Past runs."""
        return len(self.samples.history)

    def policies(self, policy: Policy) -> list[Policy]:
        """A workload's modes; a trial that has begun runs in one."""
        return shadow_too(policy) if self.both_modes else [policy]
