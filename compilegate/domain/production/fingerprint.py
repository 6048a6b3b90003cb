"""What a decision holds for, and whether production still trains it.

A fingerprint is image, framework, machines, code, recipe, metric, precision and data schema. There
are two sources. What a job is *asked* for is in the plan of the trial and in the registered
workload of today: it is compared before a run and after it. What a job *recorded* exists only
afterwards, but it is what was really used, and the only source for a team's own job. Each source is
compared with its like. A field that one side lacks is not a change; it is listed as not compared.

GPU driver and data are not part of it: they change between runs of every job, and the
probation watches what they do (domain/judging/monitor.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.facts import Facts
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.production.history import Promotion
from compilegate.domain.production.job import baseline_arm, with_overrides
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import ProductionRun

Fingerprint = Mapping[str, Any]

# What each field is called, in the order of messages.
FIELDS: Mapping[str, str] = {
    "image": "image",
    "framework": "framework",
    "instance_type": "instance type",
    "instance_count": "instance count",
    "precision": "precision",
    "distribution": "distribution",
    "batch_size": "batch size per device",
    "learning_rate": "learning rate",
    "hyperparameters": "hyperparameters",
    "code": "source code",
    "metric": "quality metric",
    "recorded_image": "image that the job recorded",
    "torch": "torch that the job recorded",
    "recorded_precision": "precision that the job recorded",
    "code_sha256": "code that the job recorded",
    "data_schema_sha256": "columns and types of the data that the job recorded",
}
# Of a recorded fingerprint (training/compilegate_runtime/fingerprint.py), and what it is here.
RECORDED = {
    "image": "recorded_image",
    "torch": "torch",
    "precision": "recorded_precision",
    "code_sha256": "code_sha256",
    "data_schema_sha256": "data_schema_sha256",
}
SHOWN_MAX = 80
DIGEST_SHOWN = 12
# What the registered job requests, beside the arms whose jobs have recorded something.
ASKED = "asked"


@dataclass(frozen=True)
class Comparison:
    """What differs; ``unknown`` are fields that one side lacks.

    ``differs`` and ``same`` are the fields that both sides have, each with its source: the
    request, or the arm whose job recorded it.
    """

    changed: tuple[Reason, ...] = ()
    unknown: tuple[str, ...] = ()
    differs: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()


def planned(arm: ArmPlan, job: TrainedJob) -> Fingerprint:
    """What the request of this arm of ``job`` says.

    The framework is the workload's; a candidate that trains in another one shows by its image.
    """
    keys = (
        "image", "instance_type", "instance_count", "precision", "distribution", "batch_size",
        "learning_rate",
    )  # fmt: skip
    framework, hyperparameters = job.workload.framework, job.workload.training.hyperparameters
    parts = (framework.name, framework.version, framework.transformers, framework.python)
    return {
        **{key: getattr(arm, key) for key in keys},
        "framework": " ".join(str(part) for part in parts if part),
        "hyperparameters": {**hyperparameters, **(arm.hyperparameters or {})},
        "code": job.code,
        "metric": job.workload.quality.metric,
    }


def recorded(results: Iterable[Mapping[str, Any]]) -> Fingerprint:
    """What jobs of one arm recorded: of every field the latest value of any run.

    ``results`` are runs as evidence has them, oldest first.
    """
    latest: dict[str, Any] = {}
    for result in results:
        own = result.get("fingerprint")
        if not isinstance(own, Mapping):
            continue
        latest |= {RECORDED[key]: own[key] for key in RECORDED if own.get(key) is not None}
    return latest


def stale_reasons(promoted: Fingerprint, now: Fingerprint) -> tuple[Reason, ...]:
    """Every field that both sides have and that differs: its name, what it was, what it is."""
    return tuple(
        Reason(
            f"{field}_changed",
            f"{FIELDS[field]}: was {_shown(promoted[field], now[field])}, "
            f"is {_shown(now[field], promoted[field])}",
        )
        for field in _shared(promoted, now)
        if promoted[field] != now[field]
    )


def registered_fingerprint(
    promotion: Promotion, job: TrainedJob, facts: Facts, *, region: str
) -> Fingerprint:
    """What the registered job's request says with the flag on; empty where that is unknown.

    A job that cannot be built is for the run itself to report.
    """
    try:
        baseline = baseline_arm(job.workload, facts, region=region)
        arm = with_overrides(baseline, promotion.candidate, promotion.flag.overrides, facts)
    except (InvalidInputError, NotFoundError):
        return {}
    return planned(arm, job)


def compare_with_proven(
    proven: Fingerprint,
    registered: Fingerprint,
    *,
    measured: Mapping[str, Fingerprint] | None = None,
    runs: Sequence[ProductionRun] = (),
) -> Comparison:
    """Production now against the trial.

    ``registered`` is empty where nothing is registered; ``measured`` is what the trial's jobs of
    each arm recorded, and ``runs`` are the jobs of today that are compared with it.
    """
    trial = measured or {}
    pairs = [(ASKED, proven, registered)]
    pairs += [(run.arm, trial[run.arm], recorded([run.result])) for run in runs if run.arm in trial]
    changed = [reason for _, was, now in pairs for reason in stale_reasons(was, now)]
    unknown = [
        FIELDS[field] for _, was, now in pairs for field in was if field not in _shared(was, now)
    ]
    compared = [
        (f"{source} {field}", was[field] == now[field])
        for source, was, now in pairs
        for field in _shared(was, now)
    ]
    differs = frozenset(field for field, equal in compared if not equal)
    return Comparison(
        changed=tuple(dict.fromkeys(changed)),
        unknown=tuple(dict.fromkeys(unknown)),
        differs=differs,
        same=frozenset(field for field, _ in compared) - differs,
    )


def _shared(was: Fingerprint, now: Fingerprint) -> list[str]:
    """The fields that both sides have, so that they can be compared."""
    return [field for field in FIELDS if was.get(field) is not None and now.get(field) is not None]


def _shown(value: object, other: object) -> str:
    """A value as a person reads it: of two mappings what differs, of a digest its beginning."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        keys = sorted(k for k in {*value, *other} if value.get(k) != other.get(k))
        text = ", ".join(f"{key}={value.get(key, 'not set')}" for key in keys)
    else:
        text = str(value)
    if len(text) == 64 and all(letter in "0123456789abcdef" for letter in text):
        return text[:DIGEST_SHOWN]
    return text if len(text) <= SHOWN_MAX else f"…{text[-SHOWN_MAX:]}"
