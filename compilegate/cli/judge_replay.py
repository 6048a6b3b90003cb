"""``judge --replay``: a recorded decision, decided again on its own evidence."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import typer

from compilegate.cli.doors import open_cloud
from compilegate.cli.known_name import check_known
from compilegate.cli.output import emit_json, say, say_line
from compilegate.cli.shell import INVALID_EVIDENCE, session
from compilegate.domain.errors import shortened
from compilegate.report.formats import plural
from compilegate.usecases.replay import Replay, find_decision, replay

EQUAL, NOT_REPLAYABLE = 0, 11
MOST_SHOWN = 12


def replay_decision(
    ctx: typer.Context,
    decision_id: str,
    *,
    workload: str | None,
    local: bool,
    stage: str,
    as_json: bool,
) -> int:
    """Show whether it came out the same; the exit code is 0, 13, or 11 where nobody can say."""
    cloud = open_cloud(session(ctx).doors, local=local, stage=stage)
    if workload:
        check_known(workload, cloud)
    workloads = [workload] if workload else cloud.overview.workloads()
    found = replay(find_decision(decision_id, workloads, cloud.services), cloud.services)
    if as_json:
        emit_json(_document(found))
    else:
        _show(found, cloud.services.store.bucket)
    if found.comparison is None:
        return NOT_REPLAYABLE
    return EQUAL if found.comparison.equal else INVALID_EVIDENCE


def _document(found: Replay) -> dict[str, Any]:
    comparison = found.comparison
    return {
        **asdict(found.found),
        "decision_id": found.recorded["decision_id"],
        "verdict": found.recorded["verdict"],
        "judge_version": found.recorded["judge_version"],
        "equal": comparison.equal if comparison else None,
        "why_not": found.why_not,
        "judge_versions": list(comparison.versions) if comparison and comparison.versions else None,
        "limit": dict(comparison.limit) if comparison and comparison.limit else None,
        "differences": [asdict(one) for one in comparison.differences] if comparison else [],
    }


def _show(found: Replay, bucket: str) -> None:
    comparison, recorded = found.comparison, found.recorded
    name = f"{found.found.workload}-{found.found.trial}: decision {recorded['decision_id']}"
    if comparison is None:
        say(f"{name} ({recorded['verdict']}) cannot be replayed: {found.why_not}.")
    elif comparison.equal:
        say(f"{name} ({recorded['verdict']}) comes out the same, field by field.")
    else:
        fields = len(comparison.differences)
        say(f"{name} ({recorded['verdict']}) comes out differently, {plural(fields, 'field')}:")
        for one in comparison.differences[:MOST_SHOWN]:
            say(f"{one.field}: {_value(one.recorded)} then, {_value(one.again)} now", indent=2,
                hang=2)  # fmt: skip
        if fields > MOST_SHOWN:
            say(f"and {fields - MOST_SHOWN} more; --json has them all", indent=2)
    if comparison and comparison.versions:
        then, now = comparison.versions
        say(f"It was made by judge {then}; this is judge {now}, whose decisions have other ids.")
    if comparison and comparison.limit:
        say("The judge would have gone on; the trial ended at a limit of its own: "
            f"{comparison.limit['message']}.")  # fmt: skip
    if found.why_not is None:
        say_line(f"  s3://{bucket}/{found.found.evidence_key}")


def _value(value: Any) -> str:
    return shortened(json.dumps(value))
