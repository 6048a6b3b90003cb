"""What is decided before anything is spent: whether a compiler could pay at all, and the plan.

The plan fixes the arms, rounds and cost of a trial, or refuses it: by what earlier trials measured
and what the services take.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import SHADOW, Decision, Verdict
from compilegate.domain.eligibility.check import EligibilityVerdict
from compilegate.domain.eligibility.check import check_eligibility as check
from compilegate.domain.eligibility.job import MeasuredOverhead, measured_overheads
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.notes import Note
from compilegate.domain.planning import plan as plans
from compilegate.domain.planning.arms import ArmPlan, node_groups
from compilegate.domain.planning.plan import Choice, Plan, stacked
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.savings import wall_seconds_of, work_of
from compilegate.domain.reasons import Reason
from compilegate.domain.request.build import quality_request, speed_request, uploaded
from compilegate.domain.spreads import Spreads, learn
from compilegate.domain.trial.plan import (
    QualityMode,
    TrialContext,
    cooling_down,
    plan_document,
    quality_mode,
)
from compilegate.domain.workload.limits import check_script_arguments
from compilegate.domain.workload.model import BASELINE, Candidate, Workload
from compilegate.ports import ObjectStore, Quotas, Services, Settings
from compilegate.usecases import records
from compilegate.usecases.job_requests import job_site, request_limits

# Older ones would be of another model before they would be of use.
TRIALS_READ = 3
# What a trial knows only later, at its longest.
_BUCKET = "b" * 63
_DIGEST = "d" * 64
_EXECUTION = "arn:aws:states:us-gov-west-1:123456789012:execution:" + "e" * 161
_ROUND = 10**naming.ROUND_DIGITS - 1
_SEED = 10**naming.SEED_DIGITS - 1
_BLOCK = 10
logger = logging.getLogger("compilegate")


def check_eligibility(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the eligibility; where nothing is eligible, record that as the decision."""
    trial = records.Trial.from_event(event)
    workload = records.load_spec(services.store, trial).workload
    history = services.ledger.history(trial.workload)
    eligibility = check(
        workload,
        records.facts_for_workload(workload, services.settings),
        region=services.settings.region,
        measured=past_overheads(trial.workload, history, services.store),
    )
    records.save_record(services.store, trial, "eligibility", eligibility.to_dict())
    decision_key = None
    if eligibility.verdict is EligibilityVerdict.INELIGIBLE:
        decision = eligibility.refusal(workload=trial.workload, trial=trial.trial)
        decision_key = records.save_decision(
            services.store, trial, decision, stage=services.settings.stage
        )
    return {"verdict": eligibility.verdict, "decision_key": decision_key}


