"""Canary rounds: production's next runs serve as the full runs that a trial asks for.

The ledger says what a round waits for; a task token lets the waiting trial continue. Each step may
be repeated, and the next production run repairs a crash between two of them: it closes a round
whose results are in, and reports a closed one to the waiting trial until that is recorded as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.codec import read
from compilegate.domain.decision import RequestedFullRun, Verdict
from compilegate.domain.errors import lock_lost
from compilegate.domain.followers import REJECTED, RELEASED
from compilegate.domain.ledger_keys import CANARY_ENTRIES, canary_entries
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.domain.production import canary
from compilegate.domain.records import production
from compilegate.ports import Services
from compilegate.usecases.records import Trial, load_decision, load_plan, load_spec


def open_canary(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Open the round that ``event`` asks for; ``token`` waits for its end.

    ``event`` has the trial, ``execution``, ``round``, ``runs`` ({arm, seed} as the judge asked)
    and ``timeout_seconds``. A repeated step waits with a token of its own. Raises
    WorkloadLockedError where the trial has lost the lock, so that no trial waits for the round.
    """
    trial, now, token = Trial.from_event(event), services.clock.now(), str(event["token"])
    until = now + int(event["timeout_seconds"])
    # Months may pass until the next step: the lock has to outlive them. It is not taken again,
    # because this step may have outlived its execution, and the clean-up after that one.
    execution = str(event["execution"])
    services.locks.extend(trial.workload, execution, expires_at=until + LOCK_SECONDS)
    plan, spec = load_plan(services.store, trial), load_spec(services.store, trial)
    runs = [read(RequestedFullRun, run) for run in event["runs"]]
    requested = canary.requested_round(
        trial.trial,
        int(event["round"]),
        runs,
        overrides={run.arm: plan.overrides(run.arm) for run in runs},
        measured=spec.job,
        now=now,
        until=until,
        on=plan.on_top_of,
    )
    services.ledger.append(trial.workload, requested)
    if services.locks.holder(trial.workload) != execution:
        close_canary(trial, canary.ABORTED, services=services)
        raise lock_lost(trial.workload, execution)
    workload = trial.workload
    while True:  # the round as it stands, with this wait's token on it
        (opened,) = services.ledger.history(workload, requested.key).rounds
        if token in opened.tokens:
            break
        number = len(opened.tokens)
        waiting = production.CanaryToken(now, opened.trial, opened.round, number, token)
        services.ledger.put_once(workload, waiting)
    history = services.ledger.history(workload, since=opened.at)
    ending = opened.closed or canary.round_ending(opened, history)
    if not ending:
        return {"round": opened.round, "closed": None}
    # An earlier wait ended before it was reported.
    reason = _close(opened, ending, workload, services)
    services.tokens.send_success(token, {"round": opened.round, "reason": reason})
    services.ledger.append(workload, production.CanaryReported(now, trial.trial, opened.round))
    return {"round": opened.round, "closed": reason}


def close_after_run(
    workload: str, run: production.ProductionRun, *, job: str | None, services: Services
) -> None:
    """After ``run`` was recorded: close the rounds that are over and report their end.

    ``job`` is the digest of what the run trained (``TrainedJob.digest``), None where that is
    unknown. The ledger is read after the run was recorded: of two runs that end at once, the
    later one sees both.
    """
    history = services.ledger.history(workload, CANARY_ENTRIES)
    waiting = [one.at for one in history.rounds if not one.reported]
    if waiting:  # a trial waits for runs, which begin once its round is open
        history = services.ledger.history(workload, since=min(waiting))
    over, is_too_late = canary.effect_of_run(run, history, job)
    if is_too_late:
        services.jobs.tag(run.job, {naming.TAG_RELEASE: REJECTED})
    for opened, reason in over:
        _end(opened, reason, workload, services)


def end_canary(workload: str, *, services: Services) -> None:
    """The workload was retired: let every trial that waits for its runs continue at once."""
    for opened in services.ledger.history(workload, CANARY_ENTRIES).rounds:
        if not opened.reported:
            _end(opened, canary.RETIRED, workload, services)


def close_canary(
    trial: Trial, reason: str, *, before: int | None = None, services: Services
) -> str | None:
    """Close the trial's rounds; returns why its last one ended, None where it never had one.

    A closed round keeps its reason. Rounds from ``before`` on are left alone: a repeated call that
    comes late must not end what the first one has begun.
    """
    last = None
    for opened in services.ledger.history(trial.workload, canary_entries(trial.trial)).rounds:
        if before is None or opened.round < before:
            last = _close(opened, reason, trial.workload, services)
            if not opened.reported:
                now = services.clock.now()
                reported = production.CanaryReported(now, opened.trial, opened.round)
                services.ledger.append(trial.workload, reported)
    return last


def release_models(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Tag the models of the trial's candidates by its decision; repeating it changes nothing.

    Until the verdict they are tagged as held back. Released are those of a candidate that was
    promoted and whose flag is on: without a person's approval it is not. A tag stays with the job
    whatever becomes of the flag later. Returns the jobs by their new tag.
    """
    trial = Trial.from_event(event)
    decision = load_decision(services.store, str(event["decision_key"]))
    on = decision.verdict is Verdict.PROMOTE and event["flag_enabled"] is True
    return tag_models(trial, decision.candidate if on else None, services)


def tag_models(trial: Trial, released: str | None, services: Services) -> dict[str, Any]:
    """Release the models of the arm ``released``, reject all others; the jobs by their new tag."""
    tagged: dict[str, Any] = {RELEASED: [], REJECTED: []}
    opened = services.ledger.history(trial.workload, canary_entries(trial.trial)).rounds
    since = min((one.at for one in opened), default=services.clock.now())
    history = services.ledger.history(trial.workload, since=since)
    for run in canary.held_runs(history, trial.trial):
        value = RELEASED if run.arm == released else REJECTED
        services.jobs.tag(run.job, {naming.TAG_RELEASE: value})
        tagged[value].append(run.job)
    return tagged


def _close(opened: production.CanaryRound, reason: str, workload: str, services: Services) -> str:
    """Why the round ended: the reason that was recorded first."""
    if opened.closed is not None:
        return opened.closed
    closed = production.CanaryClosed(services.clock.now(), opened.trial, opened.round, reason)
    return services.ledger.put_once(workload, closed).reason


def _end(opened: production.CanaryRound, reason: str, workload: str, services: Services) -> None:
    """Close the round and wake the trial that waits for it.

    By its newest token first; older tokens are of waits that were given up.
    """
    recorded = _close(opened, reason, workload, services)
    if recorded not in canary.REPORTED_ENDS:
        return
    for token in reversed(opened.tokens):
        services.tokens.send_success(token, {"round": opened.round, "reason": recorded})
    reported = production.CanaryReported(services.clock.now(), opened.trial, opened.round)
    services.ledger.append(workload, reported)
