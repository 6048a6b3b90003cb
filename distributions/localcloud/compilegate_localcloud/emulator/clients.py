"""boto3 clients that call this emulator, as the account or as a role."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import UnknownServiceError

from compilegate_localcloud.names import ACCOUNT

# One attempt: a retry inside the emulator would hide the failures it is there to show.
_CONFIG = Config(
    parameter_validation=False,
    inject_host_prefix=False,
    retries={"total_max_attempts": 1},
    connect_timeout=5,
    read_timeout=3600,
    max_pool_connections=256,
)
# Each session, ministack's too, would read the services' descriptions again: megabytes of JSON.
botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)
_botocore = botocore.session.get_session()
_session = boto3.Session(botocore_session=_botocore)
_lock = threading.Lock()
_clients: dict[tuple[str, str, str | None], Any] = {}


@functools.cache
def service_model(service: str) -> Any:
    """botocore's description of a service."""
    with _lock:
        return _botocore.get_service_model(service)


def service_description(service: str) -> dict[str, Any]:
    """What ``service_model`` is made of, empty for a service that botocore does not know."""
    loader = _botocore.get_component("data_loader")
    try:
        return dict(loader.load_service_model(service, "service-2"))
    except UnknownServiceError:
        return {}


def client_for(service: str, region: str, role_arn: str | None = None) -> Any:
    """A shared client; building one costs 20 to 100 ms, so each is built once."""
    key = (service, region, role_arn)
    with _lock:
        if key not in _clients:
            _clients[key] = _build(service, region, role_credentials(role_arn, region))
        return _clients[key]


def role_credentials(role_arn: str | None, region: str) -> dict[str, str]:
    """Credentials of a role when permissions are enforced, else those of the account."""
    from ministack import app  # noqa: PLC0415  # reads its environment when imported
    from ministack.core import lambda_runtime  # noqa: PLC0415

    if role_arn is None or not app.AUTH:
        secret = os.environ["AWS_SECRET_ACCESS_KEY"]
        return {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": secret}
    session = {
        "Role": role_arn,
        "FunctionName": "compilegate",
        "FunctionArn": f"arn:aws:lambda:{region}:{role_arn.split(':')[4]}:function:compilegate",
    }
    credentials: dict[str, str] = lambda_runtime.execution_credentials(session)
    return credentials


def _build(service: str, region: str, credentials: dict[str, str]) -> Any:
    client = _session.client(
        service,
        region_name=region,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials.get("AWS_SESSION_TOKEN") or None,
        config=_CONFIG,
    )
    client.meta.events.register(f"after-call.{service}", _add_request_id)
    return client


def _add_request_id(parsed: dict[str, Any], **_: Any) -> None:
    """moto's interpreter quotes the request's id in the cause of an error; ministack has none."""
    parsed["ResponseMetadata"].setdefault("RequestId", "local")
