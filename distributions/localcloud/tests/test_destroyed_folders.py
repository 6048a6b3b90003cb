"""A job that destroys its own folders fails for that itself: the cloud and the trial go on."""

import shutil
import sys
from dataclasses import replace

import pytest

from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests.conftest import FAST, make_places
from distributions.localcloud.tests.helpers import Trainer, eventually

pytestmark = pytest.mark.e2e

BEGIN = """
import os, shutil, sys
model, data, output = (
    os.environ[name] for name in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_OUTPUT_DIR")
)
root = os.path.dirname(model)
with open(os.path.join(data, "steps"), "w") as steps:
    steps.write("3")
with open(os.path.join(model, "weights"), "w") as weights:
    weights.write("5")

def deep(folder):
    os.chdir(folder)
    for _ in range(30):  # more than a path may have
        os.mkdir("d" * 200)
        os.chdir("d" * 200)

def instead(folder, make):
    shutil.rmtree(folder)
    make(folder)

"""
DAMAGE = {
    "no folder": "shutil.rmtree(root)",
    "no model": "shutil.rmtree(model)",
    "a file as folder": "instead(root, lambda path: open(path, 'w').close())",
    "a pipe as evidence": "instead(data, os.mkfifo)",
    "a link as folder": "instead(root, lambda path: os.symlink('/usr/share', path))",
    "a link as model": "instead(model, lambda path: os.symlink(data, path))",
    "a link to itself as evidence": "instead(data, lambda path: os.symlink(path, path))",
    "a deep model": "deep(model)",
}
UNREADABLE = {
    "the folder": "os.chmod(root, 0)",
    "a file of the evidence": "os.chmod(os.path.join(data, 'steps'), 0)",
    "a folder of the model": "os.mkdir(os.path.join(model, 'x')); os.chmod(model + '/x', 0)",
}


def folders_of_jobs(cloud):
    return sorted(path.name for path in cloud.places.home.glob("work/jobs/*"))


def check(trainer, cloud, script, code):
    job = trainer.run(f"{BEGIN}{script}\nsys.exit({code})\n")

    assert "Failed" == job["TrainingJobStatus"]
    assert job["FailureReason"].startswith("AlgorithmError: ")
    assert "exit code: " in job["FailureReason"]
    assert "ModelArtifacts" not in job
    eventually(lambda: not folders_of_jobs(cloud), 10, "the job's folder stays")
    return job


def by_turns(names):
    """Each with an exit code of the script, good or bad: either is a failure of the job."""
    return [(name, (0, 3)[number % 2]) for number, name in enumerate(names)]


@pytest.mark.parametrize(("damage", "code"), by_turns(DAMAGE))
def test_destroyed_folder_is_a_failure_of_the_job(trainer, cloud, damage, code):
    job = check(trainer, cloud, DAMAGE[damage], code)

    if damage.endswith("model"):  # what was recorded is kept
        assert {"steps": b"3"} == trainer.output(job["TrainingJobName"])


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """A cloud whose user may not read everything, which root may."""
    home = tmp_path_factory.mktemp("ordinary")
    places = make_places(home)
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    python = home / "python"
    python.write_text(
        "#!/bin/sh\nexec setpriv --bounding-set=-dac_override,-dac_read_search "
        f'--inh-caps=-dac_override,-dac_read_search {places.emulator_python} "$@"\n'
    )
    python.chmod(0o755)
    with LocalCloud(places=replace(places, emulator_python=python)) as started:
        started.start(attached=True, extra_arguments=FAST)
        yield started


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
@pytest.mark.parametrize(("what", "code"), by_turns(UNREADABLE))
def test_unreadable_folder_is_a_failure_of_the_job(ordinary, what, code):
    trainer = Trainer(ordinary.running_state().client)
    job = check(trainer, ordinary, UNREADABLE[what], code)

    if what.endswith("the model"):  # what was recorded is kept
        assert {"steps": b"3"} == trainer.output(job["TrainingJobName"])


def test_checkpoints_that_became_a_link_are_not_copied(trainer, client):
    folder = "os.path.join(root, 'checkpoints')"
    script = f"{BEGIN}instead({folder}, lambda path: os.symlink('/usr/share', path))\n"
    place = "s3://localcloud-tests/linked"
    job = trainer.run(script, CheckpointConfig={"S3Uri": place})
    listed = client("s3").list_objects_v2(Bucket="localcloud-tests", Prefix="linked")

    assert "Completed" == job["TrainingJobStatus"]
    assert 0 == listed["KeyCount"]
