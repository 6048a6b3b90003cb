"""Begins a production run, and builds the request of each of its attempts.

Which arm it trains is decided here, once, in the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.arithmetic import FLAG_PROBLEMS
from compilegate.domain.codec import read, write
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.followers import STALE
from compilegate.domain.production import begin
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.fingerprint import Fingerprint, planned
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.recent import enough_to_begin, windows
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun
from compilegate.domain.workload.model import BASELINE, KEEP
from compilegate.ports import Ledger, Services
from compilegate.usecases import records
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.flag.change_flag import repair_if_possible
from compilegate.usecases.job_requests import job_site, request_limits
from compilegate.usecases.metrics import count

logger = logging.getLogger("compilegate")


def begin_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Decide what the run trains, or say that another execution has begun it (``duplicate``).

    ``event``: workload, execution, ``started`` (ISO time) and ``scheduled`` (ISO time) or None.
    Safe to repeat: the ledger's entry decides. Raises NotFoundError for a workload that is not
    registered, InvalidInputError for one that is retired or whose job cannot be built, and
    DrainedError while the deployment is drained.
    """
    start = begin.RunStart.from_event(event)
    name, text, problem = naming.flag_parameter(services.settings.stage, start.workload), None, None
    # Parameter first, then ledger: a change between the two shows as a difference.
    try:
        text = services.flags.read(name)
    except Exception as error:  # noqa: BLE001 - never prevents training, whatever it is
        problem = str(error)
    since = windows(services.clock.now(), start.run)[0]
    history = services.ledger.history(start.workload, since=since)
    begun = history.begun_run(start.run)
    if begun is not None:
        workload = records.spec_at(services.store, begun.spec_key).workload
    else:
        inputs = _read(
            start, begin.read_flag(name, text, history, error=problem), history, services
        )
        begun, workload = begin.choose_run(inputs), inputs.jobs.trained.workload
        begun = _write(start.workload, begun, services)
    return {
        "duplicate": begun.execution != start.execution,
        "run": begun.run,
        "arm": begun.arm,
        "why": begun.why,
        "attempt": write(Attempt()),
        "owner": workload.owner,
    }


def _read(
    start: begin.RunStart, reading: begin.FlagReading, history: WorkloadHistory, services: Services
) -> begin.BeginInput:
    """Everything else that the run is chosen from."""
    refuse_if_drained(services)
    if reading.repair:
        # First: a team's own pipeline reads the parameter, even where this run cannot begin.
        repair_if_possible(start.workload, services)
    spec, promotion = records.load_registered(start.workload, services.store), reading.promotion
    proven: Fingerprint = {}
    jobs, now = run_jobs(spec.job, services), services.clock.now()

    def is_enough(read_so_far: WorkloadHistory) -> bool:
        situation = begin.situation(read_so_far, reading, jobs, now=now)
        return enough_to_begin(read_so_far, situation, spec.workload, run=start.run, at=now)

    longer = windows(now, start.run)[1:]
    history = services.ledger.enough(start.workload, history, longer, is_enough)
    if promotion is not None and spec.workload.policy.on_stale != KEEP:
        try:
            plan = records.load_plan(
                services.store, records.Trial(start.workload, promotion.trial, "")
            )
            measured = records.spec_at(services.store, plan.spec_key)
            proven = planned(plan.arm(promotion.candidate), measured.job)
        except (NotFoundError, *records.UNREADABLE):
            # The review reports it after the run; it is never a reason not to train.
            message = "what %s trains was not compared with what was proven"
            logger.exception(message, start.workload)
    return begin.BeginInput(
        start=start,
        reading=reading,
        history=history,
        jobs=jobs,
        spec_key=spec.key,
        source_key=spec.source_key,
        now=now,
        proven=proven,
    )


def _write(workload: str, begun: BegunRun, services: Services) -> BegunRun:
    """The run that stands: this one, or that of an execution which was faster."""
    written = services.ledger.put_once(workload, begun)
    if written != begun or begun.flag_explanation is None:
        return written
    if begun.flag_problem is not None:
        message = f"{workload} trains the baseline: {begun.flag_explanation}"
        fields = {"workload": workload, "run": begun.run, "problem": begun.flag_problem}
        count(FLAG_PROBLEMS, message, services=services, **fields)
    elif begun.why == STALE:
        message = "%s trains the baseline, its promotion is stale: %s"
        logger.warning(message, workload, begun.flag_explanation)
    return written


def build_request(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The request's key and what its job's name begins with; repeating it writes the same.

    ``event``: workload, run, ``attempt`` as begin_run or record_run gave it out. Raises
    InvalidInputError for a request that SageMaker would refuse.
    """
    workload, run = str(event["workload"]), str(event["run"])
    begun, attempt = load_begun(workload, run, services.ledger), read(Attempt, event["attempt"])
    request = jobs_of(begun, services).request(begun, attempt)
    key = naming.production_request_key(workload, run, attempt.number)
    services.roles.ensure(workload)
    services.store.put(key, records.to_json(request))
    return {"run": run, "request_key": key, "job_base": request["TrainingJobName"]}


def load_begun(workload: str, run: str, ledger: Ledger) -> BegunRun:
    """How a run began; raises NotFoundError."""
    begun = ledger.history(workload, BegunRun.key_of(run=run)).begun_run(run)
    if begun is None:
        raise NotFoundError(f"production run {run} of {workload} was never begun")
    return begun


def jobs_of(begun: BegunRun, services: Services) -> RunJobs:
    """Builds the jobs of a run from the spec that it began with."""
    return run_jobs(records.spec_at(services.store, begun.spec_key).job, services)


def run_jobs(trained: TrainedJob, services: Services) -> RunJobs:
    """Builds the jobs of runs that train this, as this deployment makes them."""
    facts = records.deployed_facts(services.settings)
    return RunJobs(
        trained, facts, job_site(services.settings, services.store.bucket), request_limits()
    )


def check_trainable(document: Mapping[str, Any], services: Services) -> None:
    """Build the baseline's request from a spec (workload, source_key) and throw it away.

    Called before a workload is registered. Raises InvalidInputError where there is no image for
    it, or SageMaker would refuse it.
    """
    spec = records.Spec(records.read_document(document["workload"]), str(document["source_key"]))
    begun = BegunRun(
        at=0, run=naming.trial_id(0), execution="", arm=BASELINE, why=begin.SCHEDULED, seed=1,
        number=1, spec_key="", source_key=spec.source_key,
    )  # fmt: skip
    try:
        run_jobs(spec.job, services).request(begun, Attempt())
    except InvalidInputError as error:
        fix = error.fix or "see what would fit with `compilegate check` and the workload file"
        raise InvalidInputError(
            f"could not be trained: {error.problem}", field=error.field, value=error.value, fix=fix
        ) from error
