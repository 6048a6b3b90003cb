"""Registers SageMaker, Service Quotas and Cost Explorer with ministack.

Dispatch, routes, permission checks.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ministack import app
from ministack.core import iam_evaluator, router
from ministack.core.responses import get_account_id, get_region

from compilegate_localcloud.emulator.replacements import extend, replace, upstream
from compilegate_localcloud.emulator.sagemaker.costs import CostExplorer
from compilegate_localcloud.emulator.sagemaker.failures import Response
from compilegate_localcloud.emulator.sagemaker.quotas import ServiceQuotasService
from compilegate_localcloud.emulator.sagemaker.service import TrainingService

Handler = Callable[..., Awaitable[Response]]
_RESOURCE_ARN = "ministack.core.iam_actions.extract_resource_arn"


def install(service: TrainingService) -> None:
    """Route ``SageMaker.*`` requests to the service and check them like any other."""

    async def handle(
        _method: str, _path: str, headers: dict[str, str], body: bytes, _query: Any
    ) -> Response:
        operation = headers.get("x-amz-target", "").rsplit(".", 1)[-1]
        if operation == "CreateTrainingJob" and app.AUTH:
            denial = _further_denial(headers, body)
            if denial is not None:
                return denial
        scope = (get_account_id(), get_region())
        context = contextvars.copy_context()
        return await asyncio.to_thread(context.run, service.respond, operation, body, scope)

    _add_service("sagemaker", "SageMaker.", handle)
    _name_resources()
    _answer_quotas(ServiceQuotasService(service.quotas))
    _answer_costs(CostExplorer(service.jobs))


def _answer_quotas(quotas: ServiceQuotasService) -> None:
    """Route ``ServiceQuotasV20190624.*`` requests to the account's quotas."""

    async def handle(
        _method: str, _path: str, headers: dict[str, str], body: bytes, _query: Any
    ) -> Response:
        return quotas.respond(headers.get("x-amz-target", "").rsplit(".", 1)[-1], body)

    _add_service("servicequotas", "ServiceQuotasV20190624", handle)


def _answer_costs(costs: CostExplorer) -> None:
    """Route ``AWSInsightsIndexService.*`` requests to the account's costs, whatever the region."""

    async def handle(
        _method: str, _path: str, headers: dict[str, str], body: bytes, _query: Any
    ) -> Response:
        operation = headers.get("x-amz-target", "").rsplit(".", 1)[-1]
        return costs.respond(operation, body, get_account_id())

    _add_service("ce", "AWSInsightsIndexService", handle)


def _add_service(name: str, target_prefix: str, handle: Handler) -> None:
    patterns = {"target_prefixes": [target_prefix], "host_patterns": [rf"{name}\."]}
    extend("ministack.app.SERVICE_HANDLERS", {name: handle})
    extend("ministack.core.router.SERVICE_PATTERNS", {name: patterns})
    extend("ministack.core.iam_actions.SERVICE_TO_IAM_NAMESPACE", {name: name})


def _name_resources() -> None:
    """Permissions on training jobs name the job, so the check must know its ARN."""
    original = upstream(_RESOURCE_ARN)

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

    replace(_RESOURCE_ARN, resource_arn)


def _further_denial(headers: dict[str, str], body: bytes) -> Response | None:
    """The two grants that are most often missing: passing the job's role, and tagging the job."""
    request = json.loads(body or b"{}")
    region = get_region()
    job = f"training-job/{request.get('TrainingJobName', '*')}"
    checks = [("iam:PassRole", "iam", request.get("RoleArn", "*"))]
    if request.get("Tags"):
        arn = f"arn:aws:sagemaker:{region}:{get_account_id()}:{job}"
        checks.append(("sagemaker:AddTags", "sagemaker", arn))
    for action, service, resource in checks:
        denied = iam_evaluator.enforce(
            router.extract_access_key_id(headers, {}),
            action,
            service,
            region,
            resource_arn=resource,
            service_context={"iam:PassedToService": "sagemaker.amazonaws.com"},
        )
        if denied is not None:
            return _denial(getattr(denied, "principal_arn", "unknown"), action, resource)
    return None


def _denial(caller: str, action: str, resource: str) -> Response:
    fault = {
        "__type": "AccessDeniedException",
        "message": f"User: {caller} is not authorized to perform: {action} on resource: "
        f"{resource} because no identity-based policy allows the {action} action",
    }
    return 400, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(fault).encode()
