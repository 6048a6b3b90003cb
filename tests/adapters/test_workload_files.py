"""A workload file is read, or every error in it said at once with its place; its data are found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from compilegate.adapters import workload_files
from compilegate.adapters.workload_files import package, preparing_command, read_workload
from compilegate.adapters.yaml_document import EXAMPLE
from compilegate.domain.errors import InvalidInputError
from compilegate.place import PROJECT
from tests.cli.project import write_project
from tests.fakes import MemoryStore

# What is changed in a good file; each error's field, and what its line must also say.
CASES: dict[str, tuple[tuple[tuple[str, str], ...], dict[str, tuple[str, ...]]]] = {
    "an unknown key": (
        (("batch_size: 32", "batch_size: 32\n  batchsize: 4"),),
        {"training.batchsize": ("is not a known key", "(got 4)", "did you mean `batch_size`?")},
    ),
    "a key of another name": (
        (("schedule:", "policy: {reject_speedup: 1.1, promote_speedup: 1.3}\nschedule:"),),
        {
            "policy.reject_speedup": ("is not a known key", "did you mean `min_proven_speedup`?"),
            "policy.promote_speedup": ("is not a known key", "did you mean `min_mean_speedup`?"),
        },
    ),
    "a missing key": (
        (("  run_hours: 6.0\n", ""),),
        {"schedule.run_hours": ("is missing", "add `run_hours:` with a value")},
    ),
    "a version that YAML reads as a number": (
        (('"2.13.0"', "2.10"),),
        {"framework.version": (
            "must be text", "(got 2.10), line 5", 'put it in quotes: version: "…"',
        )},
    ),
    "a launcher whose script is not there": (
        (("entry_point: train.py",
          "entry_point: launch.py\n  hyperparameters: {script: trian.py}"),),
        {"training.hyperparameters.script": ("is not in the source folder", "(got 'trian.py')")},
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
    "what init left open, with the rest": (
        (("learning_rate: 5.0e-5", "learning_rate: TODO"), ("metric: eval_accuracy",
         "metric: TODO"), ("goal: maximize", "goal: up")),
        {"training.learning_rate": ("is still to be written (got 'TODO'), line",),
         "quality.metric": ("is still to be written (got 'TODO'), line",),
         "quality.goal": ("is not a valid value",)},
    ),
    "a value that would not reach the script": (
        (("max_runtime_hours", "hyperparameters: {title: two words}\n  max_runtime_hours"),),
        {"training.hyperparameters.title": ("has characters that a shell",)},
    ),
    "values and the source folder": (
        (("goal: maximize", "goal: max"), ("run_hours: 6.0", "run_hours: 200"),
         ("source_dir: training", "source_dir: nosuch"),
         ("max_runtime_hours: 12", "max_runtime_hours: 0.5")),
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


def errors(file: Path, **how: Any) -> list[InvalidInputError]:
    with pytest.raises(InvalidInputError) as caught:
        read_workload(file, **how)
    assert {str(file)} == {one.file for one in caught.value.each}
    assert all(one.fix for one in caught.value.each)
    return [*caught.value.each]


@pytest.mark.parametrize("case", CASES)
def test_every_error_is_said_at_once_with_field_value_and_fix(case: str, tmp_path: Path) -> None:
    changes, expected = CASES[case]
    file = write_project(tmp_path / "team", *changes)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "train.py").write_text("print('not of this project')\n")
    (tmp_path / "team" / "linked").symlink_to(outside)
    (tmp_path / "team" / "training" / "linked.py").symlink_to(outside / "train.py")

    found = errors(file)

    assert [*expected] == [one.field for one in found]
    assert [] == [
        (one.field, part) for one in found for part in expected[one.field] if part not in str(one)
    ]


# Name and content of what is no workload file, and what is said of it.
NO_FILES: tuple[tuple[str, bytes | None, str], ...] = (
    ("w.yaml", None, "does not exist. Fix: name a workload file"),
    ("folder", None, "is a folder. Fix: name a workload file"),
    ("w.yaml", b"", "must be a mapping"),
    ("w.yaml", b"\xff\xfe\x00", "cannot be read as UTF-8"),
    ("w.yaml", b"a: 1\n---\nb: 2\n", "is more than one document"),
    ("w.yaml", b"a: !!python/object:os.system {}\n", "has the tag"),
    ("w.yaml", b"\x00\x01", "is not YAML"),
    ("w.yaml", "name: \u00e9\n".encode("latin-1"), "cannot be read as UTF-8"),
    ("w.yaml", b'"\\x1b[31m\\x07": 1\nschema: 1\n', "framework"),
    ("w.yaml", b"schema: " + b"9" * 5000, "too many digits"),
    ("w.yaml", b"[" * 5000, "nested too deeply"),
    ("w.yaml", b"- " * 100_000, "nested too deeply"),
    ("w.yaml", b"{a: " * 50_000, "nested too deeply"),
    ("w.yaml", b"a: 1\n" * 100_000, "larger than 256 KiB"),
    ("train.py", b"", "is a script, not a workload file. Fix: `compilegate init "),
    ("w.ipynb", b"{}", "is a notebook, not a workload file. Fix: convert it first: `jupyter nb"),
    ("pipe.yaml", None, "is not a plain file. Fix: name a workload file"),
)


def test_the_same_name_with_the_other_suffix_is_suggested_else_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.yml").write_text("schema: 1\n")

    assert f"Fix: name {tmp_path / 'job.yml'}" in str(errors(tmp_path / "job.yaml")[0])
    for folder, example in ((PROJECT, "workloads/article-bert.yaml"), (tmp_path, EXAMPLE)):
        monkeypatch.chdir(folder)
        (error,) = errors(tmp_path / "other.yaml")
        assert ("does not exist", True) == (error.problem, f"such as {example}, " in error.fix)
    (tmp_path / "job.yaml").mkdir()
    assert "is a folder" == errors(tmp_path / "job.yaml")[0].problem


@pytest.mark.parametrize(("name", "content", "message"), NO_FILES)
def test_what_is_not_a_workload_document_is_refused(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder").mkdir()
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)

    found = " ".join(map(str, errors(file)))

    assert message in found
    assert ("`compilegate doctor " in found) == (name == "train.py")


@pytest.mark.parametrize(
    "change",
    [("train.py", "circle.py"), ("train.py", f"{'x' * 900}.py"), ("data/train", "x" * 900)],
)
def test_what_the_disk_refuses_is_reported_like_any_other_mistake(
    change: tuple[str, str], tmp_path: Path
) -> None:
    file = write_project(tmp_path, change)
    circle = tmp_path / "training" / "circle.py"
    circle.symlink_to(circle)

    (error,) = errors(file)
    assert error.problem.startswith("contains a path that cannot be read")


def test_a_source_folder_that_the_toolkit_would_install_is_refused(tmp_path: Path) -> None:
    file = write_project(tmp_path)
    (tmp_path / "training" / "pyproject.toml").write_text("[project]\nname = 'team'\n")
    read_workload(file)  # the toolkit asks for setup.py alone

    (tmp_path / "training" / "setup.py").write_text("from setuptools import setup\nsetup()\n")

    (error,) = errors(file)
    assert ("training.source_dir", "training") == (error.field, error.value)
    assert error.problem.startswith("has setup.py at its root")


def test_data_are_looked_at_where_they_are_asked_for(tmp_path: Path) -> None:
    inputs = "{train: data/train, test: data/none, far: s3://data/far/, gone: s3://data/gone/}"
    file = write_project(tmp_path, ("{train: data/train}", inputs))
    store = MemoryStore()
    store.put("far/rows", b"1")

    missing = ["training.inputs.test", "training.inputs.gone"]
    assert missing == [one.field for one in errors(file, store=store)]
    assert missing[:1] == [one.field for one in errors(file)]
    assert missing[:1] == [one.field for one in errors(file, needs_prepared=False)]
    assert missing[1:] == [one.field for one in errors(file, store=store, elsewhere=("test",))]
    read = read_workload(file, elsewhere=("test",))
    assert {"train": tmp_path / "data" / "train"} == read.local_inputs
    code = read_workload(file, store=store, needs_inputs=False)
    assert ({}, {}) == (code.local_inputs, code.workload.training.inputs)


def test_an_empty_folder_is_no_input_and_a_file_is_one(tmp_path: Path) -> None:
    file = write_project(tmp_path, ("data/train", "data/rows.csv"))
    rows = tmp_path / "data" / "rows.csv"
    rows.mkdir()

    (error,) = errors(file)
    assert ("training.inputs.train", "is an empty folder") == (error.field, error.problem)
    rows.rmdir()
    rows.write_text("1")
    read = read_workload(file)
    assert {"train": rows} == read.local_inputs
    assert ["rows.csv"] == [one.name for one in package(read).inputs["train"]]


def test_data_that_the_projects_script_writes_may_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_project(tmp_path, ("data/train", "workloads/data/table"))
    place = tmp_path / "workloads" / "data" / "table"
    assert preparing_command(place, tmp_path) is None  # there is no script
    script = tmp_path / "training" / "prepare_data.py"
    script.write_text("")
    python = ".venv-training/bin/python"
    ran = f"{python} training/prepare_data.py workloads/data"

    assert f"cd {tmp_path} && make setup && {ran}" == preparing_command(place, tmp_path)
    sets = {name: preparing_command(place.with_name(name), tmp_path) is not None
            for name in ("docstrings", "table", "pictures", "own")}  # fmt: skip
    assert {"docstrings": True, "table": True, "pictures": True, "own": False} == sets
    (tmp_path / python).parent.mkdir(parents=True)
    (tmp_path / python).touch()
    monkeypatch.chdir(tmp_path)
    assert ran == preparing_command(place, tmp_path)
    assert f"write the data with `{ran}`" == errors(file)[0].fix
    assert {} == read_workload(file, needs_prepared=False).local_inputs
    monkeypatch.setattr(workload_files, "INSTALLED", True)
    monkeypatch.setattr(workload_files.sys, "executable", "python9")
    ran = "python9 training/prepare_data.py workloads/data"
    assert ran == preparing_command(place, tmp_path)
    monkeypatch.setattr(workload_files, "PROJECT", tmp_path)
    copied = f"cp -r {tmp_path} compilegate-examples && cd compilegate-examples"
    assert f"{copied} && {ran}" == preparing_command(place, tmp_path)
    place.mkdir(parents=True)
    (place / "rows").touch()
    assert {"train": place} == read_workload(file, needs_prepared=False).local_inputs


def test_what_init_left_open_says_what_to_write_and_a_zone_which_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    todo = ("learning_rate: 5.0e-5", "learning_rate: TODO  # that of the script")
    goal = ("goal: maximize", "goal: TODO")
    rate, goal_ = errors(write_project(tmp_path, todo, goal))
    assert ("replace TODO: that of the script", "replace TODO by its value") == (
        rate.fix, goal_.fix,
    )  # fmt: skip

    (metric,) = errors(write_project(tmp_path, ("metric: eval_accuracy", "metric: TODO")))
    assert ("quality.metric", "is still to be written") == (metric.field, metric.problem)

    cron = "run_hours: 6.0\n  cron: cron(0 3 * * ? *)\n  timezone: "
    zones = {"Europe/Berlni": "write Europe/Berlin", "X": "write a name such as Europe/Berlin"}
    for zone, fix in zones.items():
        (error,) = errors(write_project(tmp_path, ("run_hours: 6.0", cron + zone)))
        assert ("schedule.timezone", zone, fix) == (error.field, error.value, error.fix)
    read_workload(write_project(tmp_path, ("run_hours: 6.0", f"{cron}Asia/Tokyo")))
    monkeypatch.setattr(workload_files, "_timezones", frozenset)  # a machine without a list
    read_workload(write_project(tmp_path, ("run_hours: 6.0", f"{cron}Europe/Berlni")))
    monkeypatch.setattr(workload_files, "_timezones", lambda: {"Asia/Tokyo"})
    read_workload(write_project(tmp_path))


def test_every_script_that_starts_must_be_a_python_file_of_the_folder(tmp_path: Path) -> None:
    candidates = """schema: 1
