"""Histories of production for the page: runs as a test names them, or very many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain.flag import Flag
from compilegate.domain.production.history import WorkloadHistory, history, standing_promotion
from compilegate.domain.production.probation import probation_document, watched_runs
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import BegunRun, ProductionRun, Review
from compilegate.report.history.view import HistoryView
from tests.domain.production.run_builder import BEGIN, DAY, METRIC, production_run
from tests.usecases.production_builder import trial_evidence

OFF, REVERTED = Flag(False, "off"), Flag(False, "reverted", "compile")
WORKLOAD = {"quality": {"metric": METRIC, "goal": "minimize", "margin": 0.05}}
ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z")
# Every so many runs: the baseline's turn, one that fails, a change of the flag.
BASELINE_TURN, FAILS, CHANGES = 6, 35, 40


def flag(version: int, after: int, to: Flag, **more: Any) -> Mapping[str, Any]:
    """A change of the flag after so many runs."""
    return {
        "kind": "flag", "version": version, "at": int(BEGIN + (after + 0.5) * DAY),
        "by": "evaluate", "action": "enable", "reason": "proven", "trial": "t1", "change_id": "c",
        "from": OFF.to_json(), "to": to.to_json(), "overrode": None, **more,
    }  # fmt: skip


def view_of(runs: Sequence[ProductionRun], *entries: Any, **more: Any) -> HistoryView:
    """The records of the page of these runs, and of other entries of the ledger."""
    written = [replace(run, at=int(run.ended_at)).to_entry() for run in runs]
    values = {"workload": WORKLOAD, **more}
    return HistoryView("bert-docs", history([*written, *entries]), "prod", **values)


def entries(runs: int, *, changes: int = CHANGES) -> Iterator[Mapping[str, Any]]:
    """The entries of so many runs, the flag changed after every ``changes`` of them."""
    yield _changed(1, BEGIN, ON, OFF)
    for number in range(1, runs + 1):
        run = _run(number)
        ended = int(run.ended_at)
        yield BegunRun(
            int(run.started_at), run.run, f"arn:{run.run}", run.arm, run.why, 17, number,
            "workloads/bert-docs/specs/x.json", "workloads/bert-docs/sources/x.tar.gz",
        ).to_entry()  # fmt: skip
        yield replace(run, at=ended).to_entry()
        yield _review(run, number, ended).to_entry()
        if number % changes == 0:
            # The last one turns it on: the charts of a promotion are drawn.
            yield _changed(2 * number, ended + 10, REVERTED, ON, by="train", action="revert")
            yield _changed(2 * number + 1, ended + 20, ON, REVERTED)


def view(runs: int, *, changes: int = CHANGES, watched: int = 200) -> HistoryView:
    """The records of a page; at most ``watched`` runs are of the probation's evidence."""
    past = history(entries(runs, changes=changes))
    return HistoryView(
        "bert-docs", past, "prod", evidence=_evidence(past, watched),
        workload={"quality": {"metric": METRIC, "goal": "maximize", "margin": 0.01}},
    )  # fmt: skip


def _run(number: int) -> ProductionRun:
    arm = "baseline" if number % BASELINE_TURN == 0 else "compile"
    fails = number % FAILS == 0
    return production_run(
        number, arm, metric=0.913 + (number % 7) / 1000, finished=not fails,
        reason="out of memory" if fails else None,
    )  # fmt: skip


def _review(run: ProductionRun, number: int, at: int) -> Review:
    # Now and then an alarm, and some runs later that it was not confirmed.
    code = {11: "alarm", 14: "alarm_cleared"}.get(number % 50, "probation_goes_on")
    return Review(at, run.run, "t1", "compile", verdict="continue",
                  reasons=(Reason(code, f"compile: {code}"),))  # fmt: skip


def _changed(version: int, at: int, to: Flag, was: Flag, **more: Any) -> Mapping[str, Any]:
    values = {"at": at, "from": was.to_json(), "change_id": f"c{version}", "decision_id": "d1"}
    return flag(version, 0, to, **values, **more)


def _evidence(past: WorkloadHistory, most: int) -> dict[str, Any] | None:
    promotion = standing_promotion(past.flags)
    if promotion is None:
        return None
    first = replace(promotion, at=BEGIN)
    return probation_document(trial_evidence(), first, watched_runs(past.runs, first).runs[:most])
