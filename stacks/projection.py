"""Rows and months that follow the ledger: the table's stream calls the function Project."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_lambda_event_sources import SqsDlq
from constructs import Construct

from stacks.machine import MachineContext

BATCH = 100
WINDOW = Duration.seconds(5)
# As long as the stream keeps its records.
TRIED_FOR = Duration.hours(24)
# Of the table's items, those that a row is made from; not the rows themselves.
CHANGES = ("workload#", "lock#")


class Projection(Construct):
    """Calls the function with the keys of what changed, until it has succeeded."""

    def __init__(self, scope: Construct, construct_id: str, *, around: MachineContext) -> None:
        super().__init__(scope, construct_id)
        lambda_.EventSourceMapping(
            self,
            "Changes",
            target=around.live["project"],
            event_source_arn=around.storage.table.table_stream_arn,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=BATCH,
            max_batching_window=WINDOW,
            filters=[
                lambda_.FilterCriteria.filter(
                    {"dynamodb": {"Keys": {"pk": {"S": lambda_.FilterRule.begins_with(prefix)}}}}
                )
                for prefix in CHANGES
            ],
            report_batch_item_failures=True,
            bisect_batch_on_error=True,
            max_record_age=TRIED_FOR,
            on_failure=SqsDlq(around.dead_letters),
        )
