"""What follows from a finding: off beats stale, stale beats permanent, nothing turns on."""

from __future__ import annotations

import pytest

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.production.flag_transition import Findings, flag_transition
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.reasons import Reason

CHANGED = (Reason("image_changed", "image: was a, is b"),)
OVERRIDES = {"compiler": "torch_compile"}


def on(state: str = "probation") -> Promotion:
    flag = Flag(True, state, "compile", OVERRIDES, "d1", "2026-01-01T00:00:00Z")
    return Promotion("abcd1234", "compile", at=0, since=0, flag=flag, version=1)


def said(verdict: str) -> Decision:
    why = (Reason("why", verdict),)
    return Decision("w", "d2", "1", "probation", Verdict(verdict), "compile", why)


@pytest.mark.parametrize("policy", ["fall_back", "keep"])
@pytest.mark.parametrize("changed", [(), CHANGED])
def test_a_regression_turns_off_whatever_else_is_found(
    policy: str, changed: tuple[Reason, ...]
) -> None:
    found = flag_transition(on(), Findings(said("revert"), changed, True), policy)

    assert found is not None
    assert Flag(False, "reverted", "compile", {}, "d2") == found.flag
    assert ("revert", "why") == (found.action, found.reasons[0].code)


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("fall_back", Flag(False, "stale", "compile", {}, "d1")),
        ("keep", Flag(True, "stale", "compile", OVERRIDES, "d1")),
    ],
)
@pytest.mark.parametrize("state", ["probation", "permanent"])
def test_what_changed_is_stale_as_the_policy_says(state: str, policy: str, wanted: Flag) -> None:
    found = flag_transition(on(state), Findings(said("permanent"), CHANGED, True), policy)

    assert found is not None
    assert ("stale", wanted, CHANGED) == (found.action, found.flag, found.reasons)


def test_a_change_that_production_does_without_is_stale() -> None:
    found = flag_transition(on(), Findings(said("invalid"), untreated=2), "fall_back")

    assert found is not None
    assert (False, "stale", "invalid") == (
        found.flag.enabled, found.flag.state, found.reasons[0].message,
    )  # fmt: skip


def test_a_probation_that_held_is_permanent_and_stays_what_it_was() -> None:
    found = flag_transition(on(), Findings(said("permanent"), (), True), "fall_back")

    assert found is not None
    assert Flag(True, "permanent", "compile", OVERRIDES, "d2") == found.flag


@pytest.mark.parametrize(
    ("state", "finding"),
    [
        ("probation", Findings()),
        ("probation", Findings(said("continue"))),
        ("probation", Findings(said("inconclusive"))),
        ("probation", Findings(said("invalid"), untreated=1)),
        ("permanent", Findings(said("permanent"))),
        ("stale", Findings(said("invalid"), (), True, untreated=2)),
        ("stale", Findings(said("permanent"), CHANGED, True)),
        ("stale", Findings(said("permanent"), (), False)),
    ],
)
def test_what_proves_nothing_new_leaves_the_flag_alone(state: str, finding: Findings) -> None:
    assert None is flag_transition(on(state), finding, "keep")


def test_a_stale_flag_that_stayed_on_is_in_probation_again_once_all_is_as_it_was() -> None:
    found = flag_transition(on("stale"), Findings(said("continue"), (), True), "keep")

    assert found is not None
    assert ("resume", "probation", True) == (found.action, found.flag.state, found.flag.enabled)
