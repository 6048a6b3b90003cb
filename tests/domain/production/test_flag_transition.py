"""What follows from a finding: off beats stale, stale beats permanent, nothing turns on."""

from __future__ import annotations

import pytest

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.watch import Findings, flag_transition
from compilegate.domain.reasons import Reason

CHANGED = (Reason("image_changed", "image: was a, is b"),)
OVERRIDES = {"compiler": "torch_compile"}


def on(state: str = "probation") -> Promotion:
    flag = Flag(True, state, "compile", OVERRIDES, "d1", "2026-01-01T00:00:00Z")
    return Promotion("abcd1234", "compile", at=0, since=0, flag=flag, version=1)


def said(verdict: str) -> Decision:
    why = (Reason("why", verdict),)
    return Decision("w", "d2", "1", "probation", Verdict(verdict), "compile", why)


PERMANENT = Flag(True, "permanent", "compile", OVERRIDES, "d2")
PROBATION = Flag(True, "probation", "compile", OVERRIDES, "d1")
STALE_OFF, STALE_ON = (
    Flag(False, "stale", "compile", {}, "d1"), Flag(True, "stale", "compile", OVERRIDES, "d1"),
)  # fmt: skip
REVERTED = Flag(False, "reverted", "compile", {}, "d2")


@pytest.mark.parametrize(
    ("state", "findings", "policy", "action", "flag"),
    [
        ("probation", Findings(said("revert")), "keep", "revert", REVERTED),
        ("probation", Findings(said("revert"), CHANGED, True), "fall_back", "revert", REVERTED),
        ("probation", Findings(said("permanent"), CHANGED, True), "fall_back", "stale", STALE_OFF),
        ("permanent", Findings(said("permanent"), CHANGED, True), "fall_back", "stale", STALE_OFF),
        ("probation", Findings(said("permanent"), CHANGED, True), "keep", "stale", STALE_ON),
        ("permanent", Findings(None, CHANGED), "keep", "stale", STALE_ON),
        ("probation", Findings(said("invalid"), untreated=2), "fall_back", "stale", STALE_OFF),
        ("probation", Findings(unwatched=CHANGED), "fall_back", "stale", STALE_OFF),
        ("probation", Findings(said("permanent"), (), True), "fall_back", "permanent", PERMANENT),
        ("stale", Findings(said("continue"), (), True), "keep", "resume", PROBATION),
    ],
)
def test_what_follows_from_a_review(
    state: str, findings: Findings, policy: str, action: str, flag: Flag
) -> None:
    transition = flag_transition(on(state), findings, policy)

    assert transition is not None
    assert (action, flag) == (transition.action, transition.flag)
    assert transition.reason


@pytest.mark.parametrize(
    ("state", "findings"),
    [
        ("probation", Findings()),
        ("probation", Findings(said("continue"))),
        ("probation", Findings(said("inconclusive"))),
        ("probation", Findings(said("invalid"), untreated=1)),
        ("permanent", Findings(said("permanent"))),
        ("permanent", Findings(unwatched=CHANGED)),
        ("stale", Findings(said("invalid"), (), True, untreated=2)),
        ("stale", Findings(said("permanent"), CHANGED, True)),
        ("stale", Findings(said("permanent"), (), False)),
    ],
)
def test_what_proves_nothing_new_leaves_the_flag_alone(state: str, findings: Findings) -> None:
    assert None is flag_transition(on(state), findings, "keep")
