"""The IAM roles of training jobs, made when a workload's first job is requested.

A role carries its workload's name as a tag and one policy, the deployment's: it is both what the
role may do and its permissions boundary (docs/decisions/0024-one-role-per-workload.md).
"""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code
from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError
from compilegate.domain.problem import ProblemWithFix
from compilegate.ports import Settings


class ForeignRoleError(CompilegateError):
    """A role of the expected name belongs to something else."""


class IamJobRoles:
    """JobRoles in IAM.

    A role of a deployment that was removed and came back is put under the new one's policy.
    """

    def __init__(self, iam: Any, settings: Settings) -> None:
        self._iam, self._settings, self._policy = iam, settings, settings.job_policy

    def ensure(self, workload: str) -> None:
        """Make the workload's role if there is none; raises ForeignRoleError for another's.

        Safe to repeat, also after a call that broke off: the policy comes last and is attached
        again. A new role may take seconds to work; the state that starts a job retries.
        """
        name = self._name(workload)
        role = self._role(name) or self._create(name, workload)
        tags = {tag["Key"]: tag["Value"] for tag in role.get("Tags", ())}
        path = role["Path"]
        if path != naming.JOB_ROLES_PATH or tags.get(naming.ROLE_TAG_WORKLOAD) != workload:
            raise ForeignRoleError(
                ProblemWithFix(
                    f"the role {name} exists and was not made for {workload}: it lies at {path} "
                    f"with the tags {tags}",
                    fix="delete it; the next run makes it again",
                )
            )
        boundary = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
        if boundary != self._policy:
            self._iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=self._policy)
        if boundary != self._policy or not self._is_attached(name):
            self._iam.attach_role_policy(RoleName=name, PolicyArn=self._policy)

    def _name(self, workload: str) -> str:
        return naming.job_role(self._settings.stage, self._settings.region, workload)

    def _role(self, name: str) -> dict[str, Any] | None:
        try:
            role: dict[str, Any] = self._iam.get_role(RoleName=name)["Role"]
        except ClientError as error:
            if error_code(error) != "NoSuchEntity":
                raise
            return None
        return role

    def _create(self, name: str, workload: str) -> dict[str, Any]:
        """The new role; or the one that another execution has made meanwhile."""
        tags = {
            naming.ROLE_TAG_WORKLOAD: workload,
            naming.TAG_DEPLOYMENT: self._settings.stage,
            "application": naming.STACK_PREFIX,
        }
        try:
            self._iam.create_role(
                RoleName=name,
                Path=naming.JOB_ROLES_PATH,
                Description=f"Training jobs of {workload}, Compilegate {self._settings.stage}",
                AssumeRolePolicyDocument=json.dumps(self._trust()),
                PermissionsBoundary=self._policy,
                Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
            )
        except ClientError as error:
            if error_code(error) != "EntityAlreadyExists":
                raise
        created: dict[str, Any] = self._iam.get_role(RoleName=name)["Role"]
        return created

    def _trust(self) -> dict[str, Any]:
        """SageMaker alone, for this account alone: the confused deputy."""
        account = self._settings.job_roles.split(":")[4]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:SourceAccount": account}},
        }
        return {"Version": "2012-10-17", "Statement": [statement]}

    def _is_attached(self, name: str) -> bool:
        attached = self._iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        return any(policy["PolicyArn"] == self._policy for policy in attached)
