"""Writes the CreateTrainingJob requests of one round where the state machine reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import decoded_document
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.request.build import quality_request, speed_request
from compilegate.domain.request.context import JobContext
from compilegate.usecases import evidence_document
from compilegate.usecases.control_jobs import controls_of_run
from compilegate.usecases.job_context import job_context
from compilegate.usecases.job_limits import affordable_seconds, speed_jobs_of
from compilegate.usecases.request_check import check_request
from compilegate.usecases.trial import OpenTrial, to_json

Requests = dict[str, dict[str, Any]]
ARM = re.compile(r"arm_\d+")


def write_requests(
    step: Mapping[str, Any],
    opened: OpenTrial,
    round_number: int,
    document: evidence_document.Document,
) -> list[dict[str, str]]:
    """Store one request per job; returns run id, request key and job name base of each."""
    trial = opened.trial
    if step["stage"] == "speed":
        requests = _speed_requests(step, opened, round_number, document)
    else:
        arms = [ArmPlan.from_dict(arm) for arm in opened.plan["arms"]]
        done = {arm.name: evidence_document.full_runs(document, arm.name) for arm in arms}
        requests = _quality_requests(step, opened, arms, round_number, done=done)
    affordable = affordable_seconds(step, document, opened)
    limited = {
        run: _limited(request, seconds)
        for (run, request), seconds in zip(requests.items(), affordable, strict=True)
    }
    for request in limited.values():
        check_request(request)
    written = []
    for run, request in limited.items():
        key = naming.request_key(trial.workload, trial.trial, run)
        opened.services.store.put(key, to_json(request))
        base = request["TrainingJobName"]
        item = {"run": run, "request_key": key, "job_base": base}
        if controls_of_run(naming.parse_run(run), opened.plan):
            item["control"] = "true"  # the state machine goes on without it
        written.append(item)
    return written


def _limited(request: Mapping[str, Any], affordable: int) -> dict[str, Any]:
    """The request with no more time than the rest of the budget allows."""
    limits = request["StoppingCondition"]
    most = min(limits["MaxRuntimeInSeconds"], affordable)
    return {**request, "StoppingCondition": {**limits, "MaxRuntimeInSeconds": most}}


def _speed_requests(
    step: Mapping[str, Any],
    opened: OpenTrial,
    round_number: int,
    document: evidence_document.Document,
) -> Requests:
    context = _context(opened)
    return {
        (run := job.run(round_number)): speed_request(
            opened.spec.workload,
            job.arms,
            run=run,
            first_block=job.first_block,
            blocks=job.blocks,
            steps=step["steps"],
            context=context,
        )
        for job in speed_jobs_of(step, document, opened)
    }


def measured_arms(opened: OpenTrial, run: str) -> list[str]:
    """Names of the arms that a speed job was asked to measure, none where it was withdrawn."""
    key = naming.request_key(opened.trial.workload, opened.trial.trial, run)
    request = json.loads(opened.services.store.get(key))
    if naming.WITHDRAWN in request:
        return []
    parameters = request["HyperParameters"]
    described = [text for name, text in sorted(parameters.items()) if ARM.fullmatch(name)]
    # Text inside text, as speed_request writes it.
    return [str(decoded_document(json.loads(text))["name"]) for text in described]


def _quality_requests(
    step: Mapping[str, Any],
    opened: OpenTrial,
    arms: list[ArmPlan],
    round_number: int,
    *,
    done: Mapping[str, int],
) -> Requests:
    """``done`` counts the full runs that each arm has behind it."""
    names, context = [arm.name for arm in arms], _context(opened)
    replicates = dict(done)
    requests = {}
    for wanted in step["runs"]:
        index, seed = names.index(wanted["arm"]), int(wanted["seed"])
        run = naming.quality_run(round_number, index, seed)
        requests[run] = quality_request(
            opened.spec.workload,
            arms[index],
            run=run,
            replicate=replicates[wanted["arm"]],
            seed=seed,
            context=context,
        )
        replicates[wanted["arm"]] += 1
    return requests


def _context(opened: OpenTrial) -> JobContext:
    return job_context(
        opened.services,
        trial=opened.trial.trial,
        execution=opened.plan["execution"],
        source_key=opened.spec.source_key,
    )
