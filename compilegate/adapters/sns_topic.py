"""The topic that people and programs subscribe to."""

from __future__ import annotations

from typing import Any

from compilegate.domain.notification import Notification


class SnsTopic:
    """Topic on SNS."""

    def __init__(self, sns: Any, arn: str) -> None:
        self._sns = sns
        self._arn = arn

    def publish(self, notification: Notification) -> None:
        """Send one message, to each kind of subscriber in its own words."""
        self._sns.publish(
            TopicArn=self._arn,
            Subject=notification.line,
            Message=notification.envelope(),
            MessageStructure="json",
            MessageAttributes=notification.attributes(),
        )
