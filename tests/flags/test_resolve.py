"""A training script gets its overrides, or the baseline whatever goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from compilegate.domain.flag import Flag
from compilegate.flags import bounded, reading, resolve
from compilegate.flags.backoff import Backoff
from tests.flags.forms import warned
from tests.flags.ssm import ON, FakeSsm, promoted, refusal

ROOT = Path(__file__).parents[2]
HASTY = Backoff(seconds=0.0)


def test_an_absent_flag_is_the_baseline_and_a_warning_that_names_what_is_not_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert {} == resolve("bert-docs", client=FakeSsm(refusal("ParameterNotFound")))

    (warning,) = warned(caplog).splitlines()
    assert "/compilegate/prod/workloads/bert-docs/compiler does not exist" in warning
    assert "COMPILEGATE_STAGE" in warning


@pytest.mark.parametrize("variable", ["COMPILEGATE_IMAGE", "COMPILEGATE_ARM"])
def test_a_job_that_already_has_an_arm_asks_no_one(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A baseline of a later trial would otherwise be compiled by the flag of an earlier one."""
    monkeypatch.setenv(variable, "baseline")
    client = FakeSsm(ON.to_json())

    assert {} == resolve("bert-docs", client=client)
    assert [] == client.asked


def test_a_disabled_flag_is_the_baseline_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    off = Flag(False, "off")
    # Of a later release's overrides too: what is off lays nothing over a job.
    for flag in (off, Flag(False, "reverted", "compile", {"compiler": "future"})):
        assert {} == resolve("bert-docs", client=FakeSsm(flag.to_json()))
    assert "" == warned(caplog)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "not json",
        "[]",
        "null",
        '{"schema": 2, "enabled": true, "state": "permanent"}',
        '{"schema": 1, "enabled": "yes", "state": "permanent"}',
        '{"schema": 1, "enabled": true, "state": "on"}',
        '{"schema": 1, "enabled": true, "state": "permanent", "overrides": [1]}',
        '{"schema": 1, "enabled": true, "state": "permanent"}',
        '{"schema": 1, "enabled": true, "state": "permanent", "overrides": {"batch_size": 8}}',
        '{"schema": 1, "enabled": true, "state": "permanent", "candidate": "c", "overrides": {}}',
        '{"schema": 1, "enabled": true, "state": "permanent", "candidate": "c", '
        '"overrides": {"compiler": "future"}}',
        refusal("AccessDeniedException"),
        refusal("ThrottlingException"),
        EndpointConnectionError(endpoint_url="https://ssm"),
        TimeoutError("slow"),
        KeyError("Parameter"),
    ],
)
def test_any_failure_is_the_baseline_and_a_logged_warning(
    answer: str | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert {} == resolve("bert-docs", client=FakeSsm(answer), backoff=HASTY)

    (warning,) = warned(caplog).splitlines()
    assert "training with the baseline" in warning


def test_a_client_that_cannot_be_referred_to_weakly_is_asked_each_time() -> None:
    class Slots:
        __slots__ = ("get_parameter",)

    client, ssm = Slots(), FakeSsm(ON.to_json())
    client.get_parameter = ssm.get_parameter

    assert resolve("bert-docs", client=client) == resolve("bert-docs", client=client)
    assert 2 == len(ssm.asked)
    assert {} == bounded._calls


def test_it_imports_with_the_standard_library_alone_and_says_what_that_means() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from compilegate.flags import *; "
        "print(sorted({'boto3', 'yaml', 'typer', 'botocore'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )

    assert "[]\n" == run.stdout
    assert "RuntimeWarning: compilegate.flags cannot read any flag: boto3 is not" in run.stderr
    assert "pip install 'compilegate-flags[boto3]'" in run.stderr


def test_a_process_asks_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(reading.time, "monotonic", lambda: now[0])
    off = Flag(False, "reverted").to_json()
    client = FakeSsm(ON.to_json(), off)

    first = resolve("bert-docs", client=client)
    now[0] += 59.75
    assert first == resolve("bert-docs", client=client)
    assert 1 == len(client.asked)
    now[0] += 0.25
    assert {} == resolve("bert-docs", client=client)


def test_what_is_handed_out_can_be_changed_without_changing_the_next_answer() -> None:
    client = promoted(batch_size=48, hyperparameters={"epochs": 3})

    first = resolve("bert-docs", client=client)
    first["batch_size"] = 1
    first["hyperparameters"]["epochs"] = 1

    second = resolve("bert-docs", client=client)
    assert (48, {"epochs": 3}) == (second["batch_size"], second["hyperparameters"])
    assert second == json.loads(json.dumps(second))
    assert 1 == len(client.asked)


def test_another_client_workload_or_stage_is_another_question() -> None:
    one, other = FakeSsm(ON.to_json()), FakeSsm(Flag(False, "off").to_json())

    assert resolve("bert-docs", client=one)
    assert {} == resolve("bert-docs", client=other)
    resolve("bert-docs", stage="dev", client=one)
    resolve("gpt", client=one)

    assert 3 == len(set(one.asked))


def test_threads_of_one_pipeline_ask_once_and_agree() -> None:
    client, answers = FakeSsm(ON.to_json()), []

    def ask() -> None:
        answers.append(resolve("bert-docs", client=client))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == len(client.asked)
    assert [ON.overrides] * 20 == answers


@pytest.mark.parametrize(
    ("state", "holdback", "held_back", "watched"),
    [
        ("permanent", 0.04, 0.04, False),
        ("permanent", None, 0.0, False),
        ("probation", 0.04, 0.0, True),
    ],
)
def test_jobs_are_held_back_once_the_probation_is_over(
    state: str, holdback: float | None, held_back: float, watched: bool
) -> None:
    flag = {**json.loads(ON.to_json()), "state": state, "holdback": holdback}
    choice = reading.choose("bert-docs", client=FakeSsm(json.dumps(flag)))
    absent = reading.choose("bert-docs", client=FakeSsm(refusal("ParameterNotFound")))

    assert ("compile", held_back, watched) == (choice.arm, choice.held_back, choice.watched)
    assert (0.0, False) == (absent.held_back, absent.watched)


def test_the_stage_is_the_one_that_is_asked_for_else_the_environments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "prod" == reading.stage_name(None)
    monkeypatch.setenv("COMPILEGATE_STAGE", "dev")

    assert ["dev", "test"] == [reading.stage_name(one) for one in (None, "test")]
    resolve("bert-docs", client=(client := FakeSsm(ON.to_json())))
    assert ["/compilegate/dev/workloads/bert-docs/compiler"] == client.asked
