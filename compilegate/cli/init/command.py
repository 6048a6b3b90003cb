"""``compilegate init``: writes a workload file from a training script."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.adapters.yaml_file import NOTEBOOK, SCRIPT
from compilegate.cli.common import project
from compilegate.cli.common.output import emit_json, is_interactive, say, say_line
from compilegate.cli.common.own_compiling import note_of
from compilegate.cli.common.session import JsonOption
from compilegate.cli.init import names
from compilegate.cli.init.data import data_of
from compilegate.cli.init.price import with_cap
from compilegate.cli.init.proposal import Answers, propose, workload_name
from compilegate.cli.init.questions import asked
from compilegate.cli.init.render import ASSUMED, OPEN, Proposal, document_of, places, render
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import parts
from compilegate.domain.fields import LARGEST_WHOLE, Fields
from compilegate.domain.formats import plural
from compilegate.domain.notes import said
from compilegate.domain.workload.file import parse_name
from compilegate.domain.workload.model import MOST_HOURS
from compilegate.facts import load_facts
from compilegate.place import INSTALLED, PROJECT
from compilegate_doctor import Description, ScriptError, describe

# What the images of PyTorch and Hugging Face have, and a job's bundle.
IN_IMAGES = {"torch", "numpy", "transformers", "datasets", "accelerate", "compilegate_runtime"}
# Names of a script that say nothing of what it trains; the folder's does.
ANY_SCRIPT = ("train", "main", "run", "script")
# How each kind of the launcher's is named in a sentence.
_KINDS = {
    "plain": "a plain training loop", "trainer": "a Trainer script",
    "accelerate": "an accelerate script", "lightning": "a Lightning script",
}  # fmt: skip
SCHEMA = "workload.schema.json"


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
    description = _described(script)
    called = _name_after(script) if name is None else parse_name(Fields({"name": name}))
    file = output or Path(f"{called}.yaml")
    _check_output(file, force=force)
    folder, source_dir = _project_of(script, file)
    answers = Answers(
        name=called,
        source_dir=source_dir,
        script=script.name,
        framework=_framework(description),
        instance_type=instance_type,
        run_hours=run_hours,
        runs_per_week=runs_per_week,
        samples=samples,
        data=data_of(description, script, folder),
    )
    if not yes and not as_json and is_interactive():
        answers = asked(answers, description)
    proposal = with_cap(propose(description, answers), project.settings())
    write_whole(file, render(proposal, _head(script, file)).encode())
    _show(file, description, proposal, lacking=_lacking(description, script), as_json=as_json)


def _name_after(script: Path) -> str:
    """The script's name; its folder's where every project has a script of that name."""
    generic = script.stem.lower() in ANY_SCRIPT
    return workload_name(script.resolve().parent.name if generic else script.stem)


def _described(path: Path) -> Description:
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


def _check_output(file: Path, *, force: bool) -> None:
    if file.suffix not in (".yaml", ".yml"):
        raise InvalidInputError(
            "is not a YAML file", field="--output", value=str(file), fix="name it like job.yaml"
        )
    if file.exists() and not force:
        raise InvalidInputError(
            "exists already", file=str(file), fix="add --force to overwrite it, or name --output"
        )


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


def _head(script: Path, file: Path) -> list[str]:
    lines = [f"# {script.name}, as compilegate init read it without running it."]
    folder = file.resolve().parent
    # Relative: the file is for a team's repository, where this machine's paths mean nothing.
    if (folder / SCHEMA).is_file():
        lines.insert(0, f"# yaml-language-server: $schema={SCHEMA}")
    elif not INSTALLED and folder.is_relative_to(PROJECT):
        kept = os.path.relpath(PROJECT / "docs" / SCHEMA, folder)
        lines.insert(0, f"# yaml-language-server: $schema={kept}")
    else:
        lines += [f"# For editors: compilegate schema > {SCHEMA}, and as the first line here",
                  f"#   # yaml-language-server: $schema={SCHEMA}"]  # fmt: skip
    return lines


def _lacking(script: Description, path: Path) -> list[str]:
    """Packages that an image may lack, where nothing beside the script lists any."""
    if (path.parent / "requirements.txt").is_file():
        return []
    own = {item.stem for item in path.parent.iterdir()}
    needed = script.packages - script.optional
    lacking = needed - sys.stdlib_module_names - IN_IMAGES - own
    return sorted(names.INSTALLED_AS.get(name, name) for name in lacking)


def _show(
    file: Path, script: Description, proposal: Proposal, *, lacking: list[str], as_json: bool
) -> None:
    todo, assumed = list(places(proposal, OPEN)), list(places(proposal, ASSUMED))
    if as_json:
        emit_json({
            "file": str(file), "workload": document_of(proposal), "todo": todo, "assumed": assumed,
            "script": {"kind": script.kind, "arguments": script.command_line.reader,
                       "packages": lacking,
                       "compiles": script.compiles.to_dict() if script.compiles else None},
        })  # fmt: skip
        return
    kind = _KINDS[script.kind] if script.trains else "a script that is not seen to train"
    say(f"{file}: written from {kind}, {_read_with(script)}.")
    for text in said(note_of("The script", script.compiles)):
        say(text)
    if script.trains and not script.steps:
        say("No optimizer's step was seen in it: the launcher counts training steps by them, so a "
            "loop that changes the weights itself fails with it.")  # fmt: skip
    if not script.trains:
        say("No training loop was seen in it: name the file that trains if this is not it.")
    _list("assumed, correct what is wrong", assumed)
    _list(f"{plural(len(todo), 'value')} to write (TODO)", todo)
    if lacking:
        say(f"It imports {', '.join(lacking)}: list in a requirements.txt beside it what the image "
            "lacks.")  # fmt: skip
    say("Next:")
    say_line(f"  compilegate check {file}")
    say_line(f"  compilegate try {file}")


def _read_with(script: Description) -> str:
    takes = script.command_line
    if takes.reader == "none":
        return "which takes no arguments"
    if takes.lost:
        where = f"{takes.reader} takes from a function that is not in it"
        return f"whose arguments, which {where}, were not read"
    if takes.unread:
        places = {"hydra": "are Hydra's", "elsewhere": "are in another file"}
        where = places.get(takes.reader, f"are read by {takes.reader}")
        return f"whose arguments {where} and were not read"
    others = " and others, whose names could not be read" if takes.partly else ""
    return f"with {plural(len(takes.options), 'argument')} ({takes.reader}){others}"


def _list(title: str, paths: list[str]) -> None:
    if paths:
        say(f"{title}: {', '.join(paths)}.", indent=2, hang=2)
