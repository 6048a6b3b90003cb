"""A monthly budget for training jobs, by one setting."""

import pytest

from tests.stacks.conftest import load
from tests.stacks.template import as_list


@pytest.fixture(scope="module")
def budgeted(synthesise):
    return load(synthesise(monthly_budget_usd=1500.5))


def test_there_is_none_unless_asked_for(template):
    assert {} == template.of_type("AWS::Budgets::Budget")


def test_it_counts_jobs_that_state_machines_start(budgeted):
    budget = budgeted.one("AWS::Budgets::Budget")["Properties"]["Budget"]

    assert {"Amount": 1500.5, "Unit": "USD"} == budget["BudgetLimit"]
    assert ("COST", "MONTHLY") == (budget["BudgetType"], budget["TimeUnit"])
    stages = ("speed", "quality", "production")  # not a team's own jobs
    tags = [f"user:compilegate:stage${stage}" for stage in stages]
    assert {"TagKeyValue": tags} == budget["CostFilters"]


def test_it_tells_the_topic_of_what_is_spent_and_of_what_will_be(budgeted):
    (topic,) = budgeted.of_type("AWS::SNS::Topic")
    found = budgeted.one("AWS::Budgets::Budget")["Properties"]["NotificationsWithSubscribers"]

    assert ["ACTUAL", "FORECASTED"] == [item["Notification"]["NotificationType"] for item in found]
    for item in found:
        assert [{"Address": {"Ref": topic}, "SubscriptionType": "SNS"}] == item["Subscribers"]


def test_budgets_may_publish_to_the_encrypted_topic(budgeted):
    service = "budgets.amazonaws.com"
    topic = budgeted.one("AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    key = budgeted.one("AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]

    assert ["sns:Publish"] == granted(topic, service)
    assert ["kms:Decrypt", "kms:GenerateDataKey*"] == granted(key, service)


def granted(statements, service):
    """Actions that a service of this account alone may do."""
    return [
        action
        for statement in statements
        if statement["Effect"] == "Allow"
        and service in as_list(statement["Principal"].get("Service"))
        and {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        == statement["Condition"]["StringEquals"]
        for action in as_list(statement["Action"])
    ]
