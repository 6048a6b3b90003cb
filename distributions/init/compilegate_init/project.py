"""A script's project: what it imports, where it and its data lie, what is named after it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from compilegate.adapters.yaml_document import NOTEBOOK, SCRIPT
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import parts
from compilegate.domain.fields import Fields
from compilegate.domain.workload.file import parse_name
from compilegate.facts import load_facts
from compilegate.place import INSTALLED, PROJECT
from compilegate_doctor import Description, ScriptError, describe
from compilegate_init.proposal import CHANNEL, INPUTS, NAMES, Data, find

# What the images of PyTorch and Hugging Face have, and a job's bundle.
IN_IMAGES = {"torch", "numpy", "transformers", "datasets", "accelerate", "compilegate_runtime"}
# Names of a script that say nothing of what it trains; the folder's does.
ANY_SCRIPT = ("train", "main", "run", "script")
SCHEMA = "workload.schema.json"
ON_TORCH = {"torch", "lightning", "pytorch_lightning", "accelerate", "trl", "timm", "fastai"}
# Packages, the name of what they are, and what can be done for such a script.
OTHERS = (
    ({"jax", "flax", "haiku", "equinox", "optax"}, "JAX",
     "nothing is left to turn on: jax.jit compiles with XLA already"),
    ({"tensorflow", "tf_keras"}, "TensorFlow",
     "for SageMaker's compiler write a workload file with framework.name: tensorflow by hand; "
     "jit_compile=True of model.compile is TensorFlow's own"),
    ({"keras"}, "Keras",
     "where it trains on PyTorch set KERAS_BACKEND=torch; model.compile(jit_compile=True) is "
     "Keras's own switch"),
)  # fmt: skip


def name_of(script: Path, name: str | None) -> str:
    """The workload's name: as given, else after the script, or its folder."""
    if name is not None:
        return parse_name(Fields({"name": name}))
    generic = script.stem.lower() in ANY_SCRIPT
    stem = script.resolve().parent.name if generic else script.stem
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:32].strip("-") or "job"


def file_of(output: Path | None, name: str, *, force: bool) -> Path:
    """The file to write. Raises InvalidInputError where it is none, or exists without ``force``."""
    file = output or Path(f"{name}.yaml")
    if file.suffix not in (".yaml", ".yml"):
        raise InvalidInputError(
            "is not a YAML file", field="--output", value=str(file), fix="name it like job.yaml"
        )
    if file.exists() and not force:
        raise InvalidInputError(
            "exists already", file=str(file), fix="add --force to overwrite it, or name --output"
        )
    return file


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
        read = describe(path.read_bytes(), str(path), lambda name: _module(name, path.parent))
    except ScriptError as error:
        raise InvalidInputError(
            error.problem, field=error.place, file=error.file, fix=error.fix
        ) from error
    except OSError as error:
        raise InvalidInputError(
            f"cannot be read: {error.strerror}", file=str(path), fix="name the file that trains"
        ) from error
    _refuse_others(read, path)
    return read


def keras_backend(read: Description) -> dict[str, str]:
    """The variable by which Keras trains on PyTorch; empty for any other script."""
    name, here = "KERAS_BACKEND", os.environ.get("KERAS_BACKEND")
    return {name: here} if "keras" in read.packages and here == "torch" else {}


def _refuse_others(read: Description, path: Path) -> None:
    """Raise InvalidInputError for a script that trains with another framework than PyTorch."""
    if read.packages & ON_TORCH or keras_backend(read):
        return
    for packages, name, fix in OTHERS:
        if read.packages & packages:
            raise InvalidInputError(
                f"trains with {name}, not with PyTorch", file=str(path), fix=fix
            )


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


def project_of(script: Path, file: Path) -> tuple[Path, str]:
    """The folder that the file's paths start from, and the script's folder from there."""
    own = script.resolve().parent
    for folder in file.resolve().parents[:2]:
        if own.is_relative_to(folder):
            return folder, own.relative_to(folder).as_posix()
    raise InvalidInputError(
        "lies neither below the workload file's folder nor below the one above it",
        file=str(script), fix=f"write the file beside it: --output {script.parent / file.name}",
    )  # fmt: skip


def newest_image(script: Description) -> dict[str, str]:
    """The newest image that has what the script imports."""
    kind = "huggingface-pytorch" if "transformers" in script.packages else "pytorch"
    rows = [row for row in load_facts().images if row.framework == kind and row.gpu_tag]
    newest = max(rows, key=lambda row: (parts(row.version), parts(row.transformers or "0")))
    transformers = {"transformers": newest.transformers} if newest.transformers else {}
    return {"name": kind, "version": newest.version, **transformers}


def data_of(script: Description, path: Path, folder: Path) -> Data | None:
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


def head_of(file: Path, sentence: str) -> list[str]:
    """The first lines of a workload file: where its schema is, and how it came about."""
    said_ = f"# {sentence}"
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


def lacking(script: Description, path: Path) -> list[str]:
    """Packages that an image may lack, where nothing beside the script lists any."""
    if (path.parent / "requirements.txt").is_file():
        return []
    own = {item.stem for item in path.parent.iterdir()}
    needed = script.packages - script.optional
    lacking = needed - sys.stdlib_module_names - IN_IMAGES - own
    return sorted(NAMES["installed_as"].get(name, name) for name in lacking)
