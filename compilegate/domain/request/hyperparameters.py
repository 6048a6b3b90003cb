"""The hyperparameters of a job, and how they are written.

Values are JSON text, as the SageMaker Python SDK sends them and the training toolkit decodes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import for_launcher
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.workload.model import Workload
from compilegate.domain.workload.names import PARTITIONING, json_object

PLATFORM_PREFIX = "sagemaker_"
# The toolkit's own default, which the SDK writes out: Python's logging.INFO.
LOG_LEVEL = 20


def of_arm(workload: Workload, arm: ArmPlan) -> dict[str, Any]:
    """The script's own values of one arm.

    Raises InvalidInputError for a name that belongs to the platform.
    """
    own = {**workload.training.hyperparameters, **arm.hyperparameters}
    for name in own:
        if name.startswith(PLATFORM_PREFIX):
            raise InvalidInputError(
                "is a name that only SageMaker's toolkit uses",
                field=f"training.hyperparameters.{name}",
                fix="leave it out; launchers follow training.distribution",
            )
    if PARTITIONING in own:
        own[PARTITIONING] = partitioning(own[PARTITIONING])
    mode = {"compile_mode": arm.compile_mode} if arm.compile_mode else {}
    return {
        **own,
        "arm": arm.name,
        "compiler": arm.compiler,
        **mode,
        "precision": arm.precision,
        "batch_size": arm.batch_size,
        "learning_rate": arm.learning_rate,
    }


def as_read_by(script: str, values: Mapping[str, Any], *, shell: bool = True) -> dict[str, Any]:
    """The values as ``script`` reads them: the launcher decodes what a shell would change.

    Without a ``shell``: the speed gate starts the script itself.
    """
    if script != naming.LAUNCHER:
        return dict(values)
    return {name: for_launcher(value, shell=shell) for name, value in values.items()}


def of_platform(program: str, source_uri: str, region: str) -> dict[str, Any]:
    """What the toolkit itself reads: the location of the code and the program to start."""
    return {
        "sagemaker_program": program,
        "sagemaker_submit_directory": source_uri,
        "sagemaker_container_log_level": LOG_LEVEL,
        "sagemaker_region": region,
    }


def encoded(values: Mapping[str, Any]) -> dict[str, str]:
    """Every value as JSON text."""
    return {name: json.dumps(value) for name, value in values.items()}


def partitioning(value: object) -> dict[str, Any]:
    """The settings of the model-parallel library. Raises InvalidInputError for other text."""
    settings = json_object(value)
    if settings is None:
        raise InvalidInputError(
            "must be a JSON object in quotes",
            field=f"training.hyperparameters.{PARTITIONING}",
            value=value,
            fix=f'for example {PARTITIONING}: \'{{"partitions": 2, "ddp": true}}\'',
        )
    return settings
