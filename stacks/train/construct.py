"""The TRAIN machine as deployed, and the event that starts it for a team's own job."""

from __future__ import annotations

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from compilegate.domain import naming
from stacks.machine import Surroundings, TrainingMachine
from stacks.permissions import PRODUCTION_REQUESTS
from stacks.train.definition import definition

# A job that has not ended says nothing yet.
ENDED = ("Completed", "Failed", "Stopped")


class Train(TrainingMachine):
    """``machine`` makes production runs, and records those that teams make themselves."""

    def __init__(self, scope: Construct, construct_id: str, *, around: Surroundings) -> None:
        bucket, topic = around.storage.bucket, around.topic
        super().__init__(
            scope,
            construct_id,
            around=around,
            document=definition(around.arns, bucket=bucket.bucket_name, topic_arn=topic.topic_arn),
            requests=PRODUCTION_REQUESTS,
            clean_up=around.live["record_run"],
            what="a production run",
        )
        events.Rule(
            self,
            "TeamJobEnded",
            description="Records a training job that a team's own pipeline has started",
            event_pattern=events.EventPattern(
                source=["aws.sagemaker"],
                detail_type=["SageMaker Training Job State Change"],
                detail={
                    "TrainingJobStatus": list(ENDED),
                    # Not the jobs of this machine, which records them itself.
                    "Tags": {
                        naming.TAG_STAGE: [naming.TEAM_STAGE],
                        # Without it nobody knows whose run it is.
                        naming.TAG_WORKLOAD: [{"exists": True}],
                    },
                },
            ),
            targets=[targets.SfnStateMachine(self.machine, dead_letter_queue=around.dead_letters)],
        )
