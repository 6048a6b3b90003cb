"""What the judge makes of the whole jobs of an evidence document."""

from __future__ import annotations

from typing import Any

from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.whole_job import confirm, estimate_whole_job
from tests.domain.evidence_builder import among


def whole_jobs(document: dict[str, Any], candidates: int = 1) -> Any:
    """The estimate of the first candidate's whole jobs, among so many candidates."""
    evidence = among(read_evidence(document), candidates)
    return estimate_whole_job(evidence.candidates[0], evidence)


def confirmation(document: dict[str, Any]) -> Any:
    """Whether they confirm the first candidate."""
    evidence = read_evidence(document)
    return confirm(evidence.candidates[0], evidence, whole_jobs(document))
