"""The flag, a Parameter Store value."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code


class SsmFlags:
    """FlagStore on Parameter Store."""

    def __init__(self, ssm: Any) -> None:
        self._ssm = ssm

    def read(self, name: str) -> str | None:
        """The raw value, None when absent."""
        try:
            value: str = self._ssm.get_parameter(Name=name)["Parameter"]["Value"]
        except ClientError as error:
            if error_code(error) == "ParameterNotFound":
                return None
            raise
        return value

    def write(self, name: str, value: str) -> None:
        """Set the raw value; Parameter Store keeps every version."""
        self._ssm.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)
