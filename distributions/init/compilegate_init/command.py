"""``compilegate init``: a workload file from a training script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.check import note_of
from compilegate.cli.common import project
from compilegate.cli.common.output import answer, is_interactive
from compilegate.cli.common.session import JsonOption
from compilegate.domain.fields import LARGEST, LARGEST_WHOLE
from compilegate.domain.notes import said
from compilegate_doctor import Description
from compilegate_init import questions
from compilegate_init.project import (
    data_of,
    described,
    file_of,
    head_of,
    lacking,
    name_of,
    newest_image,
    project_of,
)
from compilegate_init.proposal import (
    ASSUMED,
    OPEN,
    Answers,
    document_of,
    lines,
    places,
    propose,
    usual_margin,
    with_cap,
)

TEMPLATES = Path(__file__).with_name("templates")


def init(
    script: questions.ScriptArgument,
    *,
    output: questions.OutputOption = None,
    name: questions.NameOption = None,
    instance_type: questions.InstanceTypeOption = None,
    run_hours: questions.RunHoursOption = None,
    runs_per_week: questions.RunsPerWeekOption = None,
    samples: Annotated[
        int | None,
        typer.Option("--training-samples", min=1, max=LARGEST_WHOLE, help="Samples to train on."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing, assume defaults.")] = False,
    force: questions.ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a workload file from a training script.

    The script is read, not run: its arguments, metric, precision and length. What no script says
    is asked on a terminal, else assumed and marked; what could not be read becomes TODO.

    \b
    compilegate init train.py
    compilegate init train.py --output jobs/bert.yaml --run-hours 6
    compilegate init train.py --yes --json

    Then: compilegate check NAME.yaml lists what is left to write, and compilegate try NAME.yaml
    runs two steps of every arm on this machine.
    """
    read = described(script)
    called = name_of(script, name)
    file = file_of(output, called, force=force)
    folder, source_dir = project_of(script, file)
    answers = Answers(
        called, source_dir, script.name, newest_image(read), instance_type, run_hours,
        runs_per_week, samples, data=data_of(read, script, folder),
    )  # fmt: skip
    if not yes and not as_json and is_interactive():
        answers = _asked(answers, read)
    proposal = with_cap(propose(read, answers), project.settings())
    text = [
        *head_of(file, f"{script.name}, as compilegate init read it without running it."),
        *(line for item in proposal.items() for line in lines(*item)),
    ]
    write_whole(file, ("\n".join(text) + "\n").encode())
    document = {
        "file": str(file), "workload": document_of(proposal),
        "todo": list(places(proposal, OPEN)), "assumed": list(places(proposal, ASSUMED)),
        "script": {"kind": read.kind, "arguments": read.command_line.reader,
                   "packages": lacking(read, script),
                   "compiles": read.compiles.to_dict() if read.compiles else None},
    }  # fmt: skip
    notes = said(note_of("The script", read.compiles))
    answer(document, TEMPLATES / "init", as_json=as_json, read=read, notes=notes)


def _asked(answers: Answers, script: Description) -> Answers:
    """The answers with what a person says; an empty line takes the default."""
    answers = questions.with_schedule(answers)
    left = places(propose(script, answers), OPEN)
    if "training.hyperparameters.full_run_samples" in left:
        question = "Training samples (0: I will write it later)"
        samples = typer.prompt(question, default=0, value_proc=questions.whole)
        answers = replace(answers, samples=samples or None)
    if script.metrics:
        metric = script.metrics[0]
        unit = "percentage points" if metric.percent else "the metric's own unit"
        margin = typer.prompt(
            f"Largest loss of {metric.name} that you accept, in {unit}",
            default=usual_margin(metric),
            value_proc=questions.up_to(LARGEST),
        )
        answers = replace(answers, margin=margin)
    return answers
