"""A wrong workload file is refused before anything starts: file, field, value, fix, exit 2."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.fake_clouds import FakeProviders, cloud

# What is changed in a good file; each error's field, and what its line must also say.
CASES: dict[str, tuple[tuple[tuple[str, str], ...], dict[str, tuple[str, ...]]]] = {
    "an unknown key": (
        (("batch_size: 32", "batch_size: 32\n  batchsize: 4"),),
        {"training.batchsize": ("is not a known key", "(got 4)", "did you mean `batch_size`?")},
    ),
    "a missing key": (
        (("  run_hours: 6.0\n", ""),),
        {"schedule.run_hours": ("is missing", "add `run_hours:` with a value")},
    ),
    "a missing section": (
        (("quality:\n  metric: eval_accuracy\n  goal: maximize\n  margin: 0.005\n", ""),),
        {"quality": ("is missing", "add `quality:`")},
    ),
    "a section that is a word": (
        (("shapes:\n  static: true", "shapes: static"),),
        {"shapes": ("must be a mapping", "(got 'static')", "Fix: write it as")},
    ),
    "a version that YAML reads as a number": (
        (('"2.13.0"', "2.1"),),
        {"framework.version": (
            "must be text", "(got 2.1), line 5", 'put it in quotes: version: "…"',
        )},
    ),
    "a number that is none": (
        (("margin: 0.005", "margin: .nan"),),
        {"quality.margin": ("out of range", "(got .nan), line 28")},
    ),
    "a launcher without its script": (
        (("entry_point: train.py", "entry_point: launch.py"),),
        {"training.hyperparameters.script": ("is not", ", train.py")},
    ),
    "a launcher whose script is not there": (
        (("entry_point: train.py",
          "entry_point: launch.py\n  hyperparameters: {script: trian.py}"),),
        {"training.hyperparameters.script": ("is not in the source folder", "(got 'trian.py')")},
    ),
    "a source folder that is not there": (
        (("source_dir: training", "source_dir: trainning"),),
        {"training.source_dir": (
            "does not exist as a folder", "(got 'trainning')", "Fix: create",
        )},
    ),
    "a source folder that is a link out of the project": (
        (("source_dir: training", "source_dir: linked"),), {"training.source_dir": ("is a link",)},
    ),
    "a relative input that is not there": (
        (("data/train", "data/trian"),),
        {"training.inputs.train": (
            "does not exist; looked at", "(got 'data/trian')", "s3:// URI",
        )},
    ),
    "an entry point that is a link out of the project": (
        (("entry_point: train.py", "entry_point: linked.py"),),
        {"training.entry_point": ("lies outside",)},
    ),
    "several on disk": (
        (("train.py", "trian.py"), ("{train: data/train}", "{train: data/a, test: data/b}")),
        {"training.entry_point": (), "training.inputs.train": (), "training.inputs.test": ()},
    ),
    "what init left open, with the rest": (
        (("learning_rate: 5.0e-5", "learning_rate: TODO"), ("metric: eval_accuracy",
         "metric: TODO"), ("goal: maximize", "goal: up")),
        {"training.learning_rate": ("is still to be written (got 'TODO'), line",),
         "quality.metric": ("is still to be written (got 'TODO'), line",),
         "quality.goal": ("is not a valid value",)},
    ),
    "everything in the document": (
        (("name: bert-docs", "name: Bert"), ("batch_size: 32", "batchsize: 32"),
         ("  max_runtime_hours: 12\n", ""), ("static: true", "static: maybe"),
         ("margin: 0.005", "margin: 0")),
        {"training.batch_size": (), "training.max_runtime_hours": (),
         "training.batchsize": ("is not a known key (got 32), line 16. Fix: ",), "name": (),
         "shapes.static": (), "quality.margin": ()},
    ),
    "values and the source folder": (
        (("goal: maximize", "goal: max"), ("run_hours: 6.0", "run_hours: 200"),
         ("source_dir: training", "source_dir: nosuch")),
        {"quality.goal": (), "schedule.run_hours": (), "training.source_dir": ()},
    ),
    "a version and an input": (
        (('version: "', "version: 2.10 #"), ("data/train", "data/trian")),
        {"framework.version": (), "training.inputs.train": ()},
    ),
    "the schema and an entry point": (
        (("schema: 1", "schema: 7\nmore: 1"), ("entry_point: train.py", "entry_point: t.py")),
        {"schema": (), "more": (), "training.entry_point": ()},
    ),
    "a name used twice beside a wrong value": (
        (("goal: maximize", "goal: max"), ("schema: 1", "schema: 1\ncandidates:\n"
         "  - {name: twin, compiler: torch_compile}\n"
         "  - {name: twin, compiler: torch_compile, precision: bf16}")),
        {"quality.goal": (), "candidates[1].name": ()},
    ),
    "control characters": (
        (("schema: 1", 'schema: 1\n"\\e[31mred\\a": 2'),), {"\x1b[31mred\a": ("is not a known",)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_error_is_said_at_once_with_field_value_and_fix(
    case: str, tmp_path: Path, invoke: Invoke
) -> None:
    changes, expected = CASES[case]
    file = write_project(tmp_path / "team", *changes)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "train.py").write_text("print('not of this project')\n")
    (tmp_path / "team" / "linked").symlink_to(outside)
    (tmp_path / "team" / "training" / "linked.py").symlink_to(outside / "train.py")

    result = invoke("check", file)
    document = json.loads(invoke("check", file, "--json").stdout)

    assert (2, "") == (result.exit_code, result.stdout)
    assert [*expected] == [one["field"] for one in document["errors"]]
    assert document["error"] == document["errors"][0]
    several = f"{len(expected)} errors\n" if len(expected) > 1 else ""
    assert result.stderr.startswith(f"Error: {file}: {several}")
    by_field = {
        line.removeprefix(f"Error: {file}: ").strip().split(": ")[0]: line
        for line in result.stderr.splitlines()[len(expected) > 1 :]
    }
    shown = {field.encode("unicode_escape").decode(): words for field, words in expected.items()}
    assert set(shown) == set(by_field)
    assert [] == [
        (field, part) for field, words in shown.items() for part in words
        if part not in by_field[field]
    ]  # fmt: skip
    assert "\x1b" not in result.stderr


# Name and content of what is no workload file, and what is said of it.
NO_FILES: tuple[tuple[str, bytes | None, str], ...] = (
    ("w.yaml", None, "does not exist"),
    ("w.yaml", b"", "must be a mapping"),
    ("w.yaml", b"just words", "must be a mapping"),
    ("w.yaml", b"- a\n- b\n", "must be a mapping"),
    ("w.yaml", b"\xff\xfe\x00", "cannot be read as UTF-8"),
    ("w.yaml", b"a: 1\n---\nb: 2\n", "is more than one document"),
    ("w.yaml", b"a: !!python/object:os.system {}\n", "has the tag"),
    ("w.yaml", b"\x00\x01", "is not YAML"),
    ("w.yaml", b"name: a\x00b\n", "is not YAML"),
    ("w.yaml", "name: \u00e9\n".encode("latin-1"), "cannot be read as UTF-8"),
    ("w.yaml", "schema: 1\n".encode("utf-16"), "cannot be read as UTF-8"),
    ("w.yaml", b'"\\x1b[31m\\x07": 1\nschema: 1\n', "framework"),
    ("w.yaml", b"schema: " + b"9" * 5000, "too many digits"),
    ("w.yaml", b"schema: 0x" + b"f" * 5000, "in a base other than ten"),
    ("w.yaml", b"[" * 5000, "nested too deeply"),
    ("w.yaml", b"- " * 100_000, "nested too deeply"),
    ("w.yaml", b"{a: " * 50_000, "nested too deeply"),
    ("w.yaml", b"a: 1\n" * 100_000, "larger than 256 KiB"),
    ("train.py", b"", "is a script, not a workload file. Fix: `compilegate init "),
    ("w.ipynb", b"{}", "is a notebook, not a workload file. Fix: convert it first: `jupyter nb"),
    ("pipe.py", None, "is not a plain file. Fix: name a workload file"),
    ("pipe.yaml", None, "is not a plain file. Fix: name a workload file"),
)


@pytest.mark.parametrize(("name", "content", "message"), NO_FILES)
def test_what_is_not_a_workload_document_is_refused(
    name: str, content: bytes | None, message: str, tmp_path: Path, invoke: Invoke
) -> None:
    for pipe in ("pipe.py", "pipe.yaml"):
        os.mkfifo(tmp_path / pipe)
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)

    result = invoke("check", file)

    assert result.exit_code == 2
    assert f"Error: {file}: " in result.stderr
    assert message in result.stderr
    assert ("`compilegate doctor " in result.stderr) == (name == "train.py")


@pytest.mark.parametrize(
    "change",
    [("train.py", "circle.py"), ("train.py", f"{'x' * 900}.py"), ("data/train", "x" * 900)],
)
def test_what_the_disk_refuses_is_reported_like_any_other_mistake(
    change: tuple[str, str], tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, change)
    circle = tmp_path / "training" / "circle.py"
    circle.symlink_to(circle)

    result = invoke("check", file)

    assert result.exit_code == 2
    assert f"Error: {file}: contains a path that cannot be read" in result.stderr


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
    assert f"name: is also the name of the workload in {twin} (got 'bert-docs')" in result.stderr


def test_a_source_folder_that_the_toolkit_would_install_is_refused(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path)
    (tmp_path / "training" / "pyproject.toml").write_text("[project]\nname = 'team'\n")
    assert "setup.py" not in invoke("check", file).stderr  # the toolkit asks for setup.py alone

    (tmp_path / "training" / "setup.py").write_text("from setuptools import setup\nsetup()\n")

    assert "training.source_dir: has setup.py at its root" in invoke("check", file).stderr
