"""``register --remove``: out of production, by name, file or folder; what is on is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilegate.cli.common.cloud import Cloud
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.registration.load import load_registration
from tests import fakes
from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.cli.test_register_command import NIGHTLY, OWNED, schedules, store
from tests.fakes import FakeProviders
from tests.usecases.flag_changes import wanted


@pytest.fixture
def cloud(providers: FakeProviders) -> Cloud:
    providers.aws_cloud = fakes.cloud()
    return providers.aws_cloud


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_project(tmp_path / "team", NIGHTLY, OWNED)


@pytest.mark.parametrize("named", ["name", "file", "folder"])
def test_removing_retires_by_name_file_or_folder(
    invoke: Invoke, cloud: Cloud, file: Path, named: str
) -> None:
    invoke("register", file)
    given = {"name": "bert-docs", "file": file, "folder": file.parent}[named]

    result = invoke("register", "--remove", given)
    again = invoke("register", "--remove", given)

    assert (0, 0) == (result.exit_code, again.exit_code)
    assert "bert-docs: retired" in result.stdout
    assert "bert-docs: already retired" in again.stdout
    assert {} == schedules(cloud).expressions
    assert not load_registration(store(cloud), "bert-docs").active


def test_removing_needs_no_source_folder(invoke: Invoke, cloud: Cloud, file: Path) -> None:
    invoke("register", file)
    (file.parents[1] / "training" / "train.py").unlink()

    assert 0 == invoke("register", "--remove", file).exit_code


def test_removing_what_never_was_registered_fails_and_says_so(invoke: Invoke, cloud: Cloud) -> None:
    result = invoke("register", "--remove", "nobody")

    assert 2 == result.exit_code
    assert "--remove: is not registered (got 'nobody')" in result.stderr
    assert "register its file" not in result.stderr


def test_removing_a_misspelt_name_names_the_nearest(
    invoke: Invoke, cloud: Cloud, file: Path
) -> None:
    invoke("register", file)

    result = invoke("register", "--remove", "bert-dosc")

    assert 2 == result.exit_code
    assert "did you mean bert-docs?" in " ".join(result.stderr.split())


def test_removing_what_is_on_says_that_it_stays_on_and_how_to_turn_it_off(
    invoke: Invoke, cloud: Cloud, file: Path
) -> None:
    invoke("register", file)
    change_flag("bert-docs", wanted("enable"), services=cloud.services)

    document = json.loads(invoke("register", "--remove", file, "--json", "--dry-run").stdout)
    result = invoke("register", "--remove", file)

    assert "compile" == document["workloads"][0]["still_on"]
    assert "bert-docs: retired; its flag stays on (compile)" in " ".join(result.stdout.split())
    assert 'To turn it off: compilegate flag revert bert-docs --reason "retired"\n' in result.stdout


def test_removing_a_file_that_is_not_there_is_bad_input(invoke: Invoke, cloud: Cloud) -> None:
    result = invoke("register", "--remove", "workloads/gone.yaml")

    assert 2 == result.exit_code
    assert "--remove: is neither a workload's name nor an existing file" in result.stderr
