"""What moto's interpreter leaves out or does differently from AWS; replacements.py has the reasons.

``test_state_language_conformance.py`` beside this package fails when an update of moto makes one
of these unnecessary or wrong.
"""

from __future__ import annotations

import functools
from typing import Any

from botocore import xform_name

from compilegate_localcloud.emulator.clients import client_for, service_model
from compilegate_localcloud.emulator.replacements import (
    extend,
    replace,
    replace_everywhere,
    upstream,
)

_PARSER = "moto.stepfunctions.parser.asl"
_SERVICE = f"{_PARSER}.component.state.exec.state_task.service"
_TASK = f"{_SERVICE}.state_task_service.StateTaskService"
_SDK = f"{_SERVICE}.state_task_service_aws_sdk"
_ERROR_NAME = f"{_PARSER}.component.common.error_name"
# What Step Functions calls a service in the error names of aws-sdk integrations.
_SERVICE_ERROR_NAMES = {
    "cloudwatch": "CloudWatch",
    "cloudwatchlogs": "CloudWatchLogs",
    "eventbridge": "EventBridge",
    "kms": "Kms",
    "lambda": "Lambda",
    "s3": "S3",
    "sagemaker": "SageMaker",
    "secretsmanager": "SecretsManager",
    "sns": "Sns",
    "sqs": "Sqs",
    "ssm": "Ssm",
    "sts": "Sts",
}
# Functions that read a path, which moto has done for every state that is entered: 0.4 ms each.
_PATH_PARSERS = (
    f"{_PARSER}.utils.json_path.parse",
    f"{_PARSER}.component.common.path.result_path.parse",
)
_KEPT_PATHS = 1024
# AWS: States.ALL is a wildcard for every error but these two.
_NOT_IN_STATES_ALL = ("States.Runtime", "States.DataLimitExceeded")


def install() -> None:
    """Replace what replacements.py lists of moto's interpreter."""
    replace_everywhere(f"{_PARSER}.utils.boto_client.boto_client_for", _client)
    extend(f"{_TASK}._SERVICE_NAME_SFN_TO_BOTO_OVERRIDES", {"eventbridge": "events",
                                                            "cloudwatchlogs": "logs"})  # fmt: skip
    replace(f"{_TASK}._normalise_parameters", _normalise_parameters)
    replace(f"{_TASK}._normalise_response", _normalise_response)
    extend(f"{_SDK}._SERVICE_ERROR_NAMES", _SERVICE_ERROR_NAMES)
    exception_name = staticmethod(_exception_name)
    replace(f"{_SDK}.StateTaskServiceAwsSdk._normalise_exception_name", exception_name)
    replace(f"{_ERROR_NAME}.custom_error_name.CustomErrorName.__init__", _initialise_error_name)
    _keep_runtime_errors_out_of_states_all()
    for parser in _PATH_PARSERS:
        replace(parser, functools.lru_cache(_KEPT_PATHS)(upstream(parser)))


def _client(region: str, service: str, state_credentials: Any = None) -> Any:
    return client_for(service, region, getattr(state_credentials, "role_arn", None))


def _normalise_parameters(
    task: Any,
    parameters: Any,
    boto_service_name: str | None = None,
    service_action_name: str | None = None,
) -> None:
    """Turn PascalCase and values that are not text into what boto3 takes."""
    model = _model_of(task, boto_service_name, service_action_name)
    if model is not None and model.input_shape is not None:
        task._to_boto_request(parameters, model.input_shape)


def _normalise_response(
    task: Any,
    response: Any,
    boto_service_name: str | None = None,
    service_action_name: str | None = None,
) -> None:
    """Turn what boto3 answers into PascalCase."""
    model = _model_of(task, boto_service_name, service_action_name)
    if model is not None and model.output_shape is not None and response is not None:
        task._from_boto_response(response, model.output_shape)


def _model_of(task: Any, service: str | None, action: str | None) -> Any:
    models = _operation_models(task._get_boto_service_name(service))
    return models.get(task._get_boto_service_action(action))


@functools.cache
def _operation_models(service: str) -> dict[str, Any]:
    model = service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


def _exception_name(service: str, error: Any) -> str:
    """``Ssm.ParameterNotFoundException``, after the code of the error."""
    code = error.response["Error"]["Code"].rsplit("#")[-1]
    return f"{service}.{code}" + ("" if code.endswith("Exception") else "Exception")


def _initialise_error_name(error: Any, error_name: str | None = None) -> None:
    """Take a ``States.`` error as well, which a branch of a Map or Parallel may have ended with."""
    error.error_name = error_name


def _keep_runtime_errors_out_of_states_all() -> None:
    target = f"{_ERROR_NAME}.error_equals_decl.ErrorEqualsDecl._eval_body"
    original = upstream(target)

    def evaluate(declaration: Any, env: Any) -> None:
        wildcard = declaration._STATE_ALL_ERROR in declaration.error_names
        if wildcard and env.stack[-1].error_name in _NOT_IN_STATES_ALL:
            env.stack[-1] = False
        else:
            original(declaration, env)

    replace(target, evaluate)
