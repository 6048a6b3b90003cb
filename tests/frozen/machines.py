"""The two state machines over a cloud in memory, and jobs that leave what a scenario says.

Only what is public goes in and out: the events of the functions, requests as stored, the evidence
that a job leaves, and in the end every document, ledger entry and flag.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.frozen import entries
from tests.frozen.jobs import Candidate, Document, Ends, complete, job_of, output_of

NAME, TRIAL = "bert-docs", "abcd1234"
SPEC_KEY = f"workloads/{NAME}/specs/1.json"
EVALUATE = "arn:aws:states:us-east-1:111122223333:execution:compilegate-prod-evaluate:"
TRAIN = "arn:aws:states:us-east-1:111122223333:execution:compilegate-prod-train:"
JOB_HOURS = 2.0
# Of reports only the key is kept: they are pages for people.
PAGES = ("reports/", "report.")


@dataclass
class World:
    """A cloud with one workload, what its jobs end with, and all that was answered so far.

    ``ends`` begins anew for each world; ``speedup`` and ``loss`` are the candidate's.
    """

    workload: Document
    ends: Callable[[], Ends] = complete
    speedup: float = 1.4
    loss: float = 0.0
    log: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cloud, self.topic = entries.cloud(), entries.topic()
        self.end_of = self.ends()
        self.jobs = 0
        self.production_runs = 0
        self.put(SPEC_KEY, {"workload": self.workload, "source_key": f"workloads/{NAME}/s.tgz"})

    # The cloud

    def put(self, key: str, document: Document) -> None:
        self.cloud.services.store.put(key, json.dumps(document).encode())

    def get(self, key: str) -> Any:
        return json.loads(self.cloud.services.store.get(key))

    def passes(self, seconds: float) -> None:
        self.cloud.services.clock.seconds += int(seconds)

    def register(self, **changes: Any) -> None:
        document = {
            "schema": 1, "workload": NAME, "spec_key": SPEC_KEY, "source_digest": "d",
            "schedule": self.workload["schedule"].get("cron"), "active": True, **changes,
        }  # fmt: skip
        self.put(f"workloads/{NAME}/registration.json", document)

    def step(self, name: str, **event: Any) -> Any:
        """A function's answer to an event; an error that it raises is logged and raised."""
        try:
            answer = entries.step(name, event, self.cloud, self.topic)
        except Exception as error:
            self.log.append({"step": name, "raises": type(error).__name__})
            raise
        self.log.append({"step": name, "answer": answer})
        return answer

    def command(self, *arguments: str) -> Any:
        """A person's command, with what it answers."""
        answer = entries.command(*arguments, "--local", "--json", cloud=self.cloud)
        self.log.append({"command": list(arguments), **answer})
        return answer

    # EVALUATE

    def evaluate(
        self,
        trial: str = TRIAL,
        *,
        spec_key: str = SPEC_KEY,
        rounds: int = 40,
        between: Callable[[], None] | None = None,
    ) -> None:
        """A whole trial; with fewer ``rounds`` it is left there, as an execution that was stopped.

        ``between`` runs while a trial waits for production or for a person.
        """
        event = {
            "workload": NAME, "trial": trial, "spec_key": spec_key,
            "execution": f"{EVALUATE}{NAME}-{trial}",
        }  # fmt: skip
        if "refused" in self.step("acquire_lock", **event):
            return
        try:
            inner = {key: event[key] for key in ("workload", "trial", "spec_key")}
            answer = self.step("check_eligibility", **inner)
            if answer["verdict"] != "ineligible":
                answer = self.step("plan_trial", **event)
            if answer["verdict"] == "continue":
                answer = self._rounds(event, rounds, between)
            if answer is not None:
                self._apply_decision(answer["decision_key"], event, between)
        except Exception as error:  # noqa: BLE001 - the machine catches every error
            cause = json.dumps({"errorMessage": str(error), "errorType": type(error).__name__})
            self.step("abort_trial", **event, error=type(error).__name__, cause=cause)

    def _rounds(
        self, event: Document, rounds: int, between: Callable[[], None] | None
    ) -> Document | None:
        number, outcomes = 0, []
        for _ in range(rounds):
            answer: Document = self.step("judge_arms", **event, round=number, runs=outcomes)
            number, outcomes = answer["round"], []
            if answer["next_stage"] == "none":
                return answer
            if answer["next_stage"] == "canary":
                self._canary(event, answer["canary"], between)
                continue
            outcomes = [self._run(event, run, answer["runs"]) for run in answer["runs"]]
        return None

    def _canary(
        self, event: Document, canary: Document, between: Callable[[], None] | None
    ) -> None:
        token = f"token-{len(self.log)}"
        tokens = self.cloud.services.tokens
        tokens.waiting.add(token)
        self.step("open_canary", **event, **canary, token=token)
        if between is not None:
            for _ in range(12):
                if token in tokens.answers:
                    return
                between()
        self.passes(canary["timeout_seconds"])

    def _run(self, event: Document, run: Document, runs: Sequence[Document]) -> Document:
        trial = {key: event[key] for key in ("workload", "trial", "spec_key")}
        request = self.get(run["request_key"])
        name = f"{run['job_base']}-r0"
        if "Withdrawn" in request:
            return {"run": run["run"], "job": name, "status": "Stopped", "reason": None}
        described = self._train(name, request)
        ended = {**trial, "run": run["run"], "job": name}
        if described["TrainingJobStatus"] != "Completed":
            error = described.get("Error", "States.TaskFailed")
            cause = json.dumps(described, default=str)
            return self.step("on_job_ended", **ended, runs=runs, error=error, cause=cause)
        if "first_block" in request["HyperParameters"]:
            return {"run": run["run"], "job": name, "status": "Completed", "reason": None}
        return self.step("on_job_ended", **ended, runs=runs, status="Completed")

    def _apply_decision(
        self, key: str, trial: Document, between: Callable[[], None] | None
    ) -> None:
        """A decision is recorded, approved where that is needed, and applied."""
        execution = trial["execution"]
        event = {name: trial[name] for name in ("workload", "trial", "spec_key")}
        decision = {**event, "decision_key": key}
        if self.step("record_decision", **decision)["approval_needed"]:
            self.step("ask_approval", **decision, execution=execution)
            self.cloud.services.tokens.waiting.add("approval")
            self.step("await_approval", **event, token="approval")
            if between is not None:
                between()
            self.step("close_approval", **event)
        enabled = self.step("apply_flag", **decision)["enabled"]
        self.step("release_models", **decision, flag_enabled=enabled)
        self.step("write_report", **decision, flag_enabled=enabled)
        self.step("release_lock", **event, execution=execution)

    # TRAIN

    def production_run(self) -> None:
        """A scheduled production run, to its record and its review."""
        self.production_runs += 1
        self.passes(20 * 3600)
        execution = f"{TRAIN}{NAME}-{self.production_runs}"
        begun = datetime.fromtimestamp(self.cloud.services.clock.now(), tz=UTC).isoformat()
        run = self.step("begin_run", workload=NAME, execution=execution, started=begun,
                        scheduled=begun)  # fmt: skip
        attempt, waits = run["attempt"], 0
        while True:
            key = self.step("build_request", workload=NAME, run=run["run"], attempt=attempt)
            request = self.get(key["request_key"])
            name = f"{request['TrainingJobName']}-r0"
            described = self._train(name, request)
            failed = described["TrainingJobStatus"] != "Completed"
            answer = self.step(
                "record_run", workload=NAME, run=run["run"], execution=execution, attempt=attempt,
                job=name, wait_seconds=None, error="States.TaskFailed" if failed else "",
                cause=json.dumps(described, default=str) if failed else "",
            )  # fmt: skip
            attempt, waits = answer["attempt"], waits + 1
            if answer["next"] not in ("wait", "rerun") or waits > 6:
                break
            self.passes(answer["wait_seconds"] or 0)
        if answer["next"] in ("review", "failed"):
            self.step("review_production", workload=NAME, run=run["run"], execution=execution)

    # Jobs

    def _train(self, name: str, request: Document) -> Document:
        job, self.jobs = job_of(request, self.jobs), self.jobs + 1
        ended = {"output": {}, **self.end_of(job)}
        output = ended.pop("output")
        now = self.cloud.services.clock.now()
        seconds = int(ended.pop("hours", JOB_HOURS) * 3600)
        described = {
            **request, "TrainingJobName": name, "TrainingJobStatus": "Completed",
            "TrainingJobArn": f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}",
            "SecondaryStatus": "Completed", "CreationTime": datetime.fromtimestamp(now, tz=UTC),
            "TrainingStartTime": datetime.fromtimestamp(now, tz=UTC),
            "TrainingEndTime": datetime.fromtimestamp(now + seconds, tz=UTC),
            "BillableTimeInSeconds": seconds, **ended,
        }  # fmt: skip
        self.passes(seconds)
        self.cloud.services.jobs.descriptions[name] = described
        if output is not None:
            place = request["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://data/")
            quality = self.workload["quality"]
            real = Candidate(self.speedup, self.loss, quality["metric"], quality["goal"])
            body = output_of(job, real, output)
            self.cloud.services.store.put(f"{place}/{name}/output/output.tar.gz", body)
        return described

    # The end

    def state(self) -> Document:
        """All that was answered, and all that is stored."""
        return {"log": self.log, **entries.stored_in(self.cloud, self.topic, PAGES)}
