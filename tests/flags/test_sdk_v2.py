"""A team's estimator with the flag laid over sends what our own machines would send.

Asked of the real SageMaker Python SDK v2 in an environment of its own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance import ours
from tests.conformance.compare import differences
from tests.conformance.stored import flat
from tests.environments import asked
from tests.flags.team_cases import CASES, GENERIC, OVERRIDES

# What tells a team's job from ours; nothing that its training could notice.
MARKS = {
    "Environment.COMPILEGATE_ARM", "Environment.COMPILEGATE_STAGE", "Tags[compilegate:stage].Value",
    "Tags[compilegate:decision].Value", "Tags[compilegate:deployment].Value",
}  # fmt: skip
# The SDK names the image after the arguments are made; it writes the job's name and turns off the
# profiler, we do neither.
UNKNOWN = {
    "Environment.COMPILEGATE_IMAGE", "HyperParameters.sagemaker_job_name",
    "ProfilerConfig.DisableProfiler",
}  # fmt: skip
# Ours alone: folders that outlive the job.
OWN = {
    "Environment.COMPILEGATE_CHECKPOINT_DIR", "Environment.COMPILEGATE_COMPILE_CACHE",
    "Environment.TORCHINDUCTOR_CACHE_DIR",
}  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("sdk") / "sent.json"
    asked("sdk", "-m", "tests.flags.sdk_v2", path)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_estimator_sends_the_request_that_ours_would_be(case: Any, sent: Any) -> None:
    expected = flat(ours.built(case, **OVERRIDES[case.id]))
    differing = differences(case.id, expected, flat(sent[case.id]))

    assert MARKS | UNKNOWN | OWN == {item.path for item in differing}


def test_an_estimator_without_a_framework_carries_it_too(sent: Any) -> None:
    request = flat(sent[GENERIC])

    overrides = OVERRIDES[CASES[0].id]
    assert json.dumps(overrides["batch_size"]) == request["HyperParameters.batch_size"]
    assert json.dumps(overrides["compiler"]) == request["HyperParameters.compiler"]
    assert "own:1" == request["Environment.COMPILEGATE_IMAGE"]
    assert "team" == request["Tags[compilegate:stage].Value"]
