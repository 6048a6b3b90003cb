"""The light reader follows what the deployment writes, and refuses what it cannot follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import flag as deployed
from compilegate.domain.compilers import MODES, NAMES
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production import arm
from compilegate.domain.workload import model, names
from compilegate.flags import document, overlay

SOUND: list[tuple[str, Any]] = [
    *(("compiler", name) for name in NAMES),
    *(("compile_mode", mode) for mode in MODES),
    *(("precision", word) for word in model.PRECISIONS),
    *(("distribution", word) for word in model.DISTRIBUTIONS),
    ("batch_size", 1), ("batch_size", 48), ("instance_count", 2),
    ("learning_rate", 1e-5), ("learning_rate", 1),
    ("instance_type", "ml.p4d.24xlarge"), ("instance_type", "ml.trn1-n.32xlarge"),
    ("entry_point", "train.py"), ("entry_point", "src/train-b.py"),
    ("hyperparameters", {}), ("hyperparameters", {"epochs": 3, "lr": 0.1, "on": True, "a": "b"}),
    ("framework", {"name": "pytorch", "version": "2.8.0"}),
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
    ("framework", "pytorch"), ("framework", {"name": "pytorch"}), ("image", 7), ("image", ""),
]  # fmt: skip
ON = {"schema": 1, "enabled": True, "state": "probation", "candidate": "c", "overrides": {"a": 1}}
OFF = {"schema": 1, "enabled": False, "state": "off"}
DOCUMENTS: list[Any] = [
    ON, OFF, {**ON, "since": "2026-11-20T10:00:00Z", "decision_id": "d"}, {**OFF, "new": 1},
    {**ON, "overrides": {"framework": {"name": "n", "version": "v"}}}, {**OFF, "overrides": None},
    *({**ON, "state": state} for state in deployed.STATES),
    {}, [], None, 1, "text", {**ON, "schema": 2}, {**ON, "schema": True}, {**ON, "schema": "1"},
    {**ON, "enabled": 1}, {**ON, "enabled": None}, {**ON, "state": "on"}, {**ON, "state": []},
    {**ON, "candidate": 1}, {**ON, "candidate": ""}, {**ON, "candidate": "a\nb"},
    {**ON, "overrides": [1]}, {**ON, "overrides": "x"}, {**ON, "decision_id": {}},
]  # fmt: skip


def by_the_deployment(text: str) -> tuple[Any, ...] | None:
    try:
        flag = deployed.parse_flag(text)
    except InvalidInputError:
        return None
    return flag.enabled, flag.state, flag.candidate, dict(flag.overrides), flag.decision_id


def by_a_pipeline(text: str) -> tuple[Any, ...] | None:
    try:
        flag = document.read(text)
    except document.UnreadableFlagError:
        return None
    return flag.enabled, flag.state, flag.candidate, dict(flag.overrides), flag.decision_id


@pytest.mark.parametrize("value", DOCUMENTS, ids=repr)
def test_both_read_the_same_documents_alike(value: Any) -> None:
    text = json.dumps(value)

    assert by_the_deployment(text) == by_a_pipeline(text)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"schema": NaN}', '{"schema": 1e999}'])
def test_neither_reads_what_is_not_json(text: str) -> None:
    assert (None, None) == (by_the_deployment(text), by_a_pipeline(text))


@pytest.mark.parametrize(("key", "value"), SOUND, ids=repr)
def test_what_the_deployment_may_write_is_followed(key: str, value: Any) -> None:
    arm.check_overrides({key: value})
    document.check_overrides({key: value})


@pytest.mark.parametrize(("key", "value"), BROKEN, ids=repr)
def test_what_the_deployment_refuses_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InvalidInputError):
        arm.check_overrides({key: value})
    with pytest.raises(document.UnreadableFlagError, match=r"Fix: update compilegate-flags"):
        document.check_overrides({key: value})


def test_the_words_are_the_deployment_s() -> None:
    assert (model.PRECISIONS, model.DISTRIBUTIONS, model.BASELINE, names.PARTITIONING) == (
        document.PRECISIONS, document.DISTRIBUTIONS, document.BASELINE, overlay.PARTITIONING,
    )  # fmt: skip
    assert deployed.STATES == document.STATES
    assert set(deployed.OVERRIDE_KEYS) <= set(document._CHECKS)
    assert set(arm._READERS) == set(document._CHECKS)
