"""Rows as ``compilegate list`` shows them: chosen, in order, counted and added up.

Counts and sums are of every row that was chosen, not of the few that are shown.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import STATES as FLAG_STATES
from compilegate.domain.fleet.fold import urgency
from compilegate.domain.fleet.month import Amount, Estimate
from compilegate.domain.fleet.row import NEEDS, NO_TRIAL, PHASES, STALE, UNREADABLE, Row
from compilegate.domain.optional import with_known, without_none

# Of a workload that production no longer trains.
RETIRED = "retired"
STATES = (*FLAG_STATES, RETIRED, UNREADABLE)
ANY = "any"
URGENCY = "urgency"
MOST_NAMED = 12
MICRO = 1_000_000
Value = str | int | float | None


def state_of(row: Row) -> str:
    """The flag's state, one of STATES."""
    if row.registered and not row.active:
        return RETIRED
    return row.known_flag.state


# What a row is sorted by and shown with, by name of the column; ``now`` in epoch seconds.
COLUMNS: Mapping[str, Callable[[Row, float], Value]] = {
    "workload": lambda row, _: row.workload,
    "owner": lambda row, _: row.owner,
    "state": lambda row, _: state_of(row),
    "candidate": lambda row, _: row.known_flag.candidate,
    "since": lambda row, _: row.known_flag.since,
    "phase": lambda row, _: None if row.phase == NO_TRIAL else row.phase,
    "trial": lambda row, _: row.trial,
    "instance": lambda row, _: row.instance,
    "instances": lambda row, _: row.instances,
    "image": lambda row, _: row.image,
    "family": lambda row, _: row.family,
    "stale": lambda row, _: " ".join(row.stale) or None,
    "runs": lambda row, now: row.week(now)[0],
    "failed": lambda row, now: row.week(now)[1],
    "last_run": lambda row, _: row.last_run.at if row.last_run else None,
    "saved_usd": lambda row, _: row.saved.micro_usd / MICRO if row.saved.runs else None,
    "trial_usd": lambda row, _: row.trials.micro_usd / MICRO if row.trials.is_known else None,
    "needs": lambda row, now: " ".join(need.code for need in row.due(now)) or None,
    "needs_since": lambda row, now: min((need.since for need in row.due(now)), default=None),
}


@dataclass(frozen=True)
class Filters:
    """What rows have to be; an empty filter takes every row, several values of one any of them.

    ``owner`` "" is of workloads without one, ``need`` "any" whatever a person has to see to.
    ``instance`` is a type or a family: ml.g5.xlarge, g5. ``stale``: something has changed since
    the proof, also of a retired one.
    """

    owner: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    need: tuple[str, ...] = ()
    instance: tuple[str, ...] = ()
    stale: bool = False

    def check(self, rows: Collection[Row]) -> None:
        """Raises InvalidInputError for a word that there is not, or that is of none of these."""
        check_known("--state", self.state, STATES)
        check_known("--phase", self.phase, PHASES)
        check_known("--need", self.need, (ANY, *NEEDS))
        owners = sorted(set(without_none(row.owner for row in rows)))
        of_none = f"none of the {len(rows):,} workloads that have a row"
        check_known("--owner", filter(None, self.owner), owners, f"owns {of_none}")
        instances = sorted({name for row in rows for name in _names_of(row.instance)})
        check_known("--instance", self.instance, instances, f"trains {of_none}")

    def takes(self, row: Row, now: float) -> bool:
        """Whether a row is chosen."""
        needs = {need.code for need in row.due(now)}
        return bool(
            (not self.owner or (row.owner or "") in self.owner)
            and (not self.state or state_of(row) in self.state)
            and (not self.phase or row.phase in self.phase)
            and (not self.need or not needs.isdisjoint(self.need) or (ANY in self.need and needs))
            and (not self.instance or any(one in self.instance for one in _names_of(row.instance)))
            and (row.known_flag.state == STALE or not self.stale)
        )


