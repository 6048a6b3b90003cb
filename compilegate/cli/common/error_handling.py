"""Turns errors into one message without a traceback, and into an exit code.

Exit codes (contract): 0 promote or eligible, 10 stay_off or ineligible, 11 inconclusive,
continue or benchmark, 12 revert, 13 invalid evidence, 2 bad input, 1 failure, 130 Ctrl-C,
141 where the reader of the output has gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from compilegate.adapters.clients import error_code
from compilegate.cli.common.output import emit_json, error_text
from compilegate.cli.common.session import Session
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError, InvalidInputError
from compilegate.domain.outside import shorten
from compilegate.localcloud.errors import LocalCloudError

FAILURE = 1
BAD_INPUT = 2
INVALID_EVIDENCE = 13
STOPPED = 130
# 128 + SIGPIPE: what a shell reports of cat, grep or git in `cat … | head`. Never a verdict's code,
# because what was not printed to its end was not read to its end.
READER_GONE = 141
DEBUG_VARIABLE = "COMPILEGATE_DEBUG"


class ErrorHandlingGroup(TyperGroup):
    """The root command; turns errors into one message and the contract's exit code."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the command line, which prints help and version."""
        with ending_without_reader():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:  # typer keeps the context's class to itself
        """Run the command."""
        with ending_without_reader(), _explained_errors(ctx):
            return super().invoke(ctx)


@contextmanager
def ending_without_reader() -> Iterator[None]:
    """Ends the command quietly where what it prints is read no further, as by ``head``.

    https://docs.python.org/3/library/signal.html#note-on-sigpipe
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here a failure can still be told from the command's own
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # another failure at exit would be noise
            with suppress(OSError):  # a stream in memory
                os.dup2(nowhere, stream.fileno())
        raise typer.Exit(READER_GONE) from None


@contextmanager
def _explained_errors(ctx: Any) -> Iterator[None]:
    try:
        yield
    except (typer.Exit, typer.TyperException, BrokenPipeError):
        raise
    except (KeyboardInterrupt, typer.Abort):  # Abort: Ctrl-C where a question is asked
        typer.echo("Stopped.", err=True)
        raise typer.Exit(STOPPED) from None
    except Exception as error:
        if _debugging(ctx):
            raise
        typer.echo(error_text(explain(error)), err=True)
        invoked = ctx.find_object(Session)
        if invoked is not None and invoked.as_json and isinstance(error, InvalidInputError):
            emit_json(error_document(error))
        raise typer.Exit(exit_code(error)) from None


def error_document(error: InvalidInputError) -> dict[str, object]:
    """For ``--json``: the first error, and every one."""
    return {"error": error.to_dict(), "errors": [one.to_dict() for one in error.each]}


def exit_code(error: Exception) -> int:
    """The contract's exit code of an error."""
    if isinstance(error, InvalidInputError):
        return BAD_INPUT
    return INVALID_EVIDENCE if isinstance(error, InvalidEvidenceError) else FAILURE


def worst_exit_code(codes: Collection[int]) -> int:
    """One exit code for several: a failure, bad input, else the highest."""
    return next((code for code in (FAILURE, BAD_INPUT) if code in codes), max(codes, default=0))


def explain(error: Exception) -> str:
    """One message for people; an unforeseen error names the switch that shows its traceback."""
    if isinstance(error, CompilegateError | LocalCloudError):
        return str(error)
    if message := _explain_aws(error):
        return message
    text = shorten(str(error))
    return f"{type(error).__name__}: {text}\nFor a traceback: compilegate --debug …"


def _explain_aws(error: Exception) -> str | None:
    """A botocore error's meaning, by class name so that botocore need not be imported."""
    name, code = type(error).__name__, error_code(error)
    if name in ("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError") or (
        name.startswith(("SSO", "UnauthorizedSSO"))
    ):
        return (
            f"there are no usable AWS credentials ({error}). Fix: run `aws configure` or "
            "`aws sso login`, or set AWS_PROFILE; without an account use --local"
        )
    if name == "ProfileNotFound":
        return f"{error}. Fix: correct AWS_PROFILE"
    if name in ("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError"):
        return f"{error}. Fix: check the network and AWS_REGION, then rerun the command"
    if code in ("ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId",
                "UnrecognizedClientException", "RequestExpired"):  # fmt: skip
        return (
            f"AWS does not accept the credentials ({code}). Fix: renew them and rerun the command"
        )
    if code.startswith("AccessDenied"):
        return f"the credentials lack a permission: {error}. Fix: use a role that has it"
    return f"AWS refused the request: {error}" if name == "ClientError" else None


def _debugging(ctx: Any) -> bool:
    current = ctx.find_object(Session)
    from_environment = os.environ.get(DEBUG_VARIABLE, "").lower() not in ("", "0", "false")
    return from_environment or (current is not None and current.debug)
