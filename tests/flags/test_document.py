"""The light reader follows what the deployment writes, and refuses what it cannot follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compilegate.domain import flag as deployed
from compilegate.domain.compilers import MODES, NAMES
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production import job
from compilegate.domain.workload import model, names
from compilegate.flags import document

SOUND: list[tuple[str, Any]] = [
    *(("compiler", name) for name in NAMES),
    *(("compile_mode", mode) for mode in MODES),
    *(("precision", word) for word in model.PRECISIONS),
    *(("distribution", word) for word in model.DISTRIBUTIONS),
    ("batch_size", 1), ("batch_size", 48), ("instance_count", 2),
    ("learning_rate", 1e-5), ("learning_rate", 1),
    ("instance_type", "ml.p4d.24xlarge"), ("instance_type", "ml.trn1-n.32xlarge"),
    ("entry_point", "train.py"), ("entry_point", "src/train-b.py"),
    ("batch_size", 10**7), ("instance_count", 1000), ("learning_rate", 1000.0),
    ("hyperparameters", {"most": 2**64, "least": -(2**64)}),
    ("hyperparameters", {}), ("hyperparameters", {"epochs": 3, "lr": 0.1, "on": True, "a": "b"}),
    ("framework", {"name": "pytorch", "version": "2.8.0"}),
    ("framework", {"name": "pytorch", "version": "2.8.0", "transformers": None}),
    ("image", "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"),
]  # fmt: skip
BROKEN: list[tuple[str, Any]] = [
    ("color", "red"), ("compiler", "unknown"), ("compiler", None), ("compiler", []),
    ("compile_mode", "other"), ("precision", "fp4"), ("distribution", "ring"),
    ("batch_size", 0), ("batch_size", "48"), ("batch_size", True), ("batch_size", 1.5),
    ("instance_count", -1), ("learning_rate", 0), ("learning_rate", "1e-5"),
    ("learning_rate", float("nan")), ("instance_type", "p4d.24xlarge"), ("instance_type", 3),
    ("entry_point", "/etc/passwd"), ("entry_point", "../other.py"), ("entry_point", ""),
    ("hyperparameters", [1]), ("hyperparameters", {"a": [1]}), ("hyperparameters", {"a": None}),
    ("batch_size", 10**7 + 1), ("instance_count", 1001), ("learning_rate", 1000.1),
    ("learning_rate", 10**400), ("learning_rate", True), ("learning_rate", float("inf")),
    *(("hyperparameters", {"a": value}) for value in (
        float("inf"), -float("inf"), float("nan"), 10**400, 2**64 + 1, -(2**64) - 1,
    )),
    *(("hyperparameters", {name: 1}) for name in (
        *names.OWN_HYPERPARAMETERS, "-c", "--x", "", "a b", "a=b",
    )),
    ("entry_point", "..\\..\\evil.py"), ("framework", {"name": "", "version": "1"}),
    ("instance_type", "ml.p4d.24xlarge "), ("instance_type", "ml.p4d.24xlarge\n"),
    ("framework", "pytorch"), ("framework", {"name": "pytorch"}), ("image", 7), ("image", ""),
]  # fmt: skip
# What a workload file is refused for elsewhere (domain/workload/limits.py, domain/eligibility), so
# that no trial has tried it.
NEVER_TRIED: list[tuple[str, Any]] = [
    *(("entry_point", path) for path in ("-c", "x.py; rm -rf /", "a b.py", "./x.py", "x$y.py")),
    *(("hyperparameters", {name: 1}) for name in (
        "sagemaker_program", "sagemaker_submit_directory", "a;b", "a$(b)",
    )),
    *(("framework", {"name": "pytorch", "version": "2", "more": value})
      for value in ({"a": 1}, [1], 10**400)),
]  # fmt: skip
ON = {"schema": 1, "enabled": True, "state": "probation", "candidate": "c", "overrides": {"a": 1}}
OFF = {"schema": 1, "enabled": False, "state": "off"}
DOCUMENTS: list[Any] = [
    ON, OFF, {**ON, "since": "2026-11-20T10:00:00Z", "decision_id": "d"}, {**OFF, "new": 1},
    {**ON, "overrides": {"framework": {"name": "n", "version": "v"}}}, {**OFF, "overrides": None},
    *({**ON, "state": state} for state in deployed.STATES if state not in document.NEVER_ON),
    *({**OFF, "state": state} for state in deployed.STATES),
    {}, [], None, 1, "text", {**ON, "schema": 2}, {**ON, "schema": True}, {**ON, "schema": "1"},
    {**ON, "enabled": 1}, {**ON, "enabled": None}, {**ON, "state": "on"}, {**ON, "state": []},
    {**ON, "candidate": 1}, {**ON, "candidate": ""}, {**ON, "candidate": "a\nb"},
    *({**ON, "holdback": share} for share in (None, 0, 1, 0.04, -0.1, 1.1, True, "0.04", 10**400)),
    {**ON, "overrides": [1]}, {**ON, "overrides": "x"}, {**ON, "decision_id": {}},
]  # fmt: skip


def values(read: Callable[[str], Any], text: str) -> tuple[Any, ...] | None:
    """What a reader takes a document for, None where it refuses it."""
    try:
        flag = read(text)
    except (InvalidInputError, document.UnreadableFlagError):
        return None
    return (
        flag.enabled, flag.state, flag.candidate, dict(flag.overrides), flag.decision_id,
        flag.holdback,
    )  # fmt: skip


@pytest.mark.parametrize("value", DOCUMENTS, ids=repr)
def test_both_read_the_same_documents_alike(value: Any) -> None:
    text = json.dumps(value)

    assert values(deployed.parse_flag, text) == values(document.read, text)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"schema": NaN}', '{"schema": 1e999}'])
def test_neither_reads_what_is_not_json(text: str) -> None:
    assert (None, None) == (values(deployed.parse_flag, text), values(document.read, text))


@pytest.mark.parametrize(("key", "value"), SOUND, ids=repr)
def test_what_the_deployment_may_write_is_followed(key: str, value: Any) -> None:
    job.check_overrides({key: value})
    document.check_overrides({key: value})


@pytest.mark.parametrize(("key", "value"), BROKEN, ids=repr)
def test_what_the_deployment_refuses_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InvalidInputError):
        job.check_overrides({key: value})
    with pytest.raises(document.UnreadableFlagError, match=r"Fix: update compilegate-flags"):
        document.check_overrides({key: value})


@pytest.mark.parametrize(("key", "value"), NEVER_TRIED, ids=repr)
def test_what_no_trial_has_tried_is_refused(key: str, value: Any) -> None:
    with pytest.raises(document.UnreadableFlagError, match=rf"flag\.overrides\.{key} .* Fix: "):
        document.check_overrides({key: value})


@pytest.mark.parametrize(
    "twice",
    ['"enabled": false, "enabled": true', '"overrides": {"batch_size": 1, "batch_size": 2}'],
)
def test_a_key_that_is_written_twice_is_refused(twice: str) -> None:
    key = twice.split('": ')[-2].rpartition('"')[2]
    with pytest.raises(document.UnreadableFlagError, match=f"'{key}' twice. Fix: "):
        document.read('{"schema": 1, "state": "permanent", %s}' % twice)  # noqa: UP031 - braces


def test_a_number_that_is_not_json_is_refused_wherever_it_is() -> None:
    with pytest.raises(document.UnreadableFlagError, match=r"is not JSON. Fix: "):
        document.read(json.dumps({**ON, "new": [float("nan")]}))


@pytest.mark.parametrize("state", ["off", "reverted"])
def test_a_flag_that_is_on_in_a_state_that_is_off_is_refused(state: str) -> None:
    with pytest.raises(document.UnreadableFlagError, match=rf"flag\.state .*{state}.* Fix: "):
        document.read(json.dumps({**ON, "state": state}))