def plan_trial(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the plan; a refusal is recorded as an inconclusive decision with its reason."""
    trial, store, settings = records.Trial.from_event(event), services.store, services.settings
    spec, history = records.load_spec(store, trial), services.ledger.history(trial.workload)
    on = history.flag
    stacks = spec.workload.policy.small_wins and on.enabled
    context = TrialContext(
        trial=trial.trial,
        spec_key=trial.spec_key,
        execution=str(event["execution"]),
        source_key=spec.source_key,
        started_at=services.clock.now(),
        quality_mode=mode_of_trial(spec, history, store),
        stands_on=len(history.flags) if stacks else 0,
    )
    days, now = spec.workload.policy.cooldown_days, context.started_at
    plan = cooling_down(history.flags, days, now=now, workload=trial.workload) or plan_for(
        spec.workload,
        settings,
        quotas=services.quotas,
        measured=past_overheads(trial.workload, history, store),
        quality_runs=context.quality_mode.used,
        notes=spec.notes,
        on=on,
    )
    if isinstance(plan, Reason):
        decision = Decision.of_this_judge(
            trial.workload, f"{trial.trial}-refused", "plan", Verdict.INCONCLUSIVE, [plan]
        )
        key = records.save_decision(store, trial, decision, stage=settings.stage)
        return {
            "verdict": "inconclusive", "plan_key": None, "estimated_usd": None, "decision_key": key,
        }  # fmt: skip
    services.roles.ensure(trial.workload)
    machine = plan.arms[0].instance_type
    plan = replace(plan, spreads=learned_spreads(trial.workload, machine, services=services))
    if context.quality_mode.used == SHADOW and not context.stands_on:  # pairs are of two arms
        pairs = plans.pairs_for(spec.workload, plan, beside=context.quality_mode.beside)
        plan = replace(plan, pairs=pairs)
    document = plan_document(plan, context, spec.workload.training)
    return {
        "verdict": "continue",
        "plan_key": records.save_record(store, trial, "plan", document),
        "estimated_usd": round(plan.estimate.usd, 4),
        "decision_key": None,
    }


def mode_of_trial(spec: records.Spec, history: WorkloadHistory, store: ObjectStore) -> QualityMode:
    """The mode of a trial of ``spec``, by its registration and its workload's history."""
    name = spec.workload.name
    try:
        registration = records.load_registration(store, name)
        produced = records.spec_at(store, registration.spec_key)
    except NotFoundError:
        return quality_mode(spec.job, None, None, WorkloadHistory())
    except InvalidInputError as error:
        return QualityMode(spec.workload.policy.quality_runs, SHADOW, str(error))
    return quality_mode(spec.job, registration, produced.job, history)


# The plan that a workload would get today.


def plan_for(
    workload: Workload,
    settings: Settings,
    *,
    quotas: Quotas | None = None,
    measured: Sequence[MeasuredOverhead] = (),
    quality_runs: str = SHADOW,
    notes: tuple[Note, ...] = (),
    on: Flag = OFF,
) -> Plan | Reason:
    """The plan that a workload gets under a deployment's settings.

    Quotas are the account's where it can be asked, else those that a refresh of facts has read.
    ``measured`` are compile times of the workload's earlier trials. ``quality_runs`` is who makes
    the full runs: the trial itself, unless production makes canary runs. ``notes`` are
    remarks about the job. With ``policy.small_wins`` the candidates are tried on top of ``on``.
    """
    facts, spot = records.facts_for_workload(workload, settings), workload.training.spot

    @cache
    def quota(instance_type: str) -> int | None:
        asked = quotas.training_instances(instance_type, spot=spot) if quotas else None
        return facts.quota(instance_type, spot=spot) if asked is None else asked

    def choose(candidates: tuple[Candidate, ...]) -> Choice:
        asked = replace(workload, candidates=candidates)
        return check(asked, facts, region=settings.region, measured=measured).choice

    choice = choose(workload.candidates)
    is_stack = workload.policy.small_wins and on.enabled
    tried = stacked(choice, on, choose) if is_stack else choice
    plan = tried if isinstance(tried, Reason) else plans.plan_trial(
        workload, tried, facts, region=settings.region, quota=quota, mode=quality_runs
    )  # fmt: skip
    if isinstance(plan, Reason):
        return plan
    try:
        check_script_arguments(workload)
        for request in _rehearsed(workload, plan.arms, settings, plan.speed_steps):
            request_limits().check(request)
    except InvalidInputError as error:
        return Reason("request_refused", str(error.each[0]))  # a reason is one sentence
    return plans.flag_too_large(plan, on if is_stack else OFF) or plan.with_notes(notes)


def _rehearsed(
    workload: Workload, arms: Sequence[ArmPlan], settings: Settings, steps: int
) -> Iterator[dict[str, Any]]:
    """A request of every kind of job, with the longest names that the trial may give it."""
    context = job_site(settings, _BUCKET).context(
        workload.name,
        trial="t" * naming.TRIAL_ID_LENGTH,
        execution=_EXECUTION,
        source_key=naming.source_key(workload.name, _DIGEST),
    )
    registered = uploaded(workload, context, _DIGEST)
    for index, group in enumerate(node_groups(arms)):
        yield speed_request(
            registered, group, run=naming.speed_run(_ROUND, index, _BLOCK), first_block=_BLOCK,
            blocks=1, steps=steps, context=context,
        )  # fmt: skip
    for index, arm in enumerate(arms):
        yield quality_request(
            registered, arm, run=naming.quality_run(_ROUND, index, _SEED), replicate=_ROUND,
            seed=_SEED, context=context,
        )  # fmt: skip


def past_overheads(
    workload: str, history: WorkloadHistory, store: ObjectStore
) -> tuple[MeasuredOverhead, ...]:
    """Compile seconds that the last decided trials of a workload measured, oldest first.

    Nothing of a trial that ended before a plan, or whose documents are gone. They only improve an
    estimate: a document that cannot be read counts as one that is gone.
    """
    overheads: list[MeasuredOverhead] = []
    for decided in sorted(history.decided, key=lambda one: one.key)[-TRIALS_READ:]:
        decision = records.find_decision(store, decided.decision_key)
        if decision is None:
            continue
        try:
            plan = records.load_plan(store, records.Trial(workload, decided.trial, spec_key=""))
            overheads += measured_overheads(decided.trial, decision.arms, plan.arms)
        except NotFoundError:
            continue
        except records.UNREADABLE as error:
            logger.warning(
                "trial %s: compile times not used, its documents cannot be read: %s",
                decided.trial,
                error,
                extra={"workload": workload},
            )
    return tuple(overheads)


# What a trial's spreads are learned from: production's latest runs, and what trials have shown.

# Older runs are of other data and other machines.
DAYS_READ = 180


def learned_spreads(workload: str, instance_type: str, *, services: Services) -> Spreads:
    """The spreads of a workload's trial on an instance type, as far as they can be learned."""
    since = services.clock.now() - DAYS_READ * DAY_SECONDS
    walls = baseline_walls(services.ledger.history(workload, since=since), instance_type)
    rows = services.fleet.rows().read
    measured = [(row.workload, one) for row in rows for one in row.spreads]
    return learn(workload, instance_type, walls, measured)


def baseline_walls(history: WorkloadHistory, instance_type: str) -> list[float]:
    """Seconds of the baseline's runs on the type, in the order of time, at the steps of the last.

    As they are where a run does not say how many steps it did.
    """
    timed = [
        (wall, work[0] if (work := work_of(run)) else 0.0)
        for run in history.runs
        if run.arm == BASELINE and run.counts and run.finished
        if run.instance_type == instance_type and (wall := wall_seconds_of(run))
    ]
    counted = all(steps for _, steps in timed)
    return [wall * (timed[-1][1] / steps) if counted else wall for wall, steps in timed]
