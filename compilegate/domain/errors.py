"""Errors a user may see, and how a message quotes what it is about."""

from __future__ import annotations

from collections.abc import Sequence

MOST_SHOWN = 120
# Nobody reads more errors at once; a file this wrong is of another kind.
MOST_LISTED = 40
# Longer than any path that a person types; Linux takes 4,096 bytes.
MOST_OF_PATH = 500
RESTART = "start another trial"


class CompilegateError(Exception):
    """Base of every error with a message meant for people: a problem, and what helps if known."""

    def __init__(self, problem: str = "", *, fix: str = "") -> None:
        self.problem, self.fix = problem, fix
        super().__init__(f"{problem}. Fix: {fix}" if fix else problem)


class InvalidInputError(CompilegateError):
    """A value the user gave is wrong; the message names file, field, value and fix; exit code 2.

    ``written`` is the value as written in the file, and ``line`` its line, where known. ``each``
    are the single errors that this one stands for.
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
        super().__init__(problem, fix=fix)
        self.field, self.value, self.file = field, value, file
        self.line, self.written = line, written
        self.each: tuple[InvalidInputError, ...] = (self,)

    def __str__(self) -> str:
        """File, field, problem, value, line and fix in one sentence."""
        place = ": ".join(part for part in (path_shown(self.file), printable(self.field)) if part)
        fix = f" Fix: {printable(self.fix)}" if self.fix else ""
        got = "" if self.value is None else f" (got {shown(self.value)})"
        if self.written is not None:
            got = f" (got {shortened(self.written)})"
        line = "" if self.line is None else f", line {self.line}"
        return f"{place + ': ' if place else ''}{self.problem}{got}{line}.{fix}"

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
        return together([
            InvalidInputError(
                one.problem, field=one.field, value=one.value, fix=one.fix, file=file,
                line=line or one.line, written=written or one.written,
            )
            for one in self.each
        ])  # fmt: skip


class InvalidInputsError(InvalidInputError):
    """Several errors of one file; field and value are those of the first."""

    def __init__(self, errors: Sequence[InvalidInputError]) -> None:
        first = errors[0]
        super().__init__(
            first.problem, field=first.field, value=first.value, fix=first.fix, file=first.file,
            line=first.line, written=first.written,
        )  # fmt: skip
        self.each = tuple(errors)

    def __str__(self) -> str:
        """Each on a line of its own, below the file's name."""
        place = f"{self.file}: " if self.file else ""
        listed = [str(one.in_file("")) for one in self.each[:MOST_LISTED]]
        more = len(self.each) - len(listed)
        tail = [f"and {more} more"] if more else []
        return "\n  ".join([f"{place}{len(self.each)} errors", *listed, *tail])


def together(errors: Sequence[InvalidInputError]) -> InvalidInputError:
    """One error that stands for all of them; the error itself where it is the only one."""
    single = [one for error in errors for one in error.each]
    return single[0] if len(single) == 1 else InvalidInputsError(single)


class WorkloadLockedError(CompilegateError):
    """Another execution holds the workload's lock."""


class DrainedError(CompilegateError):
    """The deployment is drained; it starts nothing until that is undone."""


class InvalidEvidenceError(CompilegateError):
    """Evidence that does not follow the contract; it can never promote. Exit code 13.

    ``code`` is that of the reason in the decision.
    """

    code = "evidence_invalid"


class OverwrittenEvidenceError(InvalidEvidenceError):
    """A job's output was written more than once: which of it the job left is not known."""

    code = "evidence_overwritten"


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


def lock_lost(workload: str, owner: str) -> WorkloadLockedError:
    """The error of an execution whose lock was taken from it."""
    problem = (
        f"{owner} no longer holds {workload}: it was stopped, or its lock was released by hand"
    )
    return WorkloadLockedError(problem, fix=RESTART)


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
