"""Jobs on two hosts, started by AWS's own container toolkit under MPI and under torchrun.

Requests are those that a trial sends; the hosts are namespaces of this machine (hosts.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.request.build import quality_request, speed_request
from compilegate.domain.workload.model import Workload
from tests.domain.test_request import CONTEXT, arm
from tests.domain.test_request_launch import HF, LARGE, job
from tests.training import hosts
from tests.training.hosts import HostsRun
from tests.training.jobs import metric_patterns

pytestmark = [pytest.mark.training, pytest.mark.slow]

SCRIPTS = Path(__file__).with_name("scripts")
AVERAGING = SCRIPTS / "averaging.py"  # a process takes 2 CPU seconds, not 5
LIMIT_SECONDS = 480
# How the others hear that a process was killed: gloo, mpirun, torchrun, the gate.
DEATH = r"Connection (closed|reset)|signal 9|SIGKILL|exitcode +: -9"
END_SECONDS = 240  # after that a job with a dead process would be waiting for it
JOINS_MPI = {"use_mpi": 1}  # which a process does once only
STEPS = 5  # of a whole run, in which the processes see the script's 40 rows once


@pytest.fixture(params=["pytorchddp", "torch_distributed"])
def launcher(request: Any) -> str:
    """A launcher for which this machine has all that it takes."""
    reason = hosts.obstacle(mpi=request.param != "torch_distributed")
    if reason:
        pytest.skip(reason)
    return str(request.param)


def workload() -> Workload:
    own = {"script": AVERAGING.name, "full_run_steps": STEPS}
    return job(HF, entry_point="launch.py", hyperparameters=own)


def arm_of(launcher: str, name: str, processes: int = 1, **hyperparameters: Any) -> ArmPlan:
    rows = 40 // STEPS // (2 * processes)
    return arm(
        name=name, compiler="none", distribution=launcher, batch_size=rows,
        hyperparameters=hyperparameters, **LARGE,
    )  # fmt: skip


def run(request: dict[str, Any], folder: Path, processes: int = 1) -> HostsRun:
    return hosts.run_hosts(
        folder, request, {}, processes=processes, scripts=(AVERAGING,), limit=LIMIT_SECONDS
    )


def whole(launcher: str, folder: Path, processes: int = 1, **hyperparameters: Any) -> HostsRun:
    """A full run of the baseline in so many processes on each host."""
    request = quality_request(
        workload(), arm_of(launcher, "baseline", processes, **hyperparameters),
        run="q1a17", replicate=0, seed=17, context=CONTEXT,
    )  # fmt: skip
    request["Environment"]["GIVEN"] = "a value"
    return run(request, folder, processes)


def gate(launcher: str, folder: Path, **by_arm: dict[str, Any]) -> HostsRun:
    """A speed job of two blocks, with each arm's own hyperparameters."""
    request = speed_request(
        workload(),
        [arm_of(launcher, name, **own) for name, own in by_arm.items()],
        run="s1", first_block=0, blocks=2, steps=3, context=CONTEXT,
    )  # fmt: skip
    return run(request, folder)


def ended_whole(done: HostsRun, part: str) -> None:
    evidence = done.evidence(part)
    assert (True, [3, 3]) == (evidence["finished"], evidence["ranks"]["steps"]), part


def metric(log: str, name: str) -> list[str]:
    """What SageMaker reads from a log by the requests' definition."""
    pattern = metric_patterns()[name]
    return [match[1] for line in log.splitlines() if (match := re.search(pattern, line))]


def test_a_whole_run_leaves_one_evidence_of_all_processes(launcher: str, tmp_path: Path) -> None:
    etc = Path("/etc/environment").stat() if Path("/etc/environment").exists() else None
    on_each = 1 if launcher == "pytorchddp" else 2
    done = whole(launcher, tmp_path, on_each)
    count = 2 * on_each

    assert {"algo-1": 0, "algo-2": 0} == dict(done.status), done.log
    evidence = done.evidence()
    assert (True, STEPS, count) == (evidence["finished"], evidence["steps"], evidence["devices"])
    assert (count, [STEPS] * count) == (evidence["ranks"]["reported"], evidence["ranks"]["steps"])
    assert 40 == evidence["ranks"]["samples"]
    assert [str(STEPS)] == metric(done.log, "step")
    last = done.logs["algo-1" if launcher == "pytorchddp" else "algo-2"]
    assert f"process {count - 1} has a value" in last
    assert etc == (Path("/etc/environment").stat() if etc else None)


def test_a_process_that_is_killed_fails_the_run(launcher: str, tmp_path: Path) -> None:
    done = whole(launcher, tmp_path, kill=1)

    assert any(done.status.values()), done.log
    assert done.evidence()["finished"] is False
    assert done.evidence()["reason"]
    # The toolkit's reader may be late for a job that ends at once; its file then quotes nothing.
    seen = done.log if 'ErrorMessage ""' in done.failure else done.failure
    assert re.search(DEATH, seen), done.log
    assert (True, []) == (done.seconds < END_SECONDS, done.left)


def test_segments_run_one_after_the_other_without_a_candidate_whose_process_is_killed(
    launcher: str, tmp_path: Path
) -> None:
    own = {} if launcher == "torch_distributed" else JOINS_MPI
    done = gate(launcher, tmp_path, baseline=own, candidate={**own, "kill": 1})

    assert {"algo-1": 0, "algo-2": 0} == dict(done.status), done.log
    lost = done.evidence("block-0/candidate")
    assert lost["finished"] is False
    assert re.search(DEATH, lost["reason"]), lost["reason"]
    assert not (done.folders["algo-1"] / "output/data/evidence/block-1/candidate").exists()
    for number in (0, 1):
        ended_whole(done, f"block-{number}/baseline")
    assert ["3"] * 2 == metric(done.log, "step")
