"""Opens and closes the rounds of a trial that production's own runs carry.

The ledger says what a round waits for, and a task token lets the waiting trial go on. Each step
may be repeated, and a crash between two of them is repaired by the next production run: a round
whose results are in is closed, and a closed one is told to whoever waits, until that is written
down as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.flag import promoted
from compilegate.domain.planning.rounds import LEASE_SECONDS, attempt_seconds, longest_job_hours
from compilegate.domain.production.canary import (
    ABORTED,
    CHANGED,
    CLOSED,
    COMPLETE,
    LOST,
    REJECTED,
    RETIRED,
    TOKEN,
    TOLD,
    CanaryRound,
    Entries,
    Wanted,
    canary_rounds,
    ending,
    in_turn,
    job_digest,
)
from compilegate.domain.production.registration import is_retired
from compilegate.domain.production.runs import ProductionRun
from compilegate.domain.production.waiting import most_wait_seconds
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.ports import Services
from compilegate.usecases.trial import OpenTrial, Trial, open_trial

# The trial waits for these; after any other end it has gone on already.
TO_BE_TOLD = (COMPLETE, LOST, CHANGED, RETIRED)
# A candidate that fails is made good by a job with the baseline.
JOBS_PER_RUN = 2


def open_canary(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Let production carry the round that ``event`` asks for; ``token`` waits for its end.

    ``event`` has the trial, ``execution``, ``round``, ``runs`` ({arm, seed} as the judge asked)
    and ``timeout_seconds``. Raises WorkloadLockedError where another trial holds the lease.
    """
    opened = open_trial(Trial.from_event(event), services)
    trial, now = opened.trial, services.clock.now()
    until = now + int(event["timeout_seconds"])
    # Months may pass until the next step: the lease has to outlive them.
    services.locks.acquire(
        trial.workload, str(event["execution"]), now=now, expires_at=until + LEASE_SECONDS
    )
    asked = _round(event, opened, until)
    services.ledger.put_once(trial.workload, asked.key, asked.to_entry())
    token = str(event["token"])
    found = _with_token(asked, token, trial.workload, services)
    reason = found.closed or _close_if_over(found, trial.workload, services)
    if reason is not None:  # an earlier wait ended without having been told
        services.tokens.send_success(token, _told(found, reason))
        _write_told(found, trial.workload, services)
    return {"round": found.round, "closed": reason}


def record_canary(
    workload: str, run: ProductionRun, *, job: str | None, services: Services
) -> None:
    """After ``run`` was written to the ledger: close what is over, tell whoever waits.

    ``job`` is the digest of what the run trained (``job_digest``), None where that is unknown: a
    run of another job than the trial measures ends the round, as production will carry no more.
    """
    rounds = canary_rounds(services.ledger.entries(workload, ledger_keys.CANARY_ENTRIES))
    _reject_late(run, rounds, services)
    waiting = [found for found in rounds if not found.told]
    entries = services.ledger.entries(workload) if waiting else ()
    for found in waiting:
        moved_on = job not in (None, found.job) and run.started_at > found.at
        over = _over(found, entries) or (CHANGED if moved_on else None)
        reason = found.closed or (over and _close(found, over, workload, services))
        if reason:
            _settle(found, reason, workload, services)


def _reject_late(run: ProductionRun, rounds: list[CanaryRound], services: Services) -> None:
    """A candidate's model that came after its round had ended without it: nothing vouches for it.

    Where the trial's verdict does, that comes later and tags it anew. A round that is complete may
    have ended with this very run.
    """
    slot = run.canary
    if slot is None or run.arm == BASELINE:
        return
    own = [one for one in rounds if (one.trial, one.round) == (slot.trial, slot.round)]
    if any(found.hold and found.closed not in (None, COMPLETE) for found in own):
        services.jobs.tag(run.job, {naming.TAG_RELEASE: REJECTED})


def end_carried(workload: str, *, services: Services) -> None:
    """The workload was taken out of production: let every trial that waits for it go on at once."""
    for found in canary_rounds(services.ledger.entries(workload, ledger_keys.CANARY_ENTRIES)):
        if not found.told:
            reason = found.closed or _close(found, RETIRED, workload, services)
            _settle(found, reason, workload, services)


