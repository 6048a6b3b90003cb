"""Makes the emulator's Lambda functions see and report what they do on AWS."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from compilegate.localcloud.emulator.replacements import replace, upstream

_EXECUTE = "ministack.services.lambda_svc._execute_function_warm"
_INIT_FAILED = "Worker init failed: "
_ERROR_LINE = re.compile(r"([A-Za-z_][\w.]*)(:|$)")


def install() -> None:
    """Give workers the runtime's packages only, see lambda_site, and errors the names AWS uses."""
    os.environ["PYTHONPATH"] = str(Path(__file__).with_name("lambda_site"))
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
