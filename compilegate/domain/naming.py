"""Every name the cloud sees but the ledger's (ledger_keys.py): S3 keys, jobs, parameters, tags.

Limits come from the CreateTrainingJob model: a job name has at most 63 characters
and matches ``[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}``.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

STACK_PREFIX = "compilegate"
# Of a deployment that names no stage, and of a job that names none: the same, so that
# the job reads the flag that the deployment writes.
DEFAULT_STAGE = "prod"
JOB_PREFIX = "cg"
JOB_NAME_MAX = 63
TRIAL_ID_LENGTH = 8

WORKLOADS_PREFIX = "workloads/"
EXPERIMENTS_PREFIX = "experiments/"
DECISIONS_PREFIX = "decisions/"
REPORTS_PREFIX = "reports/"
COMPILE_CACHE_PREFIX = "compile-cache/"
PRODUCTION_PREFIX = "production/"

TAG_WORKLOAD = "compilegate:workload"
TAG_TRIAL = "compilegate:trial"
TAG_ARM = "compilegate:arm"
TAG_RUN = "compilegate:run"
TAG_STAGE = "compilegate:stage"
TAG_EXECUTION = "compilegate:execution"
TAG_RELEASE = "compilegate:release"
TAG_DECISION = "compilegate:decision"
TAG_DEPLOYMENT = "compilegate:deployment"

# Values of TAG_STAGE for production's own jobs: those that TRAIN starts, those that a team does.
PRODUCTION_STAGE = "production"
TEAM_STAGE = "team"
# Its values for jobs that state machines start.
OWN_JOB_STAGES = ("speed", "quality", PRODUCTION_STAGE)

# The state machines of a deployment.
EVALUATE, TRAIN = "evaluate", "train"
MACHINES = (EVALUATE, TRAIN)
# Alias of every function that names its newest version.
LIVE = "live"

# Tag of the role of training jobs: its policy reaches what belongs to the workload of this name.
# Without a colon, which IAM does not document inside of a policy variable.
ROLE_TAG_WORKLOAD = "compilegate-workload"

# Output field of an execution that started nothing because another one holds the workload.
REFUSED = "refused"

CHECKPOINT_PATH = "/opt/ml/checkpoints"
# COMPILEGATE_CHECKPOINT_DIR of a job without checkpoints. Not empty: under MPI the other nodes read
# their variables from /etc/environment, and whether an empty one counts is up to their PAM.
NO_CHECKPOINTS = "none"
# A folder of its own, so that no script takes another run's files for its own checkpoints.
COMPILE_CACHE_PATH = f"{CHECKPOINT_PATH}/compile-cache"
# What is kept of torch.compile's cache between jobs; while a job runs, it works in a local folder.
INDUCTOR_CACHE_PATH = f"{COMPILE_CACHE_PATH}/inductor"
# Beside it, bundles of compiled code that flags name by the digests of their manifests.
COMPILE_BUNDLES = "bundles"
RUNTIME_PACKAGE = "compilegate_runtime"
# Comes with the recorder: the entry point of scripts that know nothing of Compilegate.
LAUNCHER = "launch.py"

# One character counts the retries of a request, in base 36: names of retries sort in their order.
RETRY_DIGITS = string.digits + string.ascii_lowercase
FIRST_TRY = "-r0"
# Takes the place of a request whose job is not to be started any more; see ``request_key``.
WITHDRAWN = "Withdrawn"

# With these a job of the longest workload name and its retry's character fills JOB_NAME_MAX.
ROUND_DIGITS = 3
SEED_DIGITS = 10

_BASE36 = RETRY_DIGITS
_RUN = re.compile(
    r"s(?P<speed>\d+)(?:(?P<group>[a-z])(?P<block>\d+))?"
    r"|q(?P<round>\d+)(?P<arm>[a-zA-Z])(?P<seed>\d+)"
)


@dataclass(frozen=True)
class RunId:
    """A run's id and what it says; ``arm_index`` and ``seed`` are None for a speed job.

    A speed job carries every arm of its round that shares its nodes: ``group`` 0 is the
    baseline's. ``block`` is the only one that it measures, None where it measures several.
    Arm 0 is the baseline. A job of ``pairs`` has whole runs of a candidate and the baseline; the
    seed is the candidate's first.
    """

    text: str
    round_number: int
    arm_index: int | None
    seed: int | None
    group: int = 0
    block: int | None = None
    pairs: bool = False

    @property
    def is_speed(self) -> bool:
        """Whether it is a speed job."""
        return self.arm_index is None


def stack_name(stage: str) -> str:
    """Name of the CloudFormation stack of one stage."""
    return f"{STACK_PREFIX}-{stage}"


def machine_name(stage: str, machine: str) -> str:
    """Name of one of a stage's state machines."""
    return f"{stack_name(stage)}-{machine}"


