"""``unlock`` at the keyboard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.cli.common.cloud import Cloud
from compilegate.domain.production.orphans import ExecutionEnd
from tests.cli.conftest import Invoke
from tests.fake_clouds import FakeProviders, cloud
from tests.usecases.test_lock import FIRST, WORKLOAD, acquire_lock, ended

WHY = ("--reason", "its clean-up failed")


@pytest.fixture
def stage(providers: FakeProviders) -> Any:
    """A trial that holds the lease and runs; one that is stopped has ended."""
    providers.aws_cloud = aws = cloud()
    services: Any = aws.services
    acquire_lock(FIRST, services=services)

    def stop(execution: str, _cause: str) -> None:
        services.ends[execution] = ended(FIRST, "ABORTED")

    aws.executions.stop = stop  # type: ignore[method-assign]
    return aws


def answer(invoke: Invoke, *arguments: str) -> dict[str, Any]:
    result = invoke("unlock", WORKLOAD, *arguments, "--json")
    assert 0 == result.exit_code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_lease_of_a_trial_that_has_ended_is_released(invoke: Invoke, stage: Any) -> None:
    stage.services.ends[FIRST["execution"]] = ExecutionEnd()
    document = answer(invoke, *WHY, "--yes")

    assert (WORKLOAD, True) == (document["workload"], document["released"])
    assert FIRST["execution"] == document["unlocked"]["execution"]
    assert stage.services.locks.holder(WORKLOAD) is None


def test_a_trial_that_runs_keeps_its_lease_unless_it_is_stopped(
    invoke: Invoke, stage: Cloud
) -> None:
    result = invoke("unlock", WORKLOAD, *WHY, "--yes")
    assert 2 == result.exit_code
    assert "still runs" in result.stderr
    assert "--force" in result.stderr
    assert FIRST["execution"] == stage.services.locks.holder(WORKLOAD)

    document = answer(invoke, *WHY, "--yes", "--force")
    assert (True, "ABORTED") == (
        document["unlocked"]["stopped"], document["unlocked"]["status"],
    )  # fmt: skip
    assert stage.services.locks.holder(WORKLOAD) is None


def test_a_workload_without_a_lease_is_free_already_and_an_unknown_one_an_error(
    invoke: Invoke, stage: Cloud
) -> None:
    stage.services.locks.release(WORKLOAD, FIRST["execution"])

    assert not answer(invoke, *WHY)["released"]
    assert "free" in invoke("unlock", WORKLOAD, *WHY).stdout
    unknown = invoke("unlock", "nobody", *WHY)
    assert (2, True) == (unknown.exit_code, "nobody" in unknown.stderr)
