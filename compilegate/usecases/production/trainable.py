"""Whether production could train a workload: asked before it is registered, not at night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.begun import Attempt, BegunRun
from compilegate.domain.production.next_arm import SCHEDULED
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.production.production_job import request_of
from compilegate.usecases.trial import Spec
from compilegate.usecases.workload_document import read_document


def check_trainable(spec: Mapping[str, Any], services: Services) -> None:
    """Build the baseline's request from a spec (workload, source_key) and throw it away.

    Raises InvalidInputError where there is no image for it, or SageMaker would refuse it.
    """
    found = Spec(read_document(spec["workload"]), str(spec["source_key"]))
    begun = BegunRun(
        at=services.clock.now(), run=naming.trial_id(0), execution="", arm=BASELINE,
        why=SCHEDULED, seed=1, number=1, spec_key="", source_key=found.source_key,
    )  # fmt: skip
    try:
        request_of(begun, Attempt(), found, services)
    except InvalidInputError as error:
        fix = error.fix or "see what would fit with `compilegate check` and the workload file"
        raise InvalidInputError(
            f"could not be trained: {error.problem}", field=error.field, value=error.value, fix=fix
        ) from error
