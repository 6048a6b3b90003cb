"""``pip install 'compilegate[local]'``: embedded cloud, the app in it and training, no checkout.

torch alone is not installed from a package: the build for CPUs is not offered everywhere, the
other one is five times the size. It is that of the training environment, file by file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tests.packages.conftest import ROOT, environment, packages, run, succeeded

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]
TRAINING = ROOT / ".venv-training"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==[^\\]*", re.MULTILINE)


def constraints(file: Path) -> Path:
    """What the locks pin, of two by the first one: ministack pins the boto3 that it extends."""
    pins: dict[str, list[str]] = {}
    for lock in ("localcloud", "tool", "training"):
        text = (ROOT / "requirements" / f"{lock}.lock").read_text()
        found: dict[str, list[str]] = {}
        for pin in PIN.finditer(text):
            found.setdefault(pin["name"], []).append(pin[0].strip())
        pins = found | pins
    file.write_text("\n".join(line for lines in pins.values() for line in lines))
    return file


def torch(source: Path, target: Path) -> None:
    """The files of the installed torch under other names; a copy where the disk is another."""
    (installed,) = source.glob("torch-*.dist-info")
    for name in {file.parts[0] for file in Distribution.at(installed).files or ()} - {".."}:
        try:
            shutil.copytree(source / name, target / name, copy_function=os.link)
        except shutil.Error:
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def compilegate(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, in an environment with the wheel and what its extra requires."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    pins = constraints(place.with_name("constraints.txt"))
    python = environment(
        place, str(TRAINING / "bin" / "python"), wheels, "compilegate[local]", constraint=pins,
        before=lambda: torch(packages(TRAINING), packages(place)),
    )  # fmt: skip
    return python.with_name("compilegate")


@pytest.fixture(scope="module")
def examples(compilegate: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's copy of what the wheel carries, with the data that its own script makes."""
    folder = tmp_path_factory.mktemp("user") / "examples"
    shutil.copytree(packages(compilegate.parents[1]) / "compilegate" / "shipped", folder)
    data = Path("workloads") / "data"
    succeeded(compilegate.with_name("python"), "training/prepare_data.py", data, folder=folder)
    return folder


def test_a_trial_runs_through_the_deployed_app(compilegate: Path, examples: Path) -> None:
    """The embedded cloud starts, the template is made and deployed, the state machine decides."""
    ended = run(
        compilegate, "run", "workloads/demo-tabular.yaml", "--local", "--json",
        folder=examples, XDG_CACHE_HOME=str(examples.parent),
    )  # fmt: skip

    assert 10 == ended.returncode, ended.stderr
    assert "ineligible" == json.loads(ended.stdout)["verdict"]


def test_a_try_trains_with_the_torch_of_the_environment(compilegate: Path, examples: Path) -> None:
    """Code and workload are the wheel's, copied as its own message says."""
    tried = json.loads(
        succeeded(
            compilegate, "try", "workloads/demo-lm.yaml", "--arm", "baseline", "--json",
            folder=examples, XDG_CACHE_HOME=str(examples.parent),
        )
    )  # fmt: skip

    assert [("baseline", "ok", 2)] == [
        (arm["arm"], arm["outcome"], arm["steps"]) for arm in tried["arms"]
    ]
