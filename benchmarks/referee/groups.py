"""Groups of real repeated runs: the CSV files of data/ (data/README.md has their format)."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

DATA = Path(__file__).with_name("data")
KEYS = ("source", "licence", "metric", "goal", "groups", "run")
COLUMNS = ("group", "run", "metric")
SIGNS = {"maximize": 1.0, "minimize": -1.0}
FEWEST = 20


@dataclass(frozen=True)
class Group:
    """Runs of one program that differ in nothing but chance; metrics are better when higher."""

    name: str
    header: Mapping[str, str]
    metrics: npt.NDArray[np.float64]

    @property
    def sd(self) -> float:
        """Standard deviation of the runs as the whole population that arms are drawn from."""
        return float(self.metrics.std())


def groups(folder: Path = DATA) -> list[Group]:
    """Every group of every file, in the order of the files."""
    return [group for place in sorted(folder.glob("*.csv")) for group in read(place)]


def read(place: Path) -> Iterator[Group]:
    """The groups of one file.

    Raises ValueError for a header, a figure or a group that cannot be used.
    """
    lines = place.read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if line.startswith("#")]
    header = dict(line.lstrip("# ").split(": ", 1) for line in heads if ": " in line)
    missing = [key for key in KEYS if not header.get(key)]
    if missing:
        raise ValueError(f"{place.name}: the header lacks {missing[0]}: add '# {missing[0]}: ...'")
    if header["goal"] not in SIGNS:
        raise ValueError(f"{place.name}: goal is {header['goal']!r}: use {' or '.join(SIGNS)}")
    rows = csv.DictReader(lines[len(heads) :])
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise ValueError(f"{place.name}: columns are {rows.fieldnames}: use {','.join(COLUMNS)}")
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row["group"]].append(float(row["metric"]))
    for name, values in found.items():
        metrics = SIGNS[header["goal"]] * np.array(values)
        usable = np.isfinite(metrics).all() and metrics.std() > 0
        if len(values) < FEWEST or not usable:
            raise ValueError(
                f"{place.name}: {name} has {len(values)} runs: give at least {FEWEST} with finite "
                "metrics that differ"
            )
        yield Group(name, header, metrics)
