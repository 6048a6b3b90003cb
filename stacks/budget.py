"""A monthly budget for training jobs, where the deployment sets an amount.

The tag must be activated for cost allocation in the billing console of the account that pays;
until then the budget counts nothing (docs/operating.md).
"""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from compilegate.domain import naming
from stacks.storage import Storage

PERCENT = 100
# Spent already, and going by the month so far.
KINDS = ("ACTUAL", "FORECASTED")


class Budget(Construct):
    """Tells ``topic`` when the month's training jobs cost, or will cost, more than ``usd``."""

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
        _let_publish(topic, storage)
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
                cost_filters={"TagKeyValue": list(_own_jobs())},
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


def _own_jobs() -> tuple[str, ...]:
    """Jobs that state machines start; of which deployment, their tags do not say."""
    return tuple(f"user:{naming.TAG_STAGE}${stage}" for stage in naming.OWN_JOB_STAGES)


def _let_publish(topic: sns.Topic, storage: Storage) -> None:
    """https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-sns-policy.html"""
    budgets_service = iam.ServicePrincipal("budgets.amazonaws.com")
    own = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="BudgetsMayPublish",
            principals=[budgets_service],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions=own,
        )
    )
    storage.key.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[budgets_service],
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            resources=["*"],
            conditions=own,
        )
    )
