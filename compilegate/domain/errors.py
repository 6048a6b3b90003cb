"""Errors a user may see.

CompilegateError
├── InvalidInputError      a file or value the user gave; exit code 2
├── WorkloadLockedError    another trial of the same workload is running
├── InvalidEvidenceError   evidence that breaks its contract; exit code 13
├── NotFoundError          something recorded was asked for and is not there
└── EnvironmentNotReadyError   a tool or stack that a command needs is missing
"""

from __future__ import annotations


class CompilegateError(Exception):
    """Base of every error with a message meant for people."""


class InvalidInputError(CompilegateError):
    """A value the user gave is wrong; the message names file, field, value and fix."""

    def __init__(
        self, problem: str, *, field: str = "", value: object = None, fix: str = "", file: str = ""
    ) -> None:
        self.problem, self.field, self.value, self.fix, self.file = problem, field, value, fix, file
        super().__init__(self._text())

    def _text(self) -> str:
        place = ": ".join(part for part in (self.file, self.field) if part)
        got = "" if self.value is None else f" (got {self.value!r})"
        fix = f" Fix: {self.fix}" if self.fix else ""
        return f"{place + ': ' if place else ''}{self.problem}{got}.{fix}"

    def in_file(self, file: str) -> InvalidInputError:
        """The same error, naming the file it came from."""
        return InvalidInputError(
            self.problem, field=self.field, value=self.value, fix=self.fix, file=file
        )


class WorkloadLockedError(CompilegateError):
    """Another execution holds the workload's lock."""


class InvalidEvidenceError(CompilegateError):
    """Evidence that does not follow the contract; it can never promote."""


class NotFoundError(CompilegateError):
    """Something that should have been recorded is not there."""


class EnvironmentNotReadyError(CompilegateError):
    """A tool, environment or stack that the command needs is missing."""
