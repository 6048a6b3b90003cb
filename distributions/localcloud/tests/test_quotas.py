"""The account's quotas of training instances: what is refused."""

import pytest
from botocore.exceptions import ClientError

from compilegate_localcloud.emulator.sagemaker.quotas import NO_LIMIT
from distributions.localcloud.tests.failures import set_quotas

pytestmark = pytest.mark.e2e

SLEEP = "import time\ntime.sleep(60)\n"
# On file, but no other test in this folder uses it.
KIND = "ml.g5.16xlarge"


@pytest.fixture
def quota(cloud):
    yield lambda instances: set_quotas(cloud.state(), {KIND: instances})
    set_quotas(cloud.state(), {KIND: NO_LIMIT})


@pytest.fixture
def start(trainer):
    """Starts jobs that go on until they are stopped at the end of the test."""
    started = []

    def begin(instances, **changes):
        cluster = {"InstanceType": KIND, "InstanceCount": instances, "VolumeSizeInGB": 1}
        started.append(trainer.start(SLEEP, ResourceConfig=cluster, **changes))
        return started[-1]

    yield begin
    for name in started:
        if trainer.describe(name)["TrainingJobStatus"] == "InProgress":
            trainer.client("sagemaker").stop_training_job(TrainingJobName=name)
        trainer.wait(name)


def refusal(call):
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.response["Error"]


def test_a_job_beyond_the_quota_is_refused_in_the_services_words(start, quota):
    quota(3)
    start(2)
    error = refusal(lambda: start(2))

    assert "ResourceLimitExceeded" == error["Code"]
    assert (
        f"The account-level service limit '{KIND} for training job usage' is 3 Instances, with "
        "current utilization of 2 Instances and a request delta of 2 Instances."
    ) in error["Message"]


def test_a_job_that_has_ended_frees_its_instances_and_a_refused_one_leaves_its_name(
    start, trainer, quota
):
    quota(1)
    first = start(1)
    refusal(lambda: start(1, name="asked-again"))
    trainer.client("sagemaker").stop_training_job(TrainingJobName=first)
    trainer.wait(first)

    assert "InProgress" == trainer.describe(start(1, name="asked-again"))["TrainingJobStatus"]
