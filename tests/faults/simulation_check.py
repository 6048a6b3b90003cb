"""What holds after every schedule; intervals are counted, for they may miss now and then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compilegate.domain import naming
from compilegate.usecases.flag.change_flag import repair_flag
from tests.faults.check import ADVICE, DAY, after_a_day, before_the_sweep
from tests.faults.simulation_jobs import true_speedup
from tests.faults.simulation_world import Cloud, Started

NOT_WORDS = ("Traceback", "errorMessage", "stackTrace", "{'", '{"')
# A command, or that there is nothing to do.
NEXT = ("compilegate ", "The next run will")
# Figures of true jobs vary by a few percent.
FAR_OFF = 1.2
# So many speed jobs that leave nothing of an arm end it.
WASTED = 3
LEAVES_NOTHING = ("missing", "broken", "partial", "unfinished", "duplicate_keys")


def problems(cloud: Cloud) -> list[str]:
    """What is wrong with a cloud whose executions have all ended; a day and more pass in it."""
    found: list[str] = []
    copy = cloud.copy()
    for name in cloud.documents:
        spec = f"workloads/{name}/specs/1.json"
        found += (f"{name}: {text}" for text in before_the_sweep(copy, name, spec))
    _settle(cloud)
    for name, team in cloud.teams.items():
        wrong = (*after_a_day(cloud, name, deserves=team.truth.deserves), *_money(cloud, name))
        found += (f"{name}: {text}" for text in wrong if not _accepted(cloud, text))
    found += (*_messages(cloud), *_causes(cloud), *_far_off(cloud))
    return [*dict.fromkeys(found)]


def _accepted(cloud: Cloud, text: str) -> bool:
    return any(text == f"{job} ran and is in no account" for job in cloud.unaccounted)


def _settle(cloud: Cloud) -> None:
    """Two days pass: production's jobs end by themselves, the sweep comes."""
    for _ in range(2):
        for job, described in cloud.services.jobs.descriptions.items():
            tags = {tag["Key"]: tag["Value"] for tag in described["Tags"]}
            if tags[naming.TAG_STAGE] == naming.PRODUCTION_STAGE:
                cloud.finish(job)
        cloud.passes(DAY)
        cloud.step("sweep", {})
    for name in cloud.documents:
        repair_flag(name, cloud.services)  # as the next production run does


def _money(cloud: Cloud, name: str) -> Iterator[str]:
    """Every job could bring something when it was paid for."""
    for one in cloud.started:
        if one.workload != name:
            continue
        if one.ended:
            yield f"{one.name} was started after the end of its trial"
        for arm in one.job.arms:
            wasted = sum(_brought_nothing(one, arm, *before) for before in one.jobs_before)
            if one.job.blocks and wasted >= WASTED:
                yield f"{one.name} is for {arm}, of which {wasted} jobs left nothing"


def _brought_nothing(one: Started, arm: str, _job: str, lie: str, arms: tuple[str, ...]) -> bool:
    if arm not in arms or "-s" not in _job.rpartition("-r")[0][-5:]:
        return False
    if lie == "one_sided":
        return arm != "baseline"
    return lie in LEAVES_NOTHING and (arm != "baseline" or lie in ("missing", "broken"))


def _messages(cloud: Cloud) -> Iterator[str]:
    """Nothing that is sent to people is raw, and a failure says what to do."""
    for message in cloud.topic.sent:
        yield from _raw(f"{message.subject}\n{message.text}")
    for request in cloud.messages:
        texts: dict[str, Any] = json.loads(request["Message"])
        yield from _raw(f"{request['Subject']}\n{texts['email']}")
        if json.loads(texts["default"]).get("kind") == "failed":
            yield from _advice(texts["email"])


def _causes(cloud: Cloud) -> Iterator[str]:
    for execution, detail in cloud.ended.items():
        if detail["status"] == "FAILED" and "-evaluate:" in execution:
            yield from _raw(str(detail["cause"]))
            yield from _advice(str(detail["cause"]))


def _raw(text: str) -> Iterator[str]:
    for part in NOT_WORDS:
        if part in text:
            yield f"people get {part}: {text[:300]}"


def _advice(text: str) -> Iterator[str]:
    if not any(words in text for words in (*ADVICE, *NEXT)):
        yield f"people get no advice: {text[:300]}"


def intervals(cloud: Cloud) -> Iterator[bool]:
    """Of each decision's speed-up, whether its interval holds the true one."""
    for _, truth, speedup in _speedups(cloud):
        low, high = speedup["interval"]
        yield low <= truth <= high


def _far_off(cloud: Cloud) -> Iterator[str]:
    """No chance explains a speed-up as far from the true one: somebody believed a lie."""
    for decision, truth, speedup in _speedups(cloud):
        if not 1 / FAR_OFF < speedup["estimate"] / truth < FAR_OFF:
            yield f"{decision} says {speedup['estimate']:.2f}x, which is {truth:.2f}x in truth"


def _speedups(cloud: Cloud) -> Iterator[tuple[str, float, dict[str, Any]]]:
    for key in cloud.services.store.objects:
        if key.endswith("/decision.json"):
            document = cloud.get(key)
            if document.get("speedup"):
                truth = cloud.teams[document["workload"]].truth
                yield key, true_speedup(truth), document["speedup"]
