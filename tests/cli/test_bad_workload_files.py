"""A wrong workload file is refused before anything starts, exit 2; what is wrong is the reader's
(tests/adapters/test_workload_files.py).
"""

from __future__ import annotations

import json

import pytest

from tests.cli.project import write_project
from tests.fake_clouds import cloud


def test_every_error_has_a_line_of_its_own_and_stands_in_the_document(tmp_path, invoke):
    red = ("schema: 1", 'schema: 1\n"\\e[31mred\\a": 2')
    file = write_project(tmp_path, red, ("margin: 0.005", "margin: .nan"))

    result = invoke("check", file)
    document = json.loads(invoke("check", file, "--json").stdout)

    assert (2, "") == (result.exit_code, result.stdout)
    first, *lines = result.stderr.splitlines()
    assert f"Error: {file}: 2 errors" == first
    fields = [one["field"] for one in document["errors"]]
    assert {"quality.margin", "\x1b[31mred\a"} == set(fields)
    assert [f"  {field.encode('unicode_escape').decode()}: " for field in fields] == [
        line[: line.index(": ") + 2] for line in lines
    ]
    assert "(got .nan), line 29. Fix: " in result.stderr
    assert document["error"] == document["errors"][0]


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_single_error_stands_on_the_files_line(command, tmp_path, invoke):
    result = invoke(command, tmp_path)

    assert 2 == result.exit_code
    assert f"Error: {tmp_path}: is a folder. Fix: name a workload file" in result.stderr


def test_an_s3_input_that_does_not_exist_stops_the_run_before_it_starts(
    tmp_path, invoke, providers
):
    providers.aws_cloud = cloud()
    file = write_project(tmp_path, ("data/train", "s3://other/train/"))

    result = invoke("run", file)

    assert result.exit_code == 2
    assert f"{file}: training.inputs.train: does not exist" in result.stderr
    assert "(got 's3://other/train/')" in result.stderr
    assert {} == providers.aws_cloud.executions.started
    assert {} == providers.aws_cloud.services.store.objects


def test_two_files_of_one_workload_are_refused_together(tmp_path, invoke):
    file = write_project(tmp_path)
    twin = file.with_name("twin.yaml")
    twin.write_text(file.read_text())

    result = invoke("run", file, twin)

    assert result.exit_code == 2
    assert f"name: is also the name of the workload in {twin} (got 'bert-docs')" in result.stderr
