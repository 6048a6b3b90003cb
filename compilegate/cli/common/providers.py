"""Provides clouds to commands; tests provide others.

boto3 and the embedded cloud are imported when a cloud is asked for: half of what ``check``,
``judge`` or ``--help`` would otherwise spend.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from compilegate.cli.common.cloud import Cloud, StartedCloud


class Providers(Protocol):
    """Opens connections to clouds."""

    def aws(self, stage: str) -> Cloud:
        """The stage's stack in the account of the environment; EnvironmentNotReadyError."""
        ...

    def local(self) -> Cloud:
        """The embedded cloud that runs; EnvironmentNotReadyError."""
        ...

    def client(self, service: str, region: str) -> Any:
        """A client of an AWS service in a region, with the environment's credentials."""
        ...

    def started_local(self, *, keep: bool) -> AbstractContextManager[StartedCloud]:
        """The embedded cloud with the app as it is now, started if it does not run.

        One that was started here ends with the block unless ``keep``.
        """
        ...


class CloudProviders:
    """AWS and this machine's embedded cloud."""

    def aws(self, stage: str) -> Cloud:
        """The stage's stack."""
        from compilegate.cli.common import connect  # noqa: PLC0415 - see above

        return connect.aws(stage)

    def local(self) -> Cloud:
        """The embedded cloud that runs."""
        from compilegate.cli.common import connect  # noqa: PLC0415 - see above

        return connect.local()

    def client(self, service: str, region: str) -> Any:
        """A client of an AWS service in a region."""
        from compilegate.adapters.clients import client  # noqa: PLC0415 - see above

        return client(service, region)

    def started_local(self, *, keep: bool) -> AbstractContextManager[StartedCloud]:
        """The embedded cloud, started if it does not run."""
        from compilegate.cli.common import connect  # noqa: PLC0415 - see above

        return connect.started_local(keep=keep)


def open_cloud(providers: Providers, *, local: bool, stage: str) -> Cloud:
    """The cloud that a command's options name."""
    return providers.local() if local else providers.aws(stage)
