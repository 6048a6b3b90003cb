"""Errors a user may see.

CompilegateError
├── InvalidInputError      a file or value the user gave; exit code 2
│   └── InvalidInputsError  several of them, of one or more files
├── WorkloadLockedError    another trial of the same workload is running
├── DrainedError           the deployment starts nothing until its drain is undone
├── InvalidEvidenceError   evidence that breaks its contract; exit code 13
│   └── OverwrittenEvidenceError   evidence that was written more than once
├── UnreadableRecordError  a document of a release with another schema
├── NotFoundError          a requested record does not exist
└── EnvironmentNotReadyError   a tool or stack that a command needs is missing
    └── NotDeployedError       the stage has no stack, or one without working resources
        └── NoStackError       the stage has no stack
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_SHOWN = 120
# Nobody reads more errors at once; a file this wrong is of another kind.
MOST_LISTED = 40
# Longer than any path that a person types; Linux takes 4,096 bytes.
MOST_OF_PATH = 500


class CompilegateError(Exception):
    """Base of every error with a message meant for people."""


class InvalidInputError(CompilegateError):
    """A value the user gave is wrong; the message names file, field, value and fix.

    ``written`` is the value as written in the file, and ``line`` its line, where known.
    """

    def __init__(
        self,
        problem: str,
        *,
        field: str = "",
        value: object = None,
        fix: str = "",
        file: str = "",
        line: int | None = None,
        written: str | None = None,
    ) -> None:
        self.problem, self.field, self.value, self.fix, self.file = problem, field, value, fix, file
        self.line, self.written = line, written
        super().__init__(self._text())

    def _text(self) -> str:
        place = ": ".join(part for part in (path_shown(self.file), printable(self.field)) if part)
        fix = f" Fix: {printable(self.fix)}" if self.fix else ""
        return f"{place + ': ' if place else ''}{self.problem}{self._got()}.{fix}"

    def _got(self) -> str:
        got = "" if self.value is None else f" (got {shown(self.value)})"
        if self.written is not None:
            got = f" (got {shortened(self.written)})"
        return got if self.line is None else f"{got}, line {self.line}"

    def to_dict(self) -> dict[str, object]:
        """For programs; the value as text, unknown fields None."""
        value = self.value if isinstance(self.value, str) else shown(self.value)
        text = shortened(value if self.written is None else self.written)
        return {
            "file": self.file or None,
            "field": self.field or None,
            "value": None if self.value is None and self.written is None else text,
            "problem": self.problem,
            "fix": self.fix or None,
            "line": self.line,
        }

    def in_file(
        self, file: str, *, line: int | None = None, written: str | None = None
    ) -> InvalidInputError:
        """The same error, naming the file it came from, and where in it."""
        return InvalidInputError(
            self.problem, field=self.field, value=self.value, fix=self.fix, file=file,
            line=line or self.line, written=written or self.written,
        )  # fmt: skip

    @property
    def each(self) -> tuple[InvalidInputError, ...]:
        """Every single error that this one stands for."""
        return (self,)


class InvalidInputsError(InvalidInputError):
    """Several errors of one file; field and value are those of the first."""

    def __init__(self, errors: Sequence[InvalidInputError]) -> None:
        self._errors = tuple(errors)
        first = self._errors[0]
        super().__init__(
            first.problem, field=first.field, value=first.value, fix=first.fix, file=first.file,
            line=first.line, written=first.written,
        )  # fmt: skip

    @property
    def each(self) -> tuple[InvalidInputError, ...]:
        """Every single error, in the order in which they were found."""
        return self._errors

    def _text(self) -> str:
        place = f"{self.file}: " if self.file else ""
        listed = [str(one.in_file("")) for one in self._errors[:MOST_LISTED]]
        more = len(self._errors) - len(listed)
        tail = [f"and {more} more"] if more else []
        return "\n  ".join([f"{place}{len(self._errors)} errors", *listed, *tail])

    def in_file(
        self, file: str, *, line: int | None = None, written: str | None = None
    ) -> InvalidInputError:
        """The same errors, each naming the file."""
        return InvalidInputsError(
            [one.in_file(file, line=line, written=written) for one in self._errors]
        )


def together(errors: Sequence[InvalidInputError]) -> InvalidInputError:
    """One error that stands for all of them; the error itself where it is the only one."""
    single = [one for error in errors for one in error.each]
    return single[0] if len(single) == 1 else InvalidInputsError(single)


class WorkloadLockedError(CompilegateError):
    """Another execution holds the workload's lock."""


class DrainedError(CompilegateError):
    """The deployment is drained; it starts nothing until that is undone."""


class InvalidEvidenceError(CompilegateError):
    """Evidence that does not follow the contract; it can never promote.

    ``code`` is that of the reason in the decision.
    """

    def __init__(self, message: str, *, code: str = "evidence_invalid") -> None:
        self.code = code
        super().__init__(message)


class OverwrittenEvidenceError(InvalidEvidenceError):
    """A job's output was written more than once: which of it the job left is not known."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="evidence_overwritten")


class UnreadableRecordError(CompilegateError):
    """A recorded document has a schema that this release does not read."""


class NotFoundError(CompilegateError):
    """Something that should have been recorded is not there."""


class EnvironmentNotReadyError(CompilegateError):
    """A tool, environment or stack that the command needs is missing."""


class NotDeployedError(EnvironmentNotReadyError):
    """The stage has no stack, or one without working resources."""


class NoStackError(NotDeployedError):
    """The stage has no stack."""


def lost_lease(workload: str, owner: str) -> str:
    """What a WorkloadLockedError says of an execution whose lease was taken from it."""
    return (  # the problem alone: problem.lease_lost adds the fix
        f"{owner} no longer holds {workload}: it was stopped, or its lease was released by hand"
    )


def shown(value: object) -> str:
    """A value as a message quotes it: on one short line, whatever it is."""
    try:
        return shortened(repr(value))
    except (RecursionError, ValueError):  # endless nesting, an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"


def shortened(text: str) -> str:
    """The beginning of a text, what cannot be printed written out."""
    text = printable(text)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def path_shown(path: str) -> str:
    """A path as a message names it: printable, of a very long one the end."""
    path = printable(path)
    return path if len(path) <= MOST_OF_PATH else f"…{path[-MOST_OF_PATH + 1 :]}"


def printable(text: str) -> str:
    """Text that any terminal and log can carry: control characters and such by their code."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )
