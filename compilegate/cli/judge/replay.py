"""``judge --replay``: a recorded decision, repeated on its evidence."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from compilegate import judges
from compilegate.cli.common.cloud import check_workload_exists
from compilegate.cli.common.error_handling import INVALID_EVIDENCE
from compilegate.cli.common.session import Invocation
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.errors import shortened
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
    invocation.answer(
        _document(replayed), "judge_replay",
        bucket=cloud.services.store.bucket, most_shown=MOST_SHOWN, value=_value,
    )  # fmt: skip
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


def _versions(replayed: Replay) -> tuple[str, str] | None:
    """The judge's version then and now, where an earlier one decided again."""
    then = replayed.decision.judge_version
    return None if replayed.comparison is None or then == JUDGE_VERSION else (then, JUDGE_VERSION)


def _value(value: Any) -> str:
    return shortened(json.dumps(value))
