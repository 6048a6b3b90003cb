"""``judge --replay``: a recorded decision, repeated on its evidence."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from compilegate.cli.common.cloud import check_workload_exists
from compilegate.cli.common.error_handling import INVALID_EVIDENCE
from compilegate.cli.common.output import emit_json, say, say_line
from compilegate.cli.common.session import Invocation
from compilegate.domain.errors import shortened
from compilegate.domain.formats import plural
from compilegate.usecases.trial.replay import Replay, find_decision, replay

EQUAL, NOT_REPLAYABLE = 0, 11
MOST_SHOWN = 12


def replay_decision(invocation: Invocation, decision_id: str, *, workload: str | None) -> int:
    """Show whether it is the same; the exit code is 0, 13, or 11 without evidence."""
    cloud = invocation.open_cloud()
    if workload:
        check_workload_exists(workload, cloud)
    workloads = [workload] if workload else cloud.overview.workloads()
    replayed = replay(find_decision(decision_id, workloads, cloud.services), cloud.services)
    if invocation.as_json:
        emit_json(_document(replayed))
    else:
        _show(replayed, cloud.services.store.bucket)
    if replayed.comparison is None:
        return NOT_REPLAYABLE
    return EQUAL if replayed.comparison.equal else INVALID_EVIDENCE


def _document(replayed: Replay) -> dict[str, Any]:
    comparison = replayed.comparison
    return {
        **asdict(replayed.record),
        "decision_id": replayed.recorded["decision_id"],
        "verdict": replayed.recorded["verdict"],
        "judge_version": replayed.recorded["judge_version"],
        "equal": comparison.equal if comparison else None,
        "why_not": replayed.why_not,
        "judge_versions": list(comparison.versions) if comparison and comparison.versions else None,
        "limit": dict(comparison.limit) if comparison and comparison.limit else None,
        "differences": [asdict(one) for one in comparison.differences] if comparison else [],
    }


def _show(replayed: Replay, bucket: str) -> None:
    comparison, recorded = replayed.comparison, replayed.recorded
    name = f"{replayed.record.workload}-{replayed.record.trial}: decision {recorded['decision_id']}"
    if comparison is None:
        say(f"{name} ({recorded['verdict']}) cannot be replayed: {replayed.why_not}.")
    elif comparison.equal:
        say(f"{name} ({recorded['verdict']}) is the same, field by field.")
    else:
        fields = len(comparison.differences)
        say(f"{name} ({recorded['verdict']}) differs in {plural(fields, 'field')}:")
        for one in comparison.differences[:MOST_SHOWN]:
            say(f"{one.field}: recorded {_value(one.recorded)}, now {_value(one.again)}", indent=2,
                hang=2)  # fmt: skip
        if fields > MOST_SHOWN:
            say(f"and {fields - MOST_SHOWN} more; --json lists all", indent=2)
    if comparison and comparison.versions:
        then, now = comparison.versions
        say(
            f"It was made by judge {then}; this is judge {now}, whose decisions have different ids."
        )
    if comparison and comparison.limit:
        say("The judge would have continued; the trial ended at its own limit: "
            f"{comparison.limit['message']}.")  # fmt: skip
    if replayed.why_not is None:
        say_line(f"  s3://{bucket}/{replayed.record.evidence_key}")


def _value(value: Any) -> str:
    return shortened(json.dumps(value))
