"""The evidence as rows of text: blocks, full runs, failures, fingerprints."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain.formats import UNKNOWN, duration, fixed, ratio, shown
from compilegate.domain.judging.evidence import PROBATION
from compilegate.report.measured import Measured, MeasuredArm
from compilegate.report.tables import Table


def blocks_table(measured: Measured) -> Table | None:
    """Steady step and overhead of every block, with the speed-up."""
    numbers = sorted({n for arm in measured.arms for n in arm.blocks})
    if not numbers:
        return None
    gains = [measured.speedups(arm) for arm in measured.candidates]
    columns = ["Block"]
    for arm in measured.arms:
        columns += [f"{arm.name}: steady step", "+ compile and warm-up"]
    columns += [f"{arm.name}: speed-up" for arm in measured.candidates]
    rows = []
    for block in numbers:
        row = [str(block)]
        for arm in measured.arms:
            segment = found.segment if (found := arm.blocks.get(block)) else None
            row += [
                duration(segment.steady_step_seconds) if segment else UNKNOWN,
                duration(segment.overhead_seconds) if segment else UNKNOWN,
            ]
        rows.append((*row, *(ratio(g[block]) if block in g else UNKNOWN for g in gains)))
    return Table(
        "blocks", "Every block", columns, rows,
        note=f"{UNKNOWN}: the segment failed or was too short to have a steady state.",
    )  # fmt: skip


def runs_table(measured: Measured) -> Table | None:
    """Every full run."""
    rows = [
        (
            arm.name,
            UNKNOWN if run.seed is None else str(run.seed),
            shown(run.metric, lambda x: fixed(x, 5)) if run.finished else "failed",
            shown(run.wall_seconds, duration),
            str(run.detail.get("reason") or ("production" if run.stage == PROBATION else "")),
        )
        for arm in measured.arms
        for run in arm.arm.full_runs
    ]
    if not rows:
        return None
    metric = measured.evidence.quality.metric
    return Table(
        "runs", "Every full run", ("Arm", "Seed", metric, "Wall clock of the job", "Remark"), rows,
        stacked=True,
    )  # fmt: skip


def failures_table(measured: Measured) -> Table | None:
    """Speed segments that did not finish."""
    rows = [
        (arm.name, str(number_), str(block.run.detail.get("reason") or "no reason was recorded"))
        for arm in measured.arms
        for number_, block in arm.blocks.items()
        if not block.run.finished
    ]
    if not rows:
        return None
    return Table("failures", "Failed segments", ("Arm", "Block", "Reason"), rows, stacked=True)


def fingerprint_table(measured: Measured) -> Table | None:
    """What the arms ran on; a key whose values differ is marked."""
    prints = [_fingerprints(arm) for arm in measured.arms]
    keys = sorted({key for found in prints for key in found})
    if not keys:
        return None
    rows = [(key, *(" / ".join(found.get(key, [UNKNOWN])) for found in prints)) for key in keys]
    marked = frozenset(
        place for place, row in enumerate(rows) if len(set(row[1:])) > 1 or " / " in row[1]
    )
    return Table(
        "fingerprint", "Fingerprint", ("", *(arm.name for arm in measured.arms)), rows,
        note="Marked rows differ between or within arms." if marked else "Equal in every arm.",
        marked=marked,
    )  # fmt: skip


def _fingerprints(arm: MeasuredArm) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for run in arm.arm.runs:
        given = run.detail.get("fingerprint")
        for key, value in given.items() if isinstance(given, Mapping) else ():
            values = found.setdefault(str(key), [])
            text = UNKNOWN if value is None else str(value)
            if text not in values:
                values.append(text)
    return found
