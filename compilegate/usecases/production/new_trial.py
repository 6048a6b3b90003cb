"""What a new trial of a workload would cost, and the command that starts it."""

from __future__ import annotations

from dataclasses import dataclass

from compilegate.domain.errors import CompilegateError
from compilegate.domain.planning.arms import Refusal
from compilegate.ports import Services
from compilegate.usecases.past_overheads import past_overheads
from compilegate.usecases.plan_trial import plan_for
from compilegate.usecases.production.production_job import load_registered
from compilegate.usecases.registration import load_registration

LOCAL = "local"


@dataclass(frozen=True)
class Proposal:
    """One sentence for people, and what to type."""

    text: str
    command: str


def propose_trial(workload: str, services: Services) -> Proposal:
    """A new trial of what is registered now; without a registration only how to start one."""
    flag = " --local" if services.settings.stage == LOCAL else ""
    command = f"compilegate run workloads/{workload}.yaml{flag}"
    try:
        origin = load_registration(services.store, workload).origin
        command = f"compilegate run {origin}{flag}" if origin else command
        found = load_registered(workload, services).spec.workload
        measured = past_overheads(workload, services)
        plan = plan_for(found, services.settings, measured=measured)
    except CompilegateError as error:
        text = f"What a new trial would cost is not known: {error}\nStart it with: {command}"
        return Proposal(text, command)
    if isinstance(plan, Refusal):
        text = f"A new trial would be refused as things stand: {plan.reason.message}"
        return Proposal(text, command)
    cost = plan.estimate
    text = (
        f"A new trial would cost about ${cost.usd:,.2f} (${cost.low_usd:,.2f} to "
        f"${cost.high_usd:,.2f}). Start it with: {command}"
    )
    return Proposal(text, command)
