"""Asks every rule about every candidate and adds up the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compilegate.domain.eligibility import frameworks, payoff, rules
from compilegate.domain.eligibility.candidate_job import CandidateJob, MeasuredOverhead
from compilegate.domain.eligibility.derive import (
    Derived,
    derive,
    learning_rate_rule,
    memory_rule,
    step_count_rule,
    tested_rule,
)
from compilegate.domain.eligibility.payoff import economics_of
from compilegate.domain.eligibility.result import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    best,
    verdict_of,
)
from compilegate.domain.facts import Facts
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.workload.model import BASELINE, Candidate, Workload

# In the order of questions: where is the time, does it fit, do shapes repeat, is a run
# long enough, precision, side effects, cost.
RULES: tuple[Callable[[CandidateJob], Iterable[Reason]], ...] = (
    payoff.bottleneck_rule,
    rules.instance_rule,
    rules.instance_groups_rule,
    rules.gpu_rule,
    frameworks.no_graph_rule,
    frameworks.compiler_rule,
    frameworks.image_rule,
    frameworks.change_rule,
    payoff.family_rule,
    frameworks.version_rule,
    frameworks.region_rule,
    frameworks.family_rule,
    frameworks.lifecycle_rule,
    rules.baseline_rule,
    rules.native_rule,
    rules.managed_rule,
    rules.launcher_rule,
    frameworks.hyperparameters_rule,
    frameworks.script_rule,
    payoff.shapes_rule,
    payoff.amortisation_rule,
    payoff.mode_rule,
    rules.precision_rule,
    learning_rate_rule,
    tested_rule,
    memory_rule,
    step_count_rule,
    payoff.saving_rule,
    payoff.price_rule,
    payoff.cluster_price_rule,
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

    def job_of(candidate: Candidate, index: int | None = None) -> CandidateJob:
        return CandidateJob(workload, candidate, index, facts, region, tuple(measured))

    jobs = [job_of(candidate, index) for index, candidate in enumerate(workload.candidates)]
    derived = Derived((), ())
    if not jobs:
        baseline = job_of(Candidate(name=BASELINE))
        derived = derive(baseline, lambda candidate: reasons_of(job_of(candidate)))
        jobs = [job_of(candidate) for candidate, _ in derived.candidates]
    why = {candidate.name: text for candidate, text in derived.candidates}
    answers: list[CandidateEligibility] = []
    tried: list[CandidateJob] = []
    for job in jobs:
        reasons = (*rules.same_job_rule(job, (job.baseline, *tried)), *reasons_of(job))
        verdict = verdict_of(reasons)
        answers.append(
            CandidateEligibility(
                job.candidate, job.compiler, verdict, reasons, why.get(job.candidate.name, "")
            )
        )
        if verdict is not EligibilityVerdict.INELIGIBLE:
            tried.append(job)
    economics = economics_of(jobs, tried)
    return Eligibility(
        workload=workload.name,
        verdict=best([answer.verdict for answer in answers]),
        candidates=tuple(answers),
        reasons=tuple(
            (
                *rules.budget_rule(tried, economics.trial_usd),
                *rules.proof_rule(workload, candidates=len(tried)),
                *rules.start_rule(workload),
            )
            if tried
            else rules.no_graph_rule(jobs[0])
        ),
        economics=economics,
        left_out=derived.left_out,
    )


def reasons_of(job: CandidateJob) -> tuple[Reason, ...]:
    """Every rule's reasons without repetition, the weightiest first."""
    reasons = dict.fromkeys(reason for rule in RULES for reason in rule(job))
    order = list(Severity)
    return tuple(sorted(reasons, key=lambda reason: order.index(reason.severity or Severity.BLOCK)))
