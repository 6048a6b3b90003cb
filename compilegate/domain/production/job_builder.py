"""What the decisions about a production run ask of the builder of its jobs."""

from __future__ import annotations

from typing import Protocol

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.fingerprint import Fingerprint
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.runs import BegunRun


class JobBuilder(Protocol):
    """Of one deployment; ``RunJobs`` (domain/production/job.py) answers."""

    @property
    def trained(self) -> TrainedJob:
        """What the run trains."""
        ...

    @property
    def longest_seconds(self) -> float:
        """The longest that a run takes: all its attempts and all waiting."""
        ...

    def problem(self, begun: BegunRun, attempt: Attempt) -> InvalidInputError | None:
        """Why the attempt's job cannot be built, None where it can."""
        ...

    def usd_per_hour(self, begun: BegunRun, attempt: Attempt) -> float | None:
        """Price of the attempt's cluster; None where the arm cannot be planned any more."""
        ...

    def fingerprint(self, promotion: Promotion) -> Fingerprint:
        """What the promoted arm's request says; empty where it cannot be planned."""
        ...
