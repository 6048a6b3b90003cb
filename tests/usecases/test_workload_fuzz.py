"""However a workload file is broken it is refused in one message; what is read can be planned."""

from __future__ import annotations

import contextlib
import io
import json
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from compilegate.cli.check import Totals, line, show_eligibility, show_totals
from compilegate.cli.plan import examples, show_plan
from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.plan import Plan
from compilegate.domain.service_limits import problems
from compilegate.domain.workload.model import Workload
from compilegate.facts import read
from compilegate.ports import Settings
from compilegate.usecases.planning import plan_for
from compilegate.usecases.records import read_document
from compilegate.usecases.registered import facts_for_workload
from tests.domain.workload_strategies import FULL, faulty, sound
from tests.fuzzing import at_most

SCREEN = Console(width=80, file=io.StringIO())

LONGEST_MESSAGE = 700
REGIONS = ("us-east-1", "eu-south-2", "cn-north-1", "us-gov-west-1", "xx-nowhere-9")
ROLE = "arn:aws:iam::123456789012:role/training-role"
much = at_most(120)


@cache
def create_training_job() -> Any:
    model = botocore.session.get_session().get_service_model("sagemaker")
    return model.operation_model("CreateTrainingJob").input_shape


def read_or_refused(document: Any) -> Workload | None:
    """None where it is refused as it should be; any other exception is a failure."""
    try:
        return read_document(document)
    except InvalidInputError as error:
        for one in error.each:
            message = str(one)
            assert one.field
            assert one.fix
            assert message.isprintable()
            assert len(message) < LONGEST_MESSAGE
        return None


def check_and_plan(workload: Workload, region: str) -> Plan | None:
    """Every request of the plan is one that SageMaker would take."""
    deployment = Settings(stage="prod", region=region, job_roles=ROLE)
    facts = facts_for_workload(workload, deployment)
    json.dumps(check_eligibility(workload, facts, region=region).to_dict(), allow_nan=False)
    plan = plan_for(workload, deployment)
    if not isinstance(plan, Plan):
        return None
    json.dumps(plan.to_dict(), allow_nan=False)
    for request in examples(workload, plan):
        assert [] == [str(problem) for problem in problems(request, read("create_training_job"))]
        assert "" == ParamValidator().validate(request, create_training_job()).generate_report()
    return plan


def test_the_document_that_faults_are_put_into_is_sound() -> None:
    assert read_or_refused(FULL) is not None


@given(document=faulty())
@much
def test_a_faulty_document_is_refused_or_can_be_checked_and_planned(document: Any) -> None:
    workload = read_or_refused(document)
    if workload is not None:
        check_and_plan(workload, REGIONS[0])


@given(document=sound(), region=st.sampled_from(REGIONS))
@much
def test_whatever_is_read_can_be_checked_and_planned(document: Any, region: str) -> None:
    workload = read_or_refused(document)
    if workload is not None:
        check_and_plan(workload, region)


@given(document=sound())
@at_most(60)
def test_whatever_is_read_can_be_shown(document: Any) -> None:
    workload = read_or_refused(document)
    if workload is None:
        return
    deployment = Settings(stage="prod", region=REGIONS[0], job_roles=ROLE)
    facts = facts_for_workload(workload, deployment)
    eligibility = check_eligibility(workload, facts, region=REGIONS[0])
    plan = plan_for(workload, deployment)
    totals = Totals()
    totals.add(eligibility)

    with contextlib.redirect_stdout(io.StringIO()) as shown:
        show_eligibility(eligibility)
        show_totals(totals)
        if isinstance(plan, Plan):
            show_plan(plan, workload, explain=True)

    assert workload.name in shown.getvalue()
    lines = line(eligibility, SCREEN).splitlines()
    assert max(map(len, lines)) <= max(SCREEN.width, len(workload.name) + SCREEN.width // 2)


@given(document=sound())
@much
def test_what_is_read_is_read_back_as_itself(document: Any) -> None:
    workload = read_or_refused(document)
    if workload is not None:
        assert workload == read_document(json.loads(json.dumps(workload.to_dict())))
