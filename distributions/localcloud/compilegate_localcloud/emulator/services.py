"""Where ministack's Lambda, logs and CloudFormation differ from AWS; replacements.py says why.

Logs are files, kept after the emulator has ended: ``logs/emulator.log`` is its own output;
``logs/cloudwatch/<group>/<stream>.log`` mirrors CloudWatch Logs, where Lambda functions and
training jobs write; ``logs/executions/<name>.jsonl`` (engine/executions.py) is the history of an
execution.
"""

from __future__ import annotations

import copy
import datetime
import functools
import hashlib
import hmac
import os
import re
from pathlib import Path
from typing import Any

from ministack import app
from ministack.services import budgets, cloudwatch_logs, sts

from compilegate_localcloud.emulator.replacements import (
    extend,
    replace,
    replace_everywhere,
    upstream,
)
from compilegate_localcloud.emulator.workers import LAMBDA_SITE

_EXECUTE = "ministack.services.lambda_svc._execute_function_warm"
_CREDENTIALS = "ministack.core.lambda_runtime.execution_credentials"
_SESSION_NAME_MAX = 64  # limit of RoleSessionName in the model of AWS STS
_INIT_FAILED = "Worker init failed: "
_ERROR_LINE = re.compile(r"([A-Za-z_][\w.]*)(:|$)")
_APPEND = "ministack.services.cloudwatch_logs._append_log_events"
# Functions that read a DynamoDB expression, which ministack does for every item of a query.
_EXPRESSIONS = "ministack.services.dynamodb"
_KEPT_EXPRESSIONS = 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
Properties = dict[str, Any]


def install(log_folder: Path) -> None:
    """Correct ministack's services; CloudWatch Logs are mirrored into the folder."""
    _hide_secrets_of_roles()
    _correct_lambda()
    _mirror_logs(log_folder)
    _add_resource_types()
    _read_expressions_once()


def _hide_secrets_of_roles() -> None:
    """Credentials of a role that need this run's secret: ministack's follow from public names."""
    original = upstream(_CREDENTIALS)

    def credentials(config: Properties) -> dict[str, str]:
        if not app.AUTH:
            answer: dict[str, str] = original(config)
            return answer
        function, role = str(config["FunctionArn"]), str(config.get("Role", ""))
        account, name = function.split(":")[4], role.rsplit("/", 1)[-1]
        session = str(config.get("FunctionName", ""))[:_SESSION_NAME_MAX]
        key = f"ASIA{_derived('key', function, role)[:16].upper()}"
        secret, token = _derived("secret", function, role), _derived("token", function, role)
        # The same each time: a worker that runs keeps what it was started with.
        sts.register_session(key, {
            "Arn": f"arn:aws:sts::{account}:assumed-role/{name}/{session}",
            "UserId": f"{name}:{session}",
            "SecretAccessKey": secret,
            "SessionToken": token,
        })  # fmt: skip
        return {
            "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token,
        }  # fmt: skip

    replace_everywhere(_CREDENTIALS, credentials)


def _derived(*parts: str) -> str:
    secret = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    return hmac.new(secret, "\n".join(parts).encode(), hashlib.sha256).hexdigest()


def _correct_lambda() -> None:
    """Give workers the runtime's packages only, see lambda_site, and errors the names AWS uses."""
    os.environ["PYTHONPATH"] = str(LAMBDA_SITE)
    original = upstream(_EXECUTE)

    def execute(func: Any, event: Any, request_id: str) -> Any:
        answer = original(func, event, request_id)
        if answer.get("error") and isinstance(answer.get("body"), dict):
            _name_error(answer)
        return answer

    replace(_EXECUTE, execute)


def _name_error(answer: dict[str, Any]) -> None:
    """Put the exception's class, or what the runtime says of an import, into ``errorType``."""
    body = answer["body"]
    message = body.get("errorMessage")
    if body.get("errorType") == "Runtime.HandlerError":
        trace = [line for line in (answer.get("log") or "").splitlines() if line]
        body["errorType"] = _class_of(trace) or body["errorType"]
        body["stackTrace"] = [line for line in trace if line.startswith("  ")]
    elif isinstance(message, str) and message.startswith(_INIT_FAILED):
        text = f"Unable to import module: {message.removeprefix(_INIT_FAILED)}"
        body.update(errorType="Runtime.ImportModuleError", errorMessage=text)
        answer["log"] = f"[ERROR] Runtime.ImportModuleError: {text}"


def _class_of(trace: list[str]) -> str | None:
    """The exception's class without its module, from the last line that names one."""
    for line in reversed(trace):
        match = _ERROR_LINE.match(line)
        if match and not line.startswith((" ", "Traceback")):
            return match.group(1).rsplit(".", 1)[-1]
    return None


def _mirror_logs(folder: Path) -> None:
    """Mirror CloudWatch Logs into the folder from now on."""
    original = upstream(_APPEND)

    def append(stream: dict[str, Any], events: list[dict[str, Any]]) -> None:
        original(stream, events)
        path = _path_of(stream)
        if path is not None and events:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a", encoding="utf-8") as file:
                file.writelines(_line(event) for event in events)

    replace(_APPEND, append)


def _path_of(stream: dict[str, Any]) -> Path | None:
    """Where a stream's lines go: one file per job, one per Lambda function.

    A record knows neither its group nor its name, so it is looked for among the groups.
    """
    for group, record in list(cloudwatch_logs._log_groups.items()):
        for name, candidate in list(record["streams"].items()):
            if candidate is stream:
                parts = [_UNSAFE.sub("-", part) for part in group.strip("/").split("/")]
                if parts[:2] == ["aws", "sagemaker"]:
                    parts.append(_UNSAFE.sub("-", name.split("/")[0]))
                return Path(*parts[:-1], f"{parts[-1]}.log")
    return None


def _line(event: dict[str, Any]) -> str:
    moment = datetime.datetime.fromtimestamp(event["timestamp"] / 1000, tz=datetime.UTC)
    return f"{moment.isoformat(timespec='milliseconds')} {event['message'].rstrip()}\n"


def _add_resource_types() -> None:
    """Types that the app uses and the CloudFormation of ministack does not know."""
    handlers = {"create": _create_budget, "update": _update_budget, "delete": _delete_budget}
    extend(
        "ministack.services.cloudformation.provisioners._RESOURCE_HANDLERS",
        {"AWS::Budgets::Budget": handlers},
    )


def _create_budget(_logical_id: str, properties: Properties, _stack: str) -> tuple[str, Properties]:
    request = copy.deepcopy(properties)
    limit = request["Budget"].get("BudgetLimit")
    if limit:  # a number in a template, text in the API
        limit["Amount"] = str(limit["Amount"])
    status, _, body = budgets._create_budget(request)
    if status >= 400:
        raise ValueError(f"AWS::Budgets::Budget: {body!r}")
    return request["Budget"]["BudgetName"], {}


def _update_budget(
    physical_id: str, _old: Properties, new: Properties, stack: str
) -> tuple[str, Properties]:
    _delete_budget(physical_id, new)
    return _create_budget("", new, stack)


def _delete_budget(physical_id: str, _properties: Properties) -> None:
    budgets._delete_budget({"BudgetName": physical_id})


def _read_expressions_once() -> None:
    target = f"{_EXPRESSIONS}._condition_syntax_error"
    replace(target, functools.lru_cache(_KEPT_EXPRESSIONS)(upstream(target)))
    target = f"{_EXPRESSIONS}._tokenize"
    tokenize = functools.lru_cache(_KEPT_EXPRESSIONS)(upstream(target))
    replace(target, lambda expr: list(tokenize(expr)))
