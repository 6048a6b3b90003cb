"""What ``compilegate judge`` can be told."""

from __future__ import annotations

from typing import Annotated

import typer

FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="An evidence document (JSON), - reads it; with --plan a workload too."
    ),
]
JsonlOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Many documents, one per line; - is standard input."),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Every number with formula, inputs and plain words.")
]
PlanOption = Annotated[
    bool, typer.Option("--plan", help="How many full runs a proof of quality takes.")
]
SpreadOption = Annotated[
    float | None, typer.Option(help="With --plan: how much the metric differs from run to run.")
]
MarginOption = Annotated[
    float | None, typer.Option(help="With --plan: the loss that must be ruled out, same unit.")
]
HistoryOption = Annotated[int | None, typer.Option(help="With --plan: past baseline runs known.")]
MaxRunsOption = Annotated[
    int | None, typer.Option(help="With --plan: full runs allowed per candidate.")
]
CandidatesOption = Annotated[
    int | None, typer.Option(help="With --plan: candidates that share the error.")
]
AlphaOption = Annotated[
    float | None, typer.Option(help="With --plan: chance of promoting a bad one, 0.05 if not said.")
]
ReplayOption = Annotated[
    str | None,
    typer.Option(metavar="DECISION_ID", help="Decide again on a recorded decision's evidence."),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With --replay: whose decision, to search no others."),
]
