"""Prepares and runs a verification: one job after the other, so that a quota of one is enough."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.job_outputs import read_output
from compilegate.adapters.sagemaker import IamJobRoles
from compilegate.adapters.state_machines import ExecutionState, StepFunctionsExecutions
from compilegate.adapters.stores import S3Store
from compilegate.adapters.wiring import settings_from
from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.facts import Price
from compilegate.domain.failures import IN_PROGRESS
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.workload.file import parse_workload
from compilegate.ports import Services, Settings
from compilegate.usecases.job_requests import job_site
from compilegate.usecases.records import facts_for_workload
from compilegate.usecases.registration import Shipment, upload
from tools.verify_aws import jobs
from tools.verify_aws.account import Account
from tools.verify_aws.checks import TASK_OUTPUT
from tools.verify_aws.jobs import WORKLOAD, PlannedJob
from tools.verify_aws.observed import Job, JobKind, Observations, RefusedKind
from tools.verify_aws.temporary import clean_up, stack_name, template

REPORT = "compilegate-probe "
MACHINE, TOKEN_MACHINE = "Machine", "TokenMachine"  # outputs of the temporary stack
# Facts are looked up by workload; prices do not depend on its type.
ANY_TYPE = "ml.m5.xlarge"
RETRY_SUFFIX = "-r0"  # the temporary machine never retries


@dataclass(frozen=True)
class Pace:
    """How long to wait, in seconds.

    ``limited`` is the limit of the job that is to reach it: its script has to start before that,
    and whether the limit counts from there or from the download of the image is not documented.
    """

    limited: int = 300
    job: float = 2400.0
    copy: float = 300.0
    message: float = 150.0
    stop: float = 300.0


@dataclass
class Verification:
    """One verification; ``clean_up`` after ``run``, also after an error.

    ``role_arn`` is the deployed trial machine's own role, ``roles`` makes ``job_role``, that of its
    jobs, ``definitions`` are the deployed machines' definitions by name. ``quota`` is the account's
    for the jobs' instance type, ``over_quota_type`` a type whose quota is 0; None where there is
    none.
    """

    account: Account
    store: S3Store
    role_arn: str
    roles: IamJobRoles
    job_role: str
    trial: str
    shipment: Shipment
    jobs: Sequence[PlannedJob]
    pace: Pace = field(default_factory=Pace)
    definitions: Mapping[str, str] = field(default_factory=dict)
    quota: int | None = None
    over_quota_type: str | None = None
    say: Callable[[str], None] = print
    _messages: list[Mapping[str, Any]] = field(default_factory=list)
    _machines: dict[str, StepFunctionsExecutions] = field(default_factory=dict)
    _queue: str = ""

    def run(self) -> Observations:
        """Start everything, wait for it, and return what was seen."""
        self.say("Uploading scripts, creating the temporary stack …")
        upload(self.shipment, self.store)
        self.roles.ensure(WORKLOAD)  # before the stack: until that is made, the role has settled
        outputs = self.account.create_stack(
            stack_name(self.trial),
            template(trial=self.trial, bucket=self.store.bucket, role_arn=self.role_arn),
        )
        self._queue = outputs["Queue"]
        for name in (MACHINE, TOKEN_MACHINE):
            self._machines[name] = self.account.executions(outputs[name])
        jobs = {job.kind: self._run_job(job) for job in self.jobs}
        if JobKind.QUALITY in jobs and jobs[JobKind.QUALITY].described:
            jobs[JobKind.QUALITY] = self._discovered(jobs[JobKind.QUALITY])
        refused = dict(self._refusals())
        task_output = self._task_token()
        self._collect_messages()
        definitions = {name: self.account.validate(text) for name, text in self.definitions.items()}
        return Observations(
            jobs, refused, tuple(self._messages), task_output, definitions, self.quota
        )

    def clean_up(self) -> Sequence[str]:
        """Stop and remove everything; returns what could not be removed."""
        return clean_up(
            self.account, self.store, self.trial, self._machines, stop_seconds=self.pace.stop,
            job_role=self.job_role,
        )  # fmt: skip

    def _submit(self, name: str, request: Mapping[str, Any], run: str) -> str:
        """Start an execution that sends the request; returns its ARN."""
        key = naming.request_key(WORKLOAD, self.trial, run)
        self.store.put(key, json.dumps(request).encode())
        payload = {"run": run, "request_key": key, "job_base": request["TrainingJobName"]}
        return self._machines[MACHINE].start(f"{self.trial}-{name}", payload)

    def _ended(self, arn: str, seconds: float, machine: str = MACHINE) -> ExecutionState:
        executions = self._machines[machine]
        self.account.wait_for(lambda: not executions.describe(arn).running, seconds)
        return executions.describe(arn)

    def _run_job(self, job: PlannedJob) -> Job:
        self.say(f"Job {job.kind}, at most {job.limit_seconds} s …")
        name, copied = job.base + RETRY_SUFFIX, None
        arn = self._submit(job.kind, job.request, job.run)
        if job.kind is JobKind.STOPPED:
            copied = self._copied_while_training(name, job.request["CheckpointConfig"]["S3Uri"])
            if self.account.job(name):
                self.account.jobs.stop(name)
        execution = self._ended(arn, self.pace.job)
        described = self.account.job(name) or {}
        self.say(f"  {described.get('TrainingJobStatus', execution.error or 'did not start')}")
        log = self.account.log(name)
        place = f"{job.request['OutputDataConfig']['S3OutputPath']}/{name}/"
        return Job(
            job.request,
            described,
            execution,
            log,
            files=self._below(place),
            checkpoints=self._below(job.request["CheckpointConfig"]["S3Uri"]),
            summaries=self._summaries(f"{place}output/output.tar.gz"),
            report=_report(log),
            copied_while_training=copied,
        )

    def _discovered(self, job: Job) -> Job:
        """The job with what ``discover`` would read of it; Search may lag behind the service.

        Credentials that may deploy may still lack these calls; what they would show is not seen.
        """

        def listed() -> bool:
            return any(
                one["TrainingJobName"] == job.name and one["TrainingJobStatus"] == job.status
                for one in self.account.jobs_created(created)
            )

        created, searched = job.described["CreationTime"], job
        try:
            self.account.wait_for(listed, self.pace.message)
            searched = replace(job, searched=self.account.jobs_created(created))
            busy = self.account.gpu_percent(job.name, created, job.described["LastModifiedTime"])
        except ClientError as error:
            self.say(f"  {error}")
            return searched
        return replace(searched, gpu_percent=busy)

    def _summaries(self, uri: str) -> tuple[str, ...]:
        """Names of the evidence in a job's output data."""
        try:
            fetched = self.store.fetch(uri)
        except NotFoundError:
            return ()
        return tuple(read_output(fetched.stream, fetched.size).summaries)

    def _copied_while_training(self, name: str, place: str) -> bool | None:
        """Whether the probe's checkpoint is in S3 before its job ends; None: it never trained."""

        def trains() -> bool:
            return bool(_report(self.account.log(name))) or not self._runs(name)

        def copied() -> bool:
            return "wait.txt" in self._below(place)

        if not self.account.wait_for(trains, self.pace.job) or not self._runs(name):
            return None
        return self.account.wait_for(copied, self.pace.copy) and self._runs(name)

    def _runs(self, name: str) -> bool:
        """Whether the job is in progress, or is yet to be created."""
        job = self.account.job(name)
        return job is None or job["TrainingJobStatus"] == IN_PROGRESS

    def _below(self, uri: str) -> list[str]:
        """Keys below a prefix of the data bucket, relative to it."""
        prefix = uri.removeprefix(f"s3://{self.store.bucket}/")
        keys = self.account.keys(self.store.bucket, prefix)
        return [key.removeprefix(prefix) for key in keys]

    def _refusals(self) -> Iterator[tuple[RefusedKind, ExecutionState]]:
        """Executions whose requests AWS must refuse, made from the last job's: the shortest."""
        self.say("Requests that AWS must refuse …")
        last = self.jobs[-1]
        fresh = {**last.request, "TrainingJobName": f"{last.base}x"}
        requests = {
            RefusedKind.INVALID: {**fresh, "TrainingJobName": f"{last.base}_x"},
            RefusedKind.NAME_IN_USE: last.request,
            RefusedKind.UNKNOWN_FIELD: {**fresh, "NoSuchField": True},
        }
        if self.over_quota_type:
            resources = {**last.request["ResourceConfig"], "InstanceType": self.over_quota_type}
            requests[RefusedKind.OVER_QUOTA] = {
                **fresh, "ResourceConfig": resources, "TrainingJobName": f"{last.base}y",
            }  # fmt: skip
        for kind, request in requests.items():
            arn = self._submit(kind, request, f"refused-{kind}")
            yield kind, self._ended(arn, self.pace.message)
        for name in self.account.jobs.unfinished(last.base, self.account.since):
            self.account.jobs.stop(name)  # AWS accepted what it had to refuse

    def _task_token(self) -> Any:
        """What a state that waits for a token gets; None where no token came."""
        self.say("A state that waits for a token, events, a schedule …")
        arn = self._machines[TOKEN_MACHINE].start(f"{self.trial}-token", {})
        if not self.account.wait_for(lambda: self._token() is not None, self.pace.message):
            return None
        self.account.answer(str(self._token()), TASK_OUTPUT)
        return self._ended(arn, self.pace.message, TOKEN_MACHINE).output or None

    def _token(self) -> str | None:
        self._receive()
        return next((str(body["token"]) for body in self._messages if "token" in body), None)

    def _receive(self) -> None:
        self._messages += self.account.messages(self._queue)

    def _collect_messages(self) -> None:
        """Read the queue until every kind of message is there, or the time is up."""

        def complete() -> bool:
            self._receive()
            sources = [body.get("source") for body in self._messages]
            return (
                sources.count("aws.sagemaker") >= len(self.jobs)
                and "aws.states" in sources
                and any("scheduled" in body for body in self._messages)
            )

        self.account.wait_for(complete, self.pace.message)


