"""What the SageMaker Python SDK v2 would send for a team's job that carries a flag.

Runs in the SDK's own environment, without any network: ``.venv-sdk/bin/python -m
tests.flags.sdk_v2 FILE`` writes one request per case.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from sagemaker.estimator import Estimator

from compilegate.flags import estimator_arguments
from tests.conformance import capture
from tests.conformance import cases as asked
from tests.conformance.cases import Case
from tests.flags.team_cases import CASES, GENERIC, OVERRIDES, flag_text


class Answering:
    """A Parameter Store in which the case's flag is on."""

    def __init__(self, overrides: dict[str, Any]) -> None:
        self.overrides = overrides

    def get_parameter(self, **_: str) -> dict[str, Any]:
        return {"Parameter": {"Value": flag_text(self.overrides)}}


def request(case: Case, overrides: dict[str, Any]) -> dict[str, Any]:
    """What the estimator sends for the team's job with the flag laid over."""
    launch = capture._distribution(case)
    today = {
        **capture._job(case),
        **capture._versions(case),
        **({"distribution": launch} if launch else {}),
    }
    job = estimator_arguments(asked.WORKLOAD, client=Answering(overrides), **today)
    return _sent(capture.ESTIMATORS[case.framework], job, case)


def generic(case: Case, overrides: dict[str, Any]) -> dict[str, Any]:
    """The same through the estimator that knows no framework."""
    today = {**capture._job(case), "image_uri": "own:1"}
    job = estimator_arguments(asked.WORKLOAD, client=Answering(overrides), **today)
    return _sent(Estimator, job, case)


def _sent(kind: Any, job: dict[str, Any], case: Case) -> dict[str, Any]:
    session = capture.session(case.region)
    kind(**job, sagemaker_session=session).fit(wait=False, job_name=asked.JOB)
    return session.captured


def main(path: Path) -> None:
    """Write every request."""
    capture.offline()
    with contextlib.redirect_stdout(sys.stderr):
        requests = {case.id: request(case, OVERRIDES[case.id]) for case in CASES}
        requests[GENERIC] = generic(CASES[0], OVERRIDES[CASES[0].id])
    path.write_text(json.dumps(requests))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
