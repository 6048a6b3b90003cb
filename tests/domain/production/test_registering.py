"""What registering a workload changes, from the registration before and the one requested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.registration import (
    NOT_REGISTERED,
    Change,
    Registration,
    check_owner,
    next_change,
    outcome_of,
    read_registration,
    registration_changes,
    replaced_source,
)

NOW = Registration("bert", "spec1", "s1", owner="ml", origin="bert.yaml", revision=3)
SPEC = {"workload": {"owner": "ml"}, "source_key": "k1", "code_digest": "c1"}


@pytest.mark.parametrize(
    ("current", "changes", "expected"),
    [
        (NOT_REGISTERED, {}, "new"),
        (NOW, {"spec_key": "spec2"}, "updated"),
        (replace(NOW, active=False), {"active": True}, "revived"),
        (replace(NOW, complete=False), {}, "completed"),
        (NOW, {}, "repaired"),
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


@pytest.mark.parametrize(("digest", "part"), [("c2", "source"), ("c1", "recorder")])
def test_changes_name_the_fields_and_which_part_of_the_source(digest, part):
    requested = replace(NOW, spec_key="spec2", source_digest="s2")
    after = {"workload": {"owner": "infra"}, "source_key": "k2", "code_digest": digest}

    expected = (Change("owner", "ml", "infra"), Change(part, "s1", "s2"))
    assert expected == registration_changes(NOW, requested, SPEC, after)
    assert () == registration_changes(NOT_REGISTERED, requested, {}, after)


def test_a_change_continues_the_revisions():
    requested = replace(NOW, spec_key="spec2", complete=False)
    first = next_change(NOT_REGISTERED, requested, (), by="human:ana", at=7)
    following = next_change(NOW, requested, (), by="human:ana", at=7)

    assert (1, 4) == (first.revision, following.revision)
    written = read_registration(following.document or {})
    assert replace(requested, revision=4, complete=True) == written
