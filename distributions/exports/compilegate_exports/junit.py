"""A trial as JUnit XML, for the test view of a CI system: a test case per candidate.

Valid by both published schemas: Ant's (windyroad/JUnit-Schema, JUnit.xsd) and Jenkins'
(jenkinsci/xunit-plugin, junit-10.xsd). Ant's is the stricter one: the order of elements, every
attribute, and times without a zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree

from compilegate.domain.claims import verdict_label
from compilegate.domain.decision import Verdict
from compilegate.domain.workload.model import BASELINE
from compilegate.report.trial_report import TrialReport

# https://www.w3.org/TR/xml/#charsets
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A test case's outcome by the verdict on its candidate. A comparison that was not fair is an error,
# which says nothing about the candidate; what was not settled is skipped. Nothing passes unproven.
PASSED, FAILURE, ERROR, SKIPPED = "passed", "failure", "error", "skipped"
OUTCOMES = {
    Verdict.PROMOTE: PASSED,
    Verdict.PERMANENT: PASSED,
    Verdict.STAY_OFF: FAILURE,
    Verdict.REVERT: FAILURE,
    Verdict.INVALID: ERROR,
    Verdict.INELIGIBLE: SKIPPED,
    Verdict.INCONCLUSIVE: SKIPPED,
    Verdict.CONTINUE: SKIPPED,
}


def junit(report: TrialReport, *, trial: str, at: int) -> str:
    """The document; ``at`` is when it was decided, epoch seconds."""
    cases = [(name, _outcome(report, name)) for name in candidates(report)]
    outcomes = [outcome for _, outcome in cases]
    # Wall clock of the candidates' full runs.
    walls = {
        arm.name: sum(run.wall_seconds or 0.0 for run in arm.full_runs)
        for arm in (report.evidence.arms if report.evidence else ())
    }
    seconds = {name: walls.get(name, 0.0) for name, _ in cases}
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": f"compilegate.{report.workload}",
            "timestamp": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": "localhost",  # what the schema asks for where it is not known
            "tests": str(len(cases)),
            "failures": str(outcomes.count(FAILURE)),
            "errors": str(outcomes.count(ERROR)),
            "skipped": str(outcomes.count(SKIPPED)),
            "time": f"{sum(seconds.values()):.3f}",
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in (
        ("workload", report.workload), ("trial", trial), ("verdict", str(report.verdict)),
        ("candidate", report.candidate or ""), ("decision_id", report.judged.decision_id),
        ("judge_version", report.judged.judge_version),
    ):  # fmt: skip
        ElementTree.SubElement(properties, "property", {"name": key, "value": _text(value)})
    for name, outcome in cases:
        case = ElementTree.SubElement(
            suite, "testcase",
            {"classname": f"compilegate.{report.workload}", "name": name,
             "time": f"{seconds[name]:.3f}"},
        )  # fmt: skip
        _explain(case, outcome, report, name)
    ElementTree.SubElement(suite, "system-out").text = _text("\n".join(_sentences(report)))
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(suite)
    body = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def candidates(report: TrialReport) -> Sequence[str]:
    """Names of the trial's candidates, of whichever record has them."""
    measured = [arm.name for arm in report.judged.arms if arm.name != BASELINE]
    checked = [str(one["name"]) for one in report.eligibility.get("candidates", ())]
    decided = [report.candidate] if report.candidate else []
    return measured or decided or checked


def _outcome(report: TrialReport, candidate: str) -> str:
    """Of the candidate decided on the verdict's; another was not proven, whatever that one was."""
    outcome = OUTCOMES[report.verdict or Verdict.INVALID]
    return outcome if report.candidate in (None, candidate) or outcome == ERROR else SKIPPED


def _explain(case: ElementTree.Element, outcome: str, report: TrialReport, name: str) -> None:
    if outcome == PASSED:
        return
    sentences = _sentences(report, name)
    if outcome == SKIPPED:  # by Ant's schema it has no attributes
        ElementTree.SubElement(case, outcome).text = _text("\n".join(sentences))
        return
    why = {"message": _text(sentences[0]), "type": str(report.verdict)}
    ElementTree.SubElement(case, outcome, why).text = _text("\n".join(sentences))


def _sentences(report: TrialReport, candidate: str | None = None) -> list[str]:
    """The verdict, and the reasons for it; of one candidate its own and those about the trial."""
    verdict = verdict_label(str(report.verdict)).text
    about = (None, candidate)
    reasons = [one.message for one in report.reasons if candidate is None or one.arm in about]
    return [f"{verdict}: {report.workload}", *reasons]


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
