"""boto3 clients, each made when it is first called: a function makes only those that it uses."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

# For figures that are shown only if they can be read quickly.
HASTY = {"connect_timeout": 3, "read_timeout": 5, "retries": {"total_max_attempts": 2}}
# A call that stalls is tried again within the shortest function's minute; botocore would wait
# for it a minute each to connect and to read, and the function be gone.
PATIENT = {
    "connect_timeout": 5, "read_timeout": 20, "retries": {"mode": "standard", "max_attempts": 5},
}  # fmt: skip

# Calls that threads may make at once without a connection of their own each time.
CONNECTIONS = 32
_MAKING = threading.Lock()  # boto3's default session is not safe for threads


class _Client:
    """Stands for a boto3 client until its first call."""

    def __init__(self, service: str, region: str | None, settings: dict[str, Any]) -> None:
        self._service, self._region, self._settings = service, region, settings
        self._client: Any = None

    def __getattr__(self, name: str) -> Any:
        with _MAKING:
            if self._client is None:
                self._client = self._make()
        return getattr(self._client, name)

    def _make(self) -> Any:
        import boto3  # noqa: PLC0415 - half of a cold start; only paid when AWS is called
        from botocore.config import Config  # noqa: PLC0415 - as above

        config = Config(**self._settings, max_pool_connections=CONNECTIONS)
        return boto3.client(self._service, region_name=self._region, config=config)


@cache
def client(service: str, region: str | None = None, *, hasty: bool = False) -> Any:
    """One client per service, region and process; without a region the environment's.

    A ``hasty`` one gives up within seconds.
    """
    return _Client(service, region, HASTY if hasty else PATIENT)


def error_code(error: Exception) -> str:
    """The AWS error code of a botocore ClientError, empty for any other error."""
    response = getattr(error, "response", None) or {}
    code = response.get("Error", {}).get("Code", "")
    return str(code)