def _report(log: Sequence[str]) -> Mapping[str, Any]:
    """What the probe printed, empty where there is nothing that can be read."""
    for line in log:
        if REPORT in line:
            try:
                report: Mapping[str, Any] = json.loads(line.partition(REPORT)[2])
            except ValueError:  # a log may split a long line
                return {}
            return report
    return {}


EMBEDDED = Pace(limited=3, job=300, copy=60, message=20, stop=20)


@dataclass(frozen=True)
class Prepared:
    """A verification that is ready to start; ``usd`` is the most that its jobs can cost."""

    verification: Verification
    instance_type: str
    image: str
    region: str
    usd: float


def prepare_verification(
    client: Callable[[str], Any],
    services: Services,
    instance_type: str,
    *,
    trial: str,
    poll_seconds: float,
) -> Prepared:
    """A verification of the deployed stage whose data bucket ``services`` names.

    Raises InvalidInputError for an instance type without a price or an image on file.
    """
    account = Account(client, poll_seconds=poll_seconds)
    pace = Pace() if services.settings.simulated is None else EMBEDDED
    services = replace(services, settings=_deployed_settings(client, services.settings))
    machines = {
        name: account.machine_called(naming.machine_name(services.settings.stage, name))
        for name in naming.MACHINES
    }
    arms, shipment, planned = _plan(services, instance_type, trial, pace)
    over = _type_without_quota(services)
    verification = Verification(
        account=account,
        store=S3Store(client("s3"), services.store.bucket),
        role_arn=machines[naming.EVALUATE]["roleArn"],
        roles=IamJobRoles(client("iam"), services.settings),
        job_role=naming.job_role_arn(services.settings.job_roles, WORKLOAD).rpartition("/")[2],
        trial=trial,
        shipment=shipment,
        jobs=planned,
        pace=pace,
        definitions={name: one["definition"] for name, one in machines.items()},
        quota=services.quotas.training_instances(instance_type, spot=False),
        over_quota_type=over.instance_type if over else None,
    )
    usd = jobs.bound_usd(
        planned, arms[0].usd_per_hour, over_quota_usd_per_hour=over.usd_per_hour if over else 0.0
    )
    return Prepared(verification, instance_type, arms[0].image, services.settings.region, usd)


