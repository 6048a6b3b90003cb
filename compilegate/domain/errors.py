"""Errors a user may see, and texts that can be shown whatever they are of."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

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


def lease_lost(workload: str, owner: str) -> WorkloadLockedError:
    """The error of an execution whose lease was taken from it."""
    problem = (
        f"{owner} no longer holds {workload}: it was stopped, or its lease was released by hand"
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


# What comes from outside is taken by value: text that can be shown, figures that can be kept.
#
# A training job's files, a team's tags and the service's own words may hold anything. Text enters a
# record through ``shorten`` or ``plain``, a document through ``read_json``; reasons, pages and
# messages show it through ``visible``.

# Characters of a sentence, and of any other value: a packed set of outcomes has 1,368
# (domain/judging/evidence.py).
REASON_MAX, VALUE_MAX = 1000, 4096
# Control characters but line breaks and tabs, halves of a character, marks that turn the direction
# of text or take no space (Unicode 15, general categories Cc, Cs, Cf, Zl, Zp).
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
# Levels of a document: the deepest that is read, a mapping in a section of a summary, has four.
DEPTH_MAX = 12
# Most readers of JSON keep whole numbers up to here only.
LARGEST_WHOLE = 2**64
# What reading a broken file of another kind may raise; a lost connection is none of them.
BROKEN = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError)


def shorten(text: str) -> str:
    """Text as one line that fits a record; its end is kept, where errors say what happened."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= REASON_MAX else "… " + text[-(REASON_MAX - 2) :]


def visible(text: str) -> str:
    """Text of several lines with what would act instead of being shown by its code."""
    return text if text.isascii() and text.isprintable() else _ACTS.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "backslashreplace").decode()


def read_json(body: bytes, what: str) -> Any:
    """The document of a job's file as ``plain`` has it; raises InvalidEvidenceError."""
    try:
        return plain(json.loads(body, object_pairs_hook=once))
    except (ValueError, RecursionError, InvalidEvidenceError) as error:
        raise InvalidEvidenceError(f"{what} is broken: {shorten(str(error))}") from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON document; raises InvalidEvidenceError where a key occurs twice.

    Which of the two was meant is not known, and readers differ in which one they take.
    """
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidEvidenceError(f"the key {shown(twice)} occurs twice")
    return document


def plain(value: Any, depth: int = DEPTH_MAX) -> Any:
    """A JSON value with nothing that cannot be shown, computed or stored.

    Numbers that are not finite or too large are None, because no figure was recorded. Raises
    ValueError for a document that is nested too deeply.
    """
    if depth < 0:
        raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, str):
        return printable(value[:VALUE_MAX])[:VALUE_MAX]
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    return value if value is None or is_figure(value) else None


def is_figure(value: object) -> bool:
    """Whether it is a number that can be computed with; true and false are, too."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= LARGEST_WHOLE
