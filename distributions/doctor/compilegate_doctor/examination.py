"""Applies the rules to one script."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from compilegate_doctor.finding import (
    MANAGED_COMPILER,
    TORCH_COMPILE,
    Finding,
    Hit,
    Place,
)
from compilegate_doctor.observed import Observed
from compilegate_doctor.rule import Rule
from compilegate_doctor.rules import RULES
from compilegate_doctor.script import FLATTEN, NESTED, Script, ScriptError, parse
from compilegate_doctor.trainers import takes_arguments

# ``# compilegate: ignore[rule-id] reason`` on a line, or alone on the line above.
MARK = re.compile(r"#\s*compilegate:\s*ignore\[(?P<rules>[a-z0-9, *-]+)\]", re.IGNORECASE)
EVERY_RULE = "*"
NOT_SEEN = (
    "The trainer's settings come from the command line. Give the workload file instead of the "
    "script, and its hyperparameters are read too."
)


@dataclass(frozen=True)
class Examination:
    """The findings of one file; ``not_seen`` says what could not be examined."""

    file: str
    compilers: tuple[str, ...]
    is_training: bool
    findings: tuple[Finding, ...]
    suppressed: int
    not_seen: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """The examination as JSON."""
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
    hyperparameters: Mapping[str, Any] | None = None,
    observed: Observed | None = None,
) -> Examination:
    """Examine one Python file; without ``compilers`` its imports say which ones it is for.

    A compiler that no rule names is examined by the rules that hold for every compiler.
    ``hyperparameters`` are those it is started with, None where they are not known. What was
    ``observed`` of a run goes before what is read. Raises ScriptError for a file that is not
    Python.
    """
    with _naming(file):
        script = parse(content, hyperparameters)
    return examine_script(script, file, compilers=compilers, observed=observed)


def examine_script(
    script: Script, file: str, *, compilers: Iterable[str] = (), observed: Observed | None = None
) -> Examination:
    """As ``examine``, of what has been parsed."""
    with _naming(file):
        chosen = tuple(compilers) or intended_compilers(script)
        if not script.is_training:
            return Examination(file, chosen, False, (), 0, ())
        findings = list(_findings(script, chosen, observed))
    marks = _suppressions(script.text)
    kept = tuple(finding for finding in findings if not _ignored(finding, marks))
    blind = script.hyperparameters is None and any(map(takes_arguments, script.calls))
    return Examination(
        file, chosen, True, kept, len(findings) - len(kept), (NOT_SEEN,) if blind else ()
    )


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """What is wrong with a script names its file."""
    try:
        yield
    except ScriptError as error:
        raise ScriptError(error.problem, fix=error.fix, place=error.place, file=file) from error
    except RecursionError as error:
        raise ScriptError(NESTED, fix=FLATTEN, file=file) from error


def intended_compilers(script: Script) -> tuple[str, ...]:
    """The compilers that a script is written for."""
    if not script.uses("torch") and script.uses("tensorflow", "keras"):
        return (MANAGED_COMPILER,)
    if script.uses("torch_xla"):
        return (TORCH_COMPILE, MANAGED_COMPILER)
    return (TORCH_COMPILE,)


def _findings(
    script: Script, compilers: tuple[str, ...], observed: Observed | None
) -> Iterator[Finding]:
    for rule in RULES:
        if not rule.matters_to(compilers):
            continue
        hits = [hit for hit in rule.check(script) if not script.unreached(hit.node)]
        shown = hits if observed is None else observed.corrected(script, rule.id, hits)
        distinct = {_finding(script, rule, hit): None for hit in shown}
        yield from sorted(distinct, key=lambda finding: (finding.place.line, finding.place.column))


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


def _suppressions(text: str) -> Mapping[int, frozenset[str]]:
    """The rules that are not to be reported, by line; ``*`` stands for all of them."""
    by_line: dict[int, frozenset[str]] = {}
    if "compilegate" not in text:
        return by_line
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.COMMENT:
                continue
            mark = MARK.search(token.string)
            if mark:
                rules = frozenset(item.strip().lower() for item in mark["rules"].split(","))
                alone = not token.line[: token.start[1]].strip()
                line = token.start[0] + (1 if alone else 0)
                by_line[line] = by_line.get(line, frozenset()) | rules
    except (tokenize.TokenError, SyntaxError):
        return by_line  # what the parser took and the tokenizer does not: keep what was read
    return by_line


def _ignored(finding: Finding, marks: Mapping[int, frozenset[str]]) -> bool:
    lines = range(finding.place.line, finding.place.end_line + 1)
    rules = frozenset().union(*(marks.get(line, frozenset()) for line in lines))
    return finding.rule in rules or EVERY_RULE in rules
