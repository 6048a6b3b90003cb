"""Asks every rule about every candidate and adds up the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compilegate.domain.eligibility import (
    amortisation,
    batch,
    bottleneck,
    cost,
    frameworks,
    hardware,
    launchers,
    managed,
    quality,
    same_job,
    script,
    shapes,
)
from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.derive import Derived, derive
from compilegate.domain.eligibility.economics import Economics, economics_of
from compilegate.domain.eligibility.overhead import MeasuredOverhead
from compilegate.domain.eligibility.result import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    best,
    verdict_of,
)
from compilegate.domain.facts.model import Facts
from compilegate.domain.reasons import Reason, Severity, block
from compilegate.domain.workload.model import BASELINE, Candidate, Workload

Rule = Callable[[Context], tuple[Reason, ...]]

# In the order a good engineer asks: where is the time, does it fit, do shapes repeat, is a run
# long enough, precision, side effects, cost.
RULES: tuple[Rule, ...] = (
    bottleneck.bottleneck_rule,
    hardware.instance_rule,
    hardware.cluster_rule,
    hardware.gpu_rule,
    frameworks.no_graph_rule,
    frameworks.compiler_rule,
    frameworks.image_rule,
    frameworks.change_rule,
    frameworks.family_rule,
    managed.version_rule,
    managed.region_rule,
    managed.instance_rule,
    managed.lifecycle_rule,
    launchers.baseline_rule,
    launchers.native_rule,
    launchers.managed_rule,
    launchers.launcher_rule,
    script.platform_key_rule,
    script.script_rule,
    shapes.shapes_rule,
    amortisation.amortisation_rule,
    amortisation.mode_rule,
    hardware.precision_rule,
    batch.learning_rate_rule,
    batch.tested_rule,
    batch.memory_rule,
    batch.run_length_rule,
    batch.warm_up_rule,
    cost.saving_rule,
    cost.price_rule,
    cost.cluster_rule,
)

DEFAULT_REGION = "us-east-1"


def check_eligibility(
    workload: Workload,
    facts: Facts,
    *,
    region: str = DEFAULT_REGION,
    measured: Sequence[MeasuredOverhead] = (),
) -> Eligibility:
    """Whether each candidate may be tried, and what the workload could gain; USD, no I/O.

    ``measured`` are compile times of this workload's earlier trials, oldest first.
    """

    def context(candidate: Candidate, index: int | None) -> Context:
        return Context(workload, candidate, index, facts, region, tuple(measured))

    contexts = [context(candidate, index) for index, candidate in enumerate(workload.candidates)]
    derived = Derived((), ())
    if not contexts:
        unchanged = context(Candidate(BASELINE), None)
        derived = derive(unchanged, lambda candidate: reasons_of(context(candidate, None)))
        contexts = [context(candidate, None) for candidate, _ in derived.candidates]
    why = {candidate.name: text for candidate, text in derived.candidates}
    answers: list[CandidateEligibility] = []
    tried: list[Context] = []
    for one in contexts:
        twins = same_job.same_job_rule(one, (one.baseline, *tried))
        answers.append(_candidate(one, twins, why.get(one.candidate.name, "")))
        if answers[-1].verdict is not EligibilityVerdict.INELIGIBLE:
            tried.append(one)
    economics = economics_of(contexts, tried)
    return Eligibility(
        workload=workload.name,
        verdict=best([answer.verdict for answer in answers]),
        candidates=tuple(answers),
        reasons=_own_reasons(contexts, tried, economics),
        economics=economics,
        left_out=derived.left_out,
    )


def reasons_of(context: Context) -> tuple[Reason, ...]:
    """Every rule's answer, each said once, the weightiest first."""
    reasons = dict.fromkeys(reason for rule in RULES for reason in rule(context))
    order = list(Severity)
    return tuple(sorted(reasons, key=lambda reason: order.index(reason.severity or Severity.BLOCK)))


def _candidate(context: Context, twins: tuple[Reason, ...], why: str) -> CandidateEligibility:
    reasons = (*twins, *reasons_of(context))
    return CandidateEligibility(
        candidate=context.candidate,
        compiler=context.compiler,
        verdict=verdict_of(reasons),
        reasons=reasons,
        why=why,
    )


def _own_reasons(
    contexts: Sequence[Context], tried: Sequence[Context], economics: Economics
) -> tuple[Reason, ...]:
    """What concerns the workload whatever the candidate."""
    first = contexts[0]
    if tried:
        proof = quality.history_rule(first.workload, candidates=len(tried))
        return (*cost.budget_reason(tried, economics.trial_usd), *proof)
    if first.has_graph:
        return ()
    training, framework = first.workload.training, first.workload.framework
    return (
        block(
            "not_gpu", "framework.name",
            f"{framework.name} ({first.workload.model.name}) on {training.instance_type} is not a "
            "tensor graph on a GPU, so no graph compiler applies",
            fix=f"use instead: {frameworks.levers(framework.name)}",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip
