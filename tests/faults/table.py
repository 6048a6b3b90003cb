"""Every row: which kinds of faults are put into which executions."""

from __future__ import annotations

from tests.faults import outside, rows, slow
from tests.faults.machine import Execution
from tests.faults.rows import Row, Undisturbed, undisturbed
from tests.faults.scenarios import after_trial, approved, canary, production, trial
from tests.faults.world import Document, Truth

WITHIN = (rows.killed, rows.outlived, rows.lost, rows.failing, rows.failing_twice, rows.dying,
          rows.repeated)  # fmt: skip
TIMES = (slow.late, slow.too_late, slow.clocks, slow.job_clocks)
WORSE = Truth(speedup=1.4, loss=0.02)


def executions(workload: Document) -> list[Undisturbed]:
    """The executions without a fault."""
    made: dict[str, Execution] = {
        "trial": trial(workload),
        "trial of a worse candidate": trial(workload, WORSE),
        "trial with approval": approved(workload),
        "trial by canary": canary(workload),
        "production run": production(after_trial(workload)),
    }
    return [undisturbed(name, execution) for name, execution in made.items()]


def table(workload: Document) -> list[Row]:
    """Every row, in the order of its execution."""
    good, worse, approval, by_canary, run = executions(workload)
    table = [row for of in (good, approval, by_canary, run) for kind in WITHIN for row in kind(of)]
    table += [row for of in (good, worse, run) for kind in outside.AROUND for row in kind(of)]
    table += [row for kind in (rows.failing, rows.repeated) for row in kind(worse)]
    table += [row for of in (good, worse, by_canary, run) for kind in TIMES for row in kind(of)]
    table += [row for of in (run, by_canary) for row in slow.ledger_times(of)]
    table += [row for of in (good, by_canary) for row in slow.locks(of)]
    table += outside.copies(good)
    table += outside.retired(by_canary)
    for of in (good, run):
        started = [point for point in of.points if point.what == "CreateTrainingJob"]
        table += rows.broken_clean_up(of, started[1])
    return table
