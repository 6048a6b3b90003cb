"""Files as people get them wrong: each is refused with the field, the fix and no traceback.

The first two lines of a file of the corpus say which field the error names and a part of what it
says. What is wrong is the reader's (tests/adapters/test_workload_files.py).
"""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.project import WORKLOAD, write_project
from tests.fuzzing import at_most

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
FILES = sorted(CORPUS.glob("*.yaml"))
MOST = 700
SOUND = WORKLOAD.replace("data/train", "s3://bucket/train/")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "train.py").write_text("print('training')\n")
    (tmp_path / "training" / "run.sh").write_text("python train.py\n")
    return tmp_path


def expected(file):
    field, says, *_ = file.read_text(encoding="utf-8").splitlines()
    return field.removeprefix("# field: "), says.removeprefix("# says: ")


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_the_error_names_the_field_and_the_fix(name, project, invoke):
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


def test_the_pages_show_what_is_reported_of_a_wrong_file(invoke, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ compilegate check (tests/corpus/\S+)\n(Error: .*\n)", page, re.M)

    assert [error for _, error in shown] == [invoke("check", file).stderr for file, _ in shown]
    assert shown


@given(data=st.data())
@at_most(25)
@pytest.mark.parametrize("command", ["check", "plan"])
def test_a_file_with_holes_never_ends_in_a_traceback(command, data, project, invoke):
    content = bytearray(SOUND.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 30)))
        content[start:end] = data.draw(st.binary(max_size=6) | st.just(bytes(content[:end])))
    file = project / "workload.yaml"
    file.write_bytes(bytes(content))

    result = invoke(command, file)

    assert result.exit_code in (0, 2, 10, 11), result.output
    assert "Traceback" not in result.output
    assert (result.exit_code == 2) == result.stderr.startswith(f"Error: {file}: ")


def test_every_error_has_a_line_of_its_own_and_stands_in_the_document(tmp_path, invoke):
    red = ("schema: 1", 'schema: 1\n"\\e[31mred\\a": 2')
    file = write_project(tmp_path, red, ("margin: 0.005", "margin: .nan"))

    result = invoke("check", file)
    document = json.loads(invoke("check", file, "--json").stdout)

    assert (2, "") == (result.exit_code, result.stdout)
    assert {"quality.margin", "\x1b[31mred\a"} == {one["field"] for one in document["errors"]}
    assert f"Error: {file}: 2 errors\n" in result.stderr
    assert "\n  \\x1b[31mred\\x07: " in result.stderr
    assert "(got .nan), line 29. Fix: " in result.stderr


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_single_error_stands_on_the_files_line(command, tmp_path, invoke):
    result = invoke(command, tmp_path)

    assert 2 == result.exit_code
    assert f"Error: {tmp_path}: is a folder. Fix: name a workload file" in result.stderr


def test_an_s3_input_that_does_not_exist_starts_nothing(tmp_path, invoke, aws):
    file = write_project(tmp_path, ("data/train", "s3://other/train/"))

    result = invoke("run", file)

    assert result.exit_code == 2
    assert f"{file}: training.inputs.train: does not exist" in result.stderr
    assert "(got 's3://other/train/')" in result.stderr
    assert {} == aws.executions.started
    assert {} == aws.services.store.objects
