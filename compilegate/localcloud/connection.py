"""How clients reach the local cloud."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from compilegate.localcloud.run_state import HOST, RunState

# The emulator reads an access key of twelve digits as that account's root.
ACCOUNT = "000000000000"
SECRET = "local"  # noqa: S105  # the emulator checks no signatures of the root account


def environment(state: RunState) -> dict[str, str]:
    """Variables that make any AWS client of another process call this local cloud.

    Give them instead of the process's own ``AWS_`` variables, not besides: a profile named there
    would be looked for and not found.
    """
    return {
        "AWS_ENDPOINT_URL": state.endpoint,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": state.region,
        "AWS_REGION": state.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        # The user's own profiles name real accounts; they must not be looked at.
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "NO_PROXY": HOST,
        "no_proxy": HOST,
    }


def session(state: RunState) -> boto3.Session:
    """A session with the local account's credentials, whatever the process's environment says."""
    return boto3.Session(
        aws_access_key_id=ACCOUNT, aws_secret_access_key=SECRET, region_name=state.region
    )


def client(state: RunState, service: str) -> Any:
    """A client of one service of this local cloud."""
    return session(state).client(
        service,
        endpoint_url=state.endpoint,
        # A proxy set for the internet must not be asked for this machine.
        config=Config(proxies={}, inject_host_prefix=False, s3={"addressing_style": "path"}),
    )
