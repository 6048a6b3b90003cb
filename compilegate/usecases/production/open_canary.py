"""Opens a canary round: production's next runs carry the full runs that a trial asks for.

The ledger says what the round waits for, and a task token lets the waiting trial go on. Repeating
the step waits anew, with a token of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.flag import promoted
from compilegate.domain.planning.rounds import LEASE_SECONDS, attempt_seconds, longest_job_hours
from compilegate.domain.production.canary import in_turn, round_ending
from compilegate.domain.production.history import history
from compilegate.domain.production.trained_job import TrainedJob
from compilegate.domain.production.waiting import most_wait_seconds
from compilegate.domain.records.canary import CanaryRound, CanaryToken, RequestedRun
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.ports import Services
from compilegate.usecases.production.close_canary import close, record_reported
from compilegate.usecases.trial.documents import Trial, load_spec
from compilegate.usecases.trial.recorded import load_plan

# A candidate that fails is made good by a job with the baseline.
JOBS_PER_RUN = 2


def open_canary(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Let production carry the round that ``event`` asks for; ``token`` waits for its end.

    ``event`` has the trial, ``execution``, ``round``, ``runs`` ({arm, seed} as the judge asked)
    and ``timeout_seconds``. Raises WorkloadLockedError where another trial holds the lease.
    """
    trial, now = Trial.from_event(event), services.clock.now()
    until = now + int(event["timeout_seconds"])
    # Months may pass until the next step: the lease has to outlive them.
    services.locks.acquire(
        trial.workload, str(event["execution"]), now=now, expires_at=until + LEASE_SECONDS
    )
    requested = _round(event, trial, now, until, services)
    services.ledger.put_once(trial.workload, requested.key, requested.to_entry())
    token = str(event["token"])
    opened = _with_token(requested, token, trial.workload, services)
    reason = opened.closed or _close_if_over(opened, trial.workload, services)
    if reason is not None:  # an earlier wait ended before it was reported
        services.tokens.send_success(token, {"round": opened.round, "reason": reason})
        record_reported(opened, trial.workload, services)
    return {"round": opened.round, "closed": reason}


def _round(
    event: Mapping[str, Any], trial: Trial, now: int, until: int, services: Services
) -> CanaryRound:
    plan, spec = load_plan(services.store, trial), load_spec(services.store, trial)
    past = history(services.ledger.entries(trial.workload, ledger_keys.canary_entries(trial.trial)))
    number = int(event["round"])
    turn = sum(one.round < number for one in past.rounds)
    runs = [RequestedRun(str(run["arm"]), int(run["seed"])) for run in event["runs"]]
    return CanaryRound(
        trial=trial.trial,
        round=number,
        runs=in_turn(runs, turn),
        arms={run.arm: _overrides(plan, run.arm) for run in runs},
        job=TrainedJob(spec.workload, spec.code).digest,
        until=until,
        slot_seconds=_slot_seconds(spec.workload),
        hold=spec.workload.policy.hold_models,
        at=now,
    )


def _slot_seconds(workload: Workload) -> int:
    """How long a production run may take: its waiting for capacity, and its job made twice."""
    job = attempt_seconds(longest_job_hours(workload.training))
    return round(most_wait_seconds(workload)) + JOBS_PER_RUN * job


def _overrides(plan: RecordedPlan, name: str) -> Mapping[str, Any]:
    """What the flag would change were the arm promoted, so that its job is the one to come."""
    if name == BASELINE:
        return {}
    arm, baseline = asdict(plan.arm(name)), asdict(plan.baseline)
    return promoted(arm, baseline, decision_id="", since="").overrides


def _with_token(
    requested: CanaryRound, token: str, workload: str, services: Services
) -> CanaryRound:
    """The round as it stands, with this wait's token on it."""
    while True:
        (opened,) = history(services.ledger.entries(workload, requested.key)).rounds
        if token in opened.tokens:
            return opened
        number = len(opened.tokens)
        waiting = CanaryToken(services.clock.now(), opened.trial, opened.round, number, token)
        services.ledger.put_once(workload, waiting.key, waiting.to_entry())


def _close_if_over(opened: CanaryRound, workload: str, services: Services) -> str | None:
    reason = round_ending(opened, history(services.ledger.entries(workload)))
    return None if reason is None else close(opened, reason, workload, services)
