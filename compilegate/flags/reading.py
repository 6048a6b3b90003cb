"""Reads a workload's flag, once per process and minute, in a bounded time."""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.followers import PERMANENT, WATCHED
from compilegate.flags import document
from compilegate.flags.backoff import Backoff, call_with_retry, error_code
from compilegate.flags.bounded import (
    MOST_BYTES,
    Calls,
    bounds,
    calls_of,
    client_of,
    forget,
    limited,
)
from compilegate.flags.document import BASELINE

STAGE_VARIABLE = "COMPILEGATE_STAGE"
# Jobs that carry their arm: the first that Compilegate starts, the second that a team does.
ARM_VARIABLES = ("COMPILEGATE_IMAGE", "COMPILEGATE_ARM")
ABSENT = "ParameterNotFound"
CACHED_SECONDS = 60.0

__all__ = ["Choice", "choose", "forget", "resolve", "stage_name"]

logger = logging.getLogger("compilegate.flags")


@dataclass(frozen=True)
class Choice:
    """What to train with; ``problem`` says why it is the baseline without a decision.

    ``watched`` during a probation; ``held_back`` is the share of jobs that stay on the baseline
    after it.
    """

    arm: str = BASELINE
    overrides: Mapping[str, Any] = field(default_factory=dict)
    decision_id: str | None = None
    problem: str | None = None
    watched: bool = False
    held_back: float = 0.0


@dataclass
class _Read:
    """One parameter as one client has read it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    expires: float = 0.0
    choice: Choice = field(default_factory=Choice)


def resolve(
    name: str, *, stage: str | None = None, client: Any = None, backoff: Backoff | None = None
) -> dict[str, Any]:
    """The overrides that production training of a workload should use; empty is the baseline.

    ``stage`` is COMPILEGATE_STAGE, else the default;
    ``client`` is an SSM client, else one with the environment's credentials and region.
    ``backoff`` says how long a busy service is asked again, where that is to be longer than
    COMPILEGATE_FLAG_SECONDS (else 5), which bound the whole answer.
    In a job that was started with an arm already it is always empty: its hyperparameters say what
    to train with, and a flag that has changed since must not.
    """
    variables = [variable for variable in ARM_VARIABLES if os.environ.get(variable)]
    if variables:
        logger.info("%s is set: this job's hyperparameters already set its arm", variables[0])
        return {}
    return dict(choose(name, stage=stage, client=client, backoff=backoff).overrides)


def choose(
    name: str, *, stage: str | None = None, client: Any = None, backoff: Backoff | None = None
) -> Choice:
    """The arm that a workload's next production run should train; never raises."""
    parameter = naming.flag_parameter(stage_name(stage), name)
    waits, seconds = bounds(backoff)
    deadline = time.monotonic() + seconds
    calls = calls_of("ssm", client)
    read: _Read = calls.kept.setdefault(parameter, _Read())
    if not read.lock.acquire(timeout=seconds):  # threads of one pipeline ask once
        return _unusable(parameter, TimeoutError(f"no answer within {seconds:.3g} s"))
    try:
        if time.monotonic() >= read.expires:
            left = deadline - time.monotonic()
            read.choice = _choice(parameter, client, calls, waits, left)
            read.expires = time.monotonic() + CACHED_SECONDS
        return copy.deepcopy(read.choice)  # a caller that changes it changes no other's
    finally:
        read.lock.release()


def stage_name(explicit: str | None) -> str:
    """The deployment whose flag is read."""
    return explicit or os.environ.get(STAGE_VARIABLE) or naming.DEFAULT_STAGE


def _choice(parameter: str, client: Any, calls: Calls, backoff: Backoff, seconds: float) -> Choice:
    def text_of_it() -> str | None:
        ssm = limited(client or client_of("ssm"), MOST_BYTES, seconds)
        try:
            answer = call_with_retry(lambda: ssm.get_parameter(Name=parameter), backoff)
        except Exception as error:
            if error_code(error) == ABSENT:
                return None
            raise
        value: str = answer["Parameter"]["Value"]
        return value

    try:
        text = calls.within(seconds, text_of_it)
        flag = None if text is None else document.read(text)
        if flag is not None and flag.enabled:
            document.check_overrides(flag.overrides)
    except Exception as error:  # noqa: BLE001 - any failure means the baseline, see the package
        return _unusable(parameter, error)
    if flag is None:
        # Usual before the first promotion; a wrong stage, region or name gives the same answer.
        logger.warning(
            "%s does not exist in this account and region, training with the baseline. "
            "If the workload was promoted, set %s or AWS_REGION to where it is deployed.",
            parameter,
            STAGE_VARIABLE,
        )
        return Choice(problem="absent")
    if not flag.enabled:
        return Choice(decision_id=flag.decision_id)
    if not flag.overrides or not flag.candidate:
        logger.warning("%s is on without a candidate, training with the baseline", parameter)
        return Choice(problem="on without a candidate")
    return Choice(
        flag.candidate,
        dict(flag.overrides),
        flag.decision_id,
        watched=flag.state in WATCHED,
        held_back=flag.holdback or 0.0 if flag.state == PERMANENT else 0.0,
    )


def _unusable(parameter: str, error: Exception) -> Choice:
    logger.warning("%s cannot be used, training with the baseline: %s", parameter, error)
    return Choice(problem=f"{type(error).__name__}: {error}")
