"""Speed jobs that complete without any evidence of an arm are not paid for again and again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from compilegate.domain.planning.rounds import MOST_WITHOUT_RESULT
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.trial.judge_arms import judge_arms
from tests.domain.workload_builder import COMPILE, SOUND
from tests.usecases.trial_builder import (
    EVENT,
    arms_of,
    asked,
    asks_speed,
    call_judge,
    evidence,
    load,
    outcome,
    put_output,
    put_spec,
    speed_output,
)

LARGER = dataclasses.replace(COMPILE, name="compile-b48", batch_size=48)
BOTH = (COMPILE, LARGER)
FIRST = ("compile",)


def run_job(
    services: Any, run: str, request: Mapping[str, Any], silent: Collection[str], round_number: int
) -> dict[str, Any]:
    """The job completed; of ``silent`` arms it left nothing."""
    done, parameters = outcome(run), request["HyperParameters"]
    first = int(json.loads(parameters.get("first_block", "0")))
    blocks = range(first, first + int(json.loads(parameters["blocks"])))
    arms = [arm for arm in arms_of(dict(request)) if arm not in silent]
    put_output(services, done["job"], speed_output(blocks, speedup=1.12, arms=arms))
    services.jobs.add(done["job"], "Completed", 1000.0, 4600.0 + round_number)
    services.jobs.descriptions[done["job"]]["HyperParameters"] = parameters
    return done


def whole_trial(services: Any, silent_from: Mapping[str, int]) -> list[list[str]]:
    """The arms that every speed job was paid to measure, until the trial asks for no more.

    An arm in ``silent_from`` leaves nothing from that round on.
    """
    plan_trial(EVENT, services=services)
    ended: list[dict[str, Any]] = []
    paid: list[list[str]] = []
    for number in range(25):
        answer = judge_arms({**EVENT, "round": number, "runs": ended}, services=services)
        if answer["next_stage"] != "speed":
            return paid
        requests = asked(services, answer)
        silent = [arm for arm, since in silent_from.items() if number >= since]
        paid += [arms_of(request) for request in requests.values()]
        ended = [run_job(services, run, one, silent, number) for run, one in requests.items()]
    raise AssertionError("the trial never ended")


@pytest.mark.parametrize(
    ("candidates", "silent_from", "about", "jobs"),
    [
        ((COMPILE,), {"compile": 0}, "compile", 3),
        ((COMPILE,), {"baseline": 0}, "baseline", 3),
        ((COMPILE,), {"compile": 1}, "compile", 4),
        (BOTH, {"compile": 0, "compile-b48": 0}, "compile", 3),
    ],
)
def test_three_jobs_without_a_result_end_the_trial_and_say_why(
    candidates: Any, silent_from: Mapping[str, int], about: str, jobs: int, services: Any
) -> None:
    put_spec(services, dataclasses.replace(SOUND, candidates=candidates))
    paid = whole_trial(services, silent_from)
    first = load(services, "decision")["reasons"][0]

    assert (MOST_WITHOUT_RESULT, jobs) == (3, len(paid))
    assert "inconclusive" == load(services, "decision")["verdict"]
    assert ("evidence_missing", about) == (first["code"], first["arm"])


def test_an_arm_that_leaves_nothing_ends_alone(services: Any) -> None:
    put_spec(services, dataclasses.replace(SOUND, candidates=BOTH))
    plan_trial(EVENT, services=services)
    ended: list[dict[str, Any]] = []
    paid = []
    for number in range(5):
        step = asks_speed("compile", "compile-b48", block=number)
        requests = asked(services, call_judge(services, number, ended, step))
        paid += [arms_of(request) for request in requests.values()]
        ended = [run_job(services, run, one, FIRST, number) for run, one in requests.items()]

    everyone = ["baseline", "compile", "compile-b48"]
    assert [everyone] * 3 + [["baseline", "compile-b48"]] * 2 == paid


@pytest.mark.parametrize(("blocks", "silent", "left"), [(2, (), []), (1, FIRST, [["compile"]])])
def test_a_job_without_any_block_of_an_arm_counts_once_and_one_with_fewer_does_not(
    blocks: int, silent: Collection[str], left: list[list[str]], services: Any
) -> None:
    """Of two blocks that were asked for, one block of an arm is a result."""
    plan_trial(EVENT, services=services)
    answer = call_judge(services, 0, [], asks_speed(blocks=blocks))
    ((run, request),) = asked(services, answer).items()
    shorter = {**request, "HyperParameters": {**request["HyperParameters"], "blocks": "1"}}
    done = run_job(services, run, shorter, silent, 0)
    for _ in range(2):
        call_judge(services, 1, [done], asks_speed(block=1))

    unmeasured = evidence(services)["plan"].get("unmeasured_by_job", {})
    assert left == list(unmeasured.values())
