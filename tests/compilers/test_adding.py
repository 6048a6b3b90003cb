"""A compiler that is a variant of no other is added by its two files and its test.

The stand-in exists nowhere and compiles nothing: ``stand_in`` holds its two files, which are laid
into a copy of the sources, and ``journey.py`` takes it through all that asks for compilers. Two
more files add a stand-in of another library.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
NAME, OTHER = "stand_in", "stand_in_jax"  # the other one compiles no library of our images
# Where CONTRIBUTING.md says that they go.
FILES = {
    "descriptor.json": f"compilegate/domain/compilers/{NAME}.json",
    "backend.py": f"training/compilegate_runtime/compilers/{NAME}.py",
    "other_descriptor.json": f"compilegate/domain/compilers/{OTHER}.json",
    "other_backend.py": f"training/compilegate_runtime/compilers/{OTHER}.py",
}
ASSUMED = "assumption: made up for a test"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the journey printed."""
    copy = tmp_path_factory.mktemp("copy")
    work = tmp_path_factory.mktemp("work")
    for folder in ("compilegate", "training"):
        ignored = shutil.ignore_patterns("__pycache__", "emulator", "data")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for name, place in FILES.items():
        shutil.copy(HERE / "stand_in" / name, copy / place)
    paths = (copy, copy / "training", ROOT)
    ran = subprocess.run(
        [sys.executable, HERE / "journey.py"],
        cwd=work,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ran.returncode, ran.stderr
    return json.loads(ran.stdout)


def test_a_workload_file_and_a_job_may_name_it(answers: Any) -> None:
    assert all(NAME in names for names in answers["names"].values())
    assert set(answers["names"]["workload"]) == set(answers["names"]["training"])


def test_eligibility_rests_on_what_its_descriptor_says(answers: Any) -> None:
    for eligibility in (answers["planned"]["eligibility"], answers["check"]):
        (tried,) = eligibility["candidates"]
        needs = next(one for one in tried["reasons"] if one["code"] == "script_needs_port")

        assert "benchmark" == tried["verdict"]
        assert "stand_in.begin()" in needs["message"]
        assert all(ASSUMED in text for text in eligibility["economics"]["assumptions"])


def test_its_trial_is_planned_and_requested(answers: Any) -> None:
    planned = answers["planned"]

    assert {"compiler": NAME, "compile_seconds": 80} == planned["arm"]
    assert planned["trial_usd"] > 0
    assert json.dumps(NAME) == planned["hyperparameters"]["compiler"]
    assert json.dumps("careful") == planned["hyperparameters"]["compile_mode"]


def test_a_job_proves_that_it_was_applied(answers: Any) -> None:
    trained = answers["trained"]

    assert f"compiler {NAME} was requested but not applied" == trained["refused"]
    assert (NAME, True, "1 calls") == tuple(
        trained["evidence"][key] for key in ("requested", "applied", "proof")
    )


def test_a_script_that_knows_nothing_of_it_is_refused_by_the_launcher(answers: Any) -> None:
    assert "a script has to be ported to it" in answers["launched"]


def test_a_compiler_of_another_library_is_blocked(answers: Any) -> None:
    (tried,) = answers["other"]["candidates"]
    blocked = next(one for one in tried["reasons"] if one["code"] == "framework_unsupported")

    assert "stand_in_jax compiles jax, not pytorch" == blocked["message"]
    assert "ineligible" == tried["verdict"]
