"""The name beside a result changes with the judge, and with nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from benchmarks.decision.provenance import REPOSITORY, judge_name
from tools.archive_judge import judge_of

JUDGING = "compilegate/domain/judging"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(REPOSITORY / "compilegate", tmp_path / "compilegate")
    return tmp_path


@pytest.mark.parametrize("name", ["design", "monitor", "speed"])
def test_a_changed_constant_changes_the_name(name: str, checkout: Path) -> None:
    place = checkout / JUDGING / f"{name}.py"
    text = place.read_text()
    constant = re.search(r"^[A-Z_]+ = \D*(?=\d)", text, re.MULTILINE)
    assert constant

    place.write_text(text[: constant.end()] + "9" + text[constant.end() :])

    assert judge_name() != judge_name(checkout)


def test_a_changed_key_changes_the_name(checkout: Path) -> None:
    place = checkout / "compilegate/domain/workload/model.py"
    place.write_text(place.read_text().replace("    alpha: float", "    alfa: float"))

    assert judge_name() != judge_name(checkout)


def test_all_of_the_judging_package_decides_but_advice_and_a_reports_figures() -> None:
    _, files = judge_of(REPOSITORY)
    own = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / JUDGING).glob("*.py")}

    assert own - files.keys() == {
        f"{JUDGING}/{name}.py" for name in ("measured", "outlook", "resolution")
    }


def test_what_does_not_decide_leaves_the_name(checkout: Path) -> None:
    for place in ("compilegate/domain/production/probation.py", "compilegate/cli/main.py"):
        (checkout / place).write_text("")

    assert judge_name() == judge_name(checkout)
