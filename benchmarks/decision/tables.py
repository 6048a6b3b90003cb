"""Results as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROWS = (
    ("false promotes, % of all", "false_promotes"),
    ("good arm missed, %", "good_missed"),
    ("good arm missed where provable, %", "provable_missed"),
    ("good arm rejected, %", "good_rejected"),
    ("wrong reverts, % of clean promotions", "wrong_reverts"),
    ("right reverts (2 margins, spread <= margin), %", "right_reverts"),
    ("bad promotions reverted, %", "bad_reverted"),
    ("delay of a right revert, runs", "delay"),
    ("dedicated GPU-hours, % of the article's", "gpu_hours"),
    ("- with bad production runs made again", "gpu_hours_redone"),
    ("speed probe, % of one baseline job", "probe_of_one_job"),
    ("dedicated jobs a workload", "jobs"),
    ("production runs by a bad arm", "bad_runs"),
    ("weeks to the decision", "weeks"),
    ("net saving, % of an oracle's", "net_saving"),
    ("- with bad production runs made again", "net_saving_redone"),
)


def table(result: Mapping[str, Any]) -> str:
    """One cell: a row per characteristic, a column per rule."""
    rules = result["rules"]
    head = f"{result['portfolio']}, stress {result['stress']}, {result['candidates']} candidates"
    lines = [f"\n{head}, {result['workloads']} workloads"]
    lines.append(_line("", rules))
    lines.append(_line("verdicts, % p/s/i/other", [_verdicts(found) for found in rules.values()]))
    for words, key in ROWS:
        lines.append(_line(words, [_figure(found[key]) for found in rules.values()]))
    return "\n".join(lines)


def _line(words: str, cells: Any) -> str:
    return f"{words:<47}" + "".join(f"{cell:>18}" for cell in cells)


def _verdicts(found: Mapping[str, Any]) -> str:
    counts = found["verdicts"]
    total = sum(counts.values())
    named = [counts.get(name, 0) for name in ("promote", "stay_off", "inconclusive")]
    return "/".join(f"{100 * n / total:.0f}" for n in (*named, total - sum(named)))


def _figure(found: Mapping[str, Any]) -> str:
    if "median" in found:
        return "-" if found["median"] is None else f"{found['median']:g}"
    value = found.get("percent", found.get("mean"))
    if value is None:
        return "-"
    spread = found["se"]
    return f"{value:.2f}" if spread is None else f"{value:.2f} +- {spread:.2f}"
