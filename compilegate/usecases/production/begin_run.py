"""Begins a production run: which arm it trains is decided here, once, in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, UnreadableRecordError
from compilegate.domain.metrics import FLAG_PROBLEMS
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.begin import BeginInput, RunStart, choose_run, milliseconds
from compilegate.domain.production.fingerprint import proven_fingerprint, registered_fingerprint
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.next_arm import (
    STALE,
    UNREADABLE,
    FlagParameter,
    FlagReading,
    promotion_to_compare,
    read_flag,
)
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.workload.model import KEEP
from compilegate.ports import FlagStore, Services
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.flag.change_flag import repair_if_possible
from compilegate.usecases.job_requests import JobSite
from compilegate.usecases.metrics import count
from compilegate.usecases.production.build_request import request_of
from compilegate.usecases.records import Trial, load_plan, spec_at
from compilegate.usecases.registered import Registered, facts_for_workload, load_registered

logger = logging.getLogger("compilegate")


def begin_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Decide what the run trains, or say that another execution has begun it (``duplicate``).

    ``event``: workload, execution, ``started`` (ISO time) and ``scheduled`` (ISO time) or None.
    Safe to repeat: the ledger's entry decides. Raises NotFoundError for a workload that is not
    registered, InvalidInputError for one that is retired or whose job cannot be built, and
    DrainedError while the deployment is drained.
    """
    start = _start(event)
    # Parameter first, then ledger: a change between the two shows as a difference.
    name = naming.flag_parameter(services.settings.stage, start.workload)
    parameter = _parameter(name, services.flags)
    past = history(services.ledger.entries(start.workload))
    begun = past.begun_run(start.run)
    if begun is None:
        refuse_if_drained(services)
        reading = _reading(parameter, past)
        if reading.repair:
            # First: a team's own pipeline reads the parameter, even where this run cannot begin.
            repair_if_possible(start.workload, services)
        registered = load_registered(start.workload, services.store)
        inputs = _read(start, reading, past, registered, services)
        check = partial(
            request_of, attempt=Attempt(), spec=registered.spec, site=JobSite.of(services)
        )
        begun = _write(start.workload, choose_run(inputs, check), services)
    return {
        "duplicate": begun.execution != start.execution,
        "run": begun.run,
        "arm": begun.arm,
        "why": begun.why,
        "attempt": Attempt().to_dict(),
        "owner": spec_at(services.store, begun.spec_key).workload.owner,
    }


def _start(event: Mapping[str, Any]) -> RunStart:
    scheduled = event.get("scheduled")
    return RunStart(
        workload=str(event["workload"]),
        execution=str(event["execution"]),
        started=milliseconds(str(scheduled or event["started"])),
        scheduled=None if scheduled is None else str(scheduled),
    )


def _parameter(name: str, flags: FlagStore) -> FlagParameter:
    """The flag's parameter; a failure to read it never prevents training."""
    try:
        return FlagParameter(name, flags.read(name))
    except Exception as error:  # noqa: BLE001 - the run trains the baseline, whatever it is
        return FlagParameter(name, error=str(error))


def _reading(parameter: FlagParameter, past: WorkloadHistory) -> FlagReading:
    """The flag as both have it; a damaged ledger never prevents training either."""
    try:
        return read_flag(parameter, past.flags)
    except UnreadableRecordError as error:
        return FlagReading(text=parameter.text, problem=UNREADABLE, explanation=str(error))


def _read(
    start: RunStart,
    reading: FlagReading,
    past: WorkloadHistory,
    registered: Registered,
    services: Services,
) -> BeginInput:
    spec = registered.spec
    inputs = BeginInput(
        start=start,
        reading=reading,
        history=past,
        job=spec.job,
        spec_key=registered.spec_key,
        source_key=spec.source_key,
        now=services.clock.now(),
    )
    if reading.problem is not None:
        return inputs
    keep = spec.workload.policy.on_stale == KEEP
    promotion = promotion_to_compare(reading, past.flags, keep_stale=keep)
    if promotion is None:
        return inputs
    settings = services.settings
    try:
        plan = load_plan(services.store, Trial(start.workload, promotion.trial, ""))
        measured = spec_at(services.store, plan.spec_key)
        facts = facts_for_workload(spec.workload, settings)
        return replace(
            inputs,
            proven=proven_fingerprint(plan.arm(promotion.candidate), measured.job),
            registered=registered_fingerprint(promotion, spec.job, facts, region=settings.region),
        )
    except (CompilegateError, KeyError, TypeError, ValueError):
        # The watch reports it after the run; it is never a reason not to train.
        logger.exception("what %s trains was not compared with what was proven", start.workload)
        return inputs


def _write(workload: str, begun: BegunRun, services: Services) -> BegunRun:
    """The run that stands: this one, or that of an execution which was faster."""
    written = BegunRun.from_entry(services.ledger.put_once(workload, begun.key, begun.to_entry()))
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
