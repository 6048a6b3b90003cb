"""What is on file is what the SDK says, asked again in an environment of its own."""

from __future__ import annotations

import pytest

from compilegate.domain.naming import job_output_key, jobs_prefix
from tests.conformance.stored import CAPTURED
from tests.environments import asked


@pytest.mark.slow
@pytest.mark.timeout(600)  # it installs the SDK
def test_the_sdk_says_again_what_is_on_file(tmp_path):
    again = tmp_path / "captured.json"
    asked("sdk", "-m", "tests.conformance.capture", again)

    assert CAPTURED.read_text() == again.read_text()


# Read and run without the rest of the SDK, whose import takes seconds.
FOLDER = """
import importlib.util, pathlib, runpy, sys
(folder,) = map(pathlib.Path, importlib.util.find_spec("sagemaker").submodule_search_locations)
"""
CHECKPOINTS = f"""{FOLDER}
text = " ".join((folder / "estimator.py").read_text().split())
assert "persist all files under this path to `checkpoint_s3_uri` continually during" in text
assert "On job startup the reverse happens" in text
"""
OUTPUT = f"""{FOLDER}
import unittest.mock
sys.modules["sagemaker.core.utils.utils"] = unittest.mock.Mock()
utils = runpy.run_path(str(folder / "core" / "training" / "utils.py"))
uri = utils["build_nova_output_tar_gz_s3_uri"]("s3://data/{jobs_prefix("w", "t")}", "job")
assert uri == "s3://data/{job_output_key("w", "t", "job")}", uri
"""


@pytest.mark.slow
@pytest.mark.timeout(600)  # it installs the SDKs
def test_the_sdks_say_where_checkpoints_and_outputs_lie():
    asked("sdk", "-c", CHECKPOINTS)
    asked("sdk3", "-c", OUTPUT)
