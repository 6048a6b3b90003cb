"""What the emulator's Lambda must do differently; each change with its reason.

Pinned to ministack 1.5.33, whose functions are looked up as module globals at every call.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

_INIT_FAILED = "Worker init failed: "
_ERROR_LINE = re.compile(r"([A-Za-z_][\w.]*)(:|$)")


def install() -> None:
    """Apply every change."""
    _isolate_workers()
    _report_exception_class()
    _report_import_errors()


def _isolate_workers() -> None:
    """Workers inherit the environment and get the runtime's packages only, see lambda_site."""
    os.environ["PYTHONPATH"] = str(Path(__file__).with_name("lambda_site"))


def _report_exception_class() -> None:
    """AWS names the exception's class as errorType; the emulator always says HandlerError.

    Retry and Catch of a state machine match on that name.
    """
    from ministack.services import lambda_svc  # noqa: PLC0415

    original = lambda_svc._execute_function_warm

    def execute(*arguments: Any, **named: Any) -> Any:
        answer = original(*arguments, **named)
        body = answer.get("body")
        unnamed = isinstance(body, dict) and body.get("errorType") == "Runtime.HandlerError"
        if answer.get("error") and unnamed:
            trace = [line for line in (answer.get("log") or "").splitlines() if line]
            body["errorType"] = _class_of(trace) or body["errorType"]
            body["stackTrace"] = [line for line in trace if line.startswith("  ")]
        return answer

    lambda_svc._execute_function_warm = execute


def _report_import_errors() -> None:
    """AWS says Runtime.ImportModuleError and logs it; the emulator a RuntimeError, unlogged."""
    from ministack.services import lambda_svc  # noqa: PLC0415

    original = lambda_svc._execute_function_warm

    def execute(*arguments: Any, **named: Any) -> Any:
        answer = original(*arguments, **named)
        body = answer.get("body")
        message = body.get("errorMessage") if isinstance(body, dict) else None
        if answer.get("error") and isinstance(message, str) and message.startswith(_INIT_FAILED):
            told = f"Unable to import module: {message.removeprefix(_INIT_FAILED)}"
            body.update(errorType="Runtime.ImportModuleError", errorMessage=told)
            answer["log"] = f"[ERROR] Runtime.ImportModuleError: {told}"
        return answer

    lambda_svc._execute_function_warm = execute


def _class_of(trace: list[str]) -> str | None:
    """The exception's class without its module, from the last line that names one."""
    for line in reversed(trace):
        match = _ERROR_LINE.match(line)
        if match and not line.startswith((" ", "Traceback")):
            return match.group(1).rsplit(".", 1)[-1]
    return None
