"""What people do with the commands: each is the use case behind the command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from compilegate.domain.flag_change import Override
from compilegate.domain.production.orphans import NOT_ENDED
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import FactOverrides
from compilegate.ports import Services
from compilegate.usecases.flag.approval import answer_approval
from compilegate.usecases.flag.change_flag import (
    find_candidate,
    repair_flag,
    revert_by_hand,
    set_by_hand,
)
from compilegate.usecases.registration import (
    Package,
    RegisterOptions,
    RegistrationRequest,
    register,
    retire,
)
from compilegate_operating.drainage import Deployment, begin_drain, end_drain, unlock
from tests.faults.simulation_world import Cloud

ANA = Override("ana", "looks right")
# The price of the type of instance that the workload trains on changes with a deployment.
PRICES = (16.0, 20.0, 24.0)
Command = Callable[[Cloud, str, Services], object]


def _approve(_cloud: Cloud, name: str, services: Services) -> object:
    return answer_approval(name, ANA, approved=True, services=services)


def _reject(_cloud: Cloud, name: str, services: Services) -> object:
    return answer_approval(name, ANA, approved=False, services=services)


def _flag_off(_cloud: Cloud, name: str, services: Services) -> object:
    return revert_by_hand(name, ANA, services=services)


def _flag_on(_cloud: Cloud, name: str, services: Services) -> object:
    candidate = find_candidate(name, "compile", services)
    return set_by_hand(name, candidate, ANA, services=services)


def _unlock(_cloud: Cloud, name: str, services: Services) -> object:
    owner = services.locks.holder(name)
    end = services.ends.end_of(owner) if owner else NOT_ENDED
    if owner is None or end == NOT_ENDED:
        return None  # the command stops an execution that runs: see simulation_play.py
    return unlock(name, owner, end, ANA, stopped=False, services=services)


def _repair(_cloud: Cloud, name: str, services: Services) -> object:
    return repair_flag(name, services)


def _retire(cloud: Cloud, name: str, services: Services) -> object:
    options = RegisterOptions(by="human:ana")
    return retire(name, services=services, schedules=cloud.schedules, options=options)


def _register(cloud: Cloud, name: str, services: Services) -> object:
    workload = parse_workload(cloud.documents[name])
    package = Package(workload, b"source", "d", {})
    request = RegistrationRequest(package, f"{name}.yaml", lambda _spec: None)
    options = RegisterOptions(by="human:ana", take_over=True)
    return register(request, services=services, schedules=cloud.schedules, options=options)


def deployment(cloud: Cloud, services: Services) -> Deployment:
    """What a deployment drains."""
    nothing: Any = None
    return Deployment(services, nothing, nothing, cloud.schedules, nothing, tuple)


def _deploy(cloud: Cloud, _name: str, services: Services) -> object:
    """Drained, deployed with other prices, and work starts again."""
    begin_drain(deployment(cloud, services), "human:ana")
    price = cloud.chance.choice(PRICES)
    instance = next(iter(cloud.documents.values()))["training"]["instance_type"]
    facts = FactOverrides({instance: price})
    settings = replace(cloud.services.settings, facts=facts)
    cloud.services = replace(cloud.services, settings=settings)
    return end_drain(deployment(cloud, services), "human:ana")


COMMANDS: dict[str, Command] = {
    "approve": _approve, "reject": _reject, "flag_off": _flag_off, "flag_on": _flag_on,
    "unlock": _unlock, "repair": _repair, "retire": _retire, "register": _register,
    "deploy": _deploy,
}  # fmt: skip
