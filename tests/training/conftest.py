"""The runtime on the import path, and one place for all jobs of a session."""

import json
import os
import shutil
import sys

import pytest

from tests.training.jobs import PYTHON, SCRIPTS, STAND_IN, TRAINING, Jobs

sys.path.insert(0, str(TRAINING))  # the runtime is no installed package: jobs carry it along

TEXTS = {
    "numbers": "Return the arithmetic mean of the data, a sequence of real numbers. ",
    "network": "Open a connection to the mail server and send the message to it. ",
    "files": "Copy the file and its permission bits to the destination folder. ",
}


@pytest.fixture(scope="session")
def jobs(tmp_path_factory):
    """Jobs on a dozen sentences; skipped where the training environment was not set up."""
    if not PYTHON.exists():
        pytest.skip("the training environment is not set up; run make setup")
    folder = tmp_path_factory.mktemp("training")
    channels = {}
    for channel in ("train", "validation"):
        path = folder / "channels" / channel
        path.mkdir(parents=True)
        lines = [
            json.dumps({"name": f"{topic}{i}", "topic": topic, "text": text * (1 + i % 5)})
            for topic, text in TEXTS.items()
            for i in range(8)
        ]
        (path / "text.jsonl").write_text("\n".join(lines) + "\n")
        channels[channel] = path
    # Of all processes of this run of the tests: what one has compiled, none compiles again.
    shared = folder.parent.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    made = Jobs(folder, channels, shared / "inductor")
    yield made
    made.close()


@pytest.fixture
def code(tmp_path):
    """A folder of scripts that know nothing of Compilegate, with what they import and read."""
    if not PYTHON.exists():
        pytest.skip("the training environment is not set up; run make setup")
    folder = tmp_path / "src"
    shutil.copytree(SCRIPTS / "init", folder)
    shutil.copytree(STAND_IN, folder / "lightning")
    return folder


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return {"COMPILEGATE_CHECKPOINT_DIR": str(folder)}, folder