def machine_of(execution: str) -> str | None:
    """Name of the state machine of an execution's ARN; None for another text."""
    parts = execution.split(":")
    return parts[6] if len(parts) == 8 and parts[5] == "execution" else None


def trial_of(execution: str) -> tuple[str, str]:
    """Workload and trial, after which an execution of a trial is named, from its ARN."""
    workload, _, trial = execution.rpartition(":")[2].rpartition("-")
    return workload, trial


def flag_parameter(stage: str, workload: str) -> str:
    """Parameter Store name of the workload's flag (docs/contracts.md)."""
    return f"/compilegate/{stage}/workloads/{workload}/compiler"


def job_role_arn(roles: str, workload: str) -> str:
    """ARN of the role that a workload's jobs run as.

    ``roles`` is a deployment's: a beginning, which ends with a dash and which the name completes;
    or an ARN with ``{workload}`` in place of the name, or of one role for all.
    """
    if roles.endswith("-"):
        return f"{roles}{workload}"
    return roles.replace("{workload}", workload)


def trial_id(epoch_milliseconds: int) -> str:
    """Eight characters that sort by time: milliseconds since 1970 in base 36."""
    digits = ""
    rest = epoch_milliseconds
    while rest:
        rest, digit = divmod(rest, 36)
        digits = _BASE36[digit] + digits
    return digits.rjust(TRIAL_ID_LENGTH, "0")[-TRIAL_ID_LENGTH:]


def time_of(trial: str) -> float:
    """The epoch second of a trial's or a run's id; 0 for a text that is none."""
    try:
        return int(trial, 36) / 1000
    except ValueError:
        return 0.0


def execution_name(workload: str, trial: str) -> str:
    """Name of the EVALUATE execution of one trial."""
    return f"{workload}-{trial}"


def speed_run(round_number: int, group: int = 0, block: int | None = None) -> str:
    """Run id of a speed job: one that carries several blocks, or one group's part of ``block``."""
    if block is None:
        return f"s{round_number}"
    return f"s{round_number}{string.ascii_lowercase[group]}{block}"


def quality_run(round_number: int, arm_index: int, seed: int, *, pairs: bool = False) -> str:
    """Run id of a full run: round, arm letter and seed; of a job of pairs with a capital letter.

    The round makes it unique: what a round had to stop may be requested again, and SageMaker
    never forgets a job's name.
    """
    if not (0 <= round_number < 10**ROUND_DIGITS and 0 <= seed < 10**SEED_DIGITS):
        raise ValueError(f"round {round_number} or seed {seed} does not fit a job's name")
    letters = string.ascii_uppercase if pairs else string.ascii_lowercase
    return f"q{round_number}{letters[arm_index]}{seed}"


def parse_run(run: str) -> RunId:
    """Read a run id; raises ValueError for a text that is none."""
    match = _RUN.fullmatch(run)
    if not match:
        raise ValueError(f"{run!r} is not a run id")
    if not match["speed"]:
        letter, number, seed = match["arm"], int(match["round"]), int(match["seed"])
        arm_index = string.ascii_lowercase.index(letter.lower())
        return RunId(run, number, arm_index, seed, pairs=letter.isupper())
    if not match["block"]:
        return RunId(run, int(match["speed"]), None, None)
    group = string.ascii_lowercase.index(match["group"])
    return RunId(run, int(match["speed"]), None, None, group, int(match["block"]))


def trial_job_prefix(workload: str, trial: str) -> str:
    """What the names of all jobs of a trial begin with."""
    return f"{JOB_PREFIX}-{workload}-{trial}-"


def job_patterns(workload: str) -> tuple[str, ...]:
    """What the names of a workload's jobs match, in IAM's wildcards.

    Of a workload whose name goes on after a hyphen they match none, unless it goes on with eight
    characters and another part that begins like a run.
    """
    prefix = trial_job_prefix(workload, "?" * TRIAL_ID_LENGTH)
    runs = speed_run(0), quality_run(0, 0, 0), attempt(1)
    return tuple(f"{prefix}{run[0]}*" for run in runs)


def job_base(workload: str, trial: str, run: str) -> str:
    """Job name without the retry suffix that the state machine appends (``-r0``)."""
    return f"{trial_job_prefix(workload, trial)}{run}"


def job_run(workload: str, trial: str, job: str) -> RunId | None:
    """The run of a job's name, of any retry; None for a foreign name."""
    prefix = trial_job_prefix(workload, trial)
    run, retry, _ = job.removeprefix(prefix).rpartition("-r")
    try:
        return parse_run(run) if job.startswith(prefix) and retry else None
    except ValueError:
        return None


def retries(job: str) -> int:
    """How often a job's request was made again, from its name; 0 for a foreign name."""
    digit = job.rpartition("-r")[2]
    return RETRY_DIGITS.index(digit) if len(digit) == 1 and digit in RETRY_DIGITS else 0


