"""What registering a workload changes, from the registration before and the one requested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.registration import (
    NOT_REGISTERED,
    Change,
    Registration,
    TrainedJob,
    check_owner,
    injected_fault,
    next_change,
    outcome_of,
    read_registration,
    registration_changes,
    replaced_source,
)
from compilegate.domain.records.production import RegistrationChange
from tests.domain.workload_builder import SOUND, change

NOW = Registration("bert", "spec1", "s1", owner="ml", origin="bert.yaml", revision=3)
WAS = {"owner": "ml", "a": {"x": 1}, "b": {"x": 1, "y": 1}, "c": {"x": 1}, "d": 1}
SPEC = {"workload": WAS, "source_key": "k1", "code_digest": "c1"}


@pytest.mark.parametrize(
    ("current", "changes", "expected"),
    [
        (NOT_REGISTERED, {}, "new"),
        (NOW, {"spec_key": "spec2"}, "updated"),
        (replace(NOW, active=False), {"active": True}, "revived"),
        (replace(NOW, complete=False), {}, "completed"),
        (NOW, {}, "repaired"),
        (NOW, {"revision": 9, "complete": False}, "repaired"),
    ],
)
def test_a_registration_is_new_updated_revived_completed_or_repaired(current, changes, expected):
    assert expected == outcome_of(current, replace(NOW, **changes))


def test_another_owner_may_not_take_the_name():
    check_owner(NOW, replace(NOW, origin="other.yaml"))
    check_owner(replace(NOW, owner=None), replace(NOW, owner="another"))
    with pytest.raises(InvalidInputError, match="--take-over"):
        check_owner(NOW, replace(NOW, owner="another"))


def test_the_source_that_is_replaced():
    assert replaced_source(NOT_REGISTERED, NOW) is None
    assert replaced_source(NOW, NOW) is None
    assert "bert.yaml of ml" == replaced_source(NOW, replace(NOW, owner="another"))
    old = replace(NOW, origin=None, owner=None)
    assert "an unknown file" == replaced_source(old, NOW)


@pytest.mark.parametrize(("digest", "part"), [("c2", "source"), ("c1", "recorder")])
def test_changes_name_the_fields_and_which_part_of_the_source(digest, part):
    requested = replace(NOW, spec_key="spec2", source_digest="s2")
    now = {"owner": "infra", "b": {"y": 1, "z": 2}, "c": 1, "d": {"x": 1}}
    after = {"workload": now, "source_key": "k2", "code_digest": digest}

    expected = (
        Change("a", {"x": 1}, None), Change("b.x", 1, None), Change("b.z", None, 2),
        Change("c", {"x": 1}, 1), Change("d", 1, {"x": 1}),
        Change("owner", "ml", "infra"), Change(part, "s1", "s2"),
        Change("file", "bert.yaml", "b.yaml"), Change("deployment", None, "prod"),
    )  # fmt: skip
    requested = replace(requested, origin="b.yaml", target="prod")
    assert expected == registration_changes(NOW, requested, SPEC, after)
    assert expected[6:] == registration_changes(
        NOW, replace(requested, spec_key="spec1"), SPEC, after
    )
    assert () == registration_changes(NOT_REGISTERED, requested, {}, after)
    other = replace(NOW, source_digest="s2")
    now = {**SPEC, "code_digest": digest}
    assert (Change(part, "s1", "s2"),) == registration_changes(NOW, other, SPEC, now)


def test_a_change_continues_the_revisions():
    requested = replace(NOW, spec_key="spec2", complete=False)
    first = next_change(NOT_REGISTERED, requested, (), by="human:ana", at=7)
    made = (Change("file", "a", "b"),)
    following = next_change(NOW, replace(requested, active=False), made, by="human:ana", at=7)

    assert (1, True, ()) == (first.revision, first.active, first.changes)
    written = following.document or {}
    assert RegistrationChange(
        4, False, 7, "human:ana", ({"field": "file", "before": "a", "after": "b"},), written
    ) == following  # fmt: skip
    expected = replace(requested, revision=4, complete=True, active=False)
    assert expected == read_registration(written)
    without = {key: value for key, value in written.items() if key != "complete"}
    assert expected == read_registration(without)
    assert not read_registration({**written, "complete": "true"}).complete


@pytest.mark.parametrize(
    ("workload", "fault"),
    [({}, None), ({"training": None}, None), ({"training": {"environment": None}}, None),
     ({"training": {"environment": {"INJECTED_FAULT": "crash", "x": "y"}}}, "crash"),
     ({"training": {"environment": {"INJECTED_FAULT": ""}}}, None)],
)  # fmt: skip
def test_the_fault_that_a_job_asks_for_is_in_its_environment(workload, fault):
    assert fault == injected_fault(workload)


def test_a_job_is_what_it_trains_whatever_else_its_file_says():
    job = TrainedJob(SOUND, "code")
    other = change(
        SOUND, schedule__runs_per_week=9, training__fallback_instances=("ml.a",), quality__margin=1
    )

    assert job.fields == TrainedJob(other, "code").fields
    assert job.digest == TrainedJob(other, "code").digest
    turned = [
        change(SOUND, training__hyperparameters=of) for of in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert TrainedJob(turned[0], "").digest == TrainedJob(turned[1], "").digest
    assert {"framework.version", "training.batch_size", "quality.metric"} <= job.fields.keys()
    assert "training.fallback_instances" not in job.fields
    others = [TrainedJob(SOUND, "x"), TrainedJob(change(SOUND, quality__metric="f1"), "code")]
    others += [TrainedJob(change(SOUND, training__batch_size=9), "code")]
    assert 4 == len({one.digest for one in (job, *others)})
