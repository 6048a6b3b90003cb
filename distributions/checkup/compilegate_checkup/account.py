"""``compilegate doctor --deployment``: can the account and network run what is deployed?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.sagemaker import ServiceQuotas
from compilegate.adapters.stores import error_code
from compilegate.adapters.workload_files import read_workload
from compilegate.cli.common import project
from compilegate.cli.common.connect import stack_outputs
from compilegate.cli.common.output import answer
from compilegate.cli.common.session import Providers
from compilegate.domain.claims import LOCAL_STAGE
from compilegate.domain.deployment_settings import PROVIDED
from compilegate.domain.errors import NotDeployedError
from compilegate.domain.naming import job_role_arn, stack_name
from compilegate.domain.reasons import Reason, Severity
from compilegate.facts import load_facts, quota_codes
from compilegate_checkup import TEMPLATES, reading
from compilegate_checkup.command import Part
from compilegate_checkup.rules import (
    Demand,
    JobRole,
    VpcSetting,
    examine_bootstrap,
    examine_bucket,
    examine_functions_network,
    examine_isolation,
    examine_job_role,
    examine_network,
    examine_quotas,
    examine_role_quota,
    examine_setting,
    reason,
)

# What the container toolkit installs before a script starts.
INSTALLED = "requirements.txt"
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")


@dataclass(frozen=True)
class Account:
    """One region of an account; the embedded cloud (``local``) has no quotas."""

    stage: str
    region: str
    client: Callable[[str], Any]
    local: bool = False


def check_deployment(
    providers: Providers,
    paths: Sequence[Path],
    *,
    only: Part | None,
    stage: str | None,
    local: bool,
    as_json: bool,
) -> Severity | None:
    """Show what is wrong; returns the worst severity, None for nothing but notes."""
    if local:
        providers.local()  # points the clients at it
    region = project.checked_region()
    account = Account(
        stage=LOCAL_STAGE if local else project.stage_name(stage),
        region=region,
        client=lambda service: providers.client(service, region),
        local=local,
    )
    instances, demands = load_facts().instances, []
    for path in paths:
        file = read_workload(path, needs_inputs=False)
        workload, training = file.workload, file.workload.training
        instance = instances.get(training.instance_type)
        efa = instance is not None and instance.efa
        demands.append(
            Demand(
                workload.name, training.instance_type, training.instance_count, efa=efa,
                installs=(file.source_dir / INSTALLED).is_file(),
            )
        )  # fmt: skip
    reasons = find_reasons(account, demands, only)
    findings = [one.to_finding() for one in reasons]
    document = {"stack": stack_name(account.stage), "region": region, "reasons": findings}
    answer(document, TEMPLATES / "doctor_deployment", as_json=as_json, findings=reasons)
    severities = {one.severity for one in reasons}
    return next((one for one in (Severity.BLOCK, Severity.WARN) if one in severities), None)


def find_reasons(
    account: Account, demands: Sequence[Demand], only: Part | None = None
) -> list[Reason]:
    """What is wrong, part by part; a part that may not be read says so."""
    reasons: list[Reason] = []
    for part, examine in PARTS.items():
        if only not in (None, part):
            continue
        try:
            reasons += examine(account, demands)
        except ClientError as error:
            if error_code(error) not in DENIED:
                raise
            reasons.append(reason("not_checked", part=part, call=error.operation_name))
    return reasons


def _bootstrap(account: Account, _demands: Sequence[Demand]) -> Iterable[Reason]:
    qualifier = project.deployment().bootstrap_qualifier
    version = reading.bootstrap_version(account.client("ssm"), qualifier)
    return examine_bootstrap(version, account.region)


def _stack(account: Account, _demands: Sequence[Demand]) -> Iterable[Reason]:
    try:
        stack_outputs(account.client("cloudformation"), account.stage)
    except NotDeployedError as error:
        yield reason("not_deployed", problem=error.problem)


def _roles(account: Account, demands: Sequence[Demand]) -> Iterable[Reason]:
    """The deployed roles; before a deployment those that cdk.json says are provided."""
    if account.local:  # makes its own roles, without a quota
        return
    settings, iam = project.deployment(), account.client("iam")
    boundary = settings.permissions_boundary
    if boundary and not reading.has_policy(iam, boundary):
        yield reason("boundary_missing", arn=boundary)
    if settings.job_roles != PROVIDED:
        yield from examine_role_quota(*reading.role_quota(iam))
    roles = settings.job_role_arn or ""
    with suppress(NotDeployedError):
        roles = stack_outputs(account.client("cloudformation"), account.stage)["JobRoles"]
    for demand in demands if roles else ():
        job_role = JobRole(
            job_role_arn(roles, demand.workload), demand.workload,
            provided=settings.job_roles == PROVIDED, tags=settings.tags,
        )  # fmt: skip
        yield from examine_job_role(reading.role(iam, job_role.arn), job_role)


def _bucket(account: Account, _demands: Sequence[Demand]) -> Iterable[Reason]:
    """The bucket that cdk.json says exists."""
    settings = project.deployment()
    if account.local or not settings.bucket_name or not settings.existing_bucket:
        return []
    return examine_bucket(reading.bucket(account.client("s3"), settings.bucket_name), settings)


def _vpc(account: Account, demands: Sequence[Demand]) -> Iterable[Reason]:
    """The deployed setting; before a deployment the one that cdk.json would deploy."""
    vpc = project.deployment().vpc
    configured = VpcSetting(vpc.subnet_ids, vpc.security_group_ids) if vpc else None
    try:
        stack_outputs(account.client("cloudformation"), account.stage)
    except NotDeployedError:
        used, differences = configured, []
    else:
        used = reading.deployed_vpc(account.client("lambda"), account.stage)
        differences = list(examine_setting(configured, used))
    if not used:
        return differences
    network = reading.read_network(account.client("ec2"), used)
    encrypted = project.deployment().jobs.encrypt_between_instances
    return [*differences, *examine_network(network, demands, encrypted=encrypted)]


def _functions(account: Account, _demands: Sequence[Demand]) -> Iterable[Reason]:
    """The network of functions that cdk.json names."""
    settings = project.deployment()
    if account.local or settings.functions_vpc is None:
        return []
    ids = VpcSetting(settings.functions_vpc.subnet_ids, settings.functions_vpc.security_group_ids)
    network = reading.read_network(account.client("ec2"), ids)
    return examine_functions_network(
        network, makes_roles=settings.job_roles != PROVIDED,
        keeps_logs=settings.training_log_retention_days is not None,
    )  # fmt: skip


def _jobs(account: Account, demands: Sequence[Demand]) -> Iterable[Reason]:
    """What cdk.json demands of every training job."""
    rules = project.deployment().jobs
    if rules.network_isolation:
        yield from examine_isolation(demands)
    arn = rules.registry_credentials
    if arn and not account.local and not reading.has_function(account.client("lambda"), arn):
        yield reason("registry_function_missing", arn=arn)


def _quotas(account: Account, demands: Sequence[Demand]) -> Iterable[Reason]:
    if account.local or not demands:
        return []
    quotas = ServiceQuotas(account.client("service-quotas"), quota_codes)
    kinds = [demand.instance_type for demand in demands]
    held = {kind: quotas.training_instances(kind, spot=False) for kind in kinds}
    return examine_quotas(held, demands)


PARTS: Mapping[Part, Callable[[Account, Sequence[Demand]], Iterable[Reason]]] = {
    Part.BOOTSTRAP: _bootstrap,
    Part.STACK: _stack,
    Part.ROLES: _roles,
    Part.BUCKET: _bucket,
    Part.VPC: _vpc,
    Part.FUNCTIONS: _functions,
    Part.JOBS: _jobs,
    Part.QUOTAS: _quotas,
}
