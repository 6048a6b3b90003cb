"""Closes canary rounds and reports their end to the trial that waits.

Each step may be repeated, and a crash between two of them is repaired by the next production run:
a round whose results are in is closed, and a closed one is reported to whoever waits, until that
is recorded as well.
"""

from __future__ import annotations

from compilegate.domain import ledger_keys, naming
from compilegate.domain.production.canary import (
    ABORTED,
    REJECTED,
    REPORTED_ENDS,
    RETIRED,
    comes_too_late,
    ending_after,
)
from compilegate.domain.production.history import history
from compilegate.domain.records.canary import CanaryClosed, CanaryReported, CanaryRound
from compilegate.domain.records.runs import ProductionRun
from compilegate.ports import Services
from compilegate.usecases.trial.documents import Trial


def close_after_run(
    workload: str, run: ProductionRun, *, job: str | None, services: Services
) -> None:
    """After ``run`` was recorded: close what is over and report it.

    ``job`` is the digest of what the run trained (``TrainedJob.digest``), None where that is
    unknown. The ledger is read after the run was recorded: of two runs that end at once, the
    later one sees both.
    """
    rounds = history(services.ledger.entries(workload, ledger_keys.CANARY_ENTRIES))
    if comes_too_late(run, rounds):
        services.jobs.tag(run.job, {naming.TAG_RELEASE: REJECTED})
    waiting = [one for one in rounds.rounds if not one.reported]
    if not waiting:
        return
    past = history(services.ledger.entries(workload))
    for one in waiting:
        over = ending_after(one, past, run, job)
        reason = one.closed or (over and close(one, over, workload, services))
        if reason:
            _report(one, reason, workload, services)


def end_canary(workload: str, *, services: Services) -> None:
    """The workload was taken out of production: let every trial that waits for it go on at once."""
    entries = services.ledger.entries(workload, ledger_keys.CANARY_ENTRIES)
    for one in history(entries).rounds:
        if not one.reported:
            reason = one.closed or close(one, RETIRED, workload, services)
            _report(one, reason, workload, services)


def close_canary(
    trial: Trial, reason: str, *, before: int | None = None, services: Services
) -> str | None:
    """Close what the trial waits for no longer; returns why its last round ended.

    None where it never had one. What has been closed keeps its reason. Rounds from ``before`` on
    are left alone: a repeated call that comes late must not end what the first one has begun.
    """
    prefix, last = ledger_keys.canary_entries(trial.trial), None
    for one in history(services.ledger.entries(trial.workload, prefix)).rounds:
        if before is not None and one.round >= before:
            continue
        last = one.closed or close(one, reason, trial.workload, services)
        if not one.reported:
            record_reported(one, trial.workload, services)
    return last


def abort_canary(trial: Trial, *, services: Services) -> None:
    """Production goes back to the flag's arm at once."""
    close_canary(trial, ABORTED, services=services)


def close(canary: CanaryRound, reason: str, workload: str, services: Services) -> str:
    """Why the round ended: as whoever came first has said."""
    closed = CanaryClosed(services.clock.now(), canary.trial, canary.round, reason)
    entry = services.ledger.put_once(workload, closed.key, closed.to_entry())
    return CanaryClosed.from_entry(entry).reason


def record_reported(canary: CanaryRound, workload: str, services: Services) -> None:
    """Record that nobody waits for the round without knowing of its end."""
    reported = CanaryReported(services.clock.now(), canary.trial, canary.round)
    services.ledger.put_once(workload, reported.key, reported.to_entry())


def _report(canary: CanaryRound, reason: str, workload: str, services: Services) -> None:
    """Wake whoever waits, the newest first; older tokens are of waits that were given up."""
    if reason not in REPORTED_ENDS:
        return
    for token in reversed(canary.tokens):
        services.tokens.send_success(token, {"round": canary.round, "reason": reason})
    record_reported(canary, workload, services)
