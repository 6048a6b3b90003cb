"""One CloudWatch dashboard: what runs, what it costs, what it saves, what went wrong.

Executions come from Step Functions. Figures that only the ledger knows are written once a day by
the sweep, each about the 24 hours before, and shown as the maximum of a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from compilegate.domain import arithmetic, naming
from compilegate.domain.decision import Verdict
from compilegate.domain.production.summaries import FAILED
from stacks.notifications import Watched

HOUR, DAY = Duration.hours(1), Duration.days(1)
WIDTH, HEIGHT = 12, 6
# How a trial can end.
ENDS = (*(str(verdict) for verdict in Verdict if verdict is not Verdict.CONTINUE), FAILED)


class Dashboard(Construct):
    """Named as the stack, so that people find it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: str, watched: Watched
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        cloudwatch.Dashboard(
            self,
            "Overview",
            dashboard_name=naming.stack_name(stage),
            default_interval=Duration.days(30),
            widgets=[
                [
                    _graph("Trials started and ended", _executions(watched.evaluate)),
                    _graph(
                        "Decisions by verdict, per day",
                        [
                            self._daily(arithmetic.DECISIONS, end, {arithmetic.VERDICT: end})
                            for end in ENDS
                        ],
                    ),
                ],
                [
                    _graph("Production runs started and ended", _executions(watched.train)),
                    _graph(
                        "Production runs, per day",
                        [
                            self._daily(arithmetic.PRODUCTION_RUNS, "ended"),
                            self._daily(arithmetic.WAITED_RUNS, "waited for capacity"),
                            self._daily(arithmetic.FAILED_RUNS, "failed"),
                        ],
                    ),
                ],
                [
                    _graph(
                        "Spend, USD per day",
                        [
                            self._daily(arithmetic.TRIAL_USD, "trials"),
                            self._daily(arithmetic.PRODUCTION_USD, "production runs"),
                        ],
                    ),
                    _graph("Savings, USD per day", [self._daily(arithmetic.SAVED_USD, "saved")]),
                ],
                [
                    _graph("Flags on", [self._daily(arithmetic.FLAGS_ON, "workloads")]),
                    _graph("Failures", self._failures(watched)),
                ],
            ],
        )

    def _failures(self, watched: Watched) -> list[cloudwatch.IMetric]:
        errors = cloudwatch.MathExpression(
            # A function that nothing called in an hour has no figure for it.
            expression=" + ".join(f"FILL(e{n}, 0)" for n in range(len(watched.functions))),
            using_metrics={
                f"e{number}": function.metric_errors(period=HOUR)
                for number, function in enumerate(watched.functions.values())
            },
            label="function errors",
            period=HOUR,
        )
        problems = cloudwatch.Metric(
            namespace=arithmetic.NAMESPACE,
            metric_name=arithmetic.FLAG_PROBLEMS,
            dimensions_map={arithmetic.STAGE: self._stage},
            statistic="Sum",
            period=HOUR,
            label="flags not followed",
        )
        return [errors, problems, watched.dropped_schedules, watched.dead_letters]

    def _daily(
        self, name: str, label: str, dimensions: Mapping[str, str] | None = None
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=arithmetic.NAMESPACE,
            metric_name=name,
            dimensions_map={arithmetic.STAGE: self._stage, **(dimensions or {})},
            statistic="Maximum",
            period=DAY,
            label=label,
        )


def _executions(machine: sfn.StateMachine) -> list[cloudwatch.IMetric]:
    return [
        machine.metric_started(period=HOUR, label="started"),
        machine.metric_succeeded(period=HOUR, label="succeeded"),
        machine.metric_failed(period=HOUR, label="failed"),
        machine.metric_timed_out(period=HOUR, label="timed out"),
        machine.metric_aborted(period=HOUR, label="stopped"),
    ]


def _graph(title: str, left: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    axis = cloudwatch.YAxisProps(show_units=False)
    return cloudwatch.GraphWidget(
        title=title, left=left, width=WIDTH, height=HEIGHT, left_y_axis=axis
    )
