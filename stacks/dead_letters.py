"""Where events and asynchronous calls end up that could not be delivered or handled."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

PERIOD = Duration.minutes(5)
# The longest that SQS keeps a message.
RETENTION = Duration.days(14)


class DeadLetters(Construct):
    """``queue`` takes what no target received and what a function failed on after its retries.

    Encrypted with a key of SQS: EventBridge may then write to it without a grant on a key.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
        )

    def waiting(self) -> cloudwatch.IMetric:
        """How many messages nobody has taken out yet."""
        return self.queue.metric_approximate_number_of_messages_visible(
            period=PERIOD, statistic="Maximum"
        )
