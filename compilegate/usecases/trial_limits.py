"""Limits that hold while a trial runs: its money, its rounds, the state machine's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain.decision import Decision, Reason, Verdict
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arm_plan import CONTROL
from compilegate.domain.planning.history import has_room
from compilegate.domain.planning.layout import waves
from compilegate.domain.production.quality_mode import SHADOW
from compilegate.domain.workload.model import Training
from compilegate.usecases.job_limits import HOUR, is_carried, stopped_by_budget, wanted_usd
from compilegate.usecases.outcome import Outcome
from compilegate.usecases.round_layout import layout_of_step
from compilegate.usecases.trial import OpenTrial


def limits(plan: Mapping[str, Any], training: Training, mode: str) -> dict[str, Any]:
    """What the plan allows, for its record: whether even the longest path ends in time.

    Of the rounds that production carries (``mode`` not shadow) the schedule sets the pace.
    """
    candidates, most = candidate_count(plan), _most_seconds(mode)
    turns = max(waves(found["jobs"], found["at_once"]) for found in plan["layout"])
    longest = rounds.longest_seconds(candidates, rounds.longest_job_hours(training), turns)
    return {
        "max_rounds": rounds.max_rounds(candidates, _carried_runs(plan, mode)),
        "longest_hours": round(longest / HOUR, 2),
        "machine_hours": most / HOUR,
        "fits": longest <= most,
    }


def _most_seconds(mode: str) -> int:
    return rounds.TRIAL_SECONDS if mode == SHADOW else rounds.MACHINE_SECONDS


def _carried_runs(plan: Mapping[str, Any], mode: str) -> int:
    return 0 if mode == SHADOW else int(plan["max_quality_runs"])


def _mode(plan: Mapping[str, Any]) -> str:
    return str(plan.get("quality_mode", {}).get("used", SHADOW))


def candidate_count(plan: Mapping[str, Any]) -> int:
    """Candidates of the plan; a control decides nothing and has no rounds of its own."""
    return len([arm for arm in plan["arms"] if arm.get("role") != CONTROL]) - 1


def within_limits(
    decision: Decision,
    document: dict[str, Any],
    opened: OpenTrial,
    round_number: int,
    outcomes: Sequence[Outcome],
) -> Decision:
    """The decision, or ``inconclusive`` where its next step, or the last one, met a limit."""
    step = decision.next
    if decision.verdict is not Verdict.CONTINUE or step is None:
        return decision
    reason = (
        _met_its_limit(outcomes, opened)
        or _over_budget(step, document, opened)
        or _too_many_rounds(step, document, opened.plan, round_number)
        or _over_time(step, document, opened)
    )
    if reason is None:
        return decision
    reasons = (reason, *decision.reasons)
    return replace(decision, verdict=Verdict.INCONCLUSIVE, reasons=reasons, next=None)


def _met_its_limit(outcomes: Sequence[Outcome], opened: OpenTrial) -> Reason | None:
    """A run that the budget cut off is no result, and asking again would end the same way."""
    cut = [str(outcome["job"]) for outcome in outcomes if stopped_by_budget(outcome, opened)]
    if not cut:
        return None
    return Reason(
        "trial_over_budget",
        f"{', '.join(cut)} reached a time limit below training.max_runtime_hours, set to stay "
        f"within policy.max_trial_usd (${opened.plan['max_trial_usd']:,.2f})",
    )


def _over_budget(
    step: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial
) -> Reason | None:
    """The cap, on what jobs really took: no step begins that it would probably cut off."""
    spent, cap = document["plan"]["spent_usd"], opened.plan["max_trial_usd"]
    wanted = wanted_usd(step, document, opened)
    if spent + wanted <= cap:
        return None
    return Reason(
        "trial_over_budget",
        f"${spent:,.2f} is spent and the next step takes about ${wanted:,.2f}: together more "
        f"than policy.max_trial_usd (${cap:,.2f})",
    )


def _too_many_rounds(
    step: Mapping[str, Any], document: dict[str, Any], plan: Mapping[str, Any], round_number: int
) -> Reason | None:
    """More rounds than a sound trial needs, or than one execution's history holds."""
    most = rounds.max_rounds(candidate_count(plan), _carried_runs(plan, _mode(plan)))
    if round_number >= most:
        return Reason("too_many_rounds", f"not settled after {most} rounds")
    jobs = document["plan"]["usd_by_job"]
    if has_room(round_number, jobs, _most_jobs(step, plan)):
        return None
    return Reason(
        "too_many_rounds",
        f"not settled after {len(jobs)} jobs in {round_number} rounds, and one more round might "
        "not fit into the history of one execution of Step Functions",
    )


def _most_jobs(step: Mapping[str, Any], plan: Mapping[str, Any]) -> int:
    """The most jobs that the step may take."""
    return (
        int(step["blocks"]) * len(plan["arms"]) if step["stage"] == "speed" else len(step["runs"])
    )


def _over_time(
    step: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial
) -> Reason | None:
    """A round that the state machine's limit might cut off would leave nothing decided."""
    elapsed = opened.services.clock.now() - opened.plan["started_at"]
    most = _most_seconds(_mode(opened.plan))
    needed, limit = _longest_round(step, document, opened)
    if rounds.has_time(elapsed, needed, limit_seconds=most):
        return None
    return Reason(
        "trial_over_time",
        f"not settled after {elapsed / rounds.DAY:.0f} days, and one more round of up to "
        f"{needed / HOUR:.0f} hours ({limit}) might not end within the {most / rounds.DAY:.0f} "
        "days that a trial may take",
    )


def _longest_round(
    step: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial
) -> tuple[int, str]:
    """Seconds that the step may take, and what they consist of."""
    workload = opened.spec.workload
    hours = rounds.longest_job_hours(workload.training)
    if is_carried(step):
        runs, per_week = len(step["runs"]), workload.schedule.runs_per_week
        limit = f"{runs} runs of production, of which a week has {per_week:g}"
        return rounds.carried_seconds(runs, per_week, hours), limit
    turns = layout_of_step(step, document, opened).waves
    spot = ", waiting for spot capacity included" if workload.training.spot else ""
    in_turn = f"{turns} jobs in turn within the quota, each" if turns > 1 else "each job"
    limit = f"{in_turn} {hours:g} hours{spot}, queueing and waiting for the quota"
    return rounds.round_seconds(hours, turns), limit
