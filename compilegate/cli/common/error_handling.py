"""Turns errors into one message without a traceback, and into an exit code.

Exit codes (contract): 0 promote or eligible, 10 stay_off or ineligible, 11 inconclusive,
continue or benchmark, 12 revert, 13 invalid evidence, 2 bad input, 1 failure, 130 Ctrl-C,
141 where the reader of the output has gone.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any, TextIO

import typer

from compilegate.adapters.stores import error_code
from compilegate.adapters.workload_files import unwritten
from compilegate.cli.common.help_layout import WIDEST, CommandGroup
from compilegate.cli.common.output import emit_json, error_text
from compilegate.cli.common.session import Session
from compilegate.domain.errors import (
    CompilegateError,
    DrainedError,
    EnvironmentNotReadyError,
    InvalidEvidenceError,
    InvalidInputError,
    NotFoundError,
    UnreadableRecordError,
    WorkloadLockedError,
)
from compilegate.domain.outside import shorten

FAILURE = 1
BAD_INPUT = 2
INVALID_EVIDENCE = 13
STOPPED = 130
# 128 + SIGPIPE: what a shell reports of cat, grep or git in `cat … | head`. Never a verdict's code,
# because what was not printed to its end was not read to its end.
READER_GONE = 141
# A full disk, a quota, a limit of a file's size, a disk that takes no writing.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
EMBEDDED_CLOUD = "compilegate_localcloud"
DEBUG_VARIABLE = "COMPILEGATE_DEBUG"
# An error's ``kind`` for programs; the others are aws and unexpected.
KINDS = {
    InvalidInputError: "bad_input",
    InvalidEvidenceError: "invalid_evidence",
    NotFoundError: "not_found",
    WorkloadLockedError: "locked",
    DrainedError: "drained",
    UnreadableRecordError: "unreadable_record",
    EnvironmentNotReadyError: "not_ready",
    CompilegateError: "failure",
}
# What an error of botocore means and what helps, by its class and AWS's code. Classes by their
# names, so that botocore need not be imported.
AWS = (
    ("(NoCredentials|PartialCredentials|TokenRetrieval)Error.*|(Unauthorized)?SSO.*",
     "there are no usable AWS credentials ({error})",
     "run `aws configure` or `aws sso login`, or set AWS_PROFILE; without an account use --local"),
    ("ProfileNotFound.*", "{error}", "correct AWS_PROFILE"),
    ("(EndpointConnection|ConnectTimeout|ReadTimeout)Error.*", "{error}",
     "check the network and AWS_REGION, then rerun the command"),
    (".* (ExpiredToken(Exception)?|InvalidClientTokenId|UnrecognizedClientException"
     "|RequestExpired)",
     "AWS does not accept the credentials ({code})", "renew them and rerun the command"),
    (".* AccessDenied.*", "the credentials lack a permission: {error}", "use a role that has it"),
    ("ClientError.*", "AWS refused the request: {error}", ""),
)  # fmt: skip


class ErrorHandlingGroup(CommandGroup):
    """The root command; turns errors into one message and the contract's exit code."""

    _arguments: Sequence[str] = ()

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **options: Any
    ) -> Any:
        """Parse the command line, which prints help and version."""
        self._arguments = tuple(args)  # parsing takes them out of the list
        # Columns of help: the terminal's, at most 78.
        width = min(shutil.get_terminal_size().columns, WIDEST) - 2
        options.setdefault("terminal_width", width)
        with ending_without_reader(), self._explained_errors():
            return super().make_context(info_name, args, parent, **options)

    def invoke(self, ctx: Any) -> Any:  # typer keeps the context's class to itself
        """Run the command."""
        with ending_without_reader(), self._explained_errors(ctx):
            return super().invoke(ctx)

    @contextmanager
    def _explained_errors(self, ctx: Any = None) -> Iterator[None]:
        try:
            yield
        except (typer.Exit, BrokenPipeError):
            raise
        except typer.TyperException as error:  # a wrong command line; typer says so
            self._emit(error)
            raise
        except (KeyboardInterrupt, typer.Abort):  # Abort: Ctrl-C where a question is asked
            typer.echo("Stopped.", err=True)
            raise typer.Exit(STOPPED) from None
        except Exception as error:
            session = None if ctx is None else ctx.find_object(Session)
            variable = os.environ.get(DEBUG_VARIABLE, "").lower()
            if variable not in ("", "0", "false") or (session and session.debug):
                raise
            typer.echo(error_text(str(explain(error))), err=True)
            self._emit(error)
            raise typer.Exit(exit_code(error)) from None

    def _emit(self, error: Exception) -> None:
        """The error as a document, where one is asked for: also before options are parsed."""
        options = takewhile(lambda word: word != "--", self._arguments)
        if has_no_room(error):
            _send_nowhere(sys.stdout)  # more would fail as well
        elif "--json" in options:
            emit_json(error_document(error))


