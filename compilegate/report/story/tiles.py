"""The key figures of a story."""

from __future__ import annotations

import math

from compilegate.domain.arithmetic import mean
from compilegate.domain.workload.model import BASELINE
from compilegate.report.formats import (
    UNKNOWN,
    money,
    number,
    percent,
    plural,
    ratio,
    shown,
    significant,
)  # fmt: skip
from compilegate.report.story.sentences import difference, tile_quality
from compilegate.report.story.tale import Tale, failed
from compilegate.report.tiles import Tile


def tiles(tale: Tale) -> list[Tile]:
    """Where it stands, how production does, what it is worth; empty before the first run."""
    if not tale.runs:
        return []
    return [_flag(tale), _runs(tale), _quality(tale), _speed(tale), _saved(tale)]


def _flag(tale: Tale) -> Tile:
    flag = tale.flag
    since = str(flag.since or "").replace("T", " ")[:16]
    note = f"state {flag.state}, since {since}" if tale.flags else "never changed"
    return Tile("Flag", "on" if flag.enabled else "off", note)


def _runs(tale: Tale) -> Tile:
    lost = sum(failed(run) for run in tale.runs)
    parts = [f"{count} {arm}" for arm, count in tale.counts.items()]
    parts += [f"{lost} failed"] if lost else []
    return Tile("Production runs", str(len(tale.runs)), ", ".join(parts))


def _quality(tale: Tale) -> Tile:
    name = f"{tale.metric} since it was turned on"
    means = tile_quality(tale)
    if means is None:
        return Tile(name, UNKNOWN, "Needs runs of both arms since then.")
    margin = shown(tale.quality.get("margin"), significant)
    return Tile(name, difference(tale, means), f"mean of all its runs; margin {margin}")


def _speed(tale: Tale) -> Tile:
    name = "Speed-up in production"
    found = [gain for _, gain in speedups(tale)]
    if not found:
        return Tile(name, UNKNOWN, "Needs runs of both arms.")
    average = math.exp(mean([math.log(gain) for gain in found]))
    expected = number((tale.decision.get("speedup") or {}).get("estimate"))
    note = f"whole jobs, {plural(len(found), 'run')}"
    return Tile(name, ratio(average), note + (f"; trial {ratio(expected)}" if expected else ""))


def _saved(tale: Tale) -> Tile:
    name, found = "Saved so far", tale.savings
    if found is None:
        return Tile(name, UNKNOWN, "Nothing has been turned on.")
    if found.saved_usd is None:
        return Tile(name, UNKNOWN, "No run of it has a price and a baseline to compare with.")
    parts = [plural(found.priced_runs, "run")]
    if found.expected_usd:
        parts.append(f"expected {money(found.expected_usd)}")
        share = found.share_of_estimate
        parts += [f"{percent(share)} of it"] if share is not None else []
    return Tile(name, money(found.saved_usd), "; ".join(parts))


def speedups(tale: Tale) -> list[tuple[int, float]]:
    """(run number, speed-up against the rolling baseline) of every finished candidate's run."""
    found = []
    for place, (run, standard) in enumerate(zip(tale.runs, tale.standards, strict=True), 1):
        wall = number(run.result.get("wall_seconds"))
        if wall is None or wall <= 0 or standard.wall_seconds is None:
            continue
        if run.arm != BASELINE and run.finished and run.counts:
            found.append((place, standard.wall_seconds / wall))
    return found
