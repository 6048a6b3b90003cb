"""The kept results, a record for each card and workload, and their tables.

The tables are for the terminal and for benchmarks/gpu/README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().with_name("results.json")
SIMULATED = "simulated on a processor"
PAGE = Path(__file__).with_name("README.md")
ANCHORS = Path(__file__).with_name("anchors.json")
BLOCK = re.compile(r"(<!-- (?P<name>\w+): generated -->\n).*?(<!-- end -->)", re.DOTALL)
NOTHING = "**Not measured yet.** No result of a GPU has been kept; no figure here is an estimate."
HEAD = (
    "| Arm | Steady speed-up | Full-run speed-up | Samples/s | MFU | Compile s, cold / warm "
    "| Recompiles | Graph breaks | Peak GiB | Quality, difference |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def read(path: Path = RESULTS) -> dict[str, Any]:
    """All records, by card and workload."""
    empty: dict[str, Any] = {"schema": 1, "cards": {}}
    return json.loads(path.read_text()) if path.exists() else empty


def keep(record: Mapping[str, Any], path: Path = RESULTS) -> None:
    """Put a workload's record in the place of an earlier one of the same card.

    Raises ValueError for a record of a processor where a GPU's are kept.
    """
    card = record["environment"].get("gpu")
    if path.resolve() == RESULTS and (record["simulated"] or not card):
        raise ValueError(
            f"the record of {record['workload']} is not a GPU's: keep it in another file"
        )
    results = read(path)
    results["cards"].setdefault(card or SIMULATED, {})[record["workload"]] = record
    fresh = path.with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps(results, indent=1) + "\n")
    fresh.replace(path)


# ---- tables -------------------------------------------------------------------------------


def write(page: Path = PAGE) -> None:
    """Bring the page's tables up to date."""
    page.write_text(refreshed(page.read_text()))


def refreshed(text: str, results: Mapping[str, Any] | None = None) -> str:
    """The page with the tables of ``results``, or of those that are kept."""
    kept = read() if results is None else results
    made = {"results": everything(kept), "anchors": anchors(kept)}
    return BLOCK.sub(lambda m: f"{m[1]}\n{made[m['name']]}\n\n{m[3]}", text)


def everything(results: Mapping[str, Any]) -> str:
    """A section for each card, a table for each workload."""
    sections = [
        f"### {card}\n\n" + "\n\n".join(table(record) for record in workloads.values())
        for card, workloads in results["cards"].items()
        if not any(record["simulated"] for record in workloads.values())
    ]
    return "\n\n".join(sections) or NOTHING


def table(record: Mapping[str, Any]) -> str:
    """One workload's arms."""
    machine, margin = record["environment"], record["margin"]
    simulated = "SIMULATED on a processor, no GPU figure. " if record["simulated"] else ""
    head = (
        f"**{record['workload']}** — {simulated}batch {record['settings']['batch_size']}, "
        f"{record['settings'].get('precision', 'fp32')}, torch {machine['torch']}, CUDA "
        f"{machine['cuda']}, driver {machine['driver_version']}, {machine['date']}. "
        f"The judge says: {record['verdict'] or 'nothing'}. "
        f"Quality is {record['metric']}, margin {margin:g}."
    )
    left_out = [f"Left out: {name} ({why})." for name, why in record["left_out"].items()]
    rows = "\n".join(_row(arm) for arm in record["arms"])
    return "\n\n".join([head, f"{HEAD}\n{rows}", *left_out])


def _row(arm: Mapping[str, Any]) -> str:
    if arm["failed"]:
        return f"| {arm['name']} | failed: {str(arm['failed'])[:80]} " + "| " * 8 + "|"
    cells = (
        arm["name"], _ratio(arm["steady"]), _ratio(arm["full_run"]),
        _number(arm["samples_per_second"], ".1f"), _number(arm["mfu"], ".1%"),
        f"{_number(arm['compile_seconds_cold'], '.0f')} / "
        f"{_number(arm['compile_seconds_warm'], '.0f')}",
        _number(arm["recompiles"], "d"), _number(arm["graph_breaks"], "d"),
        _number(arm["peak_memory_gib"], ".1f"), _quality(arm["quality"]),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _ratio(speedup: Mapping[str, Any] | None) -> str:
    if speedup is None or speedup["estimate"] is None:
        return "—"
    low, high = speedup["interval"] or (None, None)
    interval = "one block" if low is None else f"{low:.2f} to {high:.2f}"
    return f"{speedup['estimate']:.2f}x ({interval})"


def _quality(quality: Mapping[str, Any] | None) -> str:
    if quality is None:
        return "—"
    low, high = quality["interval"]
    shown = "shown no worse" if quality["within_margin"] else "not shown"
    return f"{quality['difference']:+.4f} ({low:+.4f} to {high:+.4f}), {shown}"


def _number(value: float | None, how: str) -> str:
    return "—" if value is None else format(value, how)


def anchors(results: Mapping[str, Any]) -> str:
    """Figures that others report, beside ours on every card."""
    rows = [
        "| Reported | What | Our arm | Ours, steady | Source |",
        "|---|---|---|---|---|",
    ]
    for anchor in json.loads(ANCHORS.read_text()):
        ours = [
            f"{_ratio(arm['steady'])} on {card}"
            for card, workloads in results["cards"].items()
            for arm in workloads.get(anchor["workload"], {"arms": []})["arms"]
            if arm["name"] == anchor["arm"] and not workloads[anchor["workload"]]["simulated"]
        ]
        rows.append(
            f"| {anchor['speedup']:g}x | {anchor['what']} | {anchor['workload']}, "
            f"{anchor['arm']} | {'; '.join(ours) or 'not measured yet'} | {anchor['source']} |"
        )
    return "\n".join(rows)
