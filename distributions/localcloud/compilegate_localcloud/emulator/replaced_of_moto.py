"""Every part of moto that the emulator replaces or extends, see replacements.py."""

from __future__ import annotations

from compilegate_localcloud.emulator.replacement import Replacement

_ASL = "moto.stepfunctions.parser.asl"
_SERVICE = f"{_ASL}.component.state.exec.state_task.service"
_ERROR_NAME = f"{_ASL}.component.common.error_name"
_STRINGS = f"{_ASL}.component.common.string.string_expression"
_NAMES = "boto_service_name=None, service_action_name=None"
_JSONATA_IN_PYTHON = "an evaluator of JSONata without a Java machine"

MOTO = (
    Replacement(
        f"{_ASL}.utils.boto_client.boto_client_for",
        "(region, service, state_credentials=None)",
        "moto builds a client per call, with fixed keys and for its own server; these calls need "
        "the role's credentials and the emulator's address",
        "a public factory of clients",
    ),
    Replacement(
        f"{_SERVICE}.state_task_service_factory.state_task_service_for",
        "(service_name)",
        "moto has no integration with SageMaker", "a registry of service integrations",
    ),
    Replacement(
        f"{_SERVICE}.state_task_service.StateTaskService._normalise_parameters",
        f"(self, parameters, {_NAMES})",
        "moto left the body out: Step Functions takes PascalCase parameters and turns values into "
        "JSON text where the service wants text",
        "LocalStack's implementation of it in moto",
    ),
    Replacement(
        f"{_SERVICE}.state_task_service.StateTaskService._normalise_response",
        f"(self, response, {_NAMES})",
        "moto left the body out: Step Functions answers in PascalCase",
        "LocalStack's implementation of it in moto",
    ),
    Replacement(
        f"{_SERVICE}.state_task_service.StateTaskService._SERVICE_NAME_SFN_TO_BOTO_OVERRIDES",
        "dict",
        "moto does not know that eventbridge is boto3's events and cloudwatchlogs its logs",
        "these two names in moto's table",
    ),
    Replacement(
        f"{_SERVICE}.state_task_service_aws_sdk._SERVICE_ERROR_NAMES", "dict",
        "error names begin with the service as Step Functions writes it, such as Ssm",
        "these names in moto's table",
    ),
    Replacement(
        f"{_SERVICE}.state_task_service_aws_sdk.StateTaskServiceAwsSdk._normalise_exception_name",
        "(norm_service_name, ex)",
        "AWS names the error by its code (Ssm.ParameterNotFoundException), moto by Python's class",
        "error names by the code of the error",
    ),
    Replacement(
        f"{_ERROR_NAME}.custom_error_name.CustomErrorName.__init__",
        "(self, error_name)",
        "moto raises where a branch failed with a States. error, which crashes the Map or Parallel "
        "around it",
        "States. errors passed on by Map and Parallel",
    ),
    Replacement(
        f"{_ERROR_NAME}.error_equals_decl.ErrorEqualsDecl._eval_body",
        "(self, env)",
        "moto lets States.ALL catch States.Runtime and States.DataLimitExceeded; AWS does not",
        "the same exceptions from the wildcard in moto",
    ),
    *(
        Replacement(
            f"{_STRINGS}.{kind}._eval_body", "(self, env)",
            "moto needs a Java machine for JSONata and pastes values into the expression's text",
            _JSONATA_IN_PYTHON,
        )
        for kind in ("StringJSONata", "StringVariableSample")
    ),
    *(
        Replacement(
            f"{_ASL}.{module}.parse", signature,
            "moto has the same few JSONPaths read again for every state that is entered",
            "paths that are read once",
        )
        for module, signature in (
            ("utils.json_path", "(path, debug=None)"),
            ("component.common.path.result_path", "(string)"),
        )
    ),
    *(
        Replacement(
            f"{_ASL}.{name}", signature,
            "an execution of a killed emulator goes on: tasks that had ended answer as they did, "
            "waits go on where they were",
            "executions that can be saved and continued",
        )
        for name, signature in (
            ("eval.environment.Environment.open_frame", "(self, event_history_context=None)"),
            ("eval.environment.Environment.open_inner_frame", "(self, event_history_context=None)"),
            (
                "component.state.exec.state_map.iteration.iteration_worker.IterationWorker"
                "._eval_job",
                "(self, env, job)",
            ),
            (
                "component.state.exec.state_task.service.state_task_service.StateTaskService"
                "._eval_execution",
                "(self, env)",
            ),
            (
                "component.state.wait.wait_function.wait_function.WaitFunction._eval_body",
                "(self, env)",
            ),
        )
    ),
    Replacement(
        "moto.batch.utils.JobStatus", "EnumType",
        "moto's Batch integration imports all of moto's EC2 for one enumeration, a second of the "
        "start",
        "an import of it when a Batch state runs",
    ),
)  # fmt: skip
