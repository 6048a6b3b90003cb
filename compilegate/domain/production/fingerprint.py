"""What a decision holds for: image, framework, machines, code, recipe, precision, data schema.

Two sides tell of it. What a job is *asked* for is known before it runs, from the plan of the trial
and from the registered workload of today. What a job *recorded* is known only afterwards, but it
is what was really there, and a team's own job is known by nothing else. Each side is compared
with its like. What either side does not say is no change; it is listed, so that nobody takes
silence for sameness.

GPU driver and data are not part of it: they move from night to night under every job, and the
probation watches what they do (domain/judging/monitor.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compilegate.domain.decision import Reason
from compilegate.domain.workload.model import Framework, Training

Fingerprint = Mapping[str, Any]

# What each field is called, in the order in which it is told.
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


def planned(
    arm: Mapping[str, Any], training: Training, framework: Framework, code: str
) -> Fingerprint:
    """What a job of this arm is asked for; ``arm`` is as a plan records it (ArmPlan).

    ``framework`` is the workload's; a candidate that trains in another one is told by its image.
    """
    keys = (
        "image", "instance_type", "instance_count", "precision", "distribution", "batch_size",
        "learning_rate",
    )  # fmt: skip
    parts = (framework.name, framework.version, framework.transformers, framework.python)
    return {
        **{key: arm.get(key) for key in keys},
        "framework": " ".join(str(part) for part in parts if part),
        "hyperparameters": {**training.hyperparameters, **(arm.get("hyperparameters") or {})},
        "code": code,
    }


def recorded(results: Iterable[Mapping[str, Any]]) -> Fingerprint:
    """What jobs of one arm recorded: of every field the latest that any run told.

    ``results`` are runs as evidence has them, oldest first.
    """
    found: dict[str, Any] = {}
    for result in results:
        told = result.get("fingerprint")
        if not isinstance(told, Mapping):
            continue
        found |= {RECORDED[key]: told[key] for key in RECORDED if told.get(key) is not None}
    return found


def stale_reasons(promoted: Fingerprint, now: Fingerprint) -> tuple[Reason, ...]:
    """Every field that both sides tell and that differs: its name, what it was, what it is."""
    return tuple(
        Reason(
            f"{field}_changed",
            f"{FIELDS[field]}: was {_shown(promoted[field], now[field])}, "
            f"is {_shown(now[field], promoted[field])}",
        )
        for field in told_fields(promoted, now)
        if promoted[field] != now[field]
    )


def told_fields(promoted: Fingerprint, now: Fingerprint) -> tuple[str, ...]:
    """The fields that both sides tell, so that they can be compared."""
    return tuple(field for field in FIELDS if _known(promoted, field) and _known(now, field))


def unknown_fields(
    promoted: Fingerprint, now: Fingerprint, fields: Sequence[str] = tuple(FIELDS)
) -> tuple[str, ...]:
    """The fields of these that one side does not tell, so that they were not compared."""
    return tuple(
        FIELDS[field] for field in fields if not (_known(promoted, field) and _known(now, field))
    )


def _known(side: Fingerprint, field: str) -> bool:
    return side.get(field) is not None


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
