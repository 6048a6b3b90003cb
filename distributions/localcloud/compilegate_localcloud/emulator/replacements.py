"""Every part of ministack and moto that the emulator replaces or extends, and why.

Neither library has a plugin interface. README.md shows this table; tests hold it against the code
that replaces and against the libraries, so that an update which moves one of these names, or
changes its signature, is noticed. Standard library only: the libraries are imported on use.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Mapping
from typing import Any

from compilegate_localcloud.emulator.replaced_of_moto import MOTO
from compilegate_localcloud.emulator.replacement import Replacement

LIBRARIES = ("ministack", "moto")
_SFN = "ministack.services.stepfunctions"
_ENGINE = "a setting that names the engine which runs executions"
_ADD_SERVICE = "a public call that registers a service, its routes and its resources"


REPLACEMENTS = (
    Replacement(
        f"{_SFN}._run_execution", "(exec_arn)",
        "ministack's interpreter turns missing paths into null and never matches error names; "
        "moto's runs the execution",
        _ENGINE,
    ),
    Replacement(
        f"{_SFN}._get_execution_history", "(data)",
        "the engine keeps the history of a running execution", _ENGINE,
    ),
    Replacement(
        f"{_SFN}._stop_execution", "(data)",
        "ministack only marks the execution; states in progress must be interrupted", _ENGINE,
    ),
    *(
        Replacement(
            f"{_SFN}._send_task_{answer}", "(data)",
            "task tokens belong to the engine, which must get the answer first", _ENGINE,
        )
        for answer in ("success", "failure", "heartbeat")
    ),
    Replacement(
        f"{_SFN}._validate_definition_jsonata", "(definition_str)",
        "AWS refuses a definition that cannot be parsed when it is created, not when it runs",
        "a full check of definitions in CreateStateMachine and UpdateStateMachine",
    ),
    Replacement(
        "ministack.services.cloudformation.provisioners._sfn_definition", "(props)",
        "CloudFormation creates state machines past the API, and past its checks",
        "provisioning through the same code path as the API",
    ),
    Replacement(
        "ministack.services.cloudformation.provisioners._RESOURCE_HANDLERS", "dict",
        "CloudFormation does not know AWS::Budgets::Budget", "support of that type",
    ),
    Replacement(
        "ministack.services.lambda_svc._execute_function_warm",
        "(func, event, request_id)",
        "AWS names the exception's class as errorType, which Retry and Catch match, and an import "
        "that fails Runtime.ImportModuleError; ministack says HandlerError and RuntimeError",
        "errorType and stackTrace as the Lambda runtime reports them",
    ),
    Replacement(
        "ministack.core.lambda_runtime.zipfile", "module",
        "every worker unpacks the app's one bundle and compiles what it imports of it",
        "bundles that are unpacked once",
    ),
    Replacement(
        "ministack.core.lambda_runtime.subprocess", "module",
        "every worker imports the SDK, half of its start",
        "workers that are forked from one process",
    ),
    Replacement(
        "ministack.core.lambda_runtime.execution_credentials", "(config)",
        "ministack derives the secrets of functions' roles from their public names",
        "random secrets of roles' sessions",
    ),
    Replacement(
        "ministack.services.cloudwatch_logs._append_log_events", "(stream, events)",
        "logs are kept as files after the emulator has ended",
        "an option that mirrors log groups into a folder",
    ),
    *(
        Replacement(
            f"ministack.services.dynamodb.{reader}", signature,
            "a query reads its expressions anew for every item",
            "expressions that are read once",
        )
        for reader, signature in (
            ("_tokenize", "(expr)"), ("_condition_syntax_error", "(expr, slot)"),
        )
    ),
    Replacement(
        "ministack.services.scheduler._tick_schedules", "()",
        "ministack's sweep knows UTC only, leaves `<aws.scheduler.scheduled-time>` in the target's "
        "input as it is, reports the time of the sweep as the schedule's, and never again "
        "fires a schedule that was deleted and recreated",
        "time zones, context attributes and exact times in its sweep",
    ),
    Replacement(
        "ministack.services.scheduler._SCHEDULE_TICK_INTERVAL", "int",
        "it sweeps every ten seconds; schedules of seconds matter in tests",
        "a setting for the interval",
    ),
    Replacement(
        "ministack.app.SERVICE_HANDLERS", "dict",
        "ministack has no SageMaker training, Service Quotas or Cost Explorer", _ADD_SERVICE,
    ),
    Replacement(
        "ministack.core.router.SERVICE_PATTERNS", "dict",
        "requests to these services must reach their handlers", _ADD_SERVICE,
    ),
    Replacement(
        "ministack.core.router.detect_service", "(method, path, headers, query_params)",
        "a presigned URL goes to the service that its path, an Action or a form names",
        "routing by the scope of presigned URLs",
    ),
    Replacement(
        "ministack.core.router._is_aws_service_name", "(scope_name)",
        "a scope of no service has all of botocore's descriptions read, for nine seconds",
        "a list of their names",
    ),
    Replacement(
        "ministack.app._decode_aws_chunked_body", "(body, headers)",
        "what ends a body in chunks, which no signature covers, becomes any header",
        "trailers that carry checksums alone",
    ),
    *(
        Replacement(
            f"ministack.app.{answer}", signature,
            "ministack answers paths of its own, reset among them, for whatever service is signed",
            "a setting that leaves AWS's paths alone",
        )
        for answer, signature in (
            ("_handle_pre_body_request", "(method, path, headers, query_params, request_id)"),
            (
                "_handle_post_body_shortcuts",
                "(method, path, headers, body, query_params, request_id)",
            ),
            (
                "_handle_special_data_plane_request",
                "(method, path, headers, body, query_params, request_id, raw_path=None, "
                "raw_query_string='', client_ip='127.0.0.1')",
            ),
        )
    ),
    Replacement(
        "ministack.core.iam_actions.SERVICE_TO_IAM_NAMESPACE", "dict",
        "permissions are checked by the IAM names of these services", _ADD_SERVICE,
    ),
    Replacement(
        "ministack.core.iam_actions.extract_resource_arn",
        "(service, method, path, headers, body, query_params, region, account_id)",
        "permissions on training jobs name the job, those on roles its path, and those on task "
        "tokens the state machine, so the check needs their ARNs",
        f"{_ADD_SERVICE}, roles named with their path, and machines of task tokens",
    ),
    Replacement(
        "ministack.core.iam_evaluator._first_match", "(ctx, stmts, effect)",
        "policies of training jobs name the workload by a policy variable",
        "policy variables in resources and conditions",
    ),
    Replacement(
        "ministack.core.iam_actions.request_tag_context", "(service, iam_action, body, params)",
        "policies limit a role to one permissions boundary, and functions to keys of the ledger, "
        "by condition keys",
        "iam:PermissionsBoundary, iam:PolicyARN and dynamodb:LeadingKeys among a request's keys",
    ),
    Replacement(
        "ministack.core.iam_actions._load_botocore_model", "(botocore_service)",
        "permission checks read the description of a service anew for each of three questions",
        "descriptions that are read once",
    ),
    Replacement(
        "ministack.app.pin_request_origin", "(source_ip, secure_transport)",
        "policies deny requests without TLS; these never leave the machine",
        "a setting that treats the loopback interface as secure transport",
    ),
    *MOTO,
)  # fmt: skip
_LISTED = frozenset(item.target for item in REPLACEMENTS)
replaced: set[str] = set()  # targets that have been replaced or extended in this process


def upstream(target: str) -> Any:
    """What stands at a dotted name now."""
    owner, name = _owner(target)
    return getattr(owner, name)


def replace(target: str, replacement: Any) -> None:
    """Put ``replacement`` at the dotted name, which the table must list."""
    owner, name = _owner(target)
    setattr(owner, name, replacement)
    _note(target)


def replace_everywhere(target: str, replacement: Any) -> None:
    """The same, and in every module of the library that imported it by name."""
    original = upstream(target)
    package = target.partition(".")[0]
    for module_name, module in sys.modules.copy().items():  # atomic: threads import
        if module_name.partition(".")[0] == package and isinstance(module, types.ModuleType):
            for name in [name for name, value in vars(module).copy().items() if value is original]:
                setattr(module, name, replacement)
    _note(target)


def extend(target: str, entries: Mapping[str, Any]) -> None:
    """Add entries to the table of data at the dotted name."""
    upstream(target).update(entries)
    _note(target)


def stand_in(target: str, value: Any) -> None:
    """Let the library find ``value`` in place of a module that is slow to import."""
    path, _, name = target.rpartition(".")
    module = types.ModuleType(path)
    setattr(module, name, value)
    sys.modules.setdefault(path.rpartition(".")[0], types.ModuleType(path.rpartition(".")[0]))
    sys.modules.setdefault(path, module)
    _note(target)


def _note(target: str) -> None:
    if target not in _LISTED:
        raise ValueError(f"{target} is not listed in {__name__}")
    replaced.add(target)


def _owner(target: str) -> tuple[Any, str]:
    """The module or class that holds the last part of a dotted name."""
    path, _, name = target.rpartition(".")
    module, _, last = path.rpartition(".")
    if last[0].isupper():
        return getattr(importlib.import_module(module), last), name
    return importlib.import_module(path), name
