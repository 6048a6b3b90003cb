"""The EVALUATE machine as deployed."""

from __future__ import annotations

from constructs import Construct

from stacks.evaluate.definition import definition
from stacks.machine import Surroundings, TrainingMachine
from stacks.permissions import REQUESTS


class Evaluate(TrainingMachine):
    """``machine`` runs trials; an execution that ends badly is cleaned up after."""

    def __init__(self, scope: Construct, construct_id: str, *, around: Surroundings) -> None:
        bucket, topic = around.storage.bucket, around.topic
        super().__init__(
            scope,
            construct_id,
            around=around,
            document=definition(around.arns, bucket=bucket.bucket_name, topic_arn=topic.topic_arn),
            requests=REQUESTS,
            clean_up=around.live["abort_trial"],
            what="a trial",
        )
