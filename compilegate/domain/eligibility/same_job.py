"""Would a candidate's job be one that the trial measures already?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain.eligibility.context import Context
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import Refusal, plan_arms
from compilegate.domain.reasons import Reason, block
from compilegate.domain.request.build import quality_request
from compilegate.domain.request.context import JobContext
from compilegate.domain.workload.model import BASELINE

SOURCE = "the CreateTrainingJob requests that both would send (compilegate plan FILE --json)"


def same_job_rule(context: Context, others: Sequence[Context]) -> tuple[Reason, ...]:
    """A setting may have two names; whoever asks for the same job twice measures one job twice."""
    if context.index is None:
        return ()
    for other in others:
        if _only_named_otherwise(context, other) and _request(context) == _request(other):
            twin = "the baseline" if other.candidate.name == BASELINE else other.candidate.name
            return (
                block(
                    "same_job", f"candidates[{context.index}]",
                    f"it would be the same job as {twin}, and take a share of the error budget for "
                    "nothing",
                    fix="remove it, or change a setting that matters", source=SOURCE,
                ),
            )  # fmt: skip
    return ()


def _only_named_otherwise(one: Context, other: Context) -> bool:
    """Whether all else that requests always tell apart is equal; quick to ask."""
    return _told_apart(one) == _told_apart(other)


def _told_apart(context: Context) -> tuple[Any, ...]:
    return (
        context.compiler, context.candidate.compile_mode, context.instance_type,
        context.instance_count, context.precision, context.batch_size, context.entry_point,
        context.hyperparameters,
    )  # fmt: skip


def _request(context: Context) -> dict[str, Any] | object:
    """A full run as it would be asked for under a common name; equal to nothing where it cannot."""
    change = context.candidate
    changes = () if change.name == BASELINE else (change,)
    arms = plan_arms(context.workload, changes, context.facts, region=context.region)
    if isinstance(arms, Refusal):
        return object()
    arm = replace(arms[len(changes)], name=BASELINE)
    where = JobContext(
        bucket="", region=context.region, role_arn="", trial="", execution="", source_key=""
    )
    try:
        return quality_request(context.workload, arm, run="", replicate=0, seed=0, context=where)
    except InvalidInputError:
        return object()
