"""Batches that AWS tested the managed compiler with, and what they say of a combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.facts.versions import matches
from compilegate.domain.workload.model import Framework


@dataclass(frozen=True)
class TestedBatches:
    """Largest batch per GPU without and with the managed compiler, where both are known."""

    model: str
    instance_type: str
    sequence_length: int | None
    native_batch: int
    compiled_batch: int

    @property
    def batch_ratio(self) -> float:
        """Compiled over native batch: no speed-up, and below 1 for many models."""
        return self.compiled_batch / self.native_batch


@dataclass(frozen=True)
class TestedModel:
    """Largest batch per GPU without and with the managed compiler; None: not in the table."""

    framework: str
    domain: str
    model: str
    dataset: str | None
    instance_type: str
    precision: str
    setting: str | None
    sequence_length: int | None
    native_batch: int | None
    compiled_batch: int
    source: str
    as_of: str

    @property
    def batches(self) -> TestedBatches | None:
        """Both batches, None where the table leaves one out."""
        if self.native_batch is None:
            return None
        length = self.sequence_length
        return TestedBatches(
            self.model, self.instance_type, length, self.native_batch, self.compiled_batch
        )


def tested(
    rows: Sequence[TestedModel], framework: Framework, *, model: str, instance_type: str
) -> list[TestedBatches]:
    """The rows of this very combination that have both batches."""
    label = "TensorFlow" if framework.name.endswith("tensorflow") else "PyTorch"
    return [
        batches
        for row in rows
        if row.model == model
        and row.instance_type == instance_type
        and matches(framework.version, _version_after(row.framework, label))
        and (batches := row.batches) is not None
    ]


def _version_after(text: str, label: str) -> str:
    """``Transformers 4.11.0 with PyTorch 1.9.0`` after ``PyTorch`` is ``1.9.0``."""
    _, found, rest = text.partition(f"{label} ")
    return rest if found else ""
