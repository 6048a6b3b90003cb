"""How long a trial may take: rounds, the state machine's time and events, and its lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compilegate.domain import naming
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import job_seconds

# Up to six rounds of speed blocks, and room for two that had to be repeated.
SPEED_ROUNDS = 8
# Eight looks at a candidate's quality (2 to 36 runs), a round before the first, and room for
# three rounds that were stopped and requested again.
ROUNDS_PER_CANDIDATE = 12
# Speed jobs that may complete without any result of an arm before no more is paid for it: the first
# may be chance, the third shows that its script leaves none.
MOST_WITHOUT_RESULT = 3
MISSING = "evidence_missing"
# A speed job ends a segment, or a first compilation, that hangs for so long.
SEGMENT_SECONDS = 3600
# Queueing, downloading and uploading come on top of a job's own limits.
QUEUE_AND_TRANSFER_SECONDS = 6 * 3600
# What CreateTrainingJob refuses because the account's quota is in use is requested again: after
# ten seconds, then twice as long each time, at most an hour, for 16 hours in all. AWS's own sample
# retries it every minute for 83 hours (Step Functions developer guide, connect-sagemaker); fewer
# attempts keep an execution's history within its 25,000 events.
QUOTA_FIRST_SECONDS = 10
QUOTA_BACKOFF = 2
QUOTA_LONGEST_SECONDS = 3600
QUOTA_ATTEMPTS = 24
QUOTA_WAIT_SECONDS: int = sum(
    min(QUOTA_FIRST_SECONDS * QUOTA_BACKOFF**attempt, QUOTA_LONGEST_SECONDS)
    for attempt in range(QUOTA_ATTEMPTS)
)
DAY = 24 * 3600
# All 20 rounds of one candidate at three days each: 49 h of training and 23 h around it, its jobs
# side by side. Where a round may take longer, one that might not end in time is not begun
# (``has_time``), so that no trial is cut off undecided.
TRIAL_SECONDS = 60 * DAY
# A trial on production's runs takes as long as they do: with one run a week a year is 26 of a
# candidate and as many of the baseline. Step Functions ends an execution after a year.
MACHINE_SECONDS = 360 * DAY
# Judging, recording, flag and report after the last round.
ENDING_SECONDS = 3600
# The lock outlives a trial of its own runs. Every round on production's runs renews it for as
# long as that may last, so that no abandoned lock blocks a workload for a year.
LOCK_SECONDS = TRIAL_SECONDS + 3600
# A round on production's runs may take three times as long as the schedule says, and two weeks: a
# holiday, a paused schedule, days without capacity.
LATENESS = 3
PAUSE_SECONDS = 14 * DAY
# Step Functions ends an execution at so many events (facts/limits.json). A state that waits or
# decides takes two events, a task five or six and three more for every retry; a test counts them
# in the definition of EVALUATE.
MOST_EVENTS = 25_000
# JudgeArms, NextStep and the Map around a round's jobs, or the wait for production.
EVENTS_PER_ROUND = 13
# One iteration: read and check the request, wait for the job, record its end.
EVENTS_PER_JOB = 26
EVENTS_PER_RETRY = 3
THROTTLE_ATTEMPTS = 5
MOST_RETRIES = QUOTA_ATTEMPTS + THROTTLE_ATTEMPTS
# Before the first round and after the last one, an approval, retries of functions.
RESERVE = 1_000


def max_rounds(candidates: int, production_runs: int = 0) -> int:
    """A bound that no sound trial reaches; a trial beyond it would never end.

    ``production_runs`` of each candidate production may make, one a round.
    """
    return SPEED_ROUNDS + (ROUNDS_PER_CANDIDATE + production_runs) * candidates


def speed_job_seconds(max_runtime_hours: float, *, arms: int, blocks: int) -> int:
    """A speed job's limit: every segment and first compilation at its own, at most a job's."""
    return min(job_seconds(max_runtime_hours), (blocks + 1) * arms * SEGMENT_SECONDS)


def attempt_seconds(job_hours: float) -> int:
    """The longest that one job can take once its request is accepted; see ``Training``."""
    return job_seconds(job_hours) + QUEUE_AND_TRANSFER_SECONDS


def round_seconds(job_hours: float, waves: int) -> int:
    """The longest that a round can take, of whose jobs ``waves`` run one after the other."""
    return waves * (attempt_seconds(job_hours) + QUOTA_WAIT_SECONDS)


def has_time(
    elapsed_seconds: float, seconds: float, *, limit_seconds: float = TRIAL_SECONDS
) -> bool:
    """Whether a round that may take ``seconds`` ends before the trial's limit."""
    return elapsed_seconds + seconds + ENDING_SECONDS <= limit_seconds


def production_seconds(runs: int, runs_per_week: float, job_hours: float) -> int:
    """How long production takes for ``runs`` of a round by its schedule, the last one's end too."""
    return round(runs / runs_per_week * 7 * DAY) + attempt_seconds(job_hours)


def production_timeout_seconds(
    runs: int, runs_per_week: float, job_hours: float, *, elapsed_seconds: float
) -> int:
    """How long a round may wait for production, at most until the machine's own limit."""
    backoff = LATENESS * production_seconds(runs, runs_per_week, job_hours) + PAUSE_SECONDS
    return min(backoff, round(MACHINE_SECONDS - ENDING_SECONDS - elapsed_seconds))


def events(rounds: int, jobs: Iterable[str]) -> int:
    """Events of so many rounds with these jobs, whose names count their retries."""
    retries = [naming.retries(job) for job in jobs]
    return (
        rounds * EVENTS_PER_ROUND + len(retries) * EVENTS_PER_JOB + sum(retries) * EVENTS_PER_RETRY
    )


def has_room(rounds: int, jobs: Iterable[str], next_jobs: int) -> bool:
    """Whether one more round of ``next_jobs`` fits, each with all the retries that it may take."""
    longest = EVENTS_PER_ROUND + next_jobs * (EVENTS_PER_JOB + MOST_RETRIES * EVENTS_PER_RETRY)
    return events(rounds, jobs) + longest + RESERVE <= MOST_EVENTS


def missing_evidence(arm: str, jobs: Sequence[str]) -> Reason:
    """Why an arm is measured no more."""
    return Reason(
        MISSING,
        f"{arm}: {len(jobs)} speed jobs completed and left no summary.json of it in any block: "
        f"{', '.join(jobs)}",
        arm,
    )
