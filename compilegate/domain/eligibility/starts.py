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
        yield warn("starts_from_previous", FIELD, source=WORKLOAD_FILE)
    elif keeps_lines(training):
        yield info("starts_from_own_line", FIELD, source=WORKLOAD_FILE)
    elif training.starts_from is None:
        unsaid = next(earlier_models(training), None)
        if unsaid is not None:
            yield warn("start_unsaid", unsaid, source=WORKLOAD_FILE, unsaid=unsaid)
