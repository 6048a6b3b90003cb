"""What ``init`` and ``first`` ask: the options of both, and on a terminal questions.

A reader's BadParameter is shown, and the question asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import LARGEST_WHOLE, Fields
from compilegate.domain.workload.model import MOST_HOURS, Schedule, Training
from compilegate_init.proposal import INSTANCE_TYPE, RUN_HOURS, RUNS_PER_WEEK, Answers

ScriptArgument = Annotated[
    Path, typer.Argument(metavar="SCRIPT", help="The Python file that trains.")
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Default: NAME.yaml in this folder.")
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", help="The workload's. Default: after the script, or its folder."),
]
InstanceTypeOption = Annotated[
    str | None, typer.Option("--instance-type", help="Where production trains.")
]
RunHoursOption = Annotated[
    float | None, typer.Option("--run-hours", max=MOST_HOURS, help="Hours of a whole run today.")
]
RunsPerWeekOption = Annotated[float | None, typer.Option("--runs-per-week", help="Of production.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]


def instance(text: str) -> Any:
    """An instance type."""
    try:
        key = Training.keys()["instance_type"]
        return Fields({"instance_type": text}).value("instance_type", key)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error


def up_to(most: float) -> Callable[[str], float]:
    """Reads a number above 0 and at most ``most``."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= most:
            raise typer.BadParameter(f"must be a number above 0, at most {most:,.10g}")
        return number

    return read


def whole(text: str) -> int:
    """A whole number; people write 50,000 and 50_000 too."""
    try:
        number = int(str(text).replace(",", ""))
    except ValueError:
        number = -1
    if not 0 <= number <= LARGEST_WHOLE:
        raise typer.BadParameter("must be a whole number, 0 if you will write it later")
    return number


def with_schedule(answers: Answers) -> Answers:
    """With machines and schedule as a person says them; an empty line takes the default."""
    schedule = Schedule.keys()
    for name, question, default, read in (
        ("instance_type", "Instance type of production", INSTANCE_TYPE, instance),
        ("run_hours", "Hours of a whole run", RUN_HOURS, up_to(schedule["run_hours"].high)),
        ("runs_per_week", "Runs per week", float(RUNS_PER_WEEK),
         up_to(schedule["runs_per_week"].high)),
    ):  # fmt: skip
        if getattr(answers, name) is None:
            said = typer.prompt(question, default=default, value_proc=read)
            answers = replace(answers, **{name: said})
    return answers
