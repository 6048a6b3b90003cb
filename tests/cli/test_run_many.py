"""``run`` of many files: it asks no more often than the services allow, and waits as they say."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.state_machines import ExecutionState
from compilegate_localcloud.emulator.limits import Limits
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD

FILES, HOURS = 50, 1
THROTTLED = ClientError({"Error": {"Code": "ThrottlingException"}}, "DescribeExecution")


class Time:
    """Passes where the command sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr("compilegate.cli.run.time.sleep", made.sleep)
    monkeypatch.setattr("compilegate.cli.run._CHANCE", random.Random(3))
    return made


def test_fifty_trials_are_watched_to_their_ends_within_the_published_rate(
    tmp_path, invoke, aws, clock
):
    """Beside others who leave a second's share of the rate, two looks out of three none."""
    object.__setattr__(aws, "poll_seconds", 5.0)
    limits, asked = Limits(clock, lambda _: 0), Counter[float]()
    described = executions(aws).describe

    def describe(arn: str) -> ExecutionState:
        asked[clock.now] += 1
        if limits.refusal("states", "DescribeExecution", b"") or clock.now % 3 > 1:
            raise THROTTLED
        if clock.now < HOURS * 3600:
            return ExecutionState(arn, "RUNNING", 0.0)
        return described(arn)

    executions(aws).on_start = partial(decided, aws, metrics=GOOD)
    executions(aws).describe = describe  # type: ignore[method-assign]
    files = [
        write_project(tmp_path / str(number), ("name: bert-docs", f"name: bert-{number}"))
        for number in range(FILES)
    ]

    result = invoke("run", *files, "--json")

    outcomes: list[dict[str, Any]] = json.loads(result.stdout)
    assert (0, FILES) == (result.exit_code, len(outcomes)), result.stderr
    assert {"promote"} == {outcome["verdict"] for outcome in outcomes}
    assert max(asked.values()) <= 10
    assert sum(asked.values()) / clock.now < 15 / 3
    assert HOURS * 3600 <= clock.now < 1.2 * HOURS * 3600


def test_a_service_that_asks_for_fewer_calls_is_asked_less_often_and_not_given_up(
    tmp_path, invoke, aws, clock
):
    object.__setattr__(aws, "poll_seconds", 5.0)
    times: list[float] = []

    def busy(_: str) -> None:
        times.append(clock.now)
        if len(times) <= 30:
            raise THROTTLED

    executions(aws).on_look = busy
    executions(aws).on_start = partial(decided, aws, metrics=GOOD)

    assert 0 == invoke("run", write_project(tmp_path)).exit_code
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.8 * 60 <= wait <= 1.2 * 60 for wait in waits[5:29])
    assert 4 <= waits[30] <= 6
    assert len(set(waits)) == len(waits)  # drawn, so that several do not stay in step
