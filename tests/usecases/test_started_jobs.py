"""Every job that a state machine can have started is asked for, and what a failed trial cost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.planning.rounds import MOST_RETRIES, THROTTLE_ATTEMPTS
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.production import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.records.trials import ApprovalRequested, TrialFailed
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
    # Of another trial, and of a workload that is called ``bert-docs-ID``.
    for foreign in (f"{TRIAL}0-s0-r0", f"{TRIAL}-0mabc123-q1a17-r0"):
        services.jobs.add(f"cg-bert-docs-{foreign}", "InProgress", 0.0)

    for recorded in (TrialRecords(tuple(records)), None):
        assert expected == set(jobs_of_trial(OF, recorded, services))


def test_of_a_recorded_run_no_other_tries_are_asked_for(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(services.jobs, "describe_all", asked.extend)
    for run in ("s0", "q1a17"):
        services.store.put(naming.request_key("bert-docs", TRIAL, run), b"{}")
    jobs_of_trial(OF, TrialRecords((JobRecord(job("s0", 2), 1.0),)), services)

    assert [job("s0", 2), *(job("q1a17", number) for number in range(MOST_RETRIES + 1))] == asked


def failed(services: Any) -> TrialFailed:
    abort_trial({**EVENT, "error": "X", "cause": "why"}, services=services)
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
    assert record == TrialFailed(
        services.clock.seconds, TRIAL, EVENT["execution"], "X", "X: why",
        (job("q1b17", 0),), (job("q1b17", 0), speed["job"]), record.spent_usd,
    )  # fmt: skip


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


OF_STEP_FUNCTIONS = {
    "executionArn": EVENT["execution"], "status": "FAILED", "error": None, "cause": None,
    "input": json.dumps({**EVENT, "execution": "none"}),
}  # fmt: skip
NO_REASON = "no reason was given"


@pytest.mark.parametrize(
    ("event", "error", "reason"),
    [
        ({**EVENT, "error": "Stopped", "cause": "by hand"}, "Stopped", "Stopped: by hand"),
        (EVENT, "TrialFailed", NO_REASON),
        ({"detail": OF_STEP_FUNCTIONS}, "FAILED", "FAILED"),
        ({"detail": {**OF_STEP_FUNCTIONS, "error": "X", "cause": "why"}}, "X", "X: why"),
    ],
)
@pytest.mark.parametrize("holder", [EVENT["execution"], "another"])
def test_the_answer_of_a_clean_up_names_an_error_and_one_of_a_copy_records_none(
    services: Any, holder: str, event: dict[str, Any], error: str, reason: str
) -> None:
    acquire_lock({**EVENT, "execution": holder}, services=services)

    assert {"error": error, "reason": reason} == abort_trial(event, services=services)
    failures = services.ledger.history("bert-docs", f"trial#{TRIAL}#failed").failed
    own = EVENT["execution"] == holder
    assert [(EVENT["execution"], reason)] * own == [(one.execution, one.reason) for one in failures]
    assert (None if own else holder) == services.locks.holder("bert-docs")


def test_nothing_waits_any_more_for_a_trial_whose_jobs_cannot_be_read(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire_lock(EVENT, services=services)
    services.ledger.append("bert-docs", ApprovalRequested(1, 2, TRIAL))
    monkeypatch.delattr(fakes.MemoryJobs, "describe_all")
    with pytest.raises(AttributeError):
        abort_trial(EVENT, services=services)

    (approval,) = services.ledger.history("bert-docs", "approval#").approvals
    assert ("evaluate", False) == (approval.answer.by, approval.answer.approved)


def test_of_a_production_run_the_next_try_and_lost_ones_before_are_asked_for() -> None:
    """Its first attempt's third try was recorded, its second waits; another run is far ahead."""
    base = [naming.job_base("bert-docs", "r1", naming.attempt(number)) for number in range(3)]
    ours = ProductionRun("r1", f"{base[0]}-r2", "compile", 1.0, 2.0, {}, True, "flag")
    other = replace(ours, run="r2", job=f"{naming.job_base('bert-docs', 'r2', 'p7')}-r0")
    wait = CapacityWait(5, "r1", 1, f"{base[1]}-r0")
    begun = BegunRun(0, "r1", "e", "compile", "flag", 1, 1, "spec", "source")
    latest = naming.tries(base[1], THROTTLE_ATTEMPTS) + naming.tries(base[2], THROTTLE_ATTEMPTS)

    history = WorkloadHistory(begun=(begun,), runs=(ours, other), waits=(wait,))
    asked = names_of_run("bert-docs", begun, history)
    assert {*latest, f"{base[0]}-r0", f"{base[0]}-r1"} == {*asked}
    first = names_of_run("bert-docs", begun, WorkloadHistory(runs=(other,)))
    assert naming.tries(base[0], THROTTLE_ATTEMPTS) == [*first]
