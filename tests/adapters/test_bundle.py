"""The source bundle is reproducible; a trial starts from uploads named by their digest."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from compilegate.adapters.workload_files import make_bundle, package, read_workload
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.usecases.records import Trial, load_spec
from compilegate.usecases.registration import submit
from tests.cli.project import write_project
from tests.fakes import MemoryStore


def source(folder: Path) -> Path:
    (folder / "src" / "package" / "__pycache__").mkdir(parents=True)
    (folder / "src" / ".hidden").mkdir()
    for name in ("train.py", "package/modèle.py"):
        (folder / "src" / name).write_text(name)
    for name in (".env", ".hidden/x.py", "package/__pycache__/x.py", "old.pyc", "old.pyo"):
        (folder / "src" / name).write_text("must not travel")
    (folder / "runtime").mkdir()
    (folder / "runtime" / "recorder.py").write_text("recorder")
    return folder / "src"


def entries(body: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        return archive.getmembers()


def test_it_holds_the_sources_and_the_recorder_and_nothing_else(tmp_path: Path) -> None:
    folder = source(tmp_path)
    (folder / "train.py").chmod(0o700)
    (folder / "package" / "modèle.py").chmod(0o611)  # not its owner's to execute
    bundle = make_bundle(folder, runtime=tmp_path / "runtime")

    assert [0o644, 0o644, 0o755] == [entry.mode for entry in entries(bundle.body)]
    expected = ["compilegate_runtime/recorder.py", "package/modèle.py", "train.py"]
    assert expected == [entry.name for entry in entries(bundle.body)]
    assert tuple(expected) == bundle.names
    assert b"PaxHeader" not in gzip.decompress(bundle.body)


def test_a_missing_recorder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentNotReadyError, match="Fix: install Compilegate again"):
        make_bundle(source(tmp_path), runtime=tmp_path / "nowhere")


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_a_file(tmp_path: Path) -> None:
    folder = source(tmp_path)
    (folder / "same.py").symlink_to(folder / "train.py")
    bundle = make_bundle(folder, runtime=tmp_path / "runtime")
    (tmp_path / "credentials").write_text("not of this project")
    (folder / "data.txt").symlink_to(tmp_path / "credentials")

    with pytest.raises(InvalidInputError, match=r"a file outside it: data\.txt") as caught:
        make_bundle(folder, runtime=tmp_path / "runtime")

    assert "same.py" in bundle.names
    assert "training.source_dir" == caught.value.field


def test_the_launcher_comes_with_the_recorder_and_a_teams_own_file_stays(tmp_path: Path) -> None:
    folder = source(tmp_path)
    (tmp_path / "launch.py").write_text("the launcher")
    bundled = make_bundle(folder, runtime=tmp_path / "runtime")
    (folder / "launch.py").write_text("the team's own")
    kept = make_bundle(folder, runtime=tmp_path / "runtime")

    assert "launch.py" in bundled.names
    with tarfile.open(fileobj=io.BytesIO(kept.body), mode="r:gz") as archive:
        member = archive.extractfile("launch.py")
        assert member is not None
        assert b"the team's own" == member.read()


def submitted(folder: Path) -> tuple[Trial, MemoryStore]:
    store = MemoryStore()
    trial = submit(package(read_workload(write_project(folder))), trial="0abc1234", store=store)
    return trial, store


def test_the_spec_names_uploaded_inputs_and_the_bundle(tmp_path: Path) -> None:
    trial, store = submitted(tmp_path)

    spec = load_spec(store, trial)
    uri = spec.workload.training.inputs["train"]
    assert uri.startswith("s3://data/workloads/bert-docs/inputs/train/")
    assert b"1,2\n" == store.get(uri.removeprefix("s3://data/") + "rows.csv")
    digest = make_bundle(tmp_path / "training").digest
    assert f"workloads/bert-docs/source/{digest}/sourcedir.tar.gz" == spec.source_key
    assert spec.source_key in store.objects


def test_the_same_project_lies_under_the_same_keys(tmp_path: Path) -> None:
    first, first_store = submitted(tmp_path / "a")
    second, second_store = submitted(tmp_path / "b")

    assert first == second
    assert first_store.objects == second_store.objects


def test_workload_files_and_reports_in_the_folder_are_no_code(tmp_path: Path) -> None:
    folder = source(tmp_path)
    alone = make_bundle(folder, runtime=tmp_path / "runtime")
    (folder / "compilegate-reports" / "job-1").mkdir(parents=True)
    (folder / "compilegate-reports" / "job-1" / "report.html").write_text("a report")
    keys = ("schema", "framework", "training", "schedule", "quality")
    for name in ("job.yaml", "job.yml"):
        (folder / name).write_text("".join(f"{key}: 1\n" for key in keys))
    beside = make_bundle(folder, runtime=tmp_path / "runtime")
    settings = {f"without-{key}.yaml" for key in keys}
    for name in settings:
        (folder / name).write_text("".join(f"{key}: 1\n" for key in keys if key not in name))
    with_settings = make_bundle(folder, runtime=tmp_path / "runtime")

    assert alone == beside
    assert settings == set(with_settings.names) - set(alone.names)


def test_times_owners_and_order_of_writing_do_not_change_it(tmp_path: Path) -> None:
    folder = source(tmp_path)
    before = make_bundle(folder, runtime=tmp_path / "runtime")
    for path in folder.rglob("*.py"):
        os.utime(path, (1, 1))
    after = make_bundle(folder, runtime=tmp_path / "runtime")

    assert before == after
    assert {(0, 0, 0)} == {(e.mtime, e.uid, e.gid) for e in entries(after.body)}
    assert b"\0\0\0\0" == after.body[4:8]  # gzip's own time


def test_a_changed_file_changes_the_digest(tmp_path: Path) -> None:
    folder = source(tmp_path)
    before = make_bundle(folder, runtime=tmp_path / "runtime")
    (folder / "train.py").write_text("changed")

    after = make_bundle(folder, runtime=tmp_path / "runtime")

    assert before.digest != after.digest
    assert 12 == len(after.digest)


def test_a_newer_recorder_is_another_bundle_of_the_same_code(tmp_path: Path) -> None:
    folder = source(tmp_path)
    before = make_bundle(folder, runtime=tmp_path / "runtime")
    (tmp_path / "runtime" / "recorder.py").write_text("a newer one")
    newer = make_bundle(folder, runtime=tmp_path / "runtime")
    (folder / "train.py").write_text("other code")
    other = make_bundle(folder, runtime=tmp_path / "runtime")

    assert before.digest != newer.digest
    assert before.code_digest == newer.code_digest != other.code_digest

    (folder / "compilegate_runtime").mkdir()  # a folder with its own needs none
    (folder / "compilegate_runtime" / "own.py").write_text("the team's")
    own = make_bundle(folder, runtime=tmp_path / "nowhere")
    assert ("compilegate_runtime/own.py", "package/modèle.py", "train.py") == own.names
    assert other.code_digest == own.code_digest
