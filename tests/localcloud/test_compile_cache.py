"""A speed job's compile cache in the embedded cloud, which copies checkpoints while a job runs."""

import dataclasses
import uuid
from pathlib import Path

import pytest

from compilegate.domain import naming
from compilegate.domain.request.build import speed_request
from distributions.localcloud.tests.helpers import BUCKET, ROLE
from tests.archives import tarball
from tests.domain.test_request import CONTEXT, arm, workload

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]

# Compiles one file without torch, then says what lies in the folder that is copied to S3.
PROGRAM = """
import os, pathlib
place = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
print("compiled before:", sorted(path.name for path in place.iterdir()))
(place / "graph").write_text("code")
copied = pathlib.Path(os.environ["SM_OUTPUT_DIR"]).parent / "checkpoints"
print("copied during the segment:", sorted(p.name for p in copied.rglob("*") if p.is_file()))
"""


def speed_job(trainer, name):
    """The request of a speed job as a trial builds it, its source with the runtime in it."""
    runtime = ROOT / "training" / "compilegate_runtime"
    source = {
        f"compilegate_runtime/{path.relative_to(runtime)}": path.read_text()
        for path in runtime.rglob("*.py")
    }
    key = f"source/{name}.tar.gz"
    trainer.put(key, tarball({"train.py": PROGRAM, **source}))
    site = dataclasses.replace(
        CONTEXT.site, bucket=BUCKET, kms_key_arn=None, subnet_ids=(), security_group_ids=()
    )
    context = dataclasses.replace(CONTEXT, site=site, role_arn=ROLE, source_key=key)
    baseline = arm(name="baseline", compiler="none", overrides={})
    of = dataclasses.replace(workload(name), training=_training(workload(name)))
    request = speed_request(
        of, [baseline], run="s0", first_block=0, blocks=1, steps=1, context=context
    )
    return {**request, "TrainingJobName": f"{name}-{uuid.uuid4().hex[:6]}"}


def _training(of):
    return dataclasses.replace(of.training, inputs={}, entry_point="train.py")


def run(trainer, request):
    """Run it; returns its log."""
    trainer.client("sagemaker").create_training_job(**request)
    name = request["TrainingJobName"]
    status = trainer.wait(name)["TrainingJobStatus"]
    lines = trainer.log_lines(name)
    assert "Completed" == status, lines
    return lines


def kept(trainer, request):
    prefix = request["CheckpointConfig"]["S3Uri"].removeprefix(f"s3://{BUCKET}/")
    listed = trainer.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return {item["Key"].removeprefix(prefix) for item in listed.get("Contents", [])}


def test_a_speed_jobs_compile_cache_reaches_s3_at_its_end_and_the_next_job_has_it(trainer):
    name = f"cache-{uuid.uuid4().hex[:6]}"
    first, second = (speed_job(trainer, name) for _ in range(2))
    cold = run(trainer, first)
    in_s3 = kept(trainer, first)
    warm = run(trainer, second)

    assert f"{naming.COMPILE_CACHE_PREFIX}{name}/" in first["CheckpointConfig"]["S3Uri"]
    assert "compiled before: []" in cold
    assert "copied during the segment: []" in cold
    assert {"inductor/graph"} == in_s3
    assert "compiled before: ['graph']" in warm
