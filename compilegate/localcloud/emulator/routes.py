"""Registers the SageMaker service with the emulator.

Pinned to ministack 1.5.33, which has no plugin interface: these tables are what its router,
its permission checks and its dispatch read at every request.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import Any

from ministack import app
from ministack.core import iam_actions, router
from ministack.core.responses import get_account_id, get_region

from compilegate.localcloud.emulator.sagemaker.service import TrainingService


def install(service: TrainingService) -> None:
    """Route ``SageMaker.*`` requests to the service and check them like any other."""

    async def handle(
        _method: str, _path: str, headers: dict[str, str], body: bytes, _query: Any
    ) -> tuple[int, dict[str, str], bytes]:
        operation = headers.get("x-amz-target", "").rsplit(".", 1)[-1]
        scope = (get_account_id(), get_region())
        context = contextvars.copy_context()
        return await asyncio.to_thread(context.run, service.respond, operation, body, scope)

    app.SERVICE_HANDLERS["sagemaker"] = handle
    router.SERVICE_PATTERNS["sagemaker"] = {
        "target_prefixes": ["SageMaker."],
        "host_patterns": [r"sagemaker\."],
    }
    iam_actions.SERVICE_TO_IAM_NAMESPACE["sagemaker"] = "sagemaker"
    _name_resources()


def _name_resources() -> None:
    """Permissions on training jobs name the job, so the check must know its ARN."""
    original = iam_actions.extract_resource_arn

    def resource_arn(service: str, *arguments: Any) -> Any:
        if service != "sagemaker":
            return original(service, *arguments)
        body, region, account = arguments[3], arguments[5], arguments[6]
        try:
            request = json.loads(body or b"{}")
        except ValueError:
            return "*"
        name = request.get("TrainingJobName")
        if name:
            return f"arn:aws:sagemaker:{region}:{account}:training-job/{name}"
        return request.get("ResourceArn", "*")

    iam_actions.extract_resource_arn = resource_arn
