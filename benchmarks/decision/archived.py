"""An archived judge in the place of the shipped one: the same worlds, decided by an older release.

It reads evidence documents, in a process of its own that stays for the whole simulation.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Any

from benchmarks.decision.provenance import SHOWN
from compilegate.domain.decision import (
    Decision,
    NextStep,
    ProbationStep,
    QualityStep,
    RequestedFullRun,
    SpeedStep,
    Verdict,
)
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.reasons import Reason
from compilegate.judges import archives, command

POLICY = ("promote_speedup", "reject_speedup", "alpha", "quality_runs", "max_quality_runs",
          "probation_runs", "max_trial_usd")  # fmt: skip


def archived_name(version: str) -> str:
    """Version and digest, as ``judge_name`` gives those of the shipped judge."""
    return f"{version} ({archives()[version]['sha256'][:SHOWN]})"


@cache
def archived_judge(version: str) -> ArchivedJudge:
    """The judge of that version, one process for each of the simulation's."""
    return ArchivedJudge(version)


class ArchivedJudge:
    """Evidence in, decision out, by way of the documents."""

    def __init__(self, version: str) -> None:
        self._process = subprocess.Popen(
            command(version), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, evidence: Evidence) -> Decision:
        """Decide; raises RuntimeError where that judge refused to read the evidence."""
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe is not None and answers is not None
        pipe.write(json.dumps({"evidence": document_of(evidence), "flag": "simulated"}) + "\n")
        pipe.flush()
        answer = json.loads(answers.readline())
        if "refused" in answer:
            raise RuntimeError(answer["refused"])
        return _decision(answer["decision"])


def document_of(evidence: Evidence) -> dict[str, Any]:
    """The evidence document of what the simulation knows."""
    return {
        "schema": 1,
        "workload": evidence.workload,
        "phase": evidence.phase,
        "promoted": evidence.promoted,
        "policy": {key: getattr(evidence.policy, key) for key in POLICY},
        "quality": {
            "metric": evidence.quality.metric,
            "goal": evidence.quality.goal,
            "margin": evidence.quality.margin,
            "history": list(evidence.quality.history),
            "history_wall_seconds": list(evidence.history_wall_seconds),
        },
        "runs_per_week": evidence.runs_per_week,
        "runs_remaining": evidence.runs_remaining,
        "arms": [
            {
                "name": arm.name,
                "full_run_steps": arm.full_run_steps,
                "usd_per_hour": arm.usd_per_hour,
                "devices": arm.devices,
                "runs": [dict(run.record) for run in arm.runs],
            }
            for arm in evidence.arms
        ],
    }


def _decision(document: Mapping[str, Any]) -> Decision:
    """What the driver reads of a decision document."""
    return Decision(
        workload=document["workload"],
        decision_id=document["decision_id"],
        judge_version=document["judge_version"],
        stage=document["stage"],
        verdict=Verdict(document["verdict"]),
        candidate=document["candidate"],
        reasons=tuple(Reason(one["code"], one["message"]) for one in document["reasons"]),
        speedup=document["speedup"],
        next=_step(document["next"]),
    )


def _step(step: Mapping[str, Any] | None) -> NextStep | None:
    if step is None:
        return None
    if step["stage"] == SpeedStep.stage:
        return SpeedStep(
            step["block"], step["blocks"], step["steps"], tuple(step["arms"]), None, step["why"]
        )
    if step["stage"] == QualityStep.stage:
        runs = tuple(RequestedFullRun(run["arm"], run["seed"]) for run in step["runs"])
        return QualityStep(step["mode"], runs, None, step["why"])
    confirm = bool(step["runs"][0]["confirm"])
    return ProbationStep(tuple(run["arm"] for run in step["runs"]), confirm, step["why"])
