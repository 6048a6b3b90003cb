"""The state machines, synthesised once for the tests of this folder, and executions of them."""

import json
import subprocess

import pytest

from tests.asl.definitions import keys_of, synthesised
from tests.asl.recordings import Evaluation
from tests.faults import campaign
from tests.faults.jobs import WORKLOAD


@pytest.fixture(scope="session")
def definitions():
    return synthesised()


@pytest.fixture(scope="session")
def observed():
    """The states that executions in memory have entered, and what they have evaluated there."""
    done = subprocess.run(
        [campaign.PYTHON, "-m", "tests.asl.executions"],
        input=json.dumps({"definitions": campaign.definitions(), "workload": WORKLOAD}),
        capture_output=True, check=True, cwd=campaign.REPOSITORY, env=campaign.ENVIRONMENT,
        text=True, timeout=600,
    )  # fmt: skip
    entered, *lines = map(json.loads, done.stdout.splitlines())
    return entered, [Evaluation(**line) for line in lines]


@pytest.fixture(scope="session")
def evaluations(definitions, observed):
    """Of the expressions that the state machines have, not of those that were put into copies."""
    keys = keys_of(definitions)
    return [one for one in observed[1] if one.key in keys]
