"""Tags by which jobs are found and billed."""

from __future__ import annotations

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request.context import JobContext
from compilegate.domain.workload.model import Workload

# AWS keeps the first for itself; the second tells what a trial's role may touch.
RESERVED_PREFIXES = ("aws:", "compilegate:")


def tags(
    workload: Workload, run: str, stage: str, arm: str, context: JobContext
) -> list[dict[str, str]]:
    """The trial's own tags, the owner's and the team's.

    Raises InvalidInputError for a key that begins with a reserved prefix.
    """
    for key in workload.tags:
        if key.lower().startswith(RESERVED_PREFIXES):
            raise InvalidInputError(
                f"begins with a reserved prefix ({' or '.join(RESERVED_PREFIXES)})",
                field=f"tags.{key}",
                fix="choose another key",
            )
    owner = {"owner": workload.owner} if workload.owner else {}
    values = {
        naming.TAG_WORKLOAD: workload.name,
        naming.TAG_TRIAL: context.trial,
        naming.TAG_RUN: run,
        naming.TAG_STAGE: stage,
        naming.TAG_ARM: arm,
        naming.TAG_EXECUTION: context.execution,
        **owner,
        **workload.tags,
    }
    return [{"Key": key, "Value": value} for key, value in values.items()]