@contextmanager
def ending_without_reader() -> Iterator[None]:
    """Ends the command quietly where what it prints is read no further, as by ``head``.

    https://docs.python.org/3/library/signal.html#note-on-sigpipe
    """
    try:
        try:
            yield
        finally:
            _flush()  # here a failure can still be told from the command's own
    except BrokenPipeError:
        _send_nowhere(sys.stdout, sys.stderr)
        raise typer.Exit(READER_GONE) from None


def _flush() -> None:
    """Write what is printed; where there is no room for it, the command has failed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if not has_no_room(error):
            raise
        _send_nowhere(sys.stdout)
        typer.echo(error_text(str(explain(error))), err=True)
        raise typer.Exit(FAILURE) from None


def _send_nowhere(*streams: TextIO) -> None:
    """Another failure of these at exit would be noise."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with suppress(OSError):  # a stream in memory
            os.dup2(nowhere, stream.fileno())


def has_no_room(error: Exception) -> bool:
    """Whether a file or the output could not take what was written, as on a full disk."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


def error_document(error: Exception) -> dict[str, object]:
    """For ``--json``: the first error, and every one."""
    each = [error_fields(one) for one in getattr(error, "each", (error,))]
    return {"error": each[0], "errors": each}


def error_fields(error: Exception) -> dict[str, object]:
    """One error; ``kind`` is what a program may rely on, None stands for what does not apply."""
    if isinstance(error, InvalidInputError):
        return {**error.to_dict(), "kind": "bad_input"}
    unknown = dict.fromkeys(("file", "field", "value", "problem", "fix", "line"))
    if isinstance(error, typer.TyperException):
        return {**unknown, "problem": error.format_message(), "kind": "bad_input"}
    kind, said = _kind_and_explained(error)
    fix = said.fix.removesuffix(".") or None
    return {**unknown, "problem": said.problem, "fix": fix, "kind": kind}


def exit_code(error: Exception) -> int:
    """The contract's exit code of an error."""
    if isinstance(error, InvalidInputError):
        return BAD_INPUT
    return INVALID_EVIDENCE if isinstance(error, InvalidEvidenceError) else FAILURE


def worst_exit_code(codes: Collection[int]) -> int:
    """One exit code for several: a failure, bad input, else the highest."""
    return next((code for code in (FAILURE, BAD_INPUT) if code in codes), max(codes, default=0))


def explain(error: Exception) -> CompilegateError:
    """The error for people; an unforeseen one names the switch that shows its traceback."""
    return _kind_and_explained(error)[1]


def _kind_and_explained(error: Any) -> tuple[str, CompilegateError]:
    kind = next((name for of, name in KINDS.items() if isinstance(error, of)), None)
    if kind:
        return kind, error
    # By the module's name: a package that need not be installed.
    if type(error).__module__ == f"{EMBEDDED_CLOUD}.errors":
        return "not_ready", CompilegateError(str(error.problem), fix=error.fix or "")
    if isinstance(error, ModuleNotFoundError) and error.name == EMBEDDED_CLOUD:
        problem = "The package compilegate-localcloud is not installed"
        return "not_ready", CompilegateError(problem, fix="pip install 'compilegate[local]'.")
    if has_no_room(error):
        return "not_ready", unwritten(str(error.filename or "the output"), error)
    name, code = type(error).__name__, error_code(error)
    for pattern, problem, fix in AWS:
        if re.fullmatch(pattern, f"{name} {code}"):
            return "aws", CompilegateError(problem.format(error=error, code=code), fix=fix)
    text = f"{name}: {shorten(str(error))}"
    return "unexpected", CompilegateError(f"{text}\nFor a traceback: compilegate --debug …")
