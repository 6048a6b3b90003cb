"""The tables of benchmarks/decision/probation.md, from the kept results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.decision import alarm_check
from benchmarks.decision.probation import REFRESHES, RESULTS, SPREADS
from benchmarks.decision.tables import table
from compilegate.domain.followers import REFRESH_EVERY

# Rows of the first table: the condition, how often the baseline is trained, baseline runs known,
# whether in a team's own pipeline.
STEADY = (
    ("clean", REFRESH_EVERY, 24, False, "faultless, reverted (24 baseline runs known)"),
    ("clean", 0, 24, False, "the same without a baseline run in between"),
    ("clean", REFRESH_EVERY, 8, False, "faultless, reverted (8 baseline runs known)"),
    ("clean", 0, 8, False, "the same without a baseline run in between"),
    ("clean", REFRESH_EVERY, 3, False, "faultless, reverted (the trial's three known)"),
    ("nights", REFRESH_EVERY, 24, False, "faultless, nights correlated by 0.8, reverted"),
    ("loss50", REFRESH_EVERY, 24, False, "loses half a margin, reverted"),
    ("loss75", REFRESH_EVERY, 24, False, "loses three quarters of a margin, reverted"),
    ("loss", REFRESH_EVERY, 24, False, "loses one margin, reverted"),
    ("loss2", REFRESH_EVERY, 24, False, "loses two margins, reverted"),
    ("late", REFRESH_EVERY, 24, False, "loses two margins from the seventh run on, reverted"),
    ("slow", REFRESH_EVERY, 24, False, "the whole speed-up is gone, reverted"),
    ("clean", REFRESH_EVERY, 24, True, "faultless, in a team's own pipeline, reverted"),
    ("step", REFRESH_EVERY, 24, True, "the same, both arms lose one margin"),
    ("loss", REFRESH_EVERY, 24, True, "loses one margin there, reverted"),
    ("loss2", REFRESH_EVERY, 24, True, "loses two margins there, reverted"),
)  # fmt: skip
FAULTLESS = ("clean", "nights", "step")
DRIFTS = (
    ("clean", "nothing changes, faultless"),
    ("step", "both arms lose one margin from one run on, faultless"),
    ("trend", "both arms lose a sixth of a margin every run, faultless"),
    ("grows", "jobs take 3 % longer every run, faultless"),
    ("masked", "both arms gain one margin from the run on which the candidate loses one"),
)
Cells = Sequence[Mapping[str, Any]]


def checked(_: object) -> str:
    """Of checked alarms, how many turn the candidate off, and after how many pairs."""
    rows, before = [], ("three runs an arm", "24 and more")
    for spread in alarm_check.SPREADS:
        for df, known in zip(alarm_check.DEGREES, before, strict=True):
            cells = json.loads(alarm_check.RESULTS.read_text())["cells"]
            own = [cell for cell in cells if (cell["spread"], cell["df"]) == (spread, df)]
            shares = [f"{cell['off']:.1f} ({cell['pairs']:.1f})" for cell in own]
            rows.append([f"{spread:g}, from {known}", *shares])
    heads = [f"loses {loss:g}" for loss in alarm_check.LOSSES]
    return table(["sd in margins, and from what it is known: turned off, % (pairs)", *heads], rows)


def provenance(_: object) -> str:
    """How much was simulated, with which judge."""
    kept = _kept()
    sizes = sorted({cell["n"] for cell in kept["cells"]})
    size = " or ".join(f"{size:,}" for size in sizes)
    return (
        f"{len(kept['cells'])} cells of {size} simulated promotions each, seed {kept['seed']}, "
        f"judge {kept['judge']}. ± is one standard error."
    )


def steady(_: object) -> str:
    """What the review detects where the data stays as it was."""
    rows, kept = [], _kept()
    for condition, every, reference, team, words in STEADY:
        own = [_cell(kept["cells"], condition, spread, every, reference, team=team)
               for spread in SPREADS]  # fmt: skip
        exposed = ["" if condition in FAULTLESS else _number(cell["exposed"]) for cell in own]
        rows.append([words, *(_share(cell) for cell in own), *exposed])
    heads = [f"sd {spread:g} margins, %" for spread in SPREADS]
    runs = [f"runs until then, sd {spread:g}" for spread in SPREADS]
    return table(["the candidate", *heads, *runs], rows)


def refresh(_: object) -> str:
    """What a baseline run every so often is worth."""
    rows, kept = [], _kept()
    for spread in SPREADS:
        for condition, words in DRIFTS:
            own = [_cell(kept["cells"], condition, spread, every) for every in REFRESHES]
            rows.append([f"{words}; sd {spread:g}", *(_share(cell) for cell in own)])
    clean = [_cell(kept["cells"], "clean", SPREADS[0], every) for every in REFRESHES]
    rows.append(["baseline runs of a faultless probation",
                 *(f"{cell['baseline_runs']:.1f}" for cell in clean)])  # fmt: skip
    rows.append(["runs that it lasts", *(f"{cell['runs']:.1f}" for cell in clean)])
    heads = ["never" if every == 0 else f"every {every}th" for every in REFRESHES]
    heads = [head.replace("3th", "3rd") for head in heads]
    return table(["reverted, %, by how often a run is the baseline's", *heads], rows)


BLOCKS: Mapping[str, Callable[[object], str]] = {
    "probation-provenance": provenance,
    "probation-steady": steady,
    "probation-refresh": refresh,
    "alarm-check": checked,
}


def _kept() -> Mapping[str, Any]:
    kept: Mapping[str, Any] = json.loads(RESULTS.read_text())
    return kept


def _cell(
    cells: Cells, condition: str, spread: float, every: int, reference: int = 24, *,
    team: bool = False,
) -> Mapping[str, Any]:  # fmt: skip
    wanted = (condition, spread, every, reference, team)
    keys = ("condition", "spread", "refresh", "reference", "team")
    return next(one for one in cells if tuple(one.get(key, False) for key in keys) == wanted)


def _share(cell: Mapping[str, Any]) -> str:
    figure = cell["reverted"]
    if figure["percent"] in (0, 100):
        return f"{figure['percent']:.0f}"
    return f"{figure['percent']:.1f} ± {figure['se']:.1f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
