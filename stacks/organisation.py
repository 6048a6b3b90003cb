"""What an organisation demands of everything in a stack: names, paths, boundaries and tags."""

from __future__ import annotations

from aws_cdk import Names, Stack, Tags
from aws_cdk import aws_iam as iam

from compilegate.domain.deployment_settings import Settings
from stacks.checked_settings import ROLE_NAME_MAX


def follow_rules(stack: Stack, settings: Settings) -> None:
    """Apply them to every resource that the stack holds by now."""
    for key, value in settings.tags.items():
        Tags.of(stack).add(key, value)
    if settings.permissions_boundary:
        boundary = iam.ManagedPolicy.from_managed_policy_arn(
            stack, "Boundary", settings.permissions_boundary
        )
        iam.PermissionsBoundary.of(stack).apply(boundary)
    for node in stack.node.find_all() if settings.role_path or settings.role_prefix else ():
        if isinstance(node, iam.CfnRole | iam.CfnManagedPolicy):
            node.path = settings.role_path
        if isinstance(node, iam.CfnRole) and settings.role_prefix:
            node.role_name = _role_name(node, settings)
        if isinstance(node, iam.CfnManagedPolicy) and settings.role_prefix:
            node.managed_policy_name = _role_name(node, settings)


def _role_name(role: iam.CfnRole | iam.CfnManagedPolicy, settings: Settings) -> str:
    """With stage and region, since a name of IAM is an account's.

    These are last: what may be done to the roles of jobs, whose names begin with them, must not
    apply here.
    """
    tail = f"-{settings.stage}-{settings.region}"
    room = ROLE_NAME_MAX - len(settings.role_prefix) - len(tail)
    return f"{settings.role_prefix}{Names.unique_resource_name(role, max_length=room)}{tail}"
