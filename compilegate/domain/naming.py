"""Every name the cloud sees, in one place: S3 keys, job names, parameters, tags.

Limits come from the CreateTrainingJob model: a job name has at most 63 characters
and matches ``[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}``.
"""

from __future__ import annotations

import string

STACK_PREFIX = "compilegate"
JOB_PREFIX = "cg"
JOB_NAME_MAX = 63
TRIAL_ID_LENGTH = 8

WORKLOADS_PREFIX = "workloads/"
EXPERIMENTS_PREFIX = "experiments/"
DECISIONS_PREFIX = "decisions/"
REPORTS_PREFIX = "reports/"
COMPILE_CACHE_PREFIX = "compile-cache/"

TAG_WORKLOAD = "compilegate:workload"
TAG_TRIAL = "compilegate:trial"
TAG_ARM = "compilegate:arm"
TAG_RUN = "compilegate:run"
TAG_STAGE = "compilegate:stage"
TAG_EXECUTION = "compilegate:execution"

CHECKPOINT_PATH = "/opt/ml/checkpoints"
RUNTIME_PACKAGE = "compilegate_runtime"

_BASE36 = string.digits + string.ascii_lowercase


def stack_name(stage: str) -> str:
    """Name of the CloudFormation stack of one stage."""
    return f"{STACK_PREFIX}-{stage}"


def flag_parameter(stage: str, workload: str) -> str:
    """Parameter Store name of the workload's flag (design contract, section 7)."""
    return f"/compilegate/{stage}/workloads/{workload}/compiler"


def trial_id(epoch_milliseconds: int) -> str:
    """Eight characters that sort by time: milliseconds since 1970 in base 36."""
    digits = ""
    rest = epoch_milliseconds
    while rest:
        rest, digit = divmod(rest, 36)
        digits = _BASE36[digit] + digits
    return digits.rjust(TRIAL_ID_LENGTH, "0")[-TRIAL_ID_LENGTH:]


def execution_name(workload: str, trial: str) -> str:
    """Name of the EVALUATE execution of one trial."""
    return f"{workload}-{trial}"


def speed_run(round_number: int) -> str:
    """Run id of a speed job; one job carries several blocks."""
    return f"s{round_number}"


def quality_run(replicate: int, arm_index: int) -> str:
    """Run id of a full run: replicate and arm letter, ``a`` is the baseline."""
    return f"q{replicate}{string.ascii_lowercase[arm_index]}"


def trial_job_prefix(workload: str, trial: str) -> str:
    """What the names of all jobs of a trial begin with."""
    return f"{JOB_PREFIX}-{workload}-{trial}-"


def job_base(workload: str, trial: str, run: str) -> str:
    """Job name without the retry suffix that the state machine appends (``-r0``)."""
    return f"{trial_job_prefix(workload, trial)}{run}"


def spec_key(workload: str, digest: str) -> str:
    """Where the parsed workload of one content digest lies."""
    return f"{WORKLOADS_PREFIX}{workload}/specs/{digest}.json"


def source_key(workload: str, digest: str) -> str:
    """Where the source bundle of one content digest lies."""
    return f"{WORKLOADS_PREFIX}{workload}/source/{digest}/sourcedir.tar.gz"


def input_prefix(workload: str, channel: str, digest: str) -> str:
    """Where an uploaded input channel of one content digest lies."""
    return f"{WORKLOADS_PREFIX}{workload}/inputs/{channel}/{digest}/"


def request_key(workload: str, trial: str, run: str) -> str:
    """Where the complete CreateTrainingJob request of one run lies."""
    return f"{EXPERIMENTS_PREFIX}{workload}/{trial}/requests/{run}.json"


def jobs_prefix(workload: str, trial: str) -> str:
    """S3 output prefix of a trial's jobs; SageMaker appends ``/{job}/output/``."""
    return f"{EXPERIMENTS_PREFIX}{workload}/{trial}/jobs"


def job_output_key(workload: str, trial: str, job: str) -> str:
    """Where SageMaker leaves a job's output data, the evidence among it."""
    return f"{jobs_prefix(workload, trial)}/{job}/output/output.tar.gz"


def compile_cache_prefix(workload: str) -> str:
    """Where a workload's compile cache lives between runs; its files are named by content."""
    return f"{COMPILE_CACHE_PREFIX}{workload}/"


def record_key(workload: str, trial: str, document: str) -> str:
    """Where eligibility, plan, evidence and decision of a trial are kept for good."""
    return f"{DECISIONS_PREFIX}{workload}/{trial}/{document}.json"


def report_key(workload: str, trial: str, extension: str) -> str:
    """Where a trial's report lies, one key per format."""
    return f"{REPORTS_PREFIX}{workload}/{trial}/report.{extension}"
