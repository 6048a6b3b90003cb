"""``judge --plan``: what a proof of quality takes, as a table or for one case."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import load_yaml
from compilegate.cli.judge.documents import STANDARD, read_json
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.judging.evidence import metrics
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.noninferiority import Samples
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Policy, Quality
from compilegate.explain.planning import (
    Question,
    answer,
    default_policies,
    planning_table,
    with_shadow,
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
class PlanOptions:
    """The options as the user gave them; None where one was left out."""

    spread: float | None = None
    margin: float | None = None
    history: int | None = None
    max_runs: int | None = None
    candidates: int | None = None
    alpha: float | None = None

    def named(self) -> dict[str, float]:
        """Those that were given, by the option's name."""
        options = {f"--{key.replace('_', '-')}": value for key, value in vars(self).items()}
        return {name: value for name, value in options.items() if value is not None}


def plan(file: str | None, options: PlanOptions) -> dict[str, Any]:
    """The table, or the answer for the case that the options or the file describe."""
    _check(options)
    if file is not None:
        return answer(_from_file(file, options))
    if options.spread is None and options.margin is None:
        _refuse_halves(options)
        return planning_table(options.alpha or Policy().alpha, options.candidates or 1)
    if options.spread is None or options.margin is None:
        missing = "--spread" if options.spread is None else "--margin"
        raise InvalidInputError(
            "is missing", field=missing, fix="--spread and --margin make one case, give both"
        )
    return answer(
        Question(
            spread=options.spread,
            margin=options.margin,
            history=options.history or 0,
            candidates=options.candidates or 1,
            policies=default_policies(options.alpha or Policy().alpha, options.max_runs),
            label=_label(options),
        )
    )


def _check(options: PlanOptions) -> None:
    for name, (low, high) in BOUNDS.items():
        value = options.named().get(name)
        if value is not None and not low <= value <= high:
            raise InvalidInputError(
                "is out of range", field=name, value=value, fix=f"use {low:g} to {high:g}"
            )


def _refuse_halves(options: PlanOptions) -> None:
    for name in ("--history", "--max-runs"):
        if name in options.named():
            raise InvalidInputError(
                "belongs to one case, and none is given", field=name, value=options.named()[name],
                fix="add --spread and --margin, or name a FILE that tells them",
            )  # fmt: skip


def _from_file(file: str, options: PlanOptions) -> Question:
    """What the file tells, where no option says otherwise."""
    recorded = _read_document(file)
    policy = (
        recorded.policy if options.alpha is None else replace(recorded.policy, alpha=options.alpha)
    )
    policies = recorded.policies(policy)
    if options.max_runs is not None:
        policies = [replace(policy, quality_runs="hybrid", max_quality_runs=options.max_runs)]
    spread = options.spread if options.spread is not None else recorded.spread
    if not spread:
        raise InvalidInputError(
            "tells no spread: it takes two past results of the metric that differ", file=file,
            field="quality.history", fix="add past results of the baseline, or give --spread",
        )  # fmt: skip
    return Question(
        spread=spread,
        margin=options.margin if options.margin is not None else recorded.margin,
        history=options.history if options.history is not None else recorded.history,
        candidates=options.candidates or recorded.candidates,
        policies=policies,
        runs_remaining=recorded.runs_remaining,
        label=_label(options),
    )


def _label(options: PlanOptions) -> str | None:
    """A limit of the user's own is no mode's."""
    return None if options.max_runs is None else "allowed"


def _read_document(file: str) -> _Recorded:
    if file != STANDARD and Path(file).suffix in (".yaml", ".yml"):
        try:
            workload = parse_workload(load_yaml(Path(file)))
        except InvalidInputError as error:
            raise error if error.file else error.in_file(file) from error
        samples = Samples((), (), workload.quality.history)
        return _Recorded(
            workload.policy, workload.quality, samples, max(1, len(workload.candidates)),
            workload.schedule.runs_per_week * WEEKS_PER_YEAR, both_modes=True,
        )  # fmt: skip
    evidence = read_evidence(read_json(file))
    observed = Samples((), metrics(evidence.baseline.full_runs), evidence.quality.history)
    return _Recorded(
        evidence.policy,
        evidence.quality,
        observed,
        len(evidence.candidates),
        evidence.runs_remaining,
    )


@dataclass(frozen=True)
class _Recorded:
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
        return with_shadow(policy) if self.both_modes else [policy]
