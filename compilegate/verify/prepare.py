"""Puts a verification together from what is deployed; uploads and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.adapters.wiring import settings_from
from compilegate.domain import naming
from compilegate.domain.facts.model import Price
from compilegate.domain.workload.file import parse_workload
from compilegate.ports import Services, Settings
from compilegate.usecases.job_context import job_context
from compilegate.usecases.known_facts import known_facts
from compilegate.verify import jobs
from compilegate.verify.account import Account
from compilegate.verify.run import Pace, Verification
from compilegate.verify.temporary import stack_name

# Facts are asked for by workload; these do not depend on its type.
ANY_TYPE = "ml.m5.xlarge"
EMBEDDED = Pace(limited=3, job=300, copy=60, message=20, stop=20)


@dataclass(frozen=True)
class Prepared:
    """A verification that is ready to start; ``usd`` is the most that its jobs can cost."""

    verification: Verification
    instance_type: str
    image: str
    region: str
    usd: float


def prepare_verification(
    client: Callable[[str], Any],
    services: Services,
    instance_type: str,
    *,
    trial: str,
    poll_seconds: float,
) -> Prepared:
    """A verification of the deployed stage whose data bucket ``services`` names.

    Raises InvalidInputError for an instance type without a price or an image on file.
    """
    account = Account(client, poll_seconds=poll_seconds)
    pace = Pace() if services.settings.simulated is None else EMBEDDED
    settings = _deployed_settings(client, services.settings)
    machines = {
        machine: account.machine_called(naming.machine_name(settings.stage, machine))
        for machine in naming.MACHINES
    }
    of = jobs.workload(instance_type)
    arms = jobs.arms(of, settings)
    shipment = jobs.pack(of, services.store.bucket)
    own = replace(services, settings=settings)
    context = job_context(
        own, trial=trial, execution=stack_name(trial), source_key=str(shipment.spec["source_key"])
    )
    placed = parse_workload(shipment.spec["workload"])
    planned = jobs.plan_jobs(placed, arms, context, limited_seconds=pace.limited)
    over = _type_without_quota(own)
    usd = jobs.bound_usd(
        planned, arms[0].usd_per_hour, over_quota_usd_per_hour=over.usd_per_hour if over else 0.0
    )
    verification = Verification(
        account=account,
        store=services.store,
        role_arn=machines[naming.EVALUATE]["roleArn"],
        trial=trial,
        shipment=shipment,
        jobs=planned,
        pace=pace,
        definitions={name: one["definition"] for name, one in machines.items()},
        quota=services.quotas.training_instances(instance_type, spot=False),
        over_quota_type=over.instance_type if over else None,
    )
    return Prepared(verification, instance_type, arms[0].image, settings.region, usd)


def _deployed_settings(client: Callable[[str], Any], known: Settings) -> Settings:
    """Key and network of the stage's own jobs, as the function that asks for them has them."""
    name = f"{naming.stack_name(known.stage)}-judge-arms"
    configuration = client("lambda").get_function_configuration(FunctionName=name)
    variables: Mapping[str, str] = configuration["Environment"]["Variables"]
    return replace(
        settings_from({"AWS_REGION": known.region, **variables}), simulated=known.simulated
    )


def _type_without_quota(services: Services) -> Price | None:
    """The cheapest type on file whose quota is 0: a request for it must be refused."""
    facts = known_facts(jobs.workload(ANY_TYPE), services.settings)
    for price in sorted(facts.prices.values(), key=lambda price: price.usd_per_hour):
        if services.quotas.training_instances(price.instance_type, spot=False) == 0:
            return price
    return None
