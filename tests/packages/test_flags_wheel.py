"""``pip install compilegate-flags``: a pipeline reads its flag with nothing else of Compilegate."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages.conftest import (
    ROOT,
    environment,
    files_of,
    interpreter,
    run,
    wheel,
)

pytestmark = pytest.mark.slow
COMPILERS = ROOT / "compilegate" / "domain" / "compilers"
OLDEST = "3.9"
# A whole answer without AWS: a client of the test's own.
READ = """
from compilegate.flags import *
class Client:
    def get_parameter(self, Name):
        assert Name == "/compilegate/prod/workloads/bert-docs/compiler", Name
        value = ('{"schema": 1, "enabled": true, "state": "permanent", "candidate": "compile", '
                 '"overrides": {"compiler": "torch_compile", "batch_size": 48, '
                 '"learning_rate": 7.5e-05, "hyperparameters": {"a": 1}}, "decision_id": "d"}')
        return {"Parameter": {"Value": value}}
assert resolve("bert-docs", client=Client())["batch_size"] == 48
job = estimator_arguments("bert-docs", client=Client(), hyperparameters={"batch_size": 32})
assert job["hyperparameters"]["batch_size"] == 48, job
assert job["hyperparameters"]["arm"] == "compile", job
job = model_trainer_arguments("bert-docs", client=Client(), hyperparameters={"batch_size": 32})
assert job["hyperparameters"]["compiler"] == "torch_compile", job
job = training_job_request("bert-docs", {"HyperParameters": {}}, client=Client())
assert job["HyperParameters"]["learning_rate"] == "7.5e-05", job
print("followed")
"""


def test_it_carries_what_it_imports_and_nothing_else(wheels: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import compilegate.flags\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('compilegate')))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    imported = {Path(name).relative_to(ROOT).as_posix() for name in ran.stdout.split()}

    compilers = {file.relative_to(ROOT).as_posix() for file in COMPILERS.glob("*.json")}

    assert compilers
    assert imported | compilers == files_of(wheel(wheels, "compilegate_flags"))


@pytest.mark.parametrize("python", [OLDEST, "3.11"])
def test_it_follows_a_flag_with_nothing_else_installed(
    python: str, wheels: Path, tmp_path: Path
) -> None:
    installed = environment(tmp_path / "venv", interpreter(python), wheels, "compilegate-flags")

    ended = run(installed, "-c", READ, folder=tmp_path)

    assert (0, "followed\n") == (ended.returncode, ended.stdout), ended.stderr
    assert "compilegate.flags cannot read any flag: boto3 is not installed" in ended.stderr


def test_nothing_of_it_is_newer_than_the_oldest_python(wheels: Path, tmp_path: Path) -> None:
    """Where that Python is not installed, its grammar at least is held."""
    import ast  # noqa: PLC0415

    shutil.unpack_archive(wheel(wheels, "compilegate_flags"), tmp_path, "zip")
    for file in tmp_path.rglob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))