def _plan(
    services: Services, instance_type: str, trial: str, pace: Pace
) -> tuple[Sequence[ArmPlan], Shipment, Sequence[jobs.PlannedJob]]:
    """The arms, what is uploaded for them, and the jobs."""
    workload = jobs.small_workload(instance_type)
    arms = jobs.arms(workload, services.settings)
    shipment = jobs.pack(workload, services.store.bucket)
    source_key = str(shipment.spec["source_key"])
    context = job_site(services.settings, services.store.bucket).context(
        workload.name, trial=trial, execution=stack_name(trial), source_key=source_key
    )
    uploaded = parse_workload(shipment.spec["workload"])
    return arms, shipment, jobs.plan_jobs(uploaded, arms, context, limited_seconds=pace.limited)


def _deployed_settings(client: Callable[[str], Any], settings: Settings) -> Settings:
    """Key and network of the stage's own jobs, as the function that asks for them has them."""
    name = f"{naming.stack_name(settings.stage)}-judge-arms"
    configuration = client("lambda").get_function_configuration(FunctionName=name)
    variables: Mapping[str, str] = configuration["Environment"]["Variables"]
    return replace(
        settings_from({"AWS_REGION": settings.region, **variables}), simulated=settings.simulated
    )


def _type_without_quota(services: Services) -> Price | None:
    """The cheapest type on file whose quota is 0: a request for it must be refused."""
    facts = facts_for_workload(jobs.small_workload(ANY_TYPE), services.settings)
    for price in sorted(facts.prices.values(), key=lambda price: price.usd_per_hour):
        if services.quotas.training_instances(price.instance_type, spot=False) == 0:
            return price
    return None
