"""How much of a state machine's history a trial takes: Step Functions ends one at 25,000 events.

Counted from the definition of EVALUATE (a test holds the figures to it). A state that waits or
decides takes two events, a task five or six and three more for every retry.
"""

from __future__ import annotations

from collections.abc import Iterable

from compilegate.domain import naming
from compilegate.domain.planning.rounds import QUOTA_ATTEMPTS

# Limits of Step Functions (facts/limits.json): events in an execution's history.
MOST_EVENTS = 25_000
# JudgeArms, NextStep and the Map around a round's jobs, or the wait for production.
EVENTS_PER_ROUND = 13
# One iteration: its request is read and checked, the job is waited for, its end is settled.
EVENTS_PER_JOB = 26
EVENTS_PER_RETRY = 3
THROTTLE_ATTEMPTS = 5
MOST_RETRIES = QUOTA_ATTEMPTS + THROTTLE_ATTEMPTS
# Before the first round and after the last one, an approval, retries of functions.
RESERVE = 1_000


def events(rounds: int, jobs: Iterable[str]) -> int:
    """Events of so many rounds with these jobs, whose names say how often each was asked for."""
    retries = [naming.retries(job) for job in jobs]
    return (
        rounds * EVENTS_PER_ROUND + len(retries) * EVENTS_PER_JOB + sum(retries) * EVENTS_PER_RETRY
    )


def has_room(rounds: int, jobs: Iterable[str], next_jobs: int) -> bool:
    """Whether one more round of ``next_jobs`` fits, each asked for as often as it may be."""
    longest = EVENTS_PER_ROUND + next_jobs * (EVENTS_PER_JOB + MOST_RETRIES * EVENTS_PER_RETRY)
    return events(rounds, jobs) + longest + RESERVE <= MOST_EVENTS
