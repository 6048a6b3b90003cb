"""What moto's interpreter leaves out or gets wrong; each mend with its reason.

Pinned to moto 5.2.5. ``tests/localcloud/test_state_language_conformance.py`` tells when an
update makes one of them unnecessary or wrong.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import (
    ErrorEqualsDecl,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk,
)
from moto.stepfunctions.parser.asl.utils import boto_client

from compilegate.localcloud.emulator.clients import client_for
from compilegate.localcloud.emulator.engine import shapes

_PARSER_PACKAGE = "moto.stepfunctions.parser."
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
# AWS: States.ALL is a wildcard for every error but these two.
_NOT_IN_STATES_ALL = ("States.Runtime", "States.DataLimitExceeded")


def install() -> None:
    """Apply every change."""
    _call_this_emulator()
    shapes.install()
    _name_sdk_errors()
    _let_failures_of_branches_pass()
    _keep_runtime_errors_out_of_states_all()


def replace_everywhere(original: Any, replacement: Any) -> None:
    """Rebind a function in every interpreter module that imported it by name."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_PARSER_PACKAGE) and isinstance(module, types.ModuleType):
            for attribute in [key for key, value in vars(module).items() if value is original]:
                setattr(module, attribute, replacement)


def _call_this_emulator() -> None:
    """The interpreter would build a client per call, aimed at moto's own server."""

    def client(region: str, service: str, state_credentials: Any = None) -> Any:
        return client_for(service, region, getattr(state_credentials, "role_arn", None))

    replace_everywhere(boto_client.boto_client_for, client)


def _name_sdk_errors() -> None:
    """aws-sdk integrations must fail with ``Ssm.ParameterNotFoundException`` and the like."""
    task: Any = state_task_service_aws_sdk.StateTaskServiceAwsSdk
    state_task_service_aws_sdk._SERVICE_ERROR_NAMES.update(_SERVICE_ERROR_NAMES)

    def exception_name(service: str, error: Any) -> str:
        code = error.response["Error"]["Code"].rsplit("#")[-1]
        return f"{service}.{code}" + ("" if code.endswith("Exception") else "Exception")

    original = task._from_error

    def from_error(self: Any, env: Any, ex: Exception) -> Any:
        response = getattr(ex, "response", None)
        if isinstance(response, dict):  # the original fails without one
            response["ResponseMetadata"].setdefault("RequestId", "local")
        return original(self, env, ex)

    task._normalise_exception_name = staticmethod(exception_name)
    task._from_error = from_error


def _let_failures_of_branches_pass() -> None:
    """A branch that failed with a ``States.`` error crashed the Map or Parallel around it."""

    def initialise(self: Any, error_name: str | None = None) -> None:
        self.error_name = error_name

    custom_error_name: Any = CustomErrorName
    custom_error_name.__init__ = initialise


def _keep_runtime_errors_out_of_states_all() -> None:
    """moto lets States.ALL catch States.Runtime; AWS does not."""
    declaration: Any = ErrorEqualsDecl
    original = declaration._eval_body

    def evaluate(self: Any, env: Any) -> None:
        wildcard = declaration._STATE_ALL_ERROR in self.error_names
        if wildcard and env.stack[-1].error_name in _NOT_IN_STATES_ALL:
            env.stack[-1] = False
        else:
            original(self, env)

    declaration._eval_body = evaluate
