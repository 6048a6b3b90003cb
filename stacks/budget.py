"""A monthly budget for training jobs, where the deployment sets an amount.

The tag must be activated for cost allocation in the billing console of the account that pays;
until then the budget counts nothing (docs/operating.md).
"""

from __future__ import annotations

from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_sns as sns
from constructs import Construct

from compilegate.domain import naming
from stacks.notifications import may_publish
from stacks.storage import Storage

SERVICE = "budgets.amazonaws.com"
PERCENT = 100
# Already spent, and projected from the month so far.
KINDS = ("ACTUAL", "FORECASTED")


class Budget(Construct):
    """Notifies ``topic`` when the month's training jobs cost, or will cost, more than ``usd``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        usd: float,
        stage: str,
        topic: sns.Topic,
        storage: Storage,
    ) -> None:
        super().__init__(scope, construct_id)
        # https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-sns-policy.html
        storage.let_publish(SERVICE)
        topic.add_to_resource_policy(may_publish("BudgetsMayPublish", SERVICE, topic))
        subscriber = budgets.CfnBudget.SubscriberProperty(
            address=topic.topic_arn, subscription_type="SNS"
        )
        budgets.CfnBudget(
            self,
            "Monthly",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=naming.stack_name(stage),
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=usd, unit="USD"),
                # Jobs that state machines start; their tags do not name the deployment.
                cost_filters={
                    "TagKeyValue": [
                        f"user:{naming.TAG_STAGE}${stage}" for stage in naming.OWN_JOB_STAGES
                    ]
                },
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN",
                        notification_type=kind,
                        threshold=PERCENT,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[subscriber],
                )
                for kind in KINDS
            ],
        )
