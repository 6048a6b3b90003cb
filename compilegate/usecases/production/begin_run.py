"""Begins a production run: which arm it trains is decided here, once, in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.arithmetic import FLAG_PROBLEMS
from compilegate.domain.codec import write
from compilegate.domain.errors import CompilegateError
from compilegate.domain.followers import STALE
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.begin import (
    BeginInput,
    FlagParameter,
    FlagReading,
    RunStart,
    choose_run,
    read_flag,
)
from compilegate.domain.production.fingerprint import planned
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.workload.model import KEEP
from compilegate.ports import Services
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.flag.change_flag import repair_if_possible
from compilegate.usecases.metrics import count
from compilegate.usecases.production.build_request import run_jobs
from compilegate.usecases.records import Trial, load_plan, spec_at
from compilegate.usecases.registered import load_registered

logger = logging.getLogger("compilegate")


def begin_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Decide what the run trains, or say that another execution has begun it (``duplicate``).

    ``event``: workload, execution, ``started`` (ISO time) and ``scheduled`` (ISO time) or None.
    Safe to repeat: the ledger's entry decides. Raises NotFoundError for a workload that is not
    registered, InvalidInputError for one that is retired or whose job cannot be built, and
    DrainedError while the deployment is drained.
    """
    start = RunStart.from_event(event)
    # Parameter first, then ledger: a change between the two shows as a difference.
    parameter = _parameter(start.workload, services)
    past = services.ledger.history(start.workload)
    begun = past.begun_run(start.run)
    if begun is not None:
        workload = spec_at(services.store, begun.spec_key).workload
    else:
        inputs = _read(start, read_flag(parameter, past), past, services)
        begun, workload = choose_run(inputs), inputs.jobs.trained.workload
        begun = _write(start.workload, begun, services)
    return {
        "duplicate": begun.execution != start.execution,
        "run": begun.run,
        "arm": begun.arm,
        "why": begun.why,
        "attempt": write(Attempt()),
        "owner": workload.owner,
    }


def _parameter(workload: str, services: Services) -> FlagParameter:
    """The flag's parameter; a failure to read it never prevents training."""
    name = naming.flag_parameter(services.settings.stage, workload)
    try:
        return FlagParameter(name, services.flags.read(name))
    except Exception as error:  # noqa: BLE001 - the run trains the baseline, whatever it is
        return FlagParameter(name, error=str(error))


def _read(
    start: RunStart, reading: FlagReading, past: WorkloadHistory, services: Services
) -> BeginInput:
    """Everything else that the run is chosen from."""
    refuse_if_drained(services)
    if reading.repair:
        # First: a team's own pipeline reads the parameter, even where this run cannot begin.
        repair_if_possible(start.workload, services)
    registered = load_registered(start.workload, services.store)
    spec, promotion, proven = registered.spec, reading.promotion, None
    jobs = run_jobs(spec.job, services)
    if promotion is not None and spec.workload.policy.on_stale != KEEP:
        try:
            plan = load_plan(services.store, Trial(start.workload, promotion.trial, ""))
            measured = spec_at(services.store, plan.spec_key)
            proven = planned(plan.arm(promotion.candidate), measured.job)
        except (CompilegateError, KeyError, TypeError, ValueError):
            # The watch reports it after the run; it is never a reason not to train.
            message = "what %s trains was not compared with what was proven"
            logger.exception(message, start.workload)
    return BeginInput(
        start=start,
        reading=reading,
        history=past,
        jobs=jobs,
        spec_key=registered.spec_key,
        source_key=spec.source_key,
        now=services.clock.now(),
        proven=proven,
    )


def _write(workload: str, begun: BegunRun, services: Services) -> BegunRun:
    """The run that stands: this one, or that of an execution which was faster."""
    written = services.ledger.put_once(workload, begun)
    if written != begun or begun.flag_told is None:
        return written
    if begun.flag_problem is not None:
        message = f"{workload} trains the baseline: {begun.flag_told}"
        fields = {"workload": workload, "run": begun.run, "problem": begun.flag_problem}
        count(FLAG_PROBLEMS, message, services=services, **fields)
    elif begun.why == STALE:
        message = "%s trains the baseline, its promotion is stale: %s"
        logger.warning(message, workload, begun.flag_told)
    return written
