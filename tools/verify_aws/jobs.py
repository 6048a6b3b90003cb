"""The training jobs of a verification: their requests, and the most that they can cost."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import RUNTIME, make_bundle
from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import ArmPlan, plan_arms
from compilegate.domain.reasons import Reason
from compilegate.domain.request.build import JobContext, quality_request, speed_request
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Workload
from compilegate.ports import Settings
from compilegate.usecases.records import facts_for_workload
from compilegate.usecases.registration import InputFile, Package, Shipment, prepare
from tools.verify_aws.observed import JobKind

WORKLOAD = "verify-aws"
PROBE = "verify_probe.py"
PROBES = (JobKind.FAILED, JobKind.STOPPED, JobKind.LIMITED)
METRIC = "eval_loss"
STEPS, SPEED_STEPS = 60, 20
# What a job may take, and what AWS may bill around that limit: image and data, two minutes
# between the request to stop and the end, the upload.
JOB_SECONDS, PROBE_SECONDS, AROUND_SECONDS = 1200, 600, 600
TEXT = "".join(f"def f{n}(x):\n    return x + {n}\n" for n in range(400)).encode()


@dataclass(frozen=True)
class PlannedJob:
    """One job; ``request`` lacks the retry suffix of its name."""

    kind: JobKind
    run: str
    request: Mapping[str, Any]

    @property
    def base(self) -> str:
        """The job's name without its retry suffix."""
        return str(self.request["TrainingJobName"])

    @property
    def limit_seconds(self) -> int:
        """``MaxRuntimeInSeconds``."""
        return int(self.request["StoppingCondition"]["MaxRuntimeInSeconds"])


def bound_usd(
    jobs: Sequence[PlannedJob], usd_per_hour: float, *, over_quota_usd_per_hour: float = 0.0
) -> float:
    """The most that the jobs can cost: each at its time limit and what may be billed around it.

    Requests that AWS must refuse count as if it ran them: one on the jobs' own type, one on a
    type without a quota. They have the time limit of the last job.
    """
    refused = jobs[-1].limit_seconds + AROUND_SECONDS
    seconds = sum(job.limit_seconds + AROUND_SECONDS for job in jobs) + refused
    return (seconds * usd_per_hour + refused * over_quota_usd_per_hour) / 3600


def small_workload(instance_type: str) -> Workload:
    """A language model of a few thousand weights, trained for seconds."""
    return parse_workload(
        {
            "schema": 1,
            "name": WORKLOAD,
            "framework": {"name": "pytorch", "version": "2.13.0"},
            "model": {"family": "transformer", "name": "byte-decoder"},
            "training": {
                "source_dir": "training", "entry_point": "causal_lm.py",
                "instance_type": instance_type, "instance_count": 1, "distribution": "none",
                "precision": "fp32", "batch_size": 4, "learning_rate": 6e-3,
                "hyperparameters": {"steps": STEPS, "width": 32, "layers": 1, "heads": 2,
                                    "block": 32, "eval_blocks": 8},
                "max_runtime_hours": 0.25, "volume_gb": 30,
            },
            "shapes": {"static": True},
            "schedule": {"runs_per_week": 1, "run_hours": 0.1},
            "quality": {"metric": METRIC, "goal": "minimize", "margin": 0.5},
            "candidates": [{"name": "compile", "compiler": "torch_compile"}],
        }
    )  # fmt: skip


def arms(workload: Workload, settings: Settings) -> tuple[ArmPlan, ...]:
    """Baseline and candidate with image and price; InvalidInputError where one is not on file."""
    planned = plan_arms(
        workload,
        workload.candidates,
        facts_for_workload(workload, settings),
        region=settings.region,
    )
    if isinstance(planned, Reason):
        raise InvalidInputError(
            f"cannot be used: {planned.message}", field="instance type",
            value=workload.training.instance_type,
            fix="use another region, or set price_overrides in cdk.json",
        )  # fmt: skip
    return planned


def pack(workload: Workload, bucket: str) -> Shipment:
    """Scripts and data as they will lie in the bucket; uploads nothing."""
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns("__pycache__")
        source = shutil.copytree(RUNTIME.parent, Path(folder) / "training", ignore=ignored)
        shutil.copy(Path(__file__).with_name(PROBE), source)
        bundle = make_bundle(source)
    inputs = {channel: (_file(TEXT),) for channel in ("train", "validation")}
    return prepare(Package(workload, bundle.body, bundle.digest, inputs), bucket)


def _file(body: bytes) -> InputFile:
    def opened() -> io.BytesIO:
        return io.BytesIO(body)

    return InputFile("text.txt", hashlib.sha256(body).hexdigest(), opened)


def plan_jobs(
    workload: Workload,
    planned: Sequence[ArmPlan],
    context: JobContext,
    *,
    limited_seconds: int,
) -> tuple[PlannedJob, ...]:
    """Every job, in the order in which they run.

    ``limited_seconds`` is the limit of the job that is to reach it.
    """
    speed, quality = naming.speed_run(0), naming.quality_run(1, 0, 17)
    jobs = [
        PlannedJob(JobKind.SPEED, speed, speed_request(
            workload, planned, run=speed, first_block=0, blocks=1, steps=SPEED_STEPS,
            context=context,
        )),
        PlannedJob(JobKind.QUALITY, quality, quality_request(
            workload, planned[0], run=quality, replicate=0, seed=17, context=context,
        )),
    ]  # fmt: skip
    jobs += [_probe(kind, workload, planned[0], context) for kind in PROBES]
    limits = {JobKind.SPEED: JOB_SECONDS, JobKind.QUALITY: JOB_SECONDS,
              JobKind.LIMITED: limited_seconds}  # fmt: skip
    return tuple(
        replace(job, request={
            **job.request,
            "StoppingCondition": {"MaxRuntimeInSeconds": limits.get(job.kind, PROBE_SECONDS)},
        })
        for job in jobs
    )  # fmt: skip


def _probe(kind: JobKind, workload: Workload, arm: ArmPlan, context: JobContext) -> PlannedJob:
    """A full run of the probe script; its checkpoints are the verification's own."""
    ending = "fail" if kind is JobKind.FAILED else "wait"
    own = {"ending": ending, "text": "two-words_and.dots", "number": 0.5}
    training = replace(
        workload.training, entry_point=PROBE, inputs={}, hyperparameters=own,
        environment={"COMPILEGATE_PROBE_CHECKPOINTS": naming.CHECKPOINT_PATH},
    )  # fmt: skip
    run = naming.quality_run(2 + PROBES.index(kind), 0, 17)
    request = quality_request(
        replace(workload, training=training), arm, run=run, replicate=0, seed=17, context=context
    )
    place = naming.checkpoint_prefix(workload.name, context.trial, "probe")
    checkpoints = {"S3Uri": context.uri(place), "LocalPath": naming.CHECKPOINT_PATH}
    return PlannedJob(kind, run, {**request, "CheckpointConfig": checkpoints})
