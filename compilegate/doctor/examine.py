"""Applies the rules to one script."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.doctor.finding import (
    MANAGED_COMPILER,
    TORCH_COMPILE,
    Finding,
    Hit,
    Place,
)
from compilegate.doctor.rule import Rule
from compilegate.doctor.rules import RULES
from compilegate.doctor.script import Script, parse
from compilegate.doctor.suppressions import EVERY_RULE, suppressions
from compilegate.doctor.trainers import takes_arguments
from compilegate.domain.errors import InvalidInputError

NOT_SEEN = (
    "The trainer's settings come from the command line. Give the workload file instead of the "
    "script, and its hyperparameters are looked at too."
)


@dataclass(frozen=True)
class Examination:
    """What was found in one file; ``not_seen`` says what could not be looked at."""

    file: str
    compilers: tuple[str, ...]
    is_training: bool
    findings: tuple[Finding, ...]
    suppressed: int
    not_seen: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """The examination as JSON has it."""
        return {
            "file": self.file, "compilers": list(self.compilers),
            "is_training": self.is_training,
            "findings": [finding.to_dict() for finding in self.findings],
            "suppressed": self.suppressed, "not_seen": list(self.not_seen),
        }  # fmt: skip


def examine(
    content: bytes,
    file: str,
    *,
    compilers: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
) -> Examination:
    """Look at one Python file; without ``compilers`` its imports say which are meant.

    ``given`` are the hyperparameters it is started with. Raises InvalidInputError naming file and
    line for what is no Python.
    """
    try:
        script = parse(content, given)
        chosen = tuple(compilers) or meant(script)
        if not script.is_training:
            return Examination(file, chosen, False, (), 0, ())
        found = list(_findings(script, chosen))
    except InvalidInputError as error:
        raise error.in_file(file) from error
    except RecursionError as error:
        raise InvalidInputError(
            "is nested too deeply to be read", file=file, fix="write it flatter"
        ) from error
    marks = suppressions(script.text)
    kept = tuple(finding for finding in found if not _ignored(finding, marks))
    unseen = NOT_SEEN if given is None and any(map(takes_arguments, script.calls)) else None
    return Examination(
        file, chosen, True, kept, len(found) - len(kept), (unseen,) if unseen else ()
    )


def meant(script: Script) -> tuple[str, ...]:
    """The compilers that a script is written for."""
    if not script.uses("torch") and script.uses("tensorflow", "keras"):
        return (MANAGED_COMPILER,)
    if script.uses("torch_xla"):
        return (TORCH_COMPILE, MANAGED_COMPILER)
    return (TORCH_COMPILE,)


def _findings(script: Script, compilers: tuple[str, ...]) -> Iterator[Finding]:
    for rule in RULES:
        if set(rule.compilers).isdisjoint(compilers):
            continue
        found = {_finding(script, rule, hit): None
                 for hit in rule.check(script) if not script.unreached(hit.node)}  # fmt: skip
        yield from sorted(found, key=lambda finding: (finding.place.line, finding.place.column))


def _finding(script: Script, rule: Rule, hit: Hit) -> Finding:
    place = _place(script, hit.node)
    return Finding(
        rule=rule.id,
        severity=hit.severity or rule.severity,
        place=place,
        source=_line(script, place.line).strip(),
        message=hit.message,
        fix=hit.fix or rule.fix,
    )


def _place(script: Script, node: ast.AST) -> Place:
    line = getattr(node, "lineno", 1)
    column = _column(script, line, getattr(node, "col_offset", 0))
    if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.If):
        return Place(line, column, line, len(_line(script, line)) + 1)  # its head, not its body
    end = getattr(node, "end_lineno", None) or line
    return Place(line, column, end, _column(script, end, getattr(node, "end_col_offset", 0)))


def _line(script: Script, number: int) -> str:
    return script.lines[number - 1] if number <= len(script.lines) else ""


def _column(script: Script, line: int, offset: int) -> int:
    """The parser counts bytes, readers count characters."""
    return len(_line(script, line).encode(errors="replace")[:offset].decode(errors="replace")) + 1


def _ignored(finding: Finding, marks: Mapping[int, frozenset[str]]) -> bool:
    lines = range(finding.place.line, finding.place.end_line + 1)
    rules = frozenset().union(*(marks.get(line, frozenset()) for line in lines))
    return finding.rule in rules or EVERY_RULE in rules
