"""Files as people get them wrong: each is refused with the field, the fix and no traceback.

The first two lines of a file say which field the error names and a part of what it says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FILES = sorted(CORPUS.glob("*.yaml"))
MOST = 700


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "train.py").write_text("print('training')\n")
    (tmp_path / "training" / "run.sh").write_text("python train.py\n")
    return tmp_path


def expected(file: Path) -> tuple[str, str]:
    field, says, *_ = file.read_text(encoding="utf-8").splitlines()
    return field.removeprefix("# field: "), says.removeprefix("# says: ")


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_the_error_names_the_field_and_the_fix(name: str, project: Path, invoke: Invoke) -> None:
    field, says = expected(CORPUS / f"{name}.yaml")
    file = project / "workload.yaml"
    file.write_bytes((CORPUS / f"{name}.yaml").read_bytes())

    result = invoke("check", file)
    message = result.stderr

    assert (2, "") == (result.exit_code, result.stdout)
    assert message.startswith(f"Error: {file}: ")
    assert field in message
    assert says in message
    assert "Fix: " in message
    assert "Traceback" not in message
    assert len(message) < MOST + len(str(project)) * 3


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(FILES) >= 40
