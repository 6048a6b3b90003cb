"""``run``: starts what it read, follows it, says how it ended, and asks as often as it may."""

import json
import random
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError

from compilegate.cli.common.outcome import full_run_words
from tests.cli.project import write_compiling, write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD, NOISY
from tests.fake_clouds import cloud


def test_a_script_that_already_compiles_is_named_with_its_trial(tmp_path, invoke, aws):
    file = write_compiling(tmp_path)
    executions(aws).on_start = partial(decided, aws, report=False, metrics=GOOD)

    text = " ".join(invoke("run", file).stdout.split())
    document = json.loads(invoke("run", file, "--json").stdout)

    place = {"script": "train.py", "line": 2, "source": "model = torch.compile(model)"}
    assert place == document["script_compiles"]
    assert "train.py already compiles (line 2: model = torch.compile(model)" in text
    assert "against an uncompiled run" in Path(document["report"]).read_text()


def two_projects(folder):
    first = write_project(folder / "a", ("name: bert-docs", "name: one"))
    return [first, write_project(folder / "b", ("name: bert-docs", "name: two"))]


def test_of_several_the_worst_exit_code_and_a_list_of_outcomes(tmp_path, invoke, aws):
    metrics = {"one": GOOD, "two": NOISY}
    executions(aws).on_start = lambda p: decided(aws, p, metrics=metrics[p["workload"]])

    result = invoke("run", *two_projects(tmp_path), "--json")

    outcomes = json.loads(result.stdout)
    assert ["promote", "inconclusive"] == [outcome["verdict"] for outcome in outcomes]
    assert 11 == result.exit_code


def test_one_that_cannot_start_is_named_and_the_others_go_on(tmp_path, invoke, aws):
    def start(payload):
        if payload["workload"] == "two":
            raise ValueError("refused")
        decided(aws, payload, metrics=GOOD)

    executions(aws).on_start = start
    one, two = two_projects(tmp_path)
    wrong = write_project(tmp_path / "c", ("model:", "no_model:"))

    result = invoke("run", wrong, one, two, "--json")

    outcome, *not_started = json.loads(result.stdout)
    assert (1, "promote") == (result.exit_code, outcome["verdict"])
    assert [(str(wrong), None, "bad_input"), (str(two), "two", "unexpected")] == [
        (entry["file"], entry["workload"], entry["error"]["kind"]) for entry in not_started
    ]
    assert {"not_started"} == {entry["verdict"] for entry in not_started}
    assert all(f"{file} was not started" in result.stderr for file in (wrong, two))
    assert {} == executions(aws).stopped
    assert 2 == invoke("run", wrong, one).exit_code


def test_of_files_that_name_the_same_workload_none_is_started(tmp_path, invoke, aws):
    executions(aws).on_start = lambda payload: decided(aws, payload, metrics=GOOD)
    one, two = two_projects(tmp_path)
    twins = [write_project(tmp_path / name, ("name: bert-docs", "name: two")) for name in "cd"]

    result = invoke("run", two, one, *twins, "--json")

    outcome, *refused = json.loads(result.stdout)
    assert (2, "one") == (result.exit_code, outcome["workload"])
    named = [(entry["file"], entry["workload"], entry["error"]["field"]) for entry in refused]
    assert [(str(file), "two", "name") for file in (two, *twins)] == named
    assert 1 == len(executions(aws).started)
    assert f"name: is also the name of the workload in {twins[0]} (got 'two')" in result.stderr


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
@pytest.mark.parametrize("local", [True, False])
def test_stopped_it_ends_local_trials_and_leaves_those_in_aws(
    *, error, code, local, tmp_path, invoke, aws, providers
):
    providers.local_cloud = cloud("local", simulated="on a CPU")
    where = providers.local_cloud if local else aws

    with patch("compilegate.cli.run.watch", side_effect=error):
        result = invoke("run", write_project(tmp_path), *(["--local"] if local else []))

    (arn,) = executions(where).started
    assert code == result.exit_code
    assert ([arn] if local else []) == list(executions(where).stopped)
    assert local == providers.ended
    if local:
        said = "Stopped bert-docs; nothing was decided, the flag is unchanged."
        assert ["stopped with Ctrl-C"] == list(executions(where).stopped.values())
    else:
        said = f"  aws stepfunctions stop-execution --execution-arn {arn}"
    assert said in result.stderr


