"""What was seen of each assumption about one training job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from compilegate.adapters.executions import ExecutionState
from compilegate.usecases.collect import BLOCK
from compilegate.verify.observed import Job

SIGTERM_SEEN = "compilegate-probe-sigterm"
STDOUT_LINE, STDERR_LINE = "compilegate-probe-standard-output", "compilegate-probe-standard-error"
# Generations of sagemaker-training that tests run every kind of request through (requirements/).
TESTED_TOOLKITS = ("3.9.2", "5.1.1", "5.1.4")
SCRIPT_MODE = (
    "SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "SM_OUTPUT_DATA_DIR", "SM_OUTPUT_DIR",
    "SM_MODEL_DIR", "TRAINING_JOB_NAME",
)  # fmt: skip
OPT_ML = "/opt/ml"
THERE, MISSING, UNCHANGED = "there", "not there", "unchanged"


@dataclass(frozen=True)
class Seen:
    """What was seen: ``value`` is compared with the assumption, ``detail`` is for people."""

    value: str
    detail: str = ""


def _differences(sent: Mapping[str, str], got: Mapping[str, str]) -> Seen:
    changed = {name: got.get(name) for name, value in sent.items() if got.get(name) != value}
    if not changed:
        return Seen(UNCHANGED, f"{len(sent)} values")
    return Seen("changed", "; ".join(f"{name}: {value!r}" for name, value in changed.items()))


def hyperparameters(job: Job) -> Seen:
    """The script's arguments beside the request."""
    own = {name: json.loads(text) for name, text in job.request["HyperParameters"].items()
           if not name.startswith("sagemaker_")}  # fmt: skip
    return _differences({f"--{name}": str(value) for name, value in own.items()},
                        job.report["arguments"])  # fmt: skip


def environment(job: Job) -> Seen:
    """The embedded cloud has another folder for /opt/ml, and says so to the script as well."""
    got = job.report["environment"]
    root = str(PurePosixPath(got.get("SM_MODEL_DIR", OPT_ML + "/model")).parent)
    sent = {name: root + value.removeprefix(OPT_ML) if value.startswith(OPT_ML) else value
            for name, value in job.request["Environment"].items()}  # fmt: skip
    return _differences(sent, got)


def script_mode(job: Job) -> Seen:
    """Variables that the training runtime reads."""
    absent = [name for name in SCRIPT_MODE if name not in job.report["environment"]]
    return Seen("not all there", ", ".join(absent)) if absent else Seen("all there")


def toolkit(job: Job) -> Seen:
    """The generation of the container toolkit."""
    version = job.report["packages"]["sagemaker-training"]
    packages = ", ".join(f"{name} {found}" for name, found in job.report["packages"].items())
    tested = version in TESTED_TOOLKITS
    return Seen("tested generation" if tested else "another generation", packages)


def image(job: Job) -> Seen:
    """The framework's version beside the image's tag."""
    installed = str(job.report["packages"]["torch"]).partition("+")[0]
    image = job.request["AlgorithmSpecification"]["TrainingImage"]
    tag = image.rpartition(":")[2]
    return Seen(
        "same version" if tag.startswith(f"{installed}-") else "another",
        f"torch {installed} in {tag}",
    )


def sigterm(job: Job) -> Seen:
    """Whether the script was told that its job ends."""
    delivered = any(SIGTERM_SEEN in line for line in job.log)
    return Seen("delivered" if delivered else "not delivered",
                f"process 1: {job.report['first_process']}")  # fmt: skip


def speed_evidence(job: Job) -> Seen:
    """Whether every arm of the speed gate has left evidence of its block."""
    arms = sum(name.startswith("arm_") for name in job.request["HyperParameters"])
    found = sum(BLOCK.fullmatch(name) is not None for name in job.summaries)
    why = str(job.described.get("FailureReason", ""))
    return Seen(
        "evidence of every arm" if found == arms else "evidence is missing",
        f"{found} of {arms} arms {why}",
    )


def output(job: Job) -> Seen:
    """The archive of output data."""
    return Seen(THERE if "output/output.tar.gz" in job.files else MISSING, ", ".join(job.files))


def metrics(job: Job) -> Seen:
    """Metrics that SageMaker read from the log."""
    definitions = job.request["AlgorithmSpecification"]["MetricDefinitions"]
    asked = [definition["Name"] for definition in definitions]
    final = [item["MetricName"] for item in job.described.get("FinalMetricDataList", ())]
    return Seen("quality metric there" if asked[-1] in final else "quality metric not there",
                ", ".join(final) or "no metric")  # fmt: skip


def failure_class(job: Job) -> Seen:
    """What FailureReason begins with."""
    reason = str(job.described.get("FailureReason", ""))
    return Seen(reason.partition(":")[0], reason)


def failure_source(job: Job) -> Seen:
    """Which stream FailureReason quotes."""
    reason = str(job.described.get("FailureReason", ""))
    streams = {"standard error": STDERR_LINE, "standard output": STDOUT_LINE}
    quoted = [name for name, line in streams.items() if line in reason]
    return Seen(" and ".join(quoted) or "neither", reason)


def status(job: Job) -> Seen:
    """TrainingJobStatus."""
    return Seen(str(job.described["TrainingJobStatus"]))


def both_statuses(job: Job) -> Seen:
    """TrainingJobStatus and SecondaryStatus."""
    return Seen(f"{job.described['TrainingJobStatus']}, {job.described['SecondaryStatus']}")


def copied(job: Job) -> Seen | None:
    """Whether a checkpoint was in S3 while the job ran."""
    if job.copied_while_training is None:
        return None
    return Seen("copied while training" if job.copied_while_training else "not while training")


def copied_at_end(job: Job) -> Seen:
    """Whether what was written last is in S3."""
    count = len(job.checkpoints)
    return Seen("copied at the end" if count else "not copied", f"{count} files")


def restored(job: Job) -> Seen:
    """The job before it left ``wait.txt``, whether or not a file is copied at the end."""
    names = job.report["restored"]
    return Seen("restored" if "wait.txt" in names else "not restored", ", ".join(names))


def sync_times(job: Job) -> Seen | None:
    """The form of times in the result of ``.sync``."""
    if not job.execution.output:
        return None
    time = job.execution.output.get("CreationTime")
    created: datetime = job.described["CreationTime"]
    if isinstance(time, int | float):
        near = abs(time / 1000 - created.timestamp()) < 60
        return Seen("epoch milliseconds" if near else "another number", str(time))
    return Seen("text" if isinstance(time, str) else "another type", repr(time))


def sync_error(job: Job) -> Seen:
    """The error of ``.sync`` and its cause."""
    execution = job.execution
    words = _described(execution, job.described["TrainingJobName"])
    return Seen(f"{execution.error or execution.status}, {words}")


def _described(execution: ExecutionState, name: str) -> str:
    try:
        cause = json.loads(execution.cause)
    except ValueError:
        return "cause is another text"
    same = isinstance(cause, Mapping) and cause.get("TrainingJobName") == name
    return "cause is the description" if same else "cause is another document"
