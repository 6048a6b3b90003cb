"""Real training in the embedded cloud, stopped as on AWS, and how the next job continues.

The requests are those that a trial builds; nothing in the jobs hears of the stop.
"""

import dataclasses
import io
import json
import time
import uuid

import pytest

from compilegate.adapters.job_outputs import read_output
from compilegate.adapters.workload_files import make_bundle
from compilegate.domain.job_output import quality_run
from compilegate.domain.request.build import quality_request
from compilegate.domain.workload.quality import Quality
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY, find_places
from distributions.localcloud.tests.conftest import FAST
from distributions.localcloud.tests.helpers import BUCKET, ROLE, Trainer
from tests.domain.test_request import CONTEXT, arm, workload

LOSS = Quality("eval_loss", "minimize", 0.1)

pytestmark = [pytest.mark.e2e, pytest.mark.training, pytest.mark.slow]
STEPS = 1500
MODEL = {
    "width": 16, "layers": 1, "heads": 2, "block": 16, "steps": STEPS, "eval_blocks": 5,
    "checkpoint_minutes": 0.01,
}  # fmt: skip
TEXT = "Return the arithmetic mean of the data, a sequence of real numbers. " * 200


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    places = find_places(tmp_path_factory.mktemp("stopped"))
    with LocalCloud(places=places) as cloud:
        cloud.start(attached=True, extra_arguments=FAST)
        trainer = Trainer(cloud.running_state().client)
        trainer.put("source.tgz", make_bundle(REPOSITORY / "training").body)
        for channel in ("train", "validation"):
            trainer.put(f"corpus/{channel}/text.jsonl", json.dumps({"text": TEXT}).encode())
        yield trainer


def requested():
    """The request of a full run of the tiny language model, as a trial builds it."""
    name = f"stop-{uuid.uuid4().hex[:6]}"
    of = workload(name, spot=True, entry_point="causal_lm.py")
    inputs = {channel: f"s3://{BUCKET}/corpus/{channel}/" for channel in ("train", "validation")}
    training = dataclasses.replace(of.training, hyperparameters=MODEL, inputs=inputs)
    site = dataclasses.replace(
        CONTEXT.site, bucket=BUCKET, kms_key_arn=None, subnet_ids=(), security_group_ids=()
    )
    context = dataclasses.replace(CONTEXT, site=site, role_arn=ROLE)
    baseline = arm(name="baseline", compiler="none", overrides={}, batch_size=4, learning_rate=1e-3)
    return quality_request(
        dataclasses.replace(of, training=training), baseline, run="q1a17", replicate=0, seed=17,
        context=context,
    )  # fmt: skip


def started(trainer, request, attempt):
    name = f"{request['TrainingJobName']}-r{attempt}"
    trainer.client("sagemaker").create_training_job(**{**request, "TrainingJobName": name})
    return name


def stopped_when(trainer, request, condition):
    """The stopped job's description and evidence."""
    name, deadline = started(trainer, request, 0), time.monotonic() + 120
    while not condition(name) and time.monotonic() < deadline:
        time.sleep(0.2)
    trainer.client("sagemaker").stop_training_job(TrainingJobName=name)
    return trainer.wait(name), evidence(trainer, request, name)


def output_uri(request, name):
    return f"{request['OutputDataConfig']['S3OutputPath']}/{name}/output/output.tar.gz"


def evidence(trainer, request, name):
    body = trainer.read(output_uri(request, name))
    return read_output(io.BytesIO(body), len(body))


def keys(trainer, request):
    prefix = request["CheckpointConfig"]["S3Uri"].removeprefix(f"s3://{BUCKET}/")
    listed = trainer.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [item["Key"].removeprefix(prefix) for item in listed.get("Contents", [])]


def test_a_stopped_spot_run_goes_on_from_its_last_save_and_counts_each_step_once(trainer):
    request = requested()
    job, left = stopped_when(
        trainer, request,
        lambda _: sum(key.endswith("whole.json") for key in keys(trainer, request)) >= 2,
    )  # fmt: skip
    killed = left.summary("evidence/summary.json")
    done = started(trainer, request, 1)
    assert "Completed" == trainer.wait(done, 180)["TrainingJobStatus"], trainer.log_lines(done)
    output = evidence(trainer, request, done)
    written = json.loads(trainer.archive(output_uri(request, done))["evidence/summary.json"])
    (went_on,) = written["resumed"]  # which no decision reads
    steps = output.steps_beside("evidence/summary.json")

    assert "Stopped" == job["TrainingJobStatus"]
    assert (False, None) == (killed["finished"], killed["reason"])
    assert 0 < went_on <= len(left.steps_beside("evidence/summary.json").numbers)
    assert list(range(1, STEPS + 1)) == list(steps.numbers)
    assert True is quality_run(output, job=done, quality=LOSS).finished
