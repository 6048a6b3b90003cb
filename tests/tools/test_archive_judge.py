"""An archive is the judge of a checkout, needs nothing else, and decides alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.place import PROJECT
from compilegate_judge import judges
from compilegate_judge.comparison import compare
from tests.domain.evidence_builder import GOOD, document, judge
from tests.domain.evidence_strategies import trials
from tools.archive_judge import archive

OLD_NAMES = {"min_mean_speedup": "promote_speedup", "min_proven_speedup": "reject_speedup"}
OLD_CODES = {
    "speed_unsettled": "speed_needs_blocks",
    "quality_unsettled": "quality_needs_runs",
}
FLAG = "/compilegate/prod/workloads/lm/compiler"


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive(PROJECT, tmp_path_factory.mktemp("judges"))


@pytest.fixture
def shelf(archived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that has the archive."""
    monkeypatch.setattr(judges, "FOLDER", archived.parent)


@pytest.mark.parametrize("metrics", [GOOD, {}], ids=["decided", "continued"])
def test_the_present_judge_is_archived_and_replayed(metrics: dict, shelf: None) -> None:
    evidence = document(metrics=metrics)

    again = judges.decide(JUDGE_VERSION, evidence, FLAG)

    assert judge(evidence).to_dict(FLAG) == again
    assert compare(judge(evidence).to_dict(FLAG), again).equal


@given(evidence=trials())
@settings(max_examples=12)
def test_what_0_2_0_decided_is_repeated_and_is_decided_today(evidence: dict[str, Any]) -> None:
    """But for version and identity, also where a table is known and nothing was examined by it."""
    policy = dict(evidence["policy"])
    for name, old in OLD_NAMES.items():
        if name in policy:
            policy[old] = policy.pop(name)
    then = judges.decide("2.1.0", {**evidence, "policy": policy}, FLAG)
    known = {"check": "f", "bounds": {"cpu.gradients.single": 9.0}, "classes": []}

    for reason in then["reasons"]:
        reason["code"] = OLD_CODES.get(reason["code"], reason["code"])

    assert "2.1.0" == then["judge_version"]
    for judged in (evidence, {**evidence, "equivalence": known}):
        now = judge(judged).to_dict(FLAG)
        (now["quality"] or {}).pop("equivalence", None)
        changed = {key: now[key] for key in ("judge_version", "decision_id")}
        assert compare(then | changed, now).equal


@pytest.mark.parametrize(
    ("version", "known"), [(JUDGE_VERSION, True), ("0.9.0", False), (f"./{JUDGE_VERSION}", False)]
)
def test_only_a_version_is_the_name_of_an_archive(version: str, known: bool, shelf: None) -> None:
    assert known == judges.is_archived(version)


def test_the_same_files_make_the_same_bytes(archived: Path, tmp_path: Path) -> None:
    assert archived.read_bytes() == archive(PROJECT, tmp_path).read_bytes()


def test_an_archive_is_never_replaced(archived: Path) -> None:
    with pytest.raises(FileExistsError):
        archive(PROJECT, archived.parent)


def test_an_archive_loads_nothing_of_the_present_package(archived: Path) -> None:
    """Neither from this checkout nor from what is installed."""
    code = (
        f"import sys; sys.path.insert(0, {str(archived)!r})\n"
        "import compilegate.domain.judging.judge, compilegate.domain.judging.evidence_file\n"
        "print([m.__file__ for n, m in sys.modules.items() if n.startswith('compilegate')])"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )

    files = json.loads(ran.stdout.replace("'", '"'))
    assert files and all(file.startswith(str(archived)) for file in files)


def test_evidence_that_an_archive_cannot_read_is_refused(shelf: None) -> None:
    with pytest.raises(InvalidEvidenceError, match="schema"):
        judges.decide(JUDGE_VERSION, {"schema": 7}, FLAG)