candidates:
  - {name: first, compiler: torch_compile, entry_point: notes.txt}
  - {name: second, compiler: torch_compile}
  - {name: third, compiler: torch_compile, precision: bf16, entry_point: launch.py,
     hyperparameters: {script: gone.py}}
"""
    file = write_project(tmp_path, ("schema: 1", candidates))
    (tmp_path / "training" / "notes.txt").touch()

    first, third = errors(file)
    (tmp_path / "launch.py").touch()
    (tmp_path / "training" / "launch.py").symlink_to(tmp_path / "launch.py")
    _, linked = errors(file)
    assert ("candidates[2].entry_point", "lies outside the source folder") == (
        linked.field, linked.problem,
    )  # fmt: skip

    assert ("candidates[0].entry_point", "is not a Python file", "notes.txt") == (
        first.field, first.problem, first.value,
    )  # fmt: skip
    assert ("candidates[2].hyperparameters.script", "gone.py") == (third.field, third.value)
    assert third.fix.endswith("of the source folder: train.py")


def test_a_file_is_known_by_its_path_in_its_project(tmp_path: Path) -> None:
    file = write_project(tmp_path)
    assert "workloads/bert-docs.yaml" == read_workload(file).origin
    beside = file.rename(tmp_path / "bert-docs.yaml")
    assert "bert-docs.yaml" == read_workload(beside).origin
    deep = tmp_path / "workloads" / "nlp" / "bert-docs.yaml"
    deep.parent.mkdir()
    assert ["training.source_dir"] == [one.field for one in errors(beside.rename(deep))]
