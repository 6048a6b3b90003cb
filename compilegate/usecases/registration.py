"""Registers workloads with production, and reads what is registered."""

from __future__ import annotations

import json

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.registration import Registration
from compilegate.ports import ObjectStore


def load_registration(store: ObjectStore, workload: str) -> Registration:
    """What production trains of a workload, retired ones too.

    Raises NotFoundError for one that never was registered, InvalidInputError for a document
    that cannot be read.
    """
    key = naming.registration_key(workload)
    try:
        body = store.get(key)
    except NotFoundError as error:
        raise NotFoundError(
            f"{workload} is not registered. Fix: register its file with `compilegate register`."
        ) from error
    try:
        return Registration.from_dict(json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be read as a registration: {error}",
            file=f"s3://{store.bucket}/{key}",
            fix="register the workload's file again",
        ) from error
