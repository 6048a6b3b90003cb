"""One round of a trial: record what the last jobs left, judge, ask for the next jobs.

Returns ``next_stage`` ``none`` once the trial is decided, with the decision recorded. A ``canary``
round is made by production: nothing is started for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.codec import write
from compilegate.domain.decision import CANARY
from compilegate.domain.errors import NotFoundError
from compilegate.domain.judging.judge import judge as shipped_judge
from compilegate.domain.judging.probation import Judge
from compilegate.domain.optional import with_known
from compilegate.domain.production.attempts import longest_run_seconds
from compilegate.domain.production.canary import OVERDUE
from compilegate.domain.trial import judge_round
from compilegate.domain.trial.evidence import ProductionFacts, TrialRecords, read_records
from compilegate.domain.trial.jobs import EndedJob
from compilegate.ports import Ledger, ObjectStore, Services, TrainingJobs
from compilegate.usecases import records
from compilegate.usecases.canary import close_canary
from compilegate.usecases.equivalence import table_of
from compilegate.usecases.job_requests import job_site, request_limits
from compilegate.usecases.trial.on_job_ended import ended_job


def judge_arms(
    event: Mapping[str, Any], *, services: Services, judge: Judge = shipped_judge
) -> dict[str, Any]:
    """Judge the trial so far; ``continue`` comes with the requests of the next round."""
    trial, number = records.Trial.from_event(event), int(event["round"])
    jobs = [EndedJob.from_event(outcome) for outcome in event["runs"]]
    spec, plan = records.load_spec(services.store, trial), records.load_plan(services.store, trial)
    opened = records.OpenTrial(trial, spec, plan)
    # Before anything is read: production assigns no run to a closed round, and the recorded reason,
    # which may be another step's, is part of what is judged.
    canary_ended = close_canary(trial, OVERDUE, before=number, services=services)
    facts = _read(number, jobs, opened, canary_ended, services)
    return _write(facts, judge_round.judge_round(facts, judge), trial, services)


def _read(
    number: int,
    jobs: Iterable[EndedJob],
    opened: records.OpenTrial,
    canary_ended: str | None,
    services: Services,
) -> judge_round.RoundFacts:
    """Everything that the round is judged on."""
    so_far = read_records(records.find_record(services.store, opened.trial, "evidence"))
    # As it stands now: a class may have been revoked since the round before.
    table = table_of(services.ledger, opened.plan.baseline.instance_type)
    so_far = replace(so_far, equivalence=table)
    recorded = so_far.with_runs
    ended = tuple(ended_job(job, opened, services, recorded=recorded) for job in jobs)
    return judge_round.RoundFacts(
        trial=opened.trial.trial,
        round=number,
        workload=opened.spec.workload,
        code=opened.spec.code,
        plan=opened.plan,
        records=so_far,
        ended=ended,
        duplicates=tuple(
            _duplicates(opened.trial, [job.job for job in ended], so_far, services.jobs)
        ),
        production=_production(opened, canary_ended, services.ledger, services.store),
        context=job_site(services.settings, services.store.bucket).context(
            opened.spec.workload.name,
            trial=opened.trial.trial,
            execution=opened.plan.execution,
            source_key=opened.spec.source_key,
        ),
        now=services.clock.now(),
    )


def _duplicates(
    trial: records.Trial, waited_for: Sequence[str], so_far: TrialRecords, jobs: TrainingJobs
) -> Iterator[EndedJob]:
    """Jobs that the state machine does not wait for: earlier tries of those that it waited for.

    And jobs of earlier rounds that left no run, whose price may not have been final. Those of the
    round that this call's answer starts are not touched, however late it comes.
    """
    names = [name for job in waited_for for name in naming.earlier_tries(job)]
    names += [one.job for one in so_far.jobs if not one.has_runs and one.job not in waited_for]
    described = jobs.describe_all(names)
    of = trial.workload, trial.trial
    for job, run in with_known(described, lambda job: naming.job_run(*of, job)):
        status = described[job]["TrainingJobStatus"]
        yield EndedJob(run, job, status, described=described[job])


def _production(
    opened: records.OpenTrial, canary_ended: str | None, ledger: Ledger, store: ObjectStore
) -> ProductionFacts:
    """Production's runs, read only where they are evidence."""
    if not opened.plan.runs_in_production:
        return ProductionFacts(canary_ended=canary_ended)
    # Its canary runs, and production's own that it may count, are of the job that it measures.
    since = opened.plan.started_at - longest_run_seconds(opened.spec.workload)
    history = ledger.history(opened.trial.workload, since=since)
    digests: dict[str, str | None] = {}
    for key in dict.fromkeys(begun.spec_key for begun in history.begun):
        try:
            digests[key] = records.spec_at(store, key).job.digest
        except NotFoundError:
            digests[key] = None
    return ProductionFacts(history, digests, canary_ended)


def _write(
    facts: judge_round.RoundFacts,
    outcome: judge_round.RoundOutcome,
    trial: records.Trial,
    services: Services,
) -> dict[str, Any]:
    for job in outcome.stop:
        services.jobs.stop(job)
    records.save_record(services.store, trial, "evidence", outcome.evidence.to_document())
    if outcome.failure is not None:
        raise outcome.failure
    answer: dict[str, Any] = {
        "verdict": str(outcome.decision.verdict), "next_stage": "none", "round": facts.round,
        "runs": [], "max_concurrency": None, "canary": None, "decision_key": None,
    }  # fmt: skip
    if outcome.next is None:
        stage_name = services.settings.stage
        key = records.save_decision(services.store, trial, outcome.decision, stage=stage_name)
        return {**answer, "decision_key": key}
    answer["round"] += 1
    if isinstance(outcome.next, judge_round.CanaryRequest):
        return {**answer, "next_stage": CANARY, "canary": write(outcome.next)}
    runs = _write_requests(outcome.next, trial, services.store)
    stage, at_once = outcome.next.stage, outcome.next.at_once
    return {**answer, "next_stage": stage, "runs": runs, "max_concurrency": at_once}


def _write_requests(
    following: judge_round.NextRound, trial: records.Trial, store: ObjectStore
) -> list[dict[str, str]]:
    """Store one request per job; returns run id, request key and job name base of each."""
    for job in following.jobs:
        request_limits().check(job.request)
    written = []
    for job in following.jobs:
        key = naming.request_key(trial.workload, trial.trial, job.run)
        store.put(key, records.to_json(job.request))
        base = str(job.request["TrainingJobName"])
        item = {"run": job.run, "request_key": key, "job_base": base}
        if job.is_control:
            item["control"] = "true"  # the state machine continues without it
        written.append(item)
    return written