def test_a_lost_network_ends_the_watching_not_the_trial(tmp_path, invoke, aws):
    def lost(arn):
        raise ConnectionError("network is down")

    executions(aws).on_look = lost

    result = invoke("run", write_project(tmp_path))

    assert 1 == result.exit_code
    assert "can no longer be watched (network is down); it continues" in result.stderr
    assert {} == executions(aws).stopped


FULL = {
    "made_by": "production, as it trains anyway (canary)",
    "extra": {"runs": 0, "usd": 0.0, "gpu_hours": 0.0},
    "production": {"runs": 4, "usd": 80.0, "gpu_hours": 32.0},
    "exposed": "2 models of a candidate made in production, held back until the verdict",
}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (FULL, "made by production, as it trains anyway (canary); extra $0.00, 0 GPU-hours; 2 "
         "models of a candidate made in production, held back until the verdict"),
        (None, ""),
        (
            {**FULL, "made_by": "the trial", "extra": {"runs": 4, "usd": None, "gpu_hours": None},
             "production": {"runs": 0}},
            "made by the trial; extra –, – GPU-hours",  # noqa: RUF001
        ),
    ],
)  # fmt: skip
def test_full_runs_say_who_made_them_what_was_extra_and_what_was_exposed(document, words):
    assert words == full_run_words(document)


@pytest.mark.parametrize("resumed", [True, False])
def test_a_trial_that_goes_on_in_a_killed_cloud_is_followed(resumed, tmp_path, invoke, providers):
    """Beside it one of a workload that this command was not asked for."""
    local = providers.local_cloud = cloud("local", simulated="on a CPU")
    executions(local).on_start = partial(decided, local, metrics=GOOD)
    file = write_project(tmp_path)
    invoke("run", file, "--local")
    (first,) = executions(local).started
    executions(local).started["arn:aws:other"] = {"workload": "other", "trial": "0mabc123"}
    looked_at = set()
    executions(local).on_look = looked_at.add
    providers.resumed = resumed
    result = invoke("run", file, "--local", "--json")

    assert 0 == result.exit_code
    assert "bert-docs" == json.loads(result.stdout)["workload"]
    again = executions(local).started.keys() - {first, "arn:aws:other"}
    assert looked_at == ({first, "arn:aws:other"} if resumed else again)
    assert len(again) == (0 if resumed else 1)
    assert ("goes on" in " ".join(result.stderr.split())) == resumed


THROTTLED = ClientError({"Error": {"Code": "ThrottlingException"}}, "DescribeExecution")


def test_a_service_that_asks_for_fewer_calls_is_asked_less_often(
    tmp_path, invoke, aws, monkeypatch
):
    object.__setattr__(aws, "poll_seconds", 5.0)
    waits = []
    monkeypatch.setattr("compilegate.cli.run.time.sleep", waits.append)
    monkeypatch.setattr("compilegate.cli.run._CHANCE", random.Random(3))

    def busy(_):
        if len(waits) < 30:
            raise THROTTLED

    executions(aws).on_look = busy
    executions(aws).looks = 40
    executions(aws).on_start = partial(decided, aws, metrics=GOOD)

    assert 0 == invoke("run", write_project(tmp_path)).exit_code
    assert all(0.8 * 60 <= wait <= 1.2 * 60 for wait in waits[5:29])
    assert 4 <= waits[30] <= 6
    assert len(set(waits)) == len(waits)  # drawn, so that several do not stay in step
