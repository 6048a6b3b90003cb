"""Rules on a trial as a whole: its budget, its proof of quality, and jobs measured twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.frameworks import LEVERS, OTHER_LEVERS
from compilegate.domain.eligibility.payoff import POWER
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import money
from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.planning.arms import Refusal, plan_arms
from compilegate.domain.planning.proof import plan_proof
from compilegate.domain.reasons import Reason, block, info, warn
from compilegate.domain.request.build import quality_request
from compilegate.domain.request.sections import JobSite
from compilegate.domain.workload.model import BASELINE, PREVIOUS, Workload
from compilegate.domain.workload.starts import earlier_models, keeps_lines

# Of the metric's level: what a margin may be before it is doubted.
WIDE = 0.5
REQUESTS = "the CreateTrainingJob requests that both would send (compilegate plan FILE --json)"


def no_graph_rule(job: CandidateJob) -> Iterator[Reason]:
    """A workload that no graph compiler can help, with what can."""
    framework, model = job.workload.framework.name, job.workload.model.name
    if not job.has_graph:
        yield block(
            "not_gpu", "framework.name", "no_graph", source=WORKLOAD_FILE, framework=framework,
            model=model, instance_type=job.workload.training.instance_type,
            instead=LEVERS.get(framework, OTHER_LEVERS),
        )  # fmt: skip


def budget_rule(tried: Sequence[CandidateJob], trial: float | None) -> Iterator[Reason]:
    """A trial whose price (``trial``, USD) is above the cap will be refused at planning."""
    cap = tried[0].workload.policy.max_trial_usd
    if trial is None or trial <= cap:
        return
    alone = [(one.trial_usd, one.candidate.name) for one in tried if one.trial_usd is not None]
    fewer = ""
    if len(tried) > 1 and alone:
        usd, name = min(alone)
        fewer = f", or name fewer candidates ({name} alone: {money(usd)})"
    yield warn(
        "trial_over_budget", "policy.max_trial_usd", source=WORKLOAD_FILE, trial=trial, cap=cap,
        fewer=fewer,
    )  # fmt: skip


def proof_rule(workload: Workload, *, candidates: int) -> Iterator[Reason]:
    """Whether quality can be proven, by the plan's own refusal, and what history is missing."""
    quality, proof = workload.quality, plan_proof(workload, candidates=candidates)
    if proof is not None and proof.refused is not None:
        yield warn(
            "underpowered", "quality.margin", source=POWER, fix=proof.refused.fix,
            why=proof.refused.message,
        )  # fmt: skip
        return
    share = quality.goal == "maximize" and all(0 <= value <= 1 for value in quality.history)
    # A share that may fall by half: most likely the margin is written in percent.
    if share and quality.history and quality.margin > WIDE * mean(quality.history):
        yield warn(
            "margin_wide", "quality.margin", source=WORKLOAD_FILE, margin=quality.margin,
            metric=quality.metric, mean=mean(quality.history),
        )  # fmt: skip
    if len(quality.history) < ENOUGH_HISTORY:
        yield info(
            "history_missing", "quality.history", source=WORKLOAD_FILE, runs=len(quality.history),
            ENOUGH_HISTORY=ENOUGH_HISTORY, metric=quality.metric,
        )  # fmt: skip


def same_job_rule(job: CandidateJob, others: Sequence[CandidateJob]) -> Iterator[Reason]:
    """A setting may have two names: the same job twice would be measured twice."""
    if job.index is None:
        return
    for other in others:
        if _always_differ(job) == _always_differ(other) and _request(job) == _request(other):
            twin = "the baseline" if other.candidate.name == BASELINE else other.candidate.name
            yield block("same_job", f"candidates[{job.index}]", source=REQUESTS, twin=twin)
            return


def _always_differ(job: CandidateJob) -> tuple[Any, ...]:
    """What always makes a difference in a request; a quick comparison before the requests'."""
    training = replace(job.training, distribution="")
    return training, job.compiler, job.candidate.compile_mode


def _request(job: CandidateJob) -> dict[str, Any] | object:
    """The request of a full run under a common name; equal to nothing where there is none."""
    change = job.candidate
    changes = () if change.name == BASELINE else (change,)
    arms = plan_arms(job.workload, changes, job.facts, region=job.region)
    if isinstance(arms, Refusal):
        return object()
    arm = replace(arms[len(changes)], name=BASELINE)
    site = JobSite(stage="", bucket="", region=job.region, job_roles="")
    where = site.context("", trial="", execution="", source_key="")
    try:
        return quality_request(job.workload, arm, run="", replicate=0, seed=0, context=where)
    except InvalidInputError:
        return object()


# Is it said what a run starts from, and what does it mean for a trial?

FIELD = "training.starts_from"


def start_rule(workload: Workload) -> Iterator[Reason]:
    """Runs that go on from earlier ones are no independent trials of a candidate."""
    training = workload.training
    if training.starts_from == PREVIOUS:
        yield warn("starts_from_previous", FIELD, source=WORKLOAD_FILE)
    elif keeps_lines(training):
        yield info("starts_from_own_line", FIELD, source=WORKLOAD_FILE)
    elif training.starts_from is None:
        unsaid = next(earlier_models(training), None)
        if unsaid is not None:
            yield warn("start_unsaid", unsaid, source=WORKLOAD_FILE, unsaid=unsaid)
