"""What production did last and is at, for ``status``."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from compilegate.cli.cloud import Cloud
from compilegate.cli.output import say
from compilegate.domain import ledger_keys
from compilegate.domain.production import waiting
from compilegate.domain.production.begun import begun_runs
from compilegate.domain.production.runs import production_runs
from compilegate.domain.utc import minute
from compilegate.report.run_words import why

UNDER_WAY, WAITS = "under way", "waits for machines"


def production(cloud: Cloud, names: Collection[str], *, last: int) -> list[dict[str, Any]]:
    """The last runs of each workload, newest first over all of them, those under way included."""
    found = [one for name in names for one in _of(name, cloud)[-last:]]
    return sorted(found, key=lambda one: float(one["at"]), reverse=True)


def _of(workload: str, cloud: Cloud) -> list[dict[str, Any]]:
    entries = cloud.services.ledger.entries(workload, ledger_keys.RUN_ENTRIES)
    runs = production_runs(entries)
    ended = [
        {
            "workload": workload, "run": run.run, "job": run.job, "at": run.started_at,
            "arm": run.arm, "why": run.why, "status": run.status, "counts": run.counts,
            "reason": run.reason, "usd": run.usd,
        }
        for run in runs
    ]  # fmt: skip
    known = {run.run for run in runs}
    recent = time.time() - waiting.RUN_SECONDS
    begun = [one for one in begun_runs(entries) if one.run not in known and one.at > recent]
    waits = {e["run"]: e["reason"] for e in entries if e.get("kind") == waiting.KIND}
    under_way = [
        {
            "workload": workload, "run": one.run, "job": None, "at": one.at, "arm": one.arm,
            "why": one.why, "status": WAITS if one.run in waits else UNDER_WAY, "counts": None,
            "reason": waits.get(one.run) or one.flag_told, "usd": None,
        }
        for one in begun
    ]  # fmt: skip
    return sorted([*ended, *under_way], key=lambda one: float(str(one["at"])))


def show_production(items: Sequence[Mapping[str, Any]]) -> None:
    """Nothing where production has not run yet."""
    if items:
        say("Last production runs:")
    for item in items:
        what = f"{item['arm']}, {str(item['status']).lower()}"
        say(f"{minute(item['at'])}  {item['workload']}-{item['run']}: {what}", indent=2)
        say(item["reason"] or why(str(item["why"])), indent=4)
