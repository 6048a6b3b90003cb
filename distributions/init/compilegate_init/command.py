"""``compilegate init``: a workload file from a training script."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.adapters.yaml_document import NOTEBOOK, SCRIPT
from compilegate.cli.check import note_of
from compilegate.cli.common import project
from compilegate.cli.common.output import answer, is_interactive
from compilegate.cli.common.session import JsonOption
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import parts
from compilegate.domain.fields import LARGEST, LARGEST_WHOLE, Fields
from compilegate.domain.notes import said
from compilegate.domain.workload.file import parse_name
from compilegate.domain.workload.model import MOST_HOURS, Schedule, Training
from compilegate.facts import load_facts
from compilegate.place import INSTALLED, PROJECT
from compilegate_doctor import Description, ScriptError, describe
from compilegate_init.proposal import (
    ASSUMED,
    CHANNEL,
    INPUTS,
    INSTANCE_TYPE,
    NAMES,
    OPEN,
    RUN_HOURS,
    RUNS_PER_WEEK,
    Answers,
    Data,
    document_of,
    find,
    lines,
    places,
    propose,
    usual_margin,
    with_cap,
)

# What the images of PyTorch and Hugging Face have, and a job's bundle.
IN_IMAGES = {"torch", "numpy", "transformers", "datasets", "accelerate", "compilegate_runtime"}
# Names of a script that say nothing of what it trains; the folder's does.
ANY_SCRIPT = ("train", "main", "run", "script")
SCHEMA = "workload.schema.json"
TEMPLATES = Path(__file__).with_name("templates")


def init(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="The Python file that trains.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: NAME.yaml in this folder.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The workload's. Default: after the script, or its folder."),
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", help="Where production trains.")
    ] = None,
    run_hours: Annotated[
        float | None,
        typer.Option("--run-hours", max=MOST_HOURS, help="Hours of a whole run today."),
    ] = None,
    runs_per_week: Annotated[
        float | None, typer.Option("--runs-per-week", help="Of production.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--training-samples", min=1, max=LARGEST_WHOLE, help="Samples to train on."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing, assume defaults.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
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
    generic = script.stem.lower() in ANY_SCRIPT
    stem = script.resolve().parent.name if generic else script.stem
    made = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:32].strip("-") or "job"
    called = made if name is None else parse_name(Fields({"name": name}))
    file = output or Path(f"{called}.yaml")
    if file.suffix not in (".yaml", ".yml"):
        raise InvalidInputError(
            "is not a YAML file", field="--output", value=str(file), fix="name it like job.yaml"
        )
    if file.exists() and not force:
        raise InvalidInputError(
            "exists already", file=str(file), fix="add --force to overwrite it, or name --output"
        )
    folder, source_dir = _project_of(script, file)
    answers = Answers(
        called, source_dir, script.name, _framework(read), instance_type, run_hours, runs_per_week,
        samples, data=_data_of(read, script, folder),
    )  # fmt: skip
    if not yes and not as_json and is_interactive():
        answers = _asked(answers, read)
    proposal = with_cap(propose(read, answers), project.settings())
    text = [*_head(script, file), *(line for item in proposal.items() for line in lines(*item))]
    write_whole(file, ("\n".join(text) + "\n").encode())
    document = {
        "file": str(file), "workload": document_of(proposal),
        "todo": list(places(proposal, OPEN)), "assumed": list(places(proposal, ASSUMED)),
        "script": {"kind": read.kind, "arguments": read.command_line.reader,
                   "packages": _lacking(read, script),
                   "compiles": read.compiles.to_dict() if read.compiles else None},
    }  # fmt: skip
    notes = said(note_of("The script", read.compiles))
    answer(document, TEMPLATES / "init", as_json=as_json, read=read, notes=notes)


def described(path: Path) -> Description:
    """Read the script; every kind of file that is none has its own error."""
    listing = ", ".join(sorted(item.name for item in path.glob("*.py")))
    name_it = "name the .py file that trains"
    for is_so, problem, fix in (
        (path.is_dir(), "is a folder",
         f"name the script that trains{': ' if listing else ''}{listing}"),
        (path.suffix == NOTEBOOK, "is a notebook",
         f"export it first: jupyter nbconvert --to script {path.name}"),
        (path.suffix != SCRIPT,
         "is not a Python file" if path.exists() else "does not exist", name_it),
        # Reading a pipe waits for its writer.
        (path.exists() and not path.is_file(), "is not a plain file", name_it),
    ):  # fmt: skip
        if is_so:
            raise InvalidInputError(problem, file=str(path), fix=fix)
    try:
        return describe(path.read_bytes(), str(path), lambda name: _module(name, path.parent))
    except ScriptError as error:
        raise InvalidInputError(
            error.problem, field=error.place, file=error.file, fix=error.fix
        ) from error
    except OSError as error:
        raise InvalidInputError(
            f"cannot be read: {error.strerror}", file=str(path), fix="name the file that trains"
        ) from error


def _module(name: str, folder: Path) -> bytes | None:
    """The file of a module beside the script, None where it is none of its project."""
    if not name.strip("."):
        return None
    up = len(name) - len(name.lstrip("."))  # one dot: the script's own package
    for start in [folder, *folder.parents][max(up - 1, 0) : max(up, 1)]:
        place = start.joinpath(*name.strip(".").split("."))
        for file in (place.with_suffix(SCRIPT), place / "__init__.py"):
            if file.is_file():
                return file.read_bytes()
    return None


def _project_of(script: Path, file: Path) -> tuple[Path, str]:
    """The folder that the file's paths start from, and the script's folder from there."""
    own = script.resolve().parent
    for folder in file.resolve().parents[:2]:
        if own.is_relative_to(folder):
            return folder, own.relative_to(folder).as_posix()
    raise InvalidInputError(
        "lies neither below the workload file's folder nor below the one above it",
        file=str(script), fix=f"write the file beside it: --output {script.parent / file.name}",
    )  # fmt: skip


def _framework(script: Description) -> dict[str, str]:
    """The newest image that has what the script imports."""
    kind = "huggingface-pytorch" if "transformers" in script.packages else "pytorch"
    rows = [row for row in load_facts().images if row.framework == kind and row.gpu_tag]
    newest = max(rows, key=lambda row: (parts(row.version), parts(row.transformers or "0")))
    transformers = {"transformers": newest.transformers} if newest.transformers else {}
    return {"name": kind, "version": newest.version, **transformers}


def _data_of(script: Description, path: Path, folder: Path) -> Data | None:
    """A path of the project that the script reads its data from by default."""
    option = find(script, "data")
    if not option or not isinstance(option.default, str) or not option.default.strip("./"):
        return None
    for start in (Path.cwd(), path.parent):
        data = Path(os.path.normpath(start.resolve() / option.default))
        if data.exists() and data.is_relative_to(folder) and data != folder:
            name = "" if data.is_dir() else f"/{data.name}"
            place = f"{INPUTS}/{CHANNEL}{name}"
            return Data(option.name, data.relative_to(folder).as_posix(), place)
    return None


def _asked(answers: Answers, script: Description) -> Answers:
    """The answers with what a person says; an empty line takes the default."""
    schedule = Schedule.keys()
    for name, question, default, read in (
        ("instance_type", "Instance type of production", INSTANCE_TYPE, _instance),
        ("run_hours", "Hours of a whole run", RUN_HOURS, _up_to(schedule["run_hours"].high)),
        ("runs_per_week", "Runs per week", float(RUNS_PER_WEEK),
         _up_to(schedule["runs_per_week"].high)),
    ):  # fmt: skip
        if getattr(answers, name) is None:
            said_ = typer.prompt(question, default=default, value_proc=read)
            answers = replace(answers, **{name: said_})
    left = places(propose(script, answers), OPEN)
    if "training.hyperparameters.full_run_samples" in left:
        question = "Training samples (0: I will write it later)"
        samples = typer.prompt(question, default=0, value_proc=_samples)
        answers = replace(answers, samples=samples or None)
    if script.metrics:
        metric = script.metrics[0]
        unit = "percentage points" if metric.percent else "the metric's own unit"
        margin = typer.prompt(
            f"Largest loss of {metric.name} that you accept, in {unit}",
            default=usual_margin(metric),
            value_proc=_up_to(LARGEST),
        )
        answers = replace(answers, margin=margin)
    return answers


# Readers of what a person says; a BadParameter is shown, and the question asked again.


def _instance(text: str) -> Any:
    try:
        key = Training.keys()["instance_type"]
        return Fields({"instance_type": text}).value("instance_type", key)
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


def _head(script: Path, file: Path) -> list[str]:
    said_ = f"# {script.name}, as compilegate init read it without running it."
    folder = file.resolve().parent
    # Relative: the file is for a team's repository, where this machine's paths mean nothing.
    schema = None
    if (folder / SCHEMA).is_file():
        schema = SCHEMA
    elif not INSTALLED and folder.is_relative_to(PROJECT):
        schema = os.path.relpath(PROJECT / "docs" / SCHEMA, folder)
    if schema:
        return [f"# yaml-language-server: $schema={schema}", said_]
    return [
        said_,
        f"# For editors: compilegate schema > {SCHEMA}, and as the first line here",
        f"#   # yaml-language-server: $schema={SCHEMA}",
    ]


def _lacking(script: Description, path: Path) -> list[str]:
    """Packages that an image may lack, where nothing beside the script lists any."""
    if (path.parent / "requirements.txt").is_file():
        return []
    own = {item.stem for item in path.parent.iterdir()}
    needed = script.packages - script.optional
    lacking = needed - sys.stdlib_module_names - IN_IMAGES - own
    return sorted(NAMES["installed_as"].get(name, name) for name in lacking)
