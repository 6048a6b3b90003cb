"""A production run at one moment, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.trials.view import JobView, TrialView, read_job
from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.attempts import Attempt, attempt_number, attempt_of
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job import RunJobs
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import BegunRun, ProductionRun
from compilegate.usecases.production.build_request import jobs_of, load_begun
from compilegate.usecases.records import Trial


@dataclass(frozen=True)
class RunView(TrialView):
    """One production run; ``begun`` is None until its arm is chosen.

    ``past`` are its ledger entries, ``review`` is the judge's review after it.
    """

    begun: BegunRun | None = None
    past: WorkloadHistory = field(default_factory=WorkloadHistory)
    review: Review | None = None

    @property
    def runs(self) -> Sequence[ProductionRun]:
        """Its jobs that have ended."""
        return self.past.runs

    @property
    def stage(self) -> str:
        """What happens now, in two or three words."""
        if not self.state.running:
            return "done" if self.state.succeeded else self.state.status.lower()
        if self.begun is None:
            return "reading the flag"
        if any(job.active for job in self.jobs):
            return "training"
        if self.runs:
            return "recording"
        return "waits for machines" if self.jobs else "building the job"


class RunWatcher:
    """Reads one production run again and again."""

    def __init__(self, workload: str, run: str, arn: str, cloud: Cloud) -> None:
        self.run, self.arn = Trial(workload, run, ""), arn
        self._cloud = cloud
        self._begun: BegunRun | None = None
        self._builder: RunJobs | None = None
        self._jobs: dict[str, JobView] = {}

    def read(self) -> RunView:
        """The run as it is now."""
        # The execution first, so that what its last step wrote is read after it.
        state = self._cloud.with_production().executions.describe(self.arn)
        self._begun = self._begun or self._read_begun()
        if self._begun is not None:
            self._read_jobs()
        jobs = tuple(self._jobs.values())
        return RunView(
            trial=self.run,
            state=state,
            arms=tuple(dict.fromkeys(str(job.arm) for job in jobs)),
            jobs=jobs,
            begun=self._begun,
            past=self._past(ledger_keys.run_entries(self.run.trial)),
            review=self._past(ledger_keys.watch_entry(self.run.trial)).review_of(self.run.trial),
        )

    def _past(self, prefix: str) -> WorkloadHistory:
        return self._cloud.services.ledger.history(self.run.workload, prefix)

    def _read_begun(self) -> BegunRun | None:
        try:
            return load_begun(self.run.workload, self.run.trial, self._cloud.services.ledger)
        except NotFoundError:
            return None

    def _read_jobs(self) -> None:
        prefix = naming.trial_job_prefix(self.run.workload, self.run.trial)
        listed = self._cloud.watch.names(prefix)
        for name in naming.own_jobs(self.run.workload, self.run.trial, listed):
            previous = self._jobs.get(name)
            if previous is None or previous.active:
                job = read_job(name, previous, self._cloud)
                self._jobs[name] = self._placed(job, name.removeprefix(prefix))

    def _placed(self, job: JobView, run: str) -> JobView:
        """The job with its arm and price, once the ledger has them."""
        begun = self._begun
        if begun is None:
            return job
        waits = self._past(ledger_keys.wait_entries(self.run.trial)).waits
        attempt = attempt_of(attempt_number(job.name), waits)
        return replace(
            job,
            run=run.rpartition("-r")[0],
            arm=attempt.arm(begun),
            usd_per_hour=self._price(begun, attempt),
        )

    def _price(self, begun: BegunRun, attempt: Attempt) -> float | None:
        try:
            self._builder = self._builder or jobs_of(begun, self._cloud.services)
            return self._builder.usd_per_hour(begun, attempt)
        except (InvalidInputError, NotFoundError):
            return None
