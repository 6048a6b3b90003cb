"""Request and response casing of service integrations, from botocore's service models.

moto stubbed this out: Step Functions takes ``Parameters`` in PascalCase for every service and
turns values that are not strings into JSON text where the service wants a string.
"""

from __future__ import annotations

import functools
from typing import Any

import botocore.session
from botocore import xform_name
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service,
)


def install() -> None:
    """Give the interpreter back its two normalising steps."""
    task: Any = state_task_service.StateTaskService
    names = task._SERVICE_NAME_SFN_TO_BOTO_OVERRIDES
    names.update({"eventbridge": "events", "cloudwatchlogs": "logs"})

    def parameters(
        self: Any,
        parameters: Any,
        boto_service_name: str | None = None,
        service_action_name: str | None = None,
    ) -> None:
        model = _model_of(self, boto_service_name, service_action_name)
        if model is not None and model.input_shape is not None:
            self._to_boto_request(parameters, model.input_shape)

    def response(
        self: Any,
        response: Any,
        boto_service_name: str | None = None,
        service_action_name: str | None = None,
    ) -> None:
        model = _model_of(self, boto_service_name, service_action_name)
        if model is not None and model.output_shape is not None and response is not None:
            self._from_boto_response(response, model.output_shape)

    task._normalise_parameters = parameters
    task._normalise_response = response


def _model_of(task: Any, service: str | None, action: str | None) -> Any:
    models = _operation_models(task._get_boto_service_name(service))
    return models.get(task._get_boto_service_action(action))


@functools.cache
def _operation_models(service: str) -> dict[str, Any]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}
