"""Puts a verification together from what is deployed; uploads and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate.adapters.wiring import settings_from
from compilegate.domain import naming
from compilegate.domain.facts.model import Price
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.workload.file import parse_workload
from compilegate.ports import Services, Settings
from compilegate.usecases.registration.load import facts_for_workload
from compilegate.usecases.registration.upload import Shipment
from compilegate.usecases.trial.job_requests import job_context
from compilegate.verify import jobs
from compilegate.verify.account import Account
from compilegate.verify.run import Pace, Verification
from compilegate.verify.temporary import stack_name

# Facts are looked up by workload; prices do not depend on its type.
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
    services = replace(services, settings=_deployed_settings(client, services.settings))
    machines = {
        name: account.machine_called(naming.machine_name(services.settings.stage, name))
        for name in naming.MACHINES
    }
    arms, shipment, planned = _plan(services, instance_type, trial, pace)
    over = _type_without_quota(services)
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
    usd = jobs.bound_usd(
        planned, arms[0].usd_per_hour, over_quota_usd_per_hour=over.usd_per_hour if over else 0.0
    )
    return Prepared(verification, instance_type, arms[0].image, services.settings.region, usd)


def _plan(
    services: Services, instance_type: str, trial: str, pace: Pace
) -> tuple[Sequence[ArmPlan], Shipment, Sequence[jobs.PlannedJob]]:
    """The arms, what is uploaded for them, and the jobs."""
    workload = jobs.small_workload(instance_type)
    arms = jobs.arms(workload, services.settings)
    shipment = jobs.pack(workload, services.store.bucket)
    source_key = str(shipment.spec["source_key"])
    context = job_context(services, trial=trial, execution=stack_name(trial), source_key=source_key)
    uploaded = parse_workload(shipment.spec["workload"])
    return arms, shipment, jobs.plan_jobs(uploaded, arms, context, limited_seconds=pace.limited)


def _deployed_settings(client: Callable[[str], Any], settings: Settings) -> Settings:
    """Key and network of the stage's own jobs, as the function that asks for them has them."""
    name = f"{naming.stack_name(settings.stage)}-judge-arms"
    configuration = client("lambda").get_function_configuration(FunctionName=name)
    variables: Mapping[str, str] = configuration["Environment"]["Variables"]
    return replace(
        settings_from({"AWS_REGION": settings.region, **variables}), simulated=settings.simulated
    )


def _type_without_quota(services: Services) -> Price | None:
    """The cheapest type on file whose quota is 0: a request for it must be refused."""
    facts = facts_for_workload(jobs.small_workload(ANY_TYPE), services.settings)
    for price in sorted(facts.prices.values(), key=lambda price: price.usd_per_hour):
        if services.quotas.training_instances(price.instance_type, spot=False) == 0:
            return price
    return None
