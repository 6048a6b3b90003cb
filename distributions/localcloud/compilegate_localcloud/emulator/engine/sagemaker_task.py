"""``arn:aws:states:::sagemaker:createTrainingJob`` and its ``.sync`` form."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from botocore.exceptions import ClientError
from moto.stepfunctions.parser import api
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import (
    ResourceCondition,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_callback import (  # noqa: E501
    StateTaskServiceCallback,
)
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails

from compilegate_localcloud.emulator.clients import client_for
from compilegate_localcloud.emulator.replacements import replace_everywhere, upstream
from compilegate_localcloud.emulator.sagemaker.service import TrainingService, milliseconds
from compilegate_localcloud.emulator.sagemaker.validation import unsupported_fields

_POLL_SECONDS = 0.2
_TASK_FOR = (
    "moto.stepfunctions.parser.asl.component.state.exec.state_task.service."
    "state_task_service_factory.state_task_service_for"
)
_SYNC: Any = ResourceCondition.Sync
_event_details: Any = EventDetails  # a TypedDict whose keys are all optional in truth
_STATES_ERRORS = {
    "States.TaskFailed": StatesErrorNameType.StatesTaskFailed,
    "States.Runtime": StatesErrorNameType.StatesRuntime,
}
_SYNC_TAG = {"Key": "MANAGED_BY_AWS", "Value": "STARTED_BY_STEP_FUNCTIONS"}


def install(service: TrainingService) -> None:
    """Make the interpreter use this integration for the service name ``sagemaker``."""
    original = upstream(_TASK_FOR)

    def task_for(service_name: str) -> Any:
        if service_name == "sagemaker":
            return SageMakerTask(service)
        return original(service_name=service_name)

    replace_everywhere(_TASK_FOR, task_for)


class SageMakerTask(StateTaskServiceCallback):
    """Creates the job and, for ``.sync``, waits for it and stops it when the state ends first."""

    def __init__(self, service: TrainingService) -> None:
        super().__init__(supported_integration_patterns={_SYNC})
        self._service = service
        self._abandoned = False

    def _validate_service_integration_is_supported(self) -> None:
        """Every API of the service may be called; unknown ones fail when they run."""

    def _normalise_response(self, *arguments: Any, **named: Any) -> None:
        """The answer is in PascalCase already."""

    def _before_eval_execution(
        self, env: Any, resource_runtime_part: Any, raw_parameters: Any, state_credentials: Any
    ) -> None:
        """Refuse fields that the integration does not know, as AWS does: no Catch sees it."""
        if self._get_boto_service_action() == "create_training_job":
            unsupported = list(unsupported_fields(raw_parameters))
            if unsupported:
                raise FailureEventException(self._not_started(env, raw_parameters, unsupported))
        super()._before_eval_execution(
            env, resource_runtime_part, raw_parameters, state_credentials
        )

    def _eval_service_task(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        if self.resource.condition == _SYNC:
            normalised_parameters.setdefault("Tags", []).append(_SYNC_TAG)
        client = client_for("sagemaker", resource_runtime_part.region, state_credentials.role_arn)
        try:
            answer = getattr(client, self._get_boto_service_action())(**normalised_parameters)
        except ClientError as error:
            # Created before the emulator was killed; what has become of it is seen below.
            if not env.begun_before or error.response["Error"]["Code"] != "ResourceInUse":
                raise
            answer = {"TrainingJobArn": error.response["Error"]["Message"].rpartition("(")[2][:-1]}
        answer.pop("ResponseMetadata", None)
        env.stack.append(answer)

    def _eval_integration_pattern(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        """Wait for the job; stop it when this state is over before the job is.

        A state is over early when its execution is stopped, a sibling branch fails or its
        time is up; all three end its environment.
        """
        account = env.aws_execution_details.account
        name = normalised_parameters["TrainingJobName"]
        job = self._service.job((account, resource_runtime_part.region), name)
        client = client_for("sagemaker", resource_runtime_part.region, state_credentials.role_arn)
        while not job.finished.wait(_POLL_SECONDS):
            if not env.is_running():
                self._abandoned = True
                self._stop(client, name)
                return
        client.describe_training_job(TrainingJobName=name)  # .sync needs this permission
        described = milliseconds(job.describe())
        if described["TrainingJobStatus"] != "Completed":
            cause = json.dumps(described)
            raise FailureEventException(self._failure(env, "States.TaskFailed", cause))
        env.stack.pop()
        env.stack.append(described)

    @staticmethod
    def _stop(client: Any, name: str) -> None:
        try:
            client.stop_training_job(TrainingJobName=name)
        except ClientError as error:
            # The job may have ended in between; that is all this could say.
            if error.response["Error"]["Code"] != "ValidationException":
                raise

    def _after_eval_execution(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        """An abandoned state has no outcome, so its history must not say that it succeeded."""
        with contextlib.suppress(_AbandonedError):
            super()._after_eval_execution(
                env, resource_runtime_part, normalised_parameters, state_credentials
            )

    def _verify_size_quota(self, env: Any, value: Any) -> None:
        if self._abandoned:
            raise _AbandonedError
        super()._verify_size_quota(env, value)

    def _from_error(self, env: Any, ex: Exception) -> Any:
        if not isinstance(ex, ClientError):
            return super()._from_error(env=env, ex=ex)
        code, message = ex.response["Error"]["Code"], ex.response["Error"]["Message"]
        metadata = ex.response["ResponseMetadata"]
        cause = (
            f"{message} (Service: AmazonSageMaker; Status Code: {metadata['HTTPStatusCode']}; "
            f"Error Code: {code}; Request ID: {metadata.get('RequestId', 'local')}; Proxy: null)"
        )
        return self._failure(env, error_name(code), cause)

    def _not_started(self, env: Any, parameters: Any, unsupported: list[str]) -> Any:
        """As published in aws/aws-step-functions-data-science-sdk-python issue 15."""
        problems = [
            f'The field "{name}" is not supported by Step Functions'
            for name in dict.fromkeys(unsupported)
        ]
        state = env.states.context_object.context_object_data["State"]["Name"]
        cause = (
            f"An error occurred while executing the state '{state}'. "
            f"The Parameters '{json.dumps(parameters)}' could not be used to start the Task: "
            f"[{', '.join(problems)}]"
        )
        return self._failure(env, "States.Runtime", cause)

    def _failure(self, env: Any, error: str, cause: str) -> Any:
        typ = _STATES_ERRORS.get(error)
        name = CustomErrorName(error) if typ is None else StatesErrorName(typ=typ)
        details = api.TaskFailedEventDetails(
            error=error,
            cause=cause,
            resource=self._get_sfn_resource(),
            resourceType=self._get_sfn_resource_type(),
        )
        return FailureEvent(
            env=env,
            error_name=name,
            event_type=api.HistoryEventType.TaskFailed,
            event_details=_event_details(taskFailedEventDetails=details),
        )


class _AbandonedError(Exception):
    """Leaves the interpreter's bookkeeping of a state that is over already."""


def error_name(code: str) -> str:
    """The error a state machine sees for a refused SageMaker call.

    From published failures, not verified on an account: errors that the SDK models keep their
    name; everything else, throttling and validation among it, is AmazonSageMakerException.
    """
    if code in ("ResourceInUse", "ResourceLimitExceeded", "ResourceNotFound", "ConflictException"):
        return f"SageMaker.{code.removesuffix('Exception')}Exception"
    return "SageMaker.AmazonSageMakerException"
