"""Shows the doctor's findings at the terminal, file by file, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.text import Text

from compilegate.cli.common.output import console, say
from compilegate.doctor import BY_ID, Examination, Finding, Severity
from compilegate.domain.formats import plural

STYLES = {Severity.BREAKS: "red", Severity.SLOWS: "yellow", Severity.NOTE: "cyan"}
WORDS = {
    Severity.BREAKS: ("breaks it", "break it"),
    Severity.SLOWS: ("slows it", "slow it"),
    Severity.NOTE: ("note", "notes"),
}


def show(examinations: Sequence[Examination], unreadable: Mapping[str, str]) -> None:
    """Every file with findings, then the unreadable files, then a count."""
    trained = [item for item in examinations if item.is_training]
    for examination in trained:
        if examination.findings or examination.not_seen:
            _show_file(examination)
    for problem in unreadable.values():
        say(f"not examined: {problem}", hang=2)
        say()
    say(summary(examinations))


def _show_file(examination: Examination) -> None:
    compilers = ", ".join(examination.compilers)
    console().print(Text(f"{examination.file} ({compilers})", style="bold"), soft_wrap=True)
    groups = groupby(examination.findings, key=lambda finding: (finding.rule, finding.fix))
    for (rule, fix), findings in groups:
        _show_group(rule, fix, list(findings))
    for text in examination.not_seen:
        say(f"not analysed: {text}", indent=2, hang=2)
    say()


def _show_group(rule: str, fix: str, findings: Sequence[Finding]) -> None:
    severity = min((finding.severity for finding in findings), key=list(Severity).index)
    title = Text.assemble(
        "  ", (WORDS[severity][0], f"bold {STYLES[severity]}"), f": {BY_ID[rule].title} ({rule})"
    )
    console().print(title, soft_wrap=True)
    shown = ""
    for finding in findings:
        _say_cut(f"line {finding.place.line:<5} {finding.source}", indent=4)
        if finding.message != shown:
            say(f"{finding.message}.", indent=15)
            shown = finding.message
    say(f"Fix: {fix}.", indent=4, hang=5)


def _say_cut(text: str, *, indent: int) -> None:
    """One line of code, cut where the screen ends."""
    out = console()
    # Control characters of a script never reach the terminal.
    shown = "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}"
                    for mark in text.expandtabs(4))  # fmt: skip
    line = Text(" " * indent + shown)
    line.truncate(out.width, overflow="ellipsis")
    out.print(line, soft_wrap=True)


def counts(examinations: Sequence[Examination]) -> dict[str, int]:
    """How many findings of each severity, how many files."""
    findings = [finding for item in examinations for finding in item.findings]
    return {
        "files": len(examinations),
        "training_files": sum(item.is_training for item in examinations),
        **{str(kind): sum(finding.severity is kind for finding in findings) for kind in Severity},
        "suppressed": sum(item.suppressed for item in examinations),
    }


def summary(examinations: Sequence[Examination]) -> str:
    """The last line."""
    number = counts(examinations)
    if not number["training_files"]:
        return f"No training code in {plural(number['files'], 'file')}."
    files = plural(number["training_files"], "file")
    parts = [
        f"{number[kind]} {WORDS[kind][number[kind] != 1]}" for kind in Severity if number[kind]
    ]
    suppressed = f" {number['suppressed']} suppressed." if number["suppressed"] else ""
    return f"{files} with training code: {', '.join(parts) or 'no findings'}.{suppressed}"
