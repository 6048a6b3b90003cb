"""Fifty trials at once on a quota of four jobs: all of them end, none fails for waiting."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import Decision
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.planning import rounds
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests import fakes
from tests.domain.workload_builder import SOUND
from tests.usecases.trial_builder import (
    EVENT,
    asks_full_runs,
    asks_speed,
    put_output,
    put_spec,
    quality_output,
    says,
    speed_output,
)

TRIALS, QUOTA, HOUR = 50, 4, 3600
JOB_SECONDS = 3 * HOUR
FULL_RUNS = 3  # of each arm, a round each
DELAYS = [
    min(rounds.QUOTA_FIRST_SECONDS * rounds.QUOTA_BACKOFF**n, rounds.QUOTA_LONGEST_SECONDS)
    for n in range(rounds.QUOTA_ATTEMPTS)
]
Process = Iterator[float]  # the seconds that it waits, again and again


def judge(shown: Evidence) -> Decision:
    baseline, compiled = shown.arms
    if not baseline.speed:
        return asks_speed()
    seed = len(compiled.full_runs)
    return says("promote") if seed == FULL_RUNS else asks_full_runs(
        f"baseline {seed}", f"compile {seed}"
    )  # fmt: skip


class Account:
    """The clock of all, and the jobs that train."""

    def __init__(self) -> None:
        self.clock = fakes.FixedClock()
        self.training = self.most = 0

    def play(self, processes: Sequence[Process]) -> None:
        """All of them side by side, to their ends."""
        due = [(self.clock.seconds, n, one) for n, one in enumerate(processes)]
        while due:
            self.clock.seconds, n, process = heapq.heappop(due)
            wait = next(process, None)
            if wait is not None:
                heapq.heappush(due, (self.clock.seconds + int(wait), n, process))


class Evaluate:
    """EVALUATE's rounds as the state machine makes them (stacks/rounds.py)."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.services: Any = fakes.services("prod")
        object.__setattr__(self.services, "clock", account.clock)
        self.services.quotas.otherwise = QUOTA
        self.verdict, self.rounds, self.longest = "", 0, 0.0
        put_spec(self.services, SOUND)

    def run(self) -> Process:
        plan_trial(EVENT, services=self.services)
        outcomes: list[Any] = []
        while self.verdict in ("", "continue"):
            event = {**EVENT, "round": self.rounds, "runs": outcomes}
            answer = judge_arms(event, services=self.services, judge=judge)
            self.verdict, self.rounds, outcomes = answer["verdict"], answer["round"], []
            if answer["runs"]:
                yield from self._round(answer["runs"], answer["max_concurrency"], outcomes)

    def _round(self, runs: Sequence[Any], at_once: int, outcomes: list[Any]) -> Process:
        """The Map: so many of its runs at a time."""
        waiting = list(runs)
        active: list[tuple[float, int, Process]] = []
        while waiting or active:
            now = self.account.clock.seconds
            while waiting and len(active) < at_once:
                process = self._job(waiting.pop(0), runs, outcomes.append)
                heapq.heappush(active, (now, len(waiting), process))
            due, number, process = heapq.heappop(active)
            if due > now:
                yield due - now
            wait = next(process, None)
            if wait is not None:
                heapq.heappush(active, (self.account.clock.seconds + wait, number, process))

    def _job(self, run: Any, runs: Sequence[Any], ended: Callable[[Any], None]) -> Process:
        account, began = self.account, self.account.clock.seconds
        for retries in range(rounds.QUOTA_ATTEMPTS + 1):
            job = f"{run['job_base']}-r{naming.RETRY_DIGITS[retries]}"
            if account.training < QUOTA:
                break
            if retries == rounds.QUOTA_ATTEMPTS:
                given = {**EVENT, **run, "job": job, "runs": runs, "cause": "no room"}
                failed = {**given, "error": RESOURCE_LIMIT_ERROR}
                ended(on_job_ended(failed, services=self.services, judge=judge))
                return
            yield DELAYS[retries]
        self.longest = max(self.longest, account.clock.seconds - began)
        account.training += 1
        account.most = max(account.most, account.training)
        started = account.clock.seconds
        yield JOB_SECONDS
        account.training -= 1
        self.services.jobs.add(job, "Completed", started, account.clock.seconds)
        seed = naming.parse_run(run["run"]).seed
        output = speed_output(range(1), speedup=1.5) if seed is None else quality_output(seed)
        put_output(self.services, job, output)
        ended({"run": run["run"], "job": job, "status": "Completed", "reason": None})


def test_fifty_trials_on_a_quota_of_four_all_end_and_none_fails_for_waiting() -> None:
    account = Account()
    began = account.clock.seconds
    trials = [Evaluate(account) for _ in range(TRIALS)]
    account.play([trial.run() for trial in trials])

    assert {"promote"} == {trial.verdict for trial in trials}
    assert QUOTA == account.most
    jobs = TRIALS * (1 + 2 * FULL_RUNS)
    days = (account.clock.seconds - began) / 24 / HOUR
    assert jobs * JOB_SECONDS / QUOTA / 24 / HOUR <= days < 14
    # Longer than a job asks for room three times over, which once ended a trial.
    assert max(trial.rounds for trial in trials) > 1 + FULL_RUNS + 3
