"""What the training script is told, and how it is written down.

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

PLATFORM_PREFIX = "sagemaker_"
# The model-parallel library finds its settings as SM_HP_MP_PARAMETERS, so they are the job's.
PARTITIONING = "mp_parameters"
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


def as_read_by(script: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as ``script`` reads them: the launcher decodes what a shell would change."""
    if script != naming.LAUNCHER:
        return dict(values)
    return {name: for_launcher(value) for name, value in values.items()}


def in_segment(script: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """As ``as_read_by``, where the speed gate starts the script and no shell comes between."""
    if script != naming.LAUNCHER:
        return dict(values)
    return {name: for_launcher(value, shell=False) for name, value in values.items()}


def of_platform(program: str, source_uri: str, region: str) -> dict[str, Any]:
    """What the toolkit itself reads: where the code lies and what to start."""
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
    """A workload file holds plain values only, so these settings stand in it as JSON text."""
    try:
        settings = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise InvalidInputError(
            "must be a JSON object in quotes",
            field=f"training.hyperparameters.{PARTITIONING}",
            value=value,
            fix=f'for example {PARTITIONING}: \'{{"partitions": 2, "ddp": true}}\'',
        )
    return settings
