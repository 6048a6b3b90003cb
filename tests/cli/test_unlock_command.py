"""``unlock`` at the keyboard."""

import re

import pytest

from compilegate.domain.ledger_keys import DEPLOYMENT
from compilegate.domain.production.orphans import FORGOTTEN
from compilegate.domain.records.ledger import ClassRevoked
from tests.fake_clouds import cloud
from tests.usecases.test_lock import FIRST, WORKLOAD, acquire_lock, ended

WHY = ("--reason", "its clean-up failed")


@pytest.fixture
def stage(providers):
    """A trial that holds the lock and runs; one that is stopped has ended."""
    providers.aws_cloud = aws = cloud()
    services = aws.services
    acquire_lock(FIRST, services=services)

    def stop(execution, _cause):
        services.ends[execution] = ended(FIRST, "ABORTED")

    aws.executions.stop = stop
    return aws


def test_a_lock_of_a_trial_that_has_ended_is_released(asked, stage):
    stage.services.ends[FIRST["execution"]] = FORGOTTEN
    document = asked("unlock", WORKLOAD, *WHY, "--yes")

    assert (WORKLOAD, True) == (document["workload"], document["released"])
    assert FIRST["execution"] == document["unlocked"]["execution"]
    assert stage.services.locks.holder(WORKLOAD) is None


def test_a_trial_that_runs_keeps_its_lock_unless_it_is_stopped(invoke, asked, stage):
    result = invoke("unlock", WORKLOAD, *WHY, "--yes")
    assert 2 == result.exit_code
    assert "still runs" in result.stderr
    assert "--force" in result.stderr
    assert FIRST["execution"] == stage.services.locks.holder(WORKLOAD)

    document = asked("unlock", WORKLOAD, *WHY, "--yes", "--force")
    assert (True, "ABORTED") == (
        document["unlocked"]["stopped"], document["unlocked"]["status"],
    )  # fmt: skip
    assert stage.services.locks.holder(WORKLOAD) is None


def test_a_workload_without_a_lock_is_free_already_and_an_unknown_one_an_error(
    invoke, asked, stage
):
    stage.services.locks.release(WORKLOAD, FIRST["execution"])

    assert not asked("unlock", WORKLOAD, *WHY)["released"]
    assert "free" in invoke("unlock", WORKLOAD, *WHY).stdout
    unknown = invoke("unlock", "nobody", *WHY)
    assert (2, True) == (unknown.exit_code, "nobody" in unknown.stderr)


def test_what_alarms_of_a_workload_revoked_counts_again(invoke, asked, stage):
    ledger = stage.services.ledger
    for decision, workload, job_class in (("d1", WORKLOAD, "fp32"), ("d2", "ads", "bf16")):
        revoked = ClassRevoked(5, decision, workload, f"pytorch 2.13, cpu, {job_class}", "worse")
        ledger.append(DEPLOYMENT, revoked)
    seen = invoke("status").stdout
    assert ["cpu, fp32", "cpu, bf16"] == re.findall(r"pytorch 2.13, (cpu, \w+)", seen)

    document = asked("unlock", WORKLOAD, "--equivalence", *WHY, "--yes")

    assert ["d1"] == [one["decision_id"] for one in document["restored"]]
    assert ["d2"] == [one["decision_id"] for one in document["revoked"]]
    assert stage.services.locks.holder(WORKLOAD)  # another thing than the lock
    again = invoke("unlock", WORKLOAD, "--equivalence", *WHY, "--yes")
    assert (2, True) == (again.exit_code, "no class" in again.stderr)
