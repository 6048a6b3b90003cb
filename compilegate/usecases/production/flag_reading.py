"""Reads the flag before a run; whatever goes wrong, the run trains the baseline and says why."""

from __future__ import annotations

import logging

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.flag_change import flag_of
from compilegate.domain.production.next_arm import DIFFERS, MALFORMED, UNREADABLE, FlagReading
from compilegate.ports import Services
from compilegate.usecases.change_flag import agrees, flag_history, repair_flag

logger = logging.getLogger("compilegate")


def read_flag(workload: str, services: Services) -> FlagReading:
    """The flag as parameter and ledger have it.

    Where the two differ the parameter is given the ledger's value. If either said on, this run
    follows neither: off, somebody may have meant it; on, nobody has proven it.
    """
    name = naming.flag_parameter(services.settings.stage, workload)
    try:
        text = services.flags.read(name)
    except Exception as error:  # noqa: BLE001 - a flag that cannot be read is no reason not to train
        return FlagReading(problem=UNREADABLE, told=f"{name} cannot be read: {error}")
    history = flag_history(workload, services)
    try:
        flag = parse_flag(text)
    except InvalidInputError as error:
        repair_if_possible(workload, services)
        return FlagReading(text=text, problem=MALFORMED, told=f"{name} is malformed: {error}")
    if agrees(text, history):
        return FlagReading(flag, text)
    repair_if_possible(workload, services)
    known = flag_of(history)
    if not known.enabled and not flag.enabled:
        return FlagReading(known, text)
    said = f"{name} said {_said(flag)} and the ledger {_said(known)}"
    told = f"{said}: the ledger's value was written again"
    return FlagReading(known if flag.enabled else flag, text, problem=DIFFERS, told=told)


def _said(flag: Flag) -> str:
    return f"on ({flag.candidate})" if flag.enabled else "off"


def repair_if_possible(workload: str, services: Services) -> None:
    """Give the parameter the ledger's value; one that cannot be repaired now is at the next run."""
    try:
        repair_flag(workload, services)
    except Exception:
        logger.exception("the flag of %s could not be repaired", workload)
