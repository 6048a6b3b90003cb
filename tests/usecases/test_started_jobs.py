"""Every job that a state machine can have started is asked for, and what a failed trial cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.planning.rounds import MOST_RETRIES, THROTTLE_ATTEMPTS
from compilegate.domain.production.history import history
from compilegate.domain.records import ledger
from compilegate.domain.records.production import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.records.trials import TrialFailed
from compilegate.domain.trial.evidence import JobRecord, TrialRecords
from compilegate.usecases.records import Trial
from compilegate.usecases.started_jobs import jobs_of_trial, names_of_run
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock
from tests import fakes
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    asks_full_runs,
    call_judge,
    first_round,
    load,
    outcome,
)

HOUR = 3600
OF = Trial("bert-docs", TRIAL, "")
# What CreateTrainingJob may answer to a try: only the last one is waited for.
TRIES = st.lists(st.sampled_from(["refused", "lost"]), max_size=MOST_RETRIES)


def job(run: str, number: int) -> str:
    base = naming.job_base("bert-docs", TRIAL, run)
    return f"{base}-r{naming.RETRY_DIGITS[number]}"


@given(st.dictionaries(st.sampled_from(["s0", "s1b2", "q1a17", "q12b4"]), TRIES))
def test_every_job_of_a_trial_is_seen_whichever_tries_were_refused(tries: dict[str, Any]) -> None:
    """Of a judged round JudgeArms has recorded what it waited for, and what trained beside it."""
    services: Any = fakes.services()
    records, expected = [], set()
    for run, answers in tries.items():
        services.store.put(naming.request_key("bert-docs", TRIAL, run), b"{}")
        started = [n for n, answer in enumerate(answers) if answer == "lost"] + [len(answers)]
        for number in started:
            services.jobs.add(job(run, number), "InProgress", 0.0)
        expected |= {job(run, number) for number in started}
        if run.startswith("s"):
            records += [JobRecord(job(run, number), 1.0) for number in started]
    services.store.put(f"{naming.requests_prefix('bert-docs', TRIAL)}notes.txt", b"")
    services.jobs.add(f"cg-bert-docs-{TRIAL}0-s0-r0", "InProgress", 0.0)

    for recorded in (TrialRecords(tuple(records)), None):
        assert expected == set(jobs_of_trial(OF, recorded, services))


def test_of_a_recorded_run_only_the_recorded_jobs_are_asked_for() -> None:
    services, asked = fakes.services(), list[str]()
    services.jobs.describe_all = lambda names: asked.extend(names) or {}  # type: ignore[assignment, method-assign]
    for run in ("s0", "q1a17"):
        services.store.put(naming.request_key("bert-docs", TRIAL, run), b"{}")
    of_production = JobRecord("cg-bert-docs-0mabc123-p0-r0", 1.0)
    jobs_of_trial(OF, TrialRecords((JobRecord(job("s0", 3), 1.0), of_production)), services)

    assert [job("s0", 3), *(job("q1a17", n) for n in range(MOST_RETRIES + 1))] == asked


BEGUN = BegunRun(0, "r", "e", "compile", "flag", 1, 1, "s", "c")


def run_job(attempt: int, number: int) -> str:
    return f"{naming.job_base('bert-docs', 'r', naming.attempt(attempt))}-r{number}"


@pytest.mark.parametrize(
    ("waited", "ended", "attempts", "earlier"),
    [
        ([], [], [0], []),
        ([run_job(0, 2)], [], [0, 1], []),
        ([run_job(0, 2), run_job(1, 0)], [run_job(2, 1)], [2, 3], [run_job(0, 0), run_job(0, 1)]),
        ([], [naming.job_base("bert-docs", "r", "p0")], [0, 1], []),  # none was started
    ],
    ids=["before any", "after a wait", "after a run", "after one that was not run"],
)
def test_of_a_run_every_try_of_its_last_attempts_and_of_others_what_nothing_waited_for(
    waited: list[str], ended: list[str], attempts: list[int], earlier: list[str]
) -> None:
    waits = [CapacityWait(0, "r", number, one) for number, one in enumerate(waited)]
    runs = [ProductionRun("r", one, "compile", 0.0, 0.0, {}, True, "flag") for one in ended]
    other = ProductionRun("other", "cg-bert-docs-other-p9-r3", "compile", 0, 0, {}, True, "flag")
    past = history([record.to_entry() for record in (*waits, *runs, other)])

    tries = range(THROTTLE_ATTEMPTS + 1)
    assert {*earlier, *(run_job(a, n) for a in attempts for n in tries)} == {
        *names_of_run("bert-docs", BEGUN, past)
    }


def failed(services: Any) -> TrialFailed:
    abort_trial({**EVENT, "error": "States.Timeout", "cause": ""}, services=services)
    (record,) = services.ledger.history("bert-docs", f"trial#{TRIAL}#failed").failed
    assert isinstance(record, TrialFailed)
    return record


def test_a_failed_trial_costs_what_its_jobs_did_recorded_or_not(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    first_round(services)
    speed = outcome("s0")
    services.jobs.add(speed["job"], "Failed", 0.0, 3.0 * HOUR)
    call_judge(services, 1, [{**speed, "status": "Failed"}], asks_full_runs("compile 17"))
    started = services.clock.seconds - 2.0 * HOUR
    fakes.start_job(services, "bert-docs", TRIAL, "q1b17", started=started)

    baseline, compiled = (arm["usd_per_hour"] for arm in load(services, "plan")["arms"])
    record = failed(services)
    usd = 3 * baseline + compiled * (2 * HOUR + 120) / HOUR
    assert record.spent_usd == pytest.approx(usd)
    assert (job("q1b17", 0), speed["job"]) == record.jobs
    assert (job("q1b17", 0),) == record.stopped_jobs


@pytest.mark.parametrize(
    ("planned", "damaged", "job", "spent"),
    [
        (False, None, True, None), (True, "plan", True, None), (True, "evidence", True, None),
        (False, "evidence", False, None), (False, None, False, 0.0), (True, None, False, 0.0),
    ],
)  # fmt: skip
def test_what_no_record_prices_is_not_known_and_no_job_costs_nothing(
    services: Any, *, planned: bool, damaged: str | None, job: bool, spent: float | None
) -> None:
    acquire_lock(EVENT, services=services)
    if planned:
        first_round(services)
    if damaged is not None:
        services.store.put(naming.record_key("bert-docs", TRIAL, damaged), b'{"schema": 99}')
    if job:
        fakes.start_job(services, "bert-docs", TRIAL, "s0", started=0.0)

    record = failed(services)
    assert spent == record.spent_usd
    assert job == bool(record.stopped_jobs)


@pytest.mark.parametrize(("error", "answered"), [("Stopped", "Stopped"), ("", "TrialFailed")])
@pytest.mark.parametrize("execution", [EVENT["execution"], "a copy"])
def test_the_answer_of_a_clean_up_names_an_error(
    services: Any, execution: str, error: str, answered: str
) -> None:
    acquire_lock(EVENT, services=services)
    event = {**EVENT, "execution": execution, "error": error, "cause": "by hand"}

    assert answered == abort_trial(event, services=services)["error"]


def test_an_older_entry_says_nothing_of_its_cost() -> None:
    entry = {k: v for k, v in TrialFailed(1, "t", "e").to_entry().items() if k != "spent_usd"}
    record = ledger.read(entry)

    assert isinstance(record, TrialFailed)
    assert record.spent_usd is None
