"""Where production's schedules live, and what they may do."""

from tests.stacks.template import ACCOUNT, as_list


def roles_of(template, service):
    """(logical id, role) of every role that a service may take on."""
    return [
        (key, role)
        for key, role in template.of_type("AWS::IAM::Role").items()
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        if statement["Principal"].get("Service") == service
    ]


def scheduler_role(template):
    (found,) = roles_of(template, "scheduler.amazonaws.com")
    return found


def test_the_group_is_named_as_the_stage(template):
    group = template.one("AWS::Scheduler::ScheduleGroup")

    assert "compilegate-prod" == group["Properties"]["Name"]


def test_schedules_may_start_production_and_nothing_else(template):
    key, _ = scheduler_role(template)
    machine, _ = template.machines()["train"]

    statements = [
        template.resolve(statement)
        for policy in template.of_type("AWS::IAM::Policy").values()
        if {"Ref": key} in policy["Properties"]["Roles"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]

    assert [("Allow", ["states:StartExecution"], [f"<{machine}>"])] == [
        (one["Effect"], as_list(one["Action"]), as_list(one["Resource"])) for one in statements
    ]
    assert "ManagedPolicyArns" not in scheduler_role(template)[1]["Properties"]


def test_only_schedules_of_the_stages_group_can_take_the_role_on(template):
    _, role = scheduler_role(template)
    (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    (group,) = template.of_type("AWS::Scheduler::ScheduleGroup")

    expected = {
        "StringEquals": {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": f"<{group}.Arn>"},
    }
    assert expected == template.resolve(statement["Condition"])


def test_the_stack_owns_no_schedule_itself(template):
    assert {} == template.of_type("AWS::Scheduler::Schedule")


def test_commands_find_group_and_role_in_the_outputs(template):
    outputs = template.document["Outputs"]
    key, _ = scheduler_role(template)

    assert "compilegate-prod" == template.resolve(outputs["ScheduleGroup"]["Value"])
    assert f"<{key}.Arn>" == template.resolve(outputs["SchedulerRole"]["Value"])


def test_a_run_that_no_schedule_could_start_raises_an_alarm(template):
    (alarm,) = [
        alarm["Properties"]
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values()
        if alarm["Properties"]["Namespace"] == "AWS/Scheduler"
    ]

    assert ("InvocationDroppedCount", "Sum") == (alarm["MetricName"], alarm["Statistic"])
    assert [{"Name": "ScheduleGroup", "Value": "compilegate-prod"}] == alarm["Dimensions"]
