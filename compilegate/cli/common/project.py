"""What the project's ``cdk.json`` says about deployments, read without the CDK."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilegate.domain.deployment_settings import REGION
from compilegate.domain.deployment_settings import Settings as Deployment
from compilegate.domain.errors import InvalidInputError
from compilegate.place import INSTALLED, PROJECT
from compilegate.ports import Settings

# Stand in for what a deployment's stack would fill in.
UNKNOWN_ROLE = "arn:aws:iam::000000000000:role/training-role"
UNKNOWN_BUCKET = "data-bucket"
# What `app` of a cdk.json names that deploys from an installed package.
OWN_APP = "compilegate"
# Contexts where no file describes a deployment: for what is computed here, and for the app.
ANYWHERE: Mapping[str, Any] = {"region": "us-east-1"}
NOTHING: Mapping[str, Any] = {}


def deployment(*folders: Path) -> Deployment:
    """What the ``cdk.json`` of the folders describes: the working one's, else the checkout's."""
    return Deployment.from_context(own_context(*folders, otherwise=ANYWHERE))


def own_context(*folders: Path, otherwise: Mapping[str, Any] = NOTHING) -> Mapping[str, Any]:
    """The context of the ``cdk.json`` that describes the deployment, where there is one."""
    for folder in folders or (Path.cwd(), PROJECT):
        file = folder / "cdk.json"
        if file.is_file():
            try:
                document = json.loads(file.read_text(encoding="utf-8"))
                context: dict[str, Any] = document.get("context", {})
                app = document.get("app", "")
            except (ValueError, AttributeError) as error:
                raise InvalidInputError(
                    f"is not a CDK file: {error}", file=str(file), fix="restore it"
                ) from error
            if not INSTALLED or folder == PROJECT or OWN_APP in app:
                return context
            # Otherwise an app of the team's own.
    return otherwise


def stage_name(option: str | None) -> str:
    """The requested stage, else the one that ``cdk.json`` names."""
    return option or deployment().stage


def region() -> str:
    """The environment's region, else the one that ``cdk.json`` deploys to."""
    return (
        os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or deployment().region
    )


def checked_region() -> str:
    """As ``region``; raises InvalidInputError for a name that no region has."""
    name = region()
    if not REGION.fullmatch(name):
        variable = "AWS_REGION" if os.environ.get("AWS_REGION") else "AWS_DEFAULT_REGION"
        raise InvalidInputError(
            "is not an AWS region", field=variable, value=name,
            fix=f"set it to one such as us-east-1, or unset it to use cdk.json's "
            f"{deployment().region}",
        )  # fmt: skip
    return name


def settings(region_option: str | None = None) -> Settings:
    """Settings for what is computed on this machine alone: check and plan."""
    if region_option is not None and not REGION.fullmatch(region_option):
        raise InvalidInputError(
            "is not an AWS region", field="--region", value=region_option,
            fix="write one such as us-east-1",
        )  # fmt: skip
    deployed = deployment()
    return Settings(
        stage=deployed.stage,
        region=region_option or region(),
        job_roles=UNKNOWN_ROLE,
        facts=deployed.facts,
        tags=deployed.tags,
        rules=deployed.jobs,
    )
