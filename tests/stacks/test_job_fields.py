"""Synthesis refuses a request field that Step Functions would not pass on."""

from __future__ import annotations

import pytest

from app import default_context
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request import build
from stacks.settings import Settings, Vpc, check_job_fields


def settings(vpc: Vpc | None = None) -> Settings:
    return Settings(stage="test", region="us-east-1", vpc=vpc)


@pytest.mark.parametrize("vpc", [None, Vpc(("subnet-1",), ("sg-1",))])
def test_the_requests_of_a_deployment_have_supported_fields_only(vpc: Vpc | None) -> None:
    check_job_fields(settings(vpc))


def test_a_field_that_is_not_passed_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "network", lambda _context: {"ProfilerConfig": {"S3OutputPath": ""}})

    with pytest.raises(InvalidInputError, match="ProfilerConfig"):
        check_job_fields(settings())


def test_the_shipped_context_passes() -> None:
    check_job_fields(Settings.from_context(default_context()))
