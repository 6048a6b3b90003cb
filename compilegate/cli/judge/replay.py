"""``judge --replay``: a recorded decision, repeated on its evidence."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from compilegate import judges
from compilegate.cli.common.cloud import check_workload_exists
from compilegate.cli.common.error_handling import INVALID_EVIDENCE
from compilegate.cli.common.output import emit_json, say, say_line
from compilegate.cli.common.session import Invocation
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.errors import shortened
from compilegate.domain.formats import plural
from compilegate.usecases.trial.replay import Replay, find_decision, replay

EQUAL, NOT_REPLAYABLE = 0, 11
MOST_SHOWN = 12


def replay_decision(invocation: Invocation, decision_id: str, *, workload: str | None) -> int:
    """Show whether it is the same; the exit code is 0, 13, or 11 without evidence."""
    cloud = invocation.open_records()
    if workload:
        check_workload_exists(workload, cloud)
    workloads = [workload] if workload else cloud.overview.workloads()
    record = find_decision(decision_id, workloads, cloud.services)
    replayed = replay(record, cloud.services, judges)
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
        "decision_id": replayed.decision.decision_id,
        "verdict": replayed.decision.verdict,
        "judge_version": replayed.decision.judge_version,
        "equal": comparison.equal if comparison else None,
        "why_not": replayed.why_not,
        "judge_versions": list(versions) if (versions := _versions(replayed)) else None,
        "limit": dict(comparison.limit) if comparison and comparison.limit else None,
        "differences": [asdict(one) for one in comparison.differences] if comparison else [],
    }


def _show(replayed: Replay, bucket: str) -> None:
    comparison, recorded = replayed.comparison, replayed.decision
    name = f"{replayed.record.workload}-{replayed.record.trial}: decision {recorded.decision_id}"
    if comparison is None:
        say(f"{name} ({recorded.verdict}) cannot be replayed: {replayed.why_not}.")
    elif comparison.equal:
        say(f"{name} ({recorded.verdict}) is the same, field by field.")
    else:
        fields = len(comparison.differences)
        say(f"{name} ({recorded.verdict}) differs in {plural(fields, 'field')}:")
        for one in comparison.differences[:MOST_SHOWN]:
            say(f"{one.field}: recorded {_value(one.recorded)}, now {_value(one.again)}", indent=2,
                hang=2)  # fmt: skip
        if fields > MOST_SHOWN:
            say(f"and {fields - MOST_SHOWN} more; --json lists all", indent=2)
    if versions := _versions(replayed):
        then, now = versions
        say(f"Judge {then} made it and repeated it from its archive; today's is judge {now}.")
    if comparison and comparison.limit:
        say("The judge would have continued; the trial ended at its own limit: "
            f"{comparison.limit['message']}.")  # fmt: skip
    if replayed.why_not is None:
        say_line(f"  s3://{bucket}/{replayed.record.evidence_key}")


def _versions(replayed: Replay) -> tuple[str, str] | None:
    """The judge's version then and now, where an earlier one decided again."""
    then = replayed.decision.judge_version
    return None if replayed.comparison is None or then == JUDGE_VERSION else (then, JUDGE_VERSION)


def _value(value: Any) -> str:
    return shortened(json.dumps(value))
