"""A promotion that waits for a person in the deployed state machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.adapters.state_machines import StepFunctions
from compilegate.domain.flag_change import Override
from compilegate.usecases.flag.approval import answer_approval, waiting_approvals
from compilegate_judge.replay import find_decision, replay
from distributions.localcloud.tests.helpers import eventually
from tests import fakes

pytestmark = pytest.mark.e2e
REQUIRED = {"approval": "required"}
ANA = Override("ana", "looks right")


def services(app: Any) -> Any:
    """The real ledger and tokens of the local cloud."""
    tokens = StepFunctions(app.client("stepfunctions"))
    return replace(fakes.services("local"), ledger=app.ledger, store=app.store, tokens=tokens)


def wait_until_asked(running: Any, seconds: float = 150.0) -> Any:
    """Until the state machine waits with its token."""

    def waiting() -> Any:
        approvals = waiting_approvals(running.workload, services(running.app).ledger)
        return next((approval for approval in approvals if approval.tokens), None)

    return eventually(waiting, seconds, f"{running.execution} never asked")


def test_a_promotion_waits_and_takes_effect_once_somebody_agrees(trial, app):
    running = trial(policy=REQUIRED)
    wait_until_asked(running)
    assert running.flag() is None
    assert running.lock() is not None

    answered = answer_approval(running.workload, ANA, approved=True, services=services(app))
    output = running.output()

    assert (True, False) == (answered.woken, answered.repeated)
    assert ("promote", True, True) == (
        output["verdict"], output["flag_enabled"], output["approval"]["approved"],
    )  # fmt: skip
    assert running.flag()["enabled"]
    assert "ana approved it: “looks right”" in running.report("html")
    again = answer_approval(running.workload, ANA, approved=True, services=services(app))
    assert (True, False) == (again.repeated, again.woken)
    decision = find_decision(output["decision_id"], [running.workload], services(app))
    assert replay(decision, services(app)).comparison.equal
