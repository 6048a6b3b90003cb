"""A wrong workload file is refused before anything starts: file, field, value, fix, exit 2."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.fake_clouds import FakeProviders, cloud

# what is changed in a good file, and what the message must then say
CASES = {
    "an unknown key": (
        ("batch_size: 32", "batch_size: 32\n  batchsize: 4"),
        ("training.batchsize", "is not a known key", "(got 4)", "did you mean `batch_size`?"),
    ),
    "a missing key": (
        ("  run_hours: 6.0\n", ""),
        ("schedule.run_hours", "is missing", "add `run_hours:` with a value"),
    ),
    "a missing section": (
        ("quality:\n  metric: eval_accuracy\n  goal: maximize\n  margin: 0.005\n", ""),
        ("quality: is missing", "add `quality:`"),
    ),
    "a section that is a word": (
        ("shapes:\n  static: true", "shapes: static"),
        ("shapes", "must be a mapping", "(got 'static')", "Fix: write it as"),
    ),
    "a version that YAML reads as a number": (
        ('"2.13.0"', "2.1"),
        (
            "framework.version",
            "must be text",
            "(got 2.1), line 5",
            'put it in quotes: version: "…"',
        ),
    ),
    "a number that is none": (
        ("margin: 0.005", "margin: .nan"),
        ("quality.margin", "out of range", "(got .nan), line 28"),
    ),
    "a launcher without its script": (
        ("entry_point: train.py", "entry_point: launch.py"),
        ("training.hyperparameters.script", "is not", ": train.py"),
    ),
    "a launcher whose script is not there": (
        ("entry_point: train.py", "entry_point: launch.py\n  hyperparameters: {script: trian.py}"),
        ("training.hyperparameters.script", "is not in the source folder", "(got 'trian.py')"),
    ),
    "a source folder that is not there": (
        ("source_dir: training", "source_dir: trainning"),
        ("training.source_dir", "does not exist as a folder", "(got 'trainning')", "Fix: create"),
    ),
    "a relative input that is not there": (
        ("data/train", "data/trian"),
        ("training.inputs.train", "does not exist; looked at", "(got 'data/trian')", "s3:// URI"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_error_names_file_field_value_and_fix(
    case: str, tmp_path: Path, invoke: Invoke
) -> None:
    change, expected = CASES[case]
    file = write_project(tmp_path, change)

    result = invoke("check", file)

    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert f"Error: {file}: " in result.stderr
    assert [part for part in expected if part not in result.stderr] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"", "must be a mapping"),
        (b"just words", "must be a mapping"),
        (b"- a\n- b\n", "must be a mapping"),
        (b"\xff\xfe\x00", "cannot be read as UTF-8"),
        (b"a: 1\n---\nb: 2\n", "is more than one document"),
        (b"a: !!python/object:os.system {}\n", "has the tag"),
        (b"\x00\x01", "is not YAML"),
        (b"name: a\x00b\n", "is not YAML"),
        ("name: \u00e9\n".encode("latin-1"), "cannot be read as UTF-8"),
        ("schema: 1\n".encode("utf-16"), "cannot be read as UTF-8"),
        (b'"\\x1b[31m\\x07": 1\nschema: 1\n', "framework"),
        (b"schema: " + b"9" * 5000, "too many digits"),
        (b"schema: 0x" + b"f" * 5000, "in a base other than ten"),
        (b"[" * 5000, "nested too deeply"),
        (b"- " * 100_000, "nested too deeply"),
        (b"{a: " * 50_000, "nested too deeply"),
        (b"a: 1\n" * 100_000, "larger than 256 KiB"),
    ],
)
def test_what_is_not_a_workload_document_is_refused(
    content: bytes | None, message: str, tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "w.yaml"
    if content is not None:
        file.write_bytes(content)

    result = invoke("check", file)

    assert result.exit_code == 2
    assert f"Error: {file}: " in result.stderr
    assert message in result.stderr


MANY = (
    ("name: bert-docs", "name: Bert"),
    ("batch_size: 32", "batchsize: 32"),
    ("  max_runtime_hours: 12\n", ""),
    ("static: true", "static: maybe"),
    ("margin: 0.005", "margin: 0"),
)
MANY_FIELDS = [
    "name", "training.batch_size", "training.max_runtime_hours", "training.batchsize",
    "shapes.static", "quality.margin",
]  # fmt: skip


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(tmp_path, *MANY)

    result = invoke("check", file)
    as_json = json.loads(invoke("check", file, "--json").stdout)

    assert f"Error: {file}: 6 errors\n" in result.stderr
    assert sorted(MANY_FIELDS) == sorted(
        line.split(":")[0].strip() for line in result.stderr.splitlines()[1:]
    )
    assert "training.batchsize: is not a known key (got 32), line 16. Fix: " in result.stderr
    assert sorted(MANY_FIELDS) == sorted(one["field"] for one in as_json["errors"])
    assert as_json["error"] == as_json["errors"][0]


def test_everything_that_is_wrong_on_disk_is_said_at_once(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(
        tmp_path, ("train.py", "trian.py"), ("{train: data/train}", "{train: data/a, test: data/b}")
    )

    result = invoke("check", file)

    assert "3 errors" in result.stderr
    for field in ("training.entry_point", "training.inputs.train", "training.inputs.test"):
        assert f"  {field}: " in result.stderr


def test_what_init_left_open_is_listed_with_the_rest(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(
        tmp_path, ("learning_rate: 5.0e-5", "learning_rate: TODO"),
        ("metric: eval_accuracy", "metric: TODO"), ("goal: maximize", "goal: up"),
    )  # fmt: skip

    result = invoke("check", file)

    for field in ("training.learning_rate", "quality.metric"):
        assert f"  {field}: is still to be written (got TODO), line" in result.stderr.replace(
            "'", ""
        )
    assert "  quality.goal: is not a valid value" in result.stderr
    assert "3 errors" in result.stderr


def test_a_script_is_not_a_workload_file(tmp_path: Path, invoke: Invoke) -> None:
    write_project(tmp_path)

    result = invoke("check", tmp_path / "training" / "train.py")

    assert 2 == result.exit_code
    assert "is a script, not a workload file. Fix: `compilegate init " in result.stderr
    assert "`compilegate doctor " in result.stderr


def test_a_notebook_is_to_be_converted_first(tmp_path: Path, invoke: Invoke) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text("{}")

    result = invoke("check", notebook)

    assert 2 == result.exit_code
    assert "is a notebook, not a workload file. Fix: convert it first" in result.stderr
    assert "jupyter nbconvert --to script" in result.stderr
    assert "compilegate doctor" not in result.stderr


@pytest.mark.parametrize("name", ["pipe.py", "pipe.yaml"])
def test_a_pipe_is_there_and_no_workload_file(name: str, tmp_path: Path, invoke: Invoke) -> None:
    os.mkfifo(tmp_path / name)

    result = invoke("check", tmp_path / name)

    assert 2 == result.exit_code
    assert "is not a plain file. Fix: name a workload file" in result.stderr


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (
            (
                ("goal: maximize", "goal: max"),
                ("run_hours: 6.0", "run_hours: 200"),
                ("source_dir: training", "source_dir: nosuch"),
            ),
            ["quality.goal", "schedule.run_hours", "training.source_dir"],
        ),
        (
            (('version: "', "version: 2.10 #"), ("data/train", "data/trian")),
            ["framework.version", "training.inputs.train"],
        ),
        (
            (("schema: 1", "schema: 7\nmore: 1"), ("entry_point: train.py", "entry_point: t.py")),
            ["schema", "more", "training.entry_point"],
        ),
    ],
)
def test_errors_of_every_kind_come_together(
    changes: tuple[tuple[str, str], ...], fields: list[str], tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, *changes)

    errors = json.loads(invoke("check", file, "--json").stdout)["errors"]

    assert fields == [one["field"] for one in errors]


def test_a_name_used_twice_is_found_beside_a_wrong_value(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(tmp_path, ("goal: maximize", "goal: max"))
    document = yaml.safe_load(file.read_text())
    first = {"name": "twin", "compiler": "torch_compile"}
    document["candidates"] = [first, {**first, "precision": "bf16"}]
    file.write_text(yaml.safe_dump(document))

    errors = json.loads(invoke("check", file, "--json").stdout)["errors"]

    assert ["quality.goal", "candidates[1].name"] == [one["field"] for one in errors]


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_folder_is_not_a_workload_file(command: str, tmp_path: Path, invoke: Invoke) -> None:
    result = invoke(command, tmp_path)

    assert result.exit_code == 2
    assert f"{tmp_path}: is a folder. Fix: name a workload file" in result.stderr


@pytest.mark.parametrize("folder", [Path(__file__).parents[2], Path("/")], ids=["checkout", "else"])
def test_the_example_that_an_error_names_is_there(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)

    result = invoke("check", "none.yaml")

    named = re.search(r"such as (\S+\.yaml)", " ".join(result.stderr.split()))
    assert named is not None, result.stderr
    assert (folder / named[1]).is_file()


def test_control_characters_of_a_file_never_reach_the_terminal(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, ("schema: 1", 'schema: 1\n"\\e[31mred\\a": 2'))

    result = invoke("check", file)

    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert "[31mred" in result.stderr


@pytest.mark.parametrize(
    "encode", [lambda text: b"\xef\xbb\xbf" + text, lambda text: text.replace(b"\n", b"\r\n")]
)
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(
    encode: Callable[[bytes], bytes], tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path)
    before = invoke("check", file, "--json")
    file.write_bytes(encode(file.read_bytes()))

    after = invoke("check", file, "--json")

    assert before.stdout == after.stdout != ""


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("source_dir: training", "source_dir: linked"), "training.source_dir"),
        (("entry_point: train.py", "entry_point: linked.py"), "training.entry_point"),
    ],
)
def test_a_link_out_of_the_project_is_refused(
    change: tuple[str, str], field: str, tmp_path: Path, invoke: Invoke
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "train.py").write_text("print('not of this project')\n")
    file = write_project(tmp_path / "project", change)
    (tmp_path / "project" / "linked").symlink_to(outside)
    (tmp_path / "project" / "training" / "linked.py").symlink_to(outside / "train.py")

    result = invoke("check", file)

    assert result.exit_code == 2
    assert f"{file}: {field}: " in result.stderr


@pytest.mark.parametrize(
    "change",
    [
        ("entry_point: train.py", "entry_point: circle.py"),
        ("entry_point: train.py", f"entry_point: {'x' * 900}.py"),
        ("data/train", "x" * 900),
    ],
)
def test_what_the_disk_refuses_is_reported_like_any_other_mistake(
    change: tuple[str, str], tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, change)
    (tmp_path / "training" / "circle.py").symlink_to(tmp_path / "training" / "circle.py")

    result = invoke("check", file)

    assert result.exit_code == 2
    assert f"Error: {file}: " in result.stderr
    assert "Traceback" not in result.stderr


def test_an_s3_input_that_does_not_exist_stops_the_run_before_it_starts(
    tmp_path: Path, invoke: Invoke, providers: FakeProviders
) -> None:
    providers.aws_cloud = cloud()
    file = write_project(tmp_path, ("data/train", "s3://other/train/"))

    result = invoke("run", file)

    assert result.exit_code == 2
    assert f"{file}: training.inputs.train: does not exist" in result.stderr
    assert "(got 's3://other/train/')" in result.stderr
    assert {} == providers.aws_cloud.executions.started
    assert {} == providers.aws_cloud.services.store.objects


def test_two_files_of_one_workload_are_refused_together(tmp_path: Path, invoke: Invoke) -> None:
    file = write_project(tmp_path)
    twin = file.with_name("twin.yaml")
    twin.write_text(file.read_text())

    result = invoke("run", file, twin)

    assert result.exit_code == 2
    assert f"name: is also the name of the workload in {file} (got 'bert-docs')" in result.stderr


def test_a_source_folder_that_the_toolkit_would_install_is_refused(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path)
    (tmp_path / "training" / "pyproject.toml").write_text("[project]\nname = 'team'\n")
    assert "setup.py" not in invoke("check", file).stderr  # the toolkit asks for setup.py alone

    (tmp_path / "training" / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    result = invoke("check", file)

    assert 2 == result.exit_code
    assert "training.source_dir: has setup.py at its root" in result.stderr
    assert "(got 'training'), line" in result.stderr
    assert "Fix: name a folder without setup.py" in result.stderr