def check_known(
    field: str, values: Iterable[str], choices: Collection[str], problem: str = "is not known"
) -> None:
    """Raises InvalidInputError for a value that is no choice; its fix names the near ones."""
    by_lower = {one.casefold(): one for one in choices}
    for value in values:
        if value in choices:
            continue
        near = difflib.get_close_matches(value.casefold(), by_lower, n=3)
        fix = f"did you mean {' or '.join(by_lower[one] for one in near)}?"
        if not near:
            more = len(choices) - MOST_NAMED
            fix = f"there are {', '.join([*choices][:MOST_NAMED]) or 'none'}"
            fix += f" and {more} more" if more > 0 else ""
        raise InvalidInputError(problem, field=field, value=value, fix=fix)


def _names_of(instance: str | None) -> tuple[str, ...]:
    """An instance's type and its family, as ``compilegate facts`` takes them."""
    if instance is None:
        return ()
    family = instance.removeprefix("ml.").split(".")[0]
    return instance, family, f"ml.{family}"


@dataclass(frozen=True)
class Counts:
    """How many rows there are of each kind; ``runs`` of seven days, and how many ``failed``."""

    workloads: int
    need_a_person: int
    in_a_trial: int
    states: Mapping[str, int]
    phases: Mapping[str, int]
    needs: Mapping[str, int]
    runs: int
    failed: int


@dataclass(frozen=True)
class Totals:
    """Sums of rows: what candidates' runs have saved, and what trials have spent."""

    saved: Estimate
    trials: Amount


@dataclass(frozen=True)
class Listing:
    """The chosen rows that are shown, how many ``more`` there are, and figures of all of them."""

    rows: tuple[Row, ...]
    more: int
    counts: Counts
    totals: Totals


def listing(
    rows: Collection[Row], filters: Filters, now: float, *,
    sort: str = URGENCY, reverse: bool = False, limit: int | None = None,
) -> Listing:  # fmt: skip
    """The rows that the filters take, in order; raises InvalidInputError as they do."""
    filters.check(rows)
    check_known("--sort", [sort], (URGENCY, *COLUMNS))
    chosen = in_order([row for row in rows if filters.takes(row, now)], sort, now, reverse=reverse)
    shown = tuple(chosen[:limit])
    saved, trials = [row.saved for row in chosen], [row.trials for row in chosen]
    totals = Totals(Estimate.total(saved), Amount.total(trials))
    return Listing(shown, len(chosen) - len(shown), counts_of(chosen, now), totals)


def in_order(rows: Sequence[Row], sort: str, now: float, *, reverse: bool) -> list[Row]:
    """By urgency or a column: text from A on, numbers the largest first, unknown ones last."""
    by_name = sorted(rows, key=lambda row: row.workload)
    if sort == URGENCY:
        return sorted(by_name, key=partial(_urgency, now=now), reverse=reverse)
    filled = with_known(by_name, lambda row: COLUMNS[sort](row, now))
    of_numbers = bool(filled) and not isinstance(filled[0][1], str)
    filled.sort(key=itemgetter(1), reverse=of_numbers != reverse)
    names = {row.workload for row, _ in filled}
    return [row for row, _ in filled] + [row for row in by_name if row.workload not in names]


def _urgency(row: Row, now: float) -> tuple[float, ...]:
    """What needs a person first, the longest first; then trials, then by saving; retired last."""
    due = row.due(now)
    first = (urgency(due[0]), due[0].since) if due else (math.inf,)
    return (*first, state_of(row) == RETIRED, row.phase == NO_TRIAL, -row.saved.micro_usd)


def counts_of(rows: Collection[Row], now: float) -> Counts:
    """The counts of these rows; of what there is none, there is no key."""
    due = [row.due(now) for row in rows]
    weeks = [row.week(now) for row in rows]
    phases = Counter(row.phase for row in rows if row.phase != NO_TRIAL)
    return Counts(
        workloads=len(rows),
        need_a_person=sum(bool(needs) for needs in due),
        in_a_trial=phases.total(),
        states=_ordered(Counter(map(state_of, rows)), STATES),
        phases=_ordered(phases, PHASES),
        needs=_ordered(Counter(need.code for needs in due for need in needs), NEEDS),
        runs=sum(runs for runs, _ in weeks),
        failed=sum(failed for _, failed in weeks),
    )


def _ordered(counted: Mapping[str, int], order: Sequence[str]) -> dict[str, int]:
    return {one: counted[one] for one in (*order, *counted) if one in counted}
