"""A monthly budget for training jobs, by one setting."""

from tests.stacks.template import as_list


def test_there_is_none_unless_asked_for(template):
    assert {} == template.of_type("AWS::Budgets::Budget")


def test_it_counts_jobs_that_state_machines_start(changed):
    budget = changed.one("AWS::Budgets::Budget")["Properties"]["Budget"]

    assert {"Amount": 5000.5, "Unit": "USD"} == budget["BudgetLimit"]
    assert ("COST", "MONTHLY") == (budget["BudgetType"], budget["TimeUnit"])
    stages = ("speed", "quality", "production")  # not a team's own jobs
    tags = [f"user:compilegate:stage${stage}" for stage in stages]
    assert {"TagKeyValue": tags} == budget["CostFilters"]


def test_it_tells_the_topic_of_what_is_spent_and_of_what_will_be(changed):
    (topic,) = changed.of_type("AWS::SNS::Topic")
    found = changed.one("AWS::Budgets::Budget")["Properties"]["NotificationsWithSubscribers"]

    assert ["ACTUAL", "FORECASTED"] == [item["Notification"]["NotificationType"] for item in found]
    for item in found:
        assert [{"Address": {"Ref": topic}, "SubscriptionType": "SNS"}] == item["Subscribers"]


def test_budgets_may_publish_to_the_encrypted_topic(changed):
    service = "budgets.amazonaws.com"
    topic = changed.one("AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    key = changed.one("AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]

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
