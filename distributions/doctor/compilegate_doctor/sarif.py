"""Findings as SARIF 2.1.0, which code review tools show beside the line.

The format is an OASIS standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from compilegate_doctor.examination import Examination
from compilegate_doctor.finding import Finding, Severity
from compilegate_doctor.rule import Rule
from compilegate_doctor.rules import RULES

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.BREAKS: "error", Severity.SLOWS: "warning", Severity.NOTE: "note"}
FINGERPRINT = "compilegate/v1"
ROOT = "SRCROOT"
INDEX = {rule.id: number for number, rule in enumerate(RULES)}


def to_sarif(examinations: Sequence[Examination], *, version: str) -> dict[str, Any]:
    """One log with one run; ``file`` of each examination is relative to the repository."""
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "compilegate doctor",
                        "semanticVersion": version,
                        "rules": [_rule(rule) for rule in RULES],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {
                    ROOT: {"description": {"text": "The folder that the command was run in."}}
                },
                "results": _results(examinations),
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.id.split("-")),
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why} Fix: {rule.fix}. See {rule.link}"},
        "helpUri": rule.link,
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": list(rule.compilers)},
    }


def _results(examinations: Sequence[Examination]) -> list[dict[str, Any]]:
    """Every finding once, though two candidates of a workload may start the same file."""
    findings = dict.fromkeys(
        (item.file, finding) for item in examinations for finding in item.findings
    )
    seen: Counter[tuple[str, str]] = Counter()
    results = []
    for file, finding in findings:
        digest = _digest(finding)
        seen[file, digest] += 1
        results.append(_result(file, finding, f"{digest}:{seen[file, digest]}"))
    return results


def _digest(finding: Finding) -> str:
    """The same for a finding that only moved to another line."""
    text = "\0".join((finding.rule, "".join(finding.source.split())))
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _result(file: str, finding: Finding, fingerprint: str) -> dict[str, Any]:
    place = finding.place
    return {
        "ruleId": finding.rule,
        "ruleIndex": INDEX[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. Fix: {finding.fix}."},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(PurePath(file).as_posix()), "uriBaseId": ROOT,
                    },
                    "region": {
                        "startLine": place.line, "startColumn": place.column,
                        "endLine": place.end_line, "endColumn": place.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }  # fmt: skip
