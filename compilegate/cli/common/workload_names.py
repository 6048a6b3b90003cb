"""Refuses names that nothing is known of, with those that are spelt alike."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from compilegate.cli.common.cloud import Cloud
from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.usecases.registration.load import load_registration

MOST_NAMES = 3


def check_workload_exists(workload: str, cloud: Cloud) -> None:
    """Raises InvalidInputError where neither ledger, flag nor registration know the name.

    What a person who looks at flags may read comes first; the rest is asked for only without it.
    """
    services = cloud.services
    flag = naming.flag_parameter(services.settings.stage, workload)
    if not (
        services.ledger.entries(workload)
        or services.flags.read(flag) is not None
        or services.store.has(naming.registration_key(workload))
    ):
        raise _unknown(workload, cloud, "is not a workload that this stage knows", "WORKLOAD")


def check_registered(workload: str, cloud: Cloud, *, field: str) -> None:
    """Raises InvalidInputError for a workload that never was registered."""
    try:
        load_registration(cloud.services.store, workload)
    except NotFoundError as error:
        raise _unknown(workload, cloud, "is not registered", field) from error


def _unknown(workload: str, cloud: Cloud, problem: str, field: str) -> InvalidInputError:
    """The error; its fix names the workloads that are spelt alike."""
    names, local = _names(cloud), " --local" if cloud.is_local else ""
    if workload in names:
        fix = f"it has been tried; `compilegate register FILE{local}` puts it into production"
        return InvalidInputError(problem, field=field, value=workload, fix=fix)
    near = get_close_matches(workload, names, n=MOST_NAMES)
    see = f"`compilegate status{local}` names the workloads that this stage knows"
    fix = f"did you mean {' or '.join(near)}? {see}" if near else see
    return InvalidInputError(problem, field=field, value=workload, fix=fix)


def _names(cloud: Cloud) -> Sequence[str]:
    """Every workload in the ledger; none where it may not be listed."""
    try:
        return cloud.overview.workloads()
    except Exception:  # noqa: BLE001 - the error that is told says enough without
        return ()
