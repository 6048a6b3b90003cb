"""The evidence document of a running trial: begun from the plan, grown round by round."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from compilegate.domain.failures import REASON_MAX
from compilegate.domain.planning.arm_plan import CONTROL
from compilegate.domain.production.quality_mode import SHADOW, QualityMode
from compilegate.domain.workload.model import BASELINE, Workload

WEEKS_PER_YEAR = 52
# A plan of an earlier release says nothing: its trial makes every full run itself.
NO_MODE = asdict(QualityMode(asked=SHADOW, used=SHADOW))
Document = dict[str, Any]


def begin(workload: Workload, plan: Mapping[str, Any]) -> Document:
    """A document without runs; the baseline is the plan's first arm, controls stand apart."""
    controls = [_arm(arm) for arm in plan["arms"] if arm.get("role") == CONTROL]
    arms = [_arm(arm) for arm in plan["arms"] if arm.get("role") != CONTROL]
    mode = plan.get("quality_mode", NO_MODE)
    return {
        "schema": 1,
        "workload": workload.name,
        "phase": "trial",
        "promoted": None,
        "policy": {**asdict(workload.policy), "quality_runs": mode["used"]},
        "quality": asdict(workload.quality),
        "usd_per_hour": arms[0]["usd_per_hour"],
        "devices": arms[0]["devices"],
        "runs_per_week": workload.schedule.runs_per_week,
        "runs_remaining": workload.schedule.runs_per_week * WEEKS_PER_YEAR,
        "plan": {
            "speed_steps": plan["speed_steps"],
            "blocks_per_round": plan["blocks_per_round"],
            "max_blocks": plan["max_blocks"],
            "usd_per_block": plan["usd_per_block"],
            "usd_per_quality_run": plan["usd_per_quality_run"],
            "spent_usd": 0.0,
            "usd_by_job": {},
            "asked_quality_runs": mode["asked"],
            "runs_as_shadow_because": mode["why"],
            "production_beside": mode["beside"],
        },
        "arms": arms,
        **({"controls": controls} if controls else {}),
    }


def _arm(planned: Mapping[str, Any]) -> Document:
    return {
        **{key: planned[key] for key in ("name", "usd_per_hour", "devices", "overrides")},
        "full_run_steps": None,
        "runs": [],
    }


def add_run(document: Document, arm_name: str, run: Mapping[str, Any]) -> None:
    """Add a run once; a repeated Lambda call brings the same run again."""
    arm = find_arm(document, arm_name)
    key = (run["job"], run["stage"], run.get("block"))
    if any((r["job"], r["stage"], r.get("block")) == key for r in arm["runs"]):
        return
    arm["runs"].append(dict(run))
    if run.get("full_run_steps"):
        arm["full_run_steps"] = run["full_run_steps"]


def add_failed_block(
    document: Document, job: str, block: int, reason: str, arm: str = BASELINE
) -> None:
    """A speed job that did not complete: this arm of it produced nothing to compare."""
    add_run(
        document,
        arm,
        {
            "stage": "speed", "block": block, "node": job, "job": job, "finished": False,
            "compile_seconds": 0.0, "step_seconds": [], "reason": reason[:REASON_MAX],
        },
    )  # fmt: skip


def charge(document: Document, job: str, usd: float) -> None:
    """Put a job's price on the account; charging it again replaces what was known before."""
    plan = document["plan"]
    plan["usd_by_job"][job] = usd
    plan["spent_usd"] = math.fsum(plan["usd_by_job"].values())


def find_arm(document: Document, name: str) -> Document:
    """The arm of that name."""
    found: Document = next(arm for arm in _everyone(document) if arm["name"] == name)
    return found


def all_runs(document: Document) -> Iterator[Mapping[str, Any]]:
    """Every run of every arm, controls included."""
    for arm in _everyone(document):
        yield from arm["runs"]


def _everyone(document: Document) -> list[Document]:
    return [*document["arms"], *document.get("controls", ())]


def control_blocks(document: Document) -> dict[str, int]:
    """How many blocks each control has had."""
    return {arm["name"]: len(arm["runs"]) for arm in document.get("controls", ())}


def full_runs(document: Document, name: str) -> int:
    """How many full runs an arm has behind it."""
    return sum(run["stage"] == "quality" for run in find_arm(document, name)["runs"])


def count_down(document: Document) -> None:
    """Runs that production has made for the trial no longer remain; repeating changes nothing."""
    made = sum(run["stage"] == "quality" and run["mode"] != SHADOW for run in all_runs(document))
    remaining = document["runs_per_week"] * WEEKS_PER_YEAR - made
    document["runs_remaining"] = max(remaining, 0)


def next_order(document: Document) -> int:
    """Position in time of the next full run."""
    return sum(run["stage"] == "quality" for run in all_runs(document))
