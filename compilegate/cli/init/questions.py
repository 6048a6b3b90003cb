"""What ``init`` asks on a terminal; a wrong answer is asked for again at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import typer

from compilegate.cli.init.proposal import (
    INSTANCE_TYPE,
    RUN_HOURS,
    RUNS_PER_WEEK,
    Answers,
    propose,
    usual_margin,
)
from compilegate.cli.init.render import OPEN, places
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import LARGEST, LARGEST_WHOLE, Fields
from compilegate.domain.workload.model import Schedule, Training
from compilegate_doctor import Description, Metric


def asked(answers: Answers, script: Description) -> Answers:
    """The answers with what a person says; an empty line takes the default."""
    schedule = Schedule.keys()
    for name, question, default, read in (
        ("instance_type", "Instance type of production", INSTANCE_TYPE, _instance),
        ("run_hours", "Hours of a whole run", RUN_HOURS, _up_to(schedule["run_hours"].high)),
        ("runs_per_week", "Runs per week", float(RUNS_PER_WEEK),
         _up_to(schedule["runs_per_week"].high)),
    ):  # fmt: skip
        if getattr(answers, name) is None:
            answer = typer.prompt(question, default=default, value_proc=read)
            answers = replace(answers, **{name: answer})
    left = places(propose(script, answers), OPEN)
    if "training.hyperparameters.full_run_samples" in left:
        samples = typer.prompt(
            "Training samples (0: I will write it later)", default=0, value_proc=_samples
        )
        answers = replace(answers, samples=samples or None)
    if script.metrics:
        answers = replace(answers, margin=_margin(script.metrics[0]))
    return answers


def _margin(metric: Metric) -> float:
    unit = "percentage points" if metric.percent else "the metric's own unit"
    answer: float = typer.prompt(
        f"Largest loss of {metric.name} that you accept, in {unit}",
        default=usual_margin(metric),
        value_proc=_up_to(LARGEST),
    )
    return answer


def _instance(text: str) -> str:
    """An instance type by its form; a BadParameter is shown, and the question asked again."""
    try:
        return str(
            Fields({"instance_type": text}).value("instance_type", Training.keys()["instance_type"])
        )
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error


def _up_to(most: float) -> Callable[[str], float]:
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


def _samples(text: str) -> int:
    """A whole number; people write 50,000 and 50_000 too."""
    try:
        number = int(str(text).replace(",", ""))
    except ValueError:
        number = -1
    if not 0 <= number <= LARGEST_WHOLE:
        raise typer.BadParameter("must be a whole number, 0 if you will write it later")
    return number
