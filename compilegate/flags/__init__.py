"""How a training script or pipeline asks what it should train with.

    overrides = compilegate.flags.resolve("bert-docs")
    HuggingFace(**compilegate.flags.estimator_arguments("bert-docs", entry_point="train.py", ...))
    ModelTrainer(**compilegate.flags.model_trainer_arguments("bert-docs", ...))
    create_training_job(**compilegate.flags.training_job_request("bert-docs", request))
    compilegate.flags.pipeline_values("bert-docs", {"batch_size": 32})  # of a request made before
    if compilegate.flags.may_release(job): ...  # a model of a trial waits for the verdict

Any failure means the baseline: a training run never fails because of a flag.
Standard library and a few modules of the domain are imported; boto3 only where no client is passed.
"""

from __future__ import annotations

import importlib.util
import warnings

from compilegate.flags.overlay import (
    estimator_arguments,
    model_trainer_arguments,
    pipeline_values,
    training_job_request,
)
from compilegate.flags.reading import resolve
from compilegate.flags.release import may_release

__all__ = [
    "estimator_arguments",
    "may_release",
    "model_trainer_arguments",
    "pipeline_values",
    "resolve",
    "training_job_request",
]

if importlib.util.find_spec("boto3") is None:
    # Every read would fail and train the baseline, for ever, in a log that nobody reads.
    warnings.warn(
        "compilegate.flags cannot read any flag: boto3 is not installed. Every job trains the "
        "baseline unless a client is passed. Fix: pip install 'compilegate-flags[boto3]'",
        RuntimeWarning,
        stacklevel=2,
    )
