"""How a training script or pipeline asks what it should train with.

    overrides = compilegate.flags.resolve("bert-docs")

Whatever goes wrong, the answer is the baseline: a training run never fails because of a flag.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from compilegate.domain.flag import parse_flag
from compilegate.domain.naming import flag_parameter

STAGE_VARIABLE = "COMPILEGATE_STAGE"
DEFAULT_STAGE = "prod"
ABSENT = "ParameterNotFound"

logger = logging.getLogger(__name__)


def resolve(name: str, *, stage: str | None = None, client: Any = None) -> dict[str, Any]:
    """The overrides that production training of a workload should use; empty is the baseline.

    ``stage`` is COMPILEGATE_STAGE, else ``prod``; ``client`` is an SSM client, else one with the
    environment's credentials and region.
    """
    stage = stage or os.environ.get(STAGE_VARIABLE) or DEFAULT_STAGE
    parameter = flag_parameter(stage, name)
    try:
        flag = parse_flag(_read(parameter, client or _ssm()))
    except Exception as error:  # noqa: BLE001 - any failure means the baseline, see above
        logger.warning("%s cannot be used, training with the baseline: %s", parameter, error)
        return {}
    return dict(flag.overrides) if flag.enabled else {}


def _read(parameter: str, client: Any) -> str | None:
    try:
        value: str = client.get_parameter(Name=parameter)["Parameter"]["Value"]
    except Exception as error:
        code = (getattr(error, "response", None) or {}).get("Error", {}).get("Code")
        if code == ABSENT:
            return None
        raise
    return value


def _ssm() -> Any:
    import boto3  # noqa: PLC0415 - a script that passes its own client need not have it
    from botocore.config import Config  # noqa: PLC0415 - as above

    # A training job must not hang on a flag it may not reach.
    return boto3.client("ssm", config=Config(connect_timeout=3, read_timeout=5))
