"""What ministack's permission checks lack and the deployed app's policies need.

- Policy variables, such as ``${aws:PrincipalTag/NAME}``, in resources and conditions.
- The path of an IAM role in its ARN, and the condition keys of calls that make roles.
- The partition keys that a call of DynamoDB is about, where a table has them as ``pk``.
- Secure transport: every request comes over the loopback interface and leaves no machine, so a
  policy that demands TLS treats it as secure. There is no TLS to negotiate a version of.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from compilegate_localcloud.emulator.clients import service_description
from compilegate_localcloud.emulator.replacements import replace, upstream

_FIRST_MATCH = "ministack.core.iam_evaluator._first_match"
_RESOURCE_ARN = "ministack.core.iam_actions.extract_resource_arn"
_REQUEST_KEYS = "ministack.core.iam_actions.request_tag_context"
_MODEL = "ministack.core.iam_actions._load_botocore_model"
_ORIGIN = "ministack.app.pin_request_origin"
_STREAM = b'"logStreamName"'
_EQUALS = re.compile(r"pk = (:\w+)")
_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def install(record: Path) -> None:
    """Put them in; after the services, whose resources are named first.

    Every kind of call that a role's policies were asked about is a line of ``record``, which is
    written only where permissions are enforced.
    """
    _resolve_variables(_Recorder(record))
    _name_resources()
    _add_condition_keys()
    replace(_MODEL, service_description)
    origin = upstream(_ORIGIN)

    def pin_request_origin(source_ip: str, _secure_transport: bool) -> None:
        origin(source_ip, True)

    replace(_ORIGIN, pin_request_origin)


class _Recorder:
    """Writes each call once: role, action, resource, and the condition keys of both."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._written: set[str] = set()

    def add(self, ctx: Any) -> None:
        """Write the call that ``ctx`` is about, unless it was written before."""
        if ":assumed-role/" not in ctx.principal_arn:
            return
        call = {
            "role": ctx.principal_arn.split("/")[1],
            "action": ctx.action,
            "resource": ctx.resource_arn,
            "keys": {**ctx.service_context, **ctx.principal_keys},
        }
        line = json.dumps(call, sort_keys=True, default=str)
        with self._lock:
            if line not in self._written:
                self._written.add(line)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")


def _resolve_variables(recorder: _Recorder) -> None:
    from ministack.core.iam_evaluator import _action_matches  # noqa: PLC0415

    original = upstream(_FIRST_MATCH)

    def first_match(ctx: Any, stmts: list[Any], effect: str) -> Any:
        if effect == "Allow":
            recorder.add(ctx)
        asked = [
            _resolved(one, ctx)
            for one in stmts
            if one.effect == effect and _action_matches(ctx.action, one.actions, one.not_actions)
        ]
        return original(ctx, asked, effect)

    replace(_FIRST_MATCH, first_match)


def _resolved(statement: Any, ctx: Any) -> Any:
    """The statement with its variables' values; one without a value stays and matches nothing."""
    from ministack.core.iam_evaluator import _resolve_condition_key  # noqa: PLC0415

    def value_of(match: re.Match[str]) -> str:
        value = _resolve_condition_key(match[1], ctx)
        return match[0] if value is None else str(value)

    def with_values(part: Any) -> Any:
        if isinstance(part, str):
            return _VARIABLE.sub(value_of, part)
        if isinstance(part, dict):
            return {key: with_values(item) for key, item in part.items()}
        return [with_values(item) for item in part] if isinstance(part, list) else part

    return changed(
        statement,
        resources=with_values(statement.resources),
        not_resources=with_values(statement.not_resources),
        conditions=with_values(statement.conditions),
    )


def _name_resources() -> None:
    """ministack names a role without its path, and of a log stream its group alone."""
    original = upstream(_RESOURCE_ARN)

    def resource_arn(service: str, *arguments: Any) -> Any:
        arn = original(service, *arguments)
        if service == "logs" and _STREAM in (arguments[3] or b""):
            stream = json.loads(arguments[3]).get("logStreamName")
            writes = arguments[2].get("x-amz-target", "").endswith(".PutLogEvents")
            return f"{arn}:log-stream:{stream}" if stream and writes else arn
        if service != "iam" or ":role/" not in arn:
            return arn
        role = _role(arn.rpartition("/")[2])
        if role is not None:
            return role["Arn"]
        path = _parameter(arguments[4], "Path") or "/"
        return arn.replace(":role/", f":role{path}", 1)

    replace(_RESOURCE_ARN, resource_arn)


def _add_condition_keys() -> None:
    """Those of actions on roles and items (Service Authorization Reference, IAM, DynamoDB)."""
    original = upstream(_REQUEST_KEYS)

    def request_tag_context(
        service: str, iam_action: str, body: bytes, params: dict[str, Any]
    ) -> dict[str, Any]:
        keys: dict[str, Any] = original(service, iam_action, body, params)
        if service == "dynamodb":
            return {**keys, **_leading_keys(json.loads(body or b"{}"))}
        if service != "iam":
            return keys
        role = _role(_parameter(params, "RoleName")) or {}
        boundary = _parameter(params, "PermissionsBoundary") or role.get("PermissionsBoundary")
        named = {
            "iam:PermissionsBoundary": boundary,
            "iam:PolicyARN": _parameter(params, "PolicyArn"),
        }
        return {**keys, **{key: value for key, value in named.items() if value}}

    replace(_REQUEST_KEYS, request_tag_context)


def _leading_keys(request: dict[str, Any]) -> dict[str, list[str]]:
    """The partition keys of the items that a request is about."""
    item = request.get("Key") or request.get("Item") or {}
    equals = _EQUALS.search(str(request.get("KeyConditionExpression", "")))
    values = request.get("ExpressionAttributeValues", {})
    key = item.get("pk") or (equals and values.get(equals[1])) or {}
    tables = (request.get("RequestItems") or {}).values()
    many = [one["pk"] for table in tables for one in table.get("Keys", ())]
    keys = [str(one["S"]) for one in (key, *many) if "S" in one]
    return {"dynamodb:LeadingKeys": keys} if keys else {}


def _role(name: str) -> dict[str, Any] | None:
    from ministack.services import iam  # noqa: PLC0415 - reads its environment when imported

    role: dict[str, Any] | None = iam._roles.get(name)
    return role


def _parameter(parameters: dict[str, Any], name: str) -> str:
    """A parameter of the query protocol, empty where it is not there."""
    value = parameters.get(name) or ""
    return str(value[0]) if isinstance(value, list) else str(value)
