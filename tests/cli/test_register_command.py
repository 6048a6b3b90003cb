"""``register``: files in, production out, and back out with ``--remove``."""

import json

import pytest

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.records import load_registration
from tests.cli.project import write_compiling, write_project
from tests.usecases.flag_changes import flag_change

NIGHTLY = ("run_hours: 6.0", 'run_hours: 6.0\n  cron: "cron(0 3 * * ? *)"')
OWNED = ("name: bert-docs", "name: bert-docs\nowner: nlp")


@pytest.fixture
def file(tmp_path):
    return write_project(tmp_path / "team", NIGHTLY, OWNED)


def many(file, count):
    """The file's folder with so many workloads in all."""
    text = file.read_text()
    for index in range(count - 1):
        (file.parent / f"job-{index:03}.yaml").write_text(text.replace("bert-docs", f"job-{index}"))
    return file.parent


def test_a_script_that_compiles_itself_trains_uncompiled_until_a_promotion(shown, aws, tmp_path):
    file = write_compiling(tmp_path / "own", NIGHTLY, OWNED)

    said, again = shown("register", file), shown("register", file)

    assert "train.py already compiles (line 2: model = torch.compile(model))." in said
    assert "already compiles" not in again  # unchanged


# What is changed in a second file beside the registered one, the arguments, and what is said.
REFUSED = {
    "the same name twice": (
        (), ("bert-docs.yaml", "other.yaml"), ("is also the name of the workload in",),
    ),
    "an input that is not there": (
        (("data/train", "s3://other/train/"),), ("other.yaml",),
        ("training.inputs.train: does not exist",),
    ),
    "what no image can train, now and not later": (
        (('version: "2.13.0"', 'version: "2.99.0"'),), ("other.yaml",),
        ("could not be trained", "no image of pytorch 2.99.0", "Fix: "),
    ),
    "a misspelt name to remove": ((), ("--remove", "bert-dosc"), ("did you mean bert-docs?",)),
    "a file to remove that is not there": (
        (), ("--remove", "workloads/gone.yaml"),
        ("--remove: is neither a workload's name nor an existing file",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_changes_nothing(case, invoke, aws, file, monkeypatch):
    changes, arguments, expected = REFUSED[case]
    invoke("register", file)
    before = dict(aws.services.store.objects)
    text = file.read_text()
    for old, new in changes:
        text = text.replace(old, new)
    file.with_name("other.yaml").write_text(text)
    monkeypatch.chdir(file.parent)

    result = invoke("register", *arguments)

    shown = " ".join(result.stderr.split())
    assert 2 == result.exit_code
    assert [] == [part for part in expected if part not in shown]
    assert before == aws.services.store.objects


def test_a_failure_of_one_workload_leaves_the_others_registered(invoke, aws, file, monkeypatch):
    put = aws.production.schedules.put

    def refuse(workload, expression, timezone):
        if workload == "job-1":
            raise EnvironmentNotReadyError("Scheduler is on holiday")
        put(workload, expression, timezone)

    monkeypatch.setattr(aws.production.schedules, "put", refuse)

    result = invoke("register", many(file, 4))

    assert 1 == result.exit_code
    assert "job-001.yaml: Scheduler is on holiday" in result.stderr
    assert "3 new, 1 failed" in result.stdout
    assert not load_registration(aws.services.store, "job-1").complete


def test_another_owners_name_is_refused_until_it_is_taken_over(invoke, aws, file, tmp_path):
    invoke("register", file)
    other = write_project(tmp_path / "vision", ("name: bert-docs", "name: bert-docs\nowner: cv"))

    refused = invoke("register", other)
    taken = invoke("register", other, "--take-over")

    assert (2, 0) == (refused.exit_code, taken.exit_code)
    assert "registered by the owner nlp" in refused.stderr
    assert "in place of workloads/bert-docs.yaml of nlp" in " ".join(taken.stdout.split())


def test_removing_what_is_on_says_that_it_stays_on_and_how_to_turn_it_off(invoke, aws, file):
    invoke("register", file)
    change_flag("bert-docs", flag_change("enable"), services=aws.services)

    document = json.loads(invoke("register", "--remove", file, "--json", "--dry-run").stdout)
    result = invoke("register", "--remove", file)

    assert "compile" == document["workloads"][0]["still_on"]
    assert "bert-docs: retired; its flag stays on (compile)" in " ".join(result.stdout.split())
    assert 'To turn it off: compilegate flag revert bert-docs --reason "retired"\n' in result.stdout
