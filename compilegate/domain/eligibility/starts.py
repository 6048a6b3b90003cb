"""Is it said what a run starts from, and what does it mean for a trial?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE
from compilegate.domain.reasons import Reason, info, warn
from compilegate.domain.workload.model import PREVIOUS, Workload
from compilegate.domain.workload.starts import earlier_models, keeps_lines

FIELD = "training.starts_from"


def start_rule(workload: Workload) -> Iterator[Reason]:
    """Runs that go on from earlier ones are no independent trials of a candidate."""
    training = workload.training
    if training.starts_from == PREVIOUS:
        yield warn(
            "starts_from_previous", FIELD,
            "a run starts from the last run's model: a trial makes all of its full runs itself, "
            "each from the same model, and measures what one run loses, not what adds up over "
            "many",
            fix="let each arm continue from its own last model (COMPILEGATE_ARM names it) and say "
            "own_line, or watch the metric over more runs: policy.probation_runs",
            source=WORKLOAD_FILE,
        )  # fmt: skip
    elif keeps_lines(training):
        yield info(
            "starts_from_own_line", FIELD,
            "each arm continues from its own last model: its runs resemble each other, so fewer of "
            "them are independent than are counted",
            fix="policy.quality_runs: shadow makes runs that do not depend on each other",
            source=WORKLOAD_FILE,
        )  # fmt: skip
    elif training.starts_from is None:
        unsaid = next(earlier_models(training), None)
        if unsaid is not None:
            yield warn(
                "start_unsaid", unsaid,
                f"{unsaid} may hold an earlier run's model, and nothing says whether it does: "
                "until then a trial makes all of its full runs itself",
                fix="training.starts_from: scratch, if every run starts from the same weights, "
                "else previous or own_line",
                source=WORKLOAD_FILE,
            )  # fmt: skip
