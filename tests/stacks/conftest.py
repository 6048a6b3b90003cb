"""The template, synthesised once for all tests that read it."""

import pytest

import app
from tests.stacks.template import load, shipped_assembly

# Test modules import constructs, which starts the CDK's kernel as they are collected.
app.use_packaged_node()

REGISTRY = "210987654321.dkr.ecr.us-east-1.amazonaws.com"
OWN_IMAGES = [
    {"framework": "pytorch", "version": "2.8.0", "uri": f"{REGISTRY}/team/train:2.8"},
    {"framework": "pytorch", "version": "2.9.0", "uri": f"{REGISTRY}/train@sha256:{'0' * 64}"},
]
VPC = {"subnet_ids": ["subnet-1a"], "security_group_ids": ["sg-2b"]}


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory):
    """Makes a cloud assembly; the CDK's kernel starts once and serves all of them."""

    def make(**changes):
        folder = tmp_path_factory.mktemp("assembly")
        app.synthesise({**app.default_context(), **changes}, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def assembly():
    return shipped_assembly()


@pytest.fixture(scope="session")
def template(assembly):
    return load(assembly)


@pytest.fixture(scope="session")
def changed(synthesise):
    """The template with every optional setting in use."""
    return load(synthesise(
        bucket_name="my-data", input_buckets=["corpus"], image_overrides=OWN_IMAGES, vpc=VPC,
        notification_email="team@example.com", owner_emails={"ml-platform": "ml@example.com"},
        slack={"workspace_id": "T01ABC", "channel_id": "C02DEF"}, log_retention_days=14,
        experiment_retention_days=7, training_log_retention_days=30, monthly_budget_usd=5000.5,
    ))  # fmt: skip