def tries(base: str, most_retries: int) -> list[str]:
    """The names that a job may have whose request may be made again so often, in their order.

    A try that was refused leaves a gap.
    """
    return [f"{base}-r{digit}" for digit in RETRY_DIGITS[: most_retries + 1]]


def earlier_tries(job: str) -> list[str]:
    """The names that a job's earlier tries may have: one may train although its answer was lost."""
    return tries(job.rpartition("-r")[0], retries(job) - 1)


def attempt(number: int) -> str:
    """Run part of a production job's name; every attempt at the run gets the next number."""
    return f"p{number}"


def registration_key(workload: str) -> str:
    """Where it says which spec production trains, and when."""
    return f"{WORKLOADS_PREFIX}{workload}/registration.json"


def production_request_key(workload: str, run: str, number: int) -> str:
    """Where the complete CreateTrainingJob request of one attempt at a production run lies."""
    return f"{PRODUCTION_PREFIX}{workload}/{run}/requests/{attempt(number)}.json"


def production_jobs_prefix(workload: str, run: str) -> str:
    """S3 output prefix of a production run's jobs; models lie there, so nothing expires."""
    return f"{PRODUCTION_PREFIX}{workload}/{run}/jobs"


def spec_key(workload: str, digest: str) -> str:
    """Where the parsed workload of one content digest lies."""
    return f"{WORKLOADS_PREFIX}{workload}/specs/{digest}.json"


def is_spec_key(workload: str, key: str) -> bool:
    """Whether a spec of that workload can lie there."""
    return key.startswith(f"{WORKLOADS_PREFIX}{workload}/specs/")


def source_key(workload: str, digest: str) -> str:
    """Where the source bundle of one content digest lies."""
    return f"{WORKLOADS_PREFIX}{workload}/source/{digest}/sourcedir.tar.gz"


def input_prefix(workload: str, channel: str, digest: str) -> str:
    """Where an uploaded input channel of one content digest lies."""
    return f"{WORKLOADS_PREFIX}{workload}/inputs/{channel}/{digest}/"


def requests_prefix(workload: str, trial: str) -> str:
    """Where the requests of a trial's runs lie."""
    return f"{EXPERIMENTS_PREFIX}{workload}/{trial}/requests/"


def request_key(workload: str, trial: str, run: str) -> str:
    """Where the complete CreateTrainingJob request of one run lies."""
    return f"{requests_prefix(workload, trial)}{run}.json"


def ends_prefix(workload: str, trial: str) -> str:
    """Where it says, by an object named after each, which jobs of full runs have ended."""
    return f"{EXPERIMENTS_PREFIX}{workload}/{trial}/ended/"


def stop_key(workload: str, trial: str, job: str) -> str:
    """Where it says that the trial stopped a job itself."""
    return f"{EXPERIMENTS_PREFIX}{workload}/{trial}/stopped/{job}.json"


def jobs_prefix(workload: str, trial: str) -> str:
    """S3 output prefix of a trial's jobs; SageMaker appends ``/{job}/output/``."""
    return f"{EXPERIMENTS_PREFIX}{workload}/{trial}/jobs"


def job_output_key(workload: str, trial: str, job: str) -> str:
    """Where SageMaker leaves a job's output data, the evidence among it."""
    return f"{jobs_prefix(workload, trial)}/{job}/output/output.tar.gz"


def checkpoint_prefix(workload: str, trial: str, run: str) -> str:
    """Where one run's checkpoints lie, so that an interrupted spot job continues from them."""
    return f"{jobs_prefix(workload, trial)}/checkpoints/{run}/"


def compile_cache_prefix(workload: str) -> str:
    """Where a workload's compile cache is kept between runs; its files are named by content."""
    return f"{COMPILE_CACHE_PREFIX}{workload}/"


def record_key(workload: str, trial: str, document: str) -> str:
    """Where eligibility, plan, evidence and decision of a trial are kept permanently."""
    return f"{DECISIONS_PREFIX}{workload}/{trial}/{document}.json"


def probation_records(decision_id: str) -> tuple[str, str]:
    """Names of a decision on production's runs and of its evidence (``record_key``)."""
    return f"probation/{decision_id}", f"probation/{decision_id}-evidence"


def report_key(workload: str, trial: str, extension: str) -> str:
    """Where a trial's report lies, one key per format."""
    return f"{REPORTS_PREFIX}{workload}/{trial}/report.{extension}"


def probation_report_key(workload: str, trial: str, decision_id: str, extension: str) -> str:
    """Where the report on a decision on production's runs lies."""
    return f"{REPORTS_PREFIX}{workload}/{trial}/probation-{decision_id}.{extension}"


def history_key(workload: str, extension: str) -> str:
    """Where the history of a workload lies, one key per format; no trial's name has a dot."""
    return f"{REPORTS_PREFIX}{workload}/history.{extension}"
