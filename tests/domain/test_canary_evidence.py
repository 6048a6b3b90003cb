"""Full runs that production made: what may differ from night to night, and what may not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compilegate.domain.decision import Decision, Verdict
from tests.domain.evidence_builder import GOOD, document, judge

FINGERPRINT = {"gpu": "A10G", "driver": "550", "image": "i", "data_sha256": "d0"}


@pytest.fixture
def carried() -> dict[str, Any]:
    """A promotion whose full runs production made, each night on newer data."""
    found = document(metrics=GOOD, policy={"quality_runs": "canary"})
    for arm in found["arms"]:
        for number, run in enumerate(arm["runs"]):
            run["fingerprint"] = dict(FINGERPRINT)
            if run["stage"] == "quality":
                run |= {"mode": "canary", "initial_loss": 3.0 + number}
                run["fingerprint"] |= {"data_sha256": f"d{number}", "driver": f"55{number}"}
    return found


def last(found: dict[str, Any]) -> dict[str, Any]:
    """The candidate's last full run."""
    run: dict[str, Any] = found["arms"][1]["runs"][-1]
    return run


def codes(decision: Decision) -> set[str]:
    return {reason.code for reason in decision.reasons}


def test_newer_data_and_a_newer_driver_are_productions_own(carried: dict[str, Any]) -> None:
    assert Verdict.PROMOTE == judge(carried).verdict


@pytest.mark.parametrize("key", ["gpu", "image"])
def test_anything_else_must_be_the_same_every_night(carried: dict[str, Any], key: str) -> None:
    last(carried)["fingerprint"][key] = "another"

    assert (Verdict.INVALID, {"arms_differ"}) == (
        judge(carried).verdict, codes(judge(carried)),
    )  # fmt: skip


def test_extra_runs_have_no_such_excuse(carried: dict[str, Any]) -> None:
    last(carried)["mode"] = "shadow"

    assert "arms_differ" in codes(judge(carried))


def test_runs_of_one_seed_start_alike_only_where_they_had_the_same_data(
    carried: dict[str, Any],
) -> None:
    same = copy.deepcopy(carried)
    theirs = next(r for r in same["arms"][0]["runs"] if r["stage"] == "quality")
    last(same).update(seed=theirs["seed"], initial_loss=theirs["initial_loss"] * 2)
    assert Verdict.PROMOTE == judge(same).verdict

    last(same)["fingerprint"]["data_sha256"] = theirs["fingerprint"]["data_sha256"]
    assert {"unequal_initial_loss"} == codes(judge(same))


@pytest.mark.parametrize(
    ("asked", "why", "told"),
    [
        ("canary", None, None),
        ("hybrid", "nobody registered it", "nobody registered it"),
        ("hybrid", None, "policy.quality_runs is hybrid"),
    ],
)
def test_a_mode_that_policy_did_not_ask_for_is_told_with_its_reason(
    carried: dict[str, Any], asked: str, why: str | None, told: str | None
) -> None:
    carried["plan"] = {"asked_quality_runs": asked, "runs_as_shadow_because": why}
    found = [r.message for r in judge(carried).reasons if r.code == "runs_as_shadow"]

    assert (told is not None) == bool(found)
    assert told is None or told in found[0]