def close_canary(
    trial: Trial, reason: str, *, before: int | None = None, services: Services
) -> str | None:
    """Close what the trial waits for no longer; returns why its last round ended.

    None where it never had one. What has been closed keeps its reason. Rounds from ``before`` on
    are left alone: a repeated call that comes late must not end what the first one has begun.
    """
    last = None
    for found in _rounds_of(trial, services):
        if before is not None and found.round >= before:
            continue
        last = found.closed or _close(found, reason, trial.workload, services)
        if not found.told:
            _write_told(found, trial.workload, services)
    return last


def abort_canary(trial: Trial, *, services: Services) -> None:
    """Production goes back to the flag's arm at once."""
    close_canary(trial, ABORTED, services=services)


def _rounds_of(trial: Trial, services: Services) -> list[CanaryRound]:
    prefix = ledger_keys.canary_entries(trial.trial)
    return canary_rounds(services.ledger.entries(trial.workload, prefix))


def _round(event: Mapping[str, Any], opened: OpenTrial, until: int) -> CanaryRound:
    trial, services, workload = opened.trial, opened.services, opened.spec.workload
    number = int(event["round"])
    turn = sum(found.round < number for found in _rounds_of(trial, services))
    runs = [Wanted(str(run["arm"]), int(run["seed"])) for run in event["runs"]]
    return CanaryRound(
        trial=trial.trial,
        round=number,
        runs=in_turn(runs, turn),
        arms={run.arm: _overrides(opened.plan, run.arm) for run in runs},
        job=job_digest(workload, opened.spec.code),
        until=until,
        slot_seconds=_slot_seconds(workload),
        hold=workload.policy.hold_models,
        at=services.clock.now(),
    )


def _slot_seconds(workload: Workload) -> int:
    """How long a production run may take: its waiting for capacity, and its job made twice."""
    job = attempt_seconds(longest_job_hours(workload.training))
    return round(most_wait_seconds(workload)) + JOBS_PER_RUN * job


def _overrides(plan: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What the flag would change were the arm promoted, so that its job is the one to come."""
    if name == BASELINE:
        return {}
    arm = next(arm for arm in plan["arms"] if arm["name"] == name)
    return promoted(arm, plan["arms"][0], decision_id="", since="").overrides


def _with_token(asked: CanaryRound, token: str, workload: str, services: Services) -> CanaryRound:
    """The round as it stands, this wait's token on it; a step that is repeated waits anew."""
    while True:
        entries = services.ledger.entries(workload, asked.key)
        found = next(one for one in canary_rounds(entries) if one.round == asked.round)
        if token in found.tokens:
            return found
        number = len(found.tokens)
        entry = {
            "kind": TOKEN, "at": services.clock.now(), "trial": found.trial, "round": found.round,
            "number": number, "token": token,
        }  # fmt: skip
        key = ledger_keys.canary_token_entry(found.trial, found.round, number)
        services.ledger.put_once(workload, key, entry)


def _close_if_over(found: CanaryRound, workload: str, services: Services) -> str | None:
    reason = _over(found, services.ledger.entries(workload))
    return None if reason is None else _close(found, reason, workload, services)


def _over(found: CanaryRound, entries: Entries) -> str | None:
    """Why the round is over whatever comes, None while it is not."""
    return ending(found, entries) or (RETIRED if is_retired(entries) else None)


def _close(found: CanaryRound, reason: str, workload: str, services: Services) -> str:
    """Why the round ended: as whoever came first has said."""
    entry = {
        "kind": CLOSED, "at": services.clock.now(), "trial": found.trial, "round": found.round,
        "reason": reason,
    }  # fmt: skip
    key = ledger_keys.canary_closed_entry(found.trial, found.round)
    return str(services.ledger.put_once(workload, key, entry)["reason"])


def _settle(found: CanaryRound, reason: str, workload: str, services: Services) -> None:
    """Tell whoever waits, the newest first; older tokens are of waits that were given up."""
    if reason not in TO_BE_TOLD:
        return
    for token in reversed(found.tokens):
        services.tokens.send_success(token, _told(found, reason))
    _write_told(found, workload, services)


def _told(found: CanaryRound, reason: str) -> dict[str, Any]:
    return {"round": found.round, "reason": reason}


def _write_told(found: CanaryRound, workload: str, services: Services) -> None:
    entry = {
        "kind": TOLD, "at": services.clock.now(), "trial": found.trial, "round": found.round,
    }  # fmt: skip
    key = ledger_keys.canary_told_entry(found.trial, found.round)
    services.ledger.put_once(workload, key, entry)
