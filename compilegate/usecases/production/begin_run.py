"""Begins a production run: which arm it trains is decided here, once, in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidInputError
from compilegate.domain.metrics import FLAG_PROBLEMS
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.begin import (
    BeginInput,
    RunStart,
    begin,
    flag_to_follow,
    milliseconds,
    on_baseline,
)
from compilegate.domain.production.fingerprint import proven_fingerprint, registered_fingerprint
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.next_arm import STALE, FlagParameter, FlagReading
from compilegate.domain.production.promotion import standing_promotion
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import FlagStore, Services
from compilegate.usecases.flag.change_flag import repair_if_possible
from compilegate.usecases.operations.drain_mark import refuse_if_drained
from compilegate.usecases.operations.metrics import count
from compilegate.usecases.production.build_request import request_of
from compilegate.usecases.registration.load import Registered, facts_for_workload, load_registered
from compilegate.usecases.trial.documents import Spec, Trial, load_record, spec_at
from compilegate.usecases.trial.job_requests import JobSite

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
        registered = load_registered(start.workload, services.store)
        inputs = _read(start, parameter, past, registered, services)
        reading = flag_to_follow(inputs)
        decided = _decide(inputs, reading, registered.spec, services)
        begun = _write(start, decided, reading, services)
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


def _read(
    start: RunStart,
    parameter: FlagParameter,
    past: WorkloadHistory,
    registered: Registered,
    services: Services,
) -> BeginInput:
    spec = registered.spec
    inputs = BeginInput(
        start=start,
        parameter=parameter,
        history=past,
        job=spec.job,
        spec_key=registered.spec_key,
        source_key=spec.source_key,
        now=services.clock.now(),
    )
    promotion = standing_promotion(past.flags)
    if promotion is None or parameter.error is not None:
        return inputs
    settings = services.settings
    try:
        plan = load_record(services.store, Trial(start.workload, promotion.trial, ""), "plan")
        measured = spec_at(services.store, str(plan["spec_key"]))
        facts = facts_for_workload(spec.workload, settings)
        return replace(
            inputs,
            proven=proven_fingerprint(plan, promotion.candidate, measured.job),
            registered=registered_fingerprint(promotion, spec.job, facts, region=settings.region),
        )
    except (CompilegateError, KeyError, TypeError, ValueError):
        # The watch reports it after the run; it is never a reason not to train.
        logger.exception("what %s trains was not compared with what was proven", start.workload)
        return inputs


def _decide(inputs: BeginInput, reading: FlagReading, spec: Spec, services: Services) -> BegunRun:
    """The run as chosen, or on the baseline where the candidate's job cannot be built any more.

    Raises InvalidInputError where the baseline's cannot either.
    """
    site = JobSite.of(services)
    begun = begin(inputs, reading)
    try:
        request_of(begun, Attempt(), spec, site)
    except InvalidInputError as error:
        if begun.arm == BASELINE:
            raise
        begun = on_baseline(begun, str(error))
        request_of(begun, Attempt(), spec, site)
    return begun


def _write(start: RunStart, begun: BegunRun, reading: FlagReading, services: Services) -> BegunRun:
    """The run that stands: this one, or that of an execution which was faster."""
    if reading.repair:
        repair_if_possible(start.workload, services)
    if reading.flag.state == STALE and reading.explanation is not None:
        message = "%s trains the baseline, its promotion is stale: %s"
        logger.warning(message, start.workload, reading.explanation)
    entry = services.ledger.put_once(start.workload, begun.key, begun.to_entry())
    written = BegunRun.from_entry(entry)
    if written == begun and written.flag_problem is not None:
        message = f"{start.workload} trains the baseline: {written.flag_told}"
        fields = {"workload": start.workload, "run": written.run, "problem": written.flag_problem}
        count(FLAG_PROBLEMS, message, services=services, **fields)
    return written
