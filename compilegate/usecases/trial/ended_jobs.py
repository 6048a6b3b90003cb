"""Reads how the jobs of a trial ended: from SageMaker and what the jobs left."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from dataclasses import replace

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.outside import BROKEN
from compilegate.domain.trial.jobs import EndedJob, OutputRuns, asked_arms
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.records import OpenTrial
from compilegate.usecases.trial.stop_jobs import stopped_by_trial

logger = logging.getLogger("compilegate")


def ended_job(
    job: EndedJob, opened: OpenTrial, services: Services, *, recorded: Collection[str]
) -> EndedJob:
    """The job with all that is known of it; what it left is not read where it is ``recorded``."""
    job = job.with_description(services.jobs.describe(job.job))
    if job.was_stopped:
        own = stopped_by_trial(job.job, opened.trial, services.store)
        job = replace(job, stopped_by_trial=own)
    if job.job in recorded:
        return job
    if job.run.group and (job.status != COMPLETED or job.controls(opened.plan.arms)):
        job = replace(job, asked_arms=_asked_arms(job.run, opened, services.store))
    if job.status == COMPLETED:
        job = replace(job, output=_output(job, opened, services))
    return job


def _asked_arms(run: naming.RunId, opened: OpenTrial, store: ObjectStore) -> tuple[str, ...]:
    """Names of the arms that a speed job was asked to measure, none where it was withdrawn."""
    key = naming.request_key(opened.trial.workload, opened.trial.trial, run.text)
    request = json.loads(store.get(key))
    if naming.WITHDRAWN in request:
        return ()
    return asked_arms(request["HyperParameters"])


def _output(job: EndedJob, opened: OpenTrial, services: Services) -> OutputRuns:
    """The runs that a completed job left; no output but a control's excuses a lost connection."""
    try:
        return _runs(job, opened, services)
    except InvalidEvidenceError as error:
        return OutputRuns(unreadable=error)
    except Exception as error:
        if not isinstance(error, BROKEN) and not job.controls(opened.plan.arms):
            raise
        logger.exception("no evidence of %s", job.job)
        own = isinstance(error, CompilegateError)
        why = str(error) if own else f"its evidence is broken: {error}"
        return OutputRuns(unreadable=InvalidEvidenceError(why))


def _runs(job: EndedJob, opened: OpenTrial, services: Services) -> OutputRuns:
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job.job)
    uri, outputs = f"s3://{services.store.bucket}/{key}", services.outputs
    if job.run.arm_index is None:
        return OutputRuns(segments=tuple(outputs.segments(uri, job.job)))
    metric = opened.spec.workload.quality.metric
    return OutputRuns(full_run=outputs.full_run(uri, job.job, metric))
