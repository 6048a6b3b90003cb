"""boto3 clients, made on first use so that importing a handler stays cheap."""

from __future__ import annotations

from functools import cache
from typing import Any

# For what is worth knowing but not waiting for.
HASTY = {"connect_timeout": 3, "read_timeout": 5, "retries": {"total_max_attempts": 2}}

# Calls that threads may make at once without a connection of their own each time.
CONNECTIONS = 32


@cache
def client(service: str, region: str | None = None, *, hasty: bool = False) -> Any:
    """One client per service, region and process; without a region the environment's.

    A ``hasty`` one gives up within seconds.
    """
    import boto3  # noqa: PLC0415 - half of a cold start; only paid when AWS is called
    from botocore.config import Config  # noqa: PLC0415 - as above

    patient = {"retries": {"mode": "standard", "max_attempts": 5}}
    config = Config(**(HASTY if hasty else patient), max_pool_connections=CONNECTIONS)
    return boto3.client(service, region_name=region, config=config)


def error_code(error: Exception) -> str:
    """The AWS error code of a botocore ClientError, empty for any other error."""
    response = getattr(error, "response", None) or {}
    code = response.get("Error", {}).get("Code", "")
    return str(code)
