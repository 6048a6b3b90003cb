"""Whether a release pipeline may let a trained model out: not while a trial holds it back."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.followers import RELEASED
from compilegate.flags.backoff import Backoff, call_with_retry
from compilegate.flags.bounded import MOST_BYTES_OF_A_JOB, bounds, calls_of, client_of, limited

ARN = "arn:"
KIND = "training-job/"
logger = logging.getLogger("compilegate.flags")


def may_release(job: str, *, client: Any = None, backoff: Backoff | None = None) -> bool:
    """Whether the model of a training job (its ARN or name) may be released; never raises.

    True for a job that no trial tagged, and for one whose trial has promoted its candidate. False
    while the trial holds it back, where the candidate was not promoted, for a candidate's run that
    checked an alarm, and wherever the tags cannot be read. ``client`` is a SageMaker client, else
    one with the environment's credentials and region; it needs sagemaker:ListTags, and
    sagemaker:DescribeTrainingJob for a name. Time is bounded as in ``resolve``.
    """
    try:
        waits, seconds = bounds(backoff)
        tags = calls_of("sagemaker", client).within(
            seconds, lambda: _tags(job, client, waits, seconds)
        )
    except Exception as error:  # noqa: BLE001 - without tags the model is unproven
        logger.warning("%s is not released, its tags cannot be read: %s", job, error)
        return False
    tag = tags.get(naming.TAG_RELEASE)
    if tag not in (None, RELEASED):
        logger.info("%s is not released: %s is %s", job, naming.TAG_RELEASE, tag)
    return tag in (None, RELEASED)


def _tags(job: str, client: Any, backoff: Backoff, seconds: float) -> dict[str, str]:
    sagemaker = limited(client or client_of("sagemaker"), MOST_BYTES_OF_A_JOB, seconds)
    arn = job
    if not job.startswith(ARN):
        named = partial(sagemaker.describe_training_job, TrainingJobName=job)
        arn = str(call_with_retry(named, backoff)["TrainingJobArn"])
    if KIND not in arn:
        raise ValueError("is not the ARN of a training job")
    tags: dict[str, str] = {}
    page: dict[str, str] = {"ResourceArn": arn}
    while True:
        answer = call_with_retry(partial(sagemaker.list_tags, **page), backoff)
        tags.update((tag["Key"], tag["Value"]) for tag in answer["Tags"])
        if not answer.get("NextToken"):
            return tags
        page["NextToken"] = answer["NextToken"]
