"""What a trial starts from lies in the bucket, under the digest of its contents."""

from __future__ import annotations

import json
from pathlib import Path

from compilegate.adapters.packages import package
from compilegate.adapters.workload_files import read_workload
from compilegate.usecases.registration.upload import submit
from compilegate.usecases.trial.documents import Trial, load_spec
from tests.cli.project import write_project
from tests.fakes import MemoryStore


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
    assert spec.source_key.startswith("workloads/bert-docs/source/")
    assert spec.source_key.endswith("/sourcedir.tar.gz")
    assert spec.source_key in store.objects


def test_the_same_project_lies_under_the_same_keys(tmp_path: Path) -> None:
    first, first_store = submitted(tmp_path / "a")
    second, second_store = submitted(tmp_path / "b")

    assert first == second
    assert first_store.objects == second_store.objects


def test_an_s3_input_stays_as_it_is(tmp_path: Path) -> None:
    file = write_project(tmp_path, ("data/train", "s3://other/train/"))
    store = MemoryStore()

    trial = submit(package(read_workload(file)), trial="0abc1234", store=store)

    spec = json.loads(store.get(trial.spec_key))
    assert {"train": "s3://other/train/"} == spec["workload"]["training"]["inputs"]


def test_relative_paths_may_start_beside_the_workload_file(tmp_path: Path) -> None:
    file = write_project(tmp_path).rename(tmp_path / "bert-docs.yaml")

    found = read_workload(file)

    assert tmp_path / "training" == found.source_dir
    assert {"train": tmp_path / "data" / "train"} == found.local_inputs
