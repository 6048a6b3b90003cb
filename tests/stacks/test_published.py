"""What AWS's own code and data say of the template: the CDK, and the service authorization data."""

import json
import re
from pathlib import Path

import cfnlint
from aws_cdk import App, Stack, aws_iam, aws_scheduler, aws_stepfunctions

from compilegate.adapters.state_machines import SCHEDULED_TIME
from tests.stacks.template import as_list

AUTHORIZATION = Path(cfnlint.__file__).parent / "data" / "AdditionalSpecs" / "Policies.json"
POLICIES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
# The CDK allows it by the machine's ARN anyway (below).
KNOWS_NO_RESOURCE = {"states:SendTaskSuccess"}


def statements(template):
    documents = [one["PolicyDocument"] for kind in POLICIES for one in template.properties(kind)]
    roles = template.properties("AWS::IAM::Role")
    documents += [one["PolicyDocument"] for role in roles for one in role.get("Policies", [])]
    for document in documents:
        yield from document["Statement"]


def wrong(action, resources, published):
    """What the authorization data has against an action with these resources."""
    service, name = action.lower().split(":")
    known = published[service]
    actions = [one for one in known["Actions"] if re.fullmatch(name.replace("*", ".*"), one)]
    if not actions:
        yield f"{action} does not exist"
    for one in actions:
        kinds = known["Actions"][one].get("Resources")
        forms = [form for kind in kinds or () for form in known["Resources"][kind]["ARNFormats"]]
        for resource in resources:
            if resource != "*" and not any(fits(resource, form) for form in forms):
                yield f"{action} does not take {resource}"


def fits(resource, form):
    """Whether an ARN is of the form's service and kind; unknown before a deployment is ``<…>``."""
    if resource.startswith("<"):
        return True
    ours, published = resource.split(":", 5), form.split(":", 5)
    kind = re.split(r"[$.*]", published[5])[0]
    return ours[2] == published[2] and ours[5].startswith(kind)


def test_every_action_exists_and_takes_the_resources_of_its_policy(template, changed):
    published = json.loads(AUTHORIZATION.read_text())
    every = [*statements(template), *statements(changed)]
    said = {
        text
        for one in every
        for action in as_list(one["Action"])
        if action not in KNOWS_NO_RESOURCE
        for text in wrong(action, as_list(one["Resource"]), published)
    }

    assert len(every) > 100
    assert set() == said


def test_the_cdk_allows_an_answer_by_the_machines_arn():
    app = App(analytics_reporting=False)
    stack = Stack(app, "Answers")
    machine = aws_stepfunctions.StateMachine(
        stack, "Machine",
        definition_body=aws_stepfunctions.DefinitionBody.from_string('{"StartAt": "a"}'),
    )  # fmt: skip
    person = aws_iam.Role(stack, "Person", assumed_by=aws_iam.AccountRootPrincipal())
    machine.grant_task_response(person)
    resources = app.synth().get_stack_by_name("Answers").template["Resources"]
    (allowed,) = (
        one
        for resource in resources.values()
        for one in resource["Properties"].get("PolicyDocument", {}).get("Statement", ())
        if "states:SendTaskSuccess" in one["Action"]
    )
    (name,) = (key for key, one in resources.items() if one["Type"].endswith("::StateMachine"))

    assert {"Ref": name} == allowed["Resource"]


def test_the_cdk_writes_the_time_of_a_schedule_as_we_do():
    documented = aws_scheduler.ContextAttribute.__dict__["scheduled_time"]
    text = str(documented.fget.__doc__ if hasattr(documented, "fget") else documented.__doc__)

    assert SCHEDULED_TIME == aws_scheduler.ContextAttribute.scheduled_time
    assert re.search(r"for example, \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
