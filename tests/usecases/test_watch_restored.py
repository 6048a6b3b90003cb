"""A stale flag that the team keeps on: what brings it back to probation, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from tests.domain.evidence_builder import FINGERPRINT
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    WORKLOAD,
    flag_of,
    night,
    promote,
    put_other_spec,
    register,
)
from tests.usecases.trial_builder import SPEC, TRIAL

KEEP = change(SOUND, policy__on_stale="keep")
OTHER_CODE = {**FINGERPRINT, "code_sha256": "another"}
OTHER_TORCH = {**FINGERPRINT, "torch": "3.0"}


def stale(services: Any, **fingerprint: Any) -> None:
    promote(services, KEEP)
    night(services, 1, fingerprint=fingerprint)
    assert "stale" == flag_of(services).state


@pytest.mark.parametrize(
    "silent",
    [
        {"fingerprint": None, "finished": False, "metric": None},
        {"fingerprint": None},
        {"fingerprint": {"torch": FINGERPRINT["torch"]}},
        {"counts": False},
        {"metric": float("nan")},
        {"arm": "baseline"},
    ],
    ids=[
        "crashed", "without a record", "without that field", "no evidence", "unreadable",
        "the other arm",
    ],
)  # fmt: skip
def test_a_run_that_does_not_show_the_very_field_restores_nothing(
    services: Any, silent: dict[str, Any]
) -> None:
    stale(services, **OTHER_CODE)
    night(services, 2, **silent)

    assert (True, "stale") == (flag_of(services).enabled, flag_of(services).state)


def test_a_run_that_shows_it_to_be_as_it_was_does(services: Any) -> None:
    stale(services, **OTHER_CODE)
    night(services, 2, fingerprint=None)
    night(services, 3)

    assert "probation" == flag_of(services).state


def test_whatever_else_changed_meanwhile_has_to_be_shown_too(services: Any) -> None:
    stale(services, **OTHER_CODE)
    night(services, 2, fingerprint={**OTHER_TORCH})
    night(services, 3, fingerprint={"code_sha256": FINGERPRINT["code_sha256"]})
    without_torch = flag_of(services).state
    night(services, 4)

    assert ("stale", "probation") == (without_torch, flag_of(services).state)


def test_columns_that_changed_are_not_forgotten_by_a_crash(services: Any) -> None:
    promote(services, KEEP)
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    found = json.loads(services.store.get(key))
    for arm in found["arms"]:
        for run in arm["runs"]:
            run.setdefault("fingerprint", {})["data_schema_sha256"] = "a" * 64
    services.store.put(key, json.dumps(found).encode())
    other = {**FINGERPRINT, "data_schema_sha256": "b" * 64}
    night(services, 1, fingerprint=other)
    night(services, 2, fingerprint=None, finished=False, metric=None)
    night(services, 3, fingerprint=other, counts=False)

    assert "stale" == flag_of(services).state


def test_a_registered_job_that_is_back_is_seen_with_the_next_run_that_counts(
    services: Any,
) -> None:
    promote(services, KEEP)
    larger = change(KEEP, training__batch_size=SOUND.training.batch_size * 2)
    register(services, put_other_spec(services, larger, "workloads/bert-docs/s.tgz"))
    night(services, 1)
    register(services, SPEC)
    night(services, 2, counts=False)
    unseen = flag_of(services).state
    night(services, 3)

    assert ("stale", "probation") == (unseen, flag_of(services).state)


def test_a_change_that_most_runs_did_without_is_back_once_it_is_applied(services: Any) -> None:
    promote(services, KEEP)
    for number in (1, 2):
        night(services, number, applied=False)
    kept = flag_of(services).state
    states = []
    for number in (3, 4, 5):
        night(services, number)
        states.append(flag_of(services).state)

    assert ("stale", "probation") == (kept, states[-1])
    assert "stale" == states[0], "most runs still did without it"
