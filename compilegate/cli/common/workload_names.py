"""Refuses unknown workload names and suggests those that are spelt alike."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from difflib import get_close_matches

from compilegate.cli.common.cloud import Cloud
from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.usecases.registration.load import load_registration

MOST_NAMES = 3


def check_workload_exists(workload: str, cloud: Cloud) -> None:
    """Raises InvalidInputError where neither ledger, flag nor registration has the name.

    In the order of the permissions that they take: those of a reader of flags come first.
    """
    services = cloud.services
    flag = naming.flag_parameter(services.settings.stage, workload)
    if not (
        services.ledger.entries(workload)
        or services.flags.read(flag) is not None
        or services.store.has(naming.registration_key(workload))
    ):
        raise _unknown(workload, cloud, "is not a workload of this stage", "WORKLOAD")


def check_registered(workload: str, cloud: Cloud, *, field: str) -> None:
    """Raises InvalidInputError for a workload that never was registered."""
    try:
        load_registration(cloud.services.store, workload)
    except NotFoundError as error:
        raise _unknown(workload, cloud, "is not registered", field) from error


def _unknown(workload: str, cloud: Cloud, problem: str, field: str) -> InvalidInputError:
    """The error; its fix names the workloads that are spelt alike."""
    names: Sequence[str] = ()
    with contextlib.suppress(Exception):  # without the permission to list them: no suggestions
        names = cloud.overview.workloads()
    near = get_close_matches(workload, names, n=MOST_NAMES)
    if workload in names:
        fix = f"put it into production with `{cloud.command('register FILE')}`"
    else:
        fix = f"did you mean {' or '.join(near)}? " if near else ""
        fix += f"`{cloud.command('status')}` lists the workloads of this stage"
    return InvalidInputError(problem, field=field, value=workload, fix=fix)
