"""Evidence, validated: what the judge reads (docs/contracts.md).

A run that did not finish is a result, not missing data. Of a run's ``record`` the judge itself
uses ``fingerprint``, ``initial_loss``, ``initial_weights_sha256``, ``final_weights_sha256``,
``final_start_sha256``, ``loss_curve``, ``steps`` and ``seconds`` where a job recorded them.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.compilers import compiler_named
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Section, key
from compilegate.domain.fields import Fields
from compilegate.domain.records.production import TEAM
from compilegate.domain.workload.model import BASELINE, QUALITY_RUNS, Policy, Quality

# Outcomes per example of one run's final evaluation, as a full run of the evidence carries them.
#
# A run may have ``outcomes``: one bit (right or wrong) or one loss per held-out example, packed by
# the recorder of the training runtime:
#
#     kind          bits | losses
#     examples      N, how many the run was scored on
#     set_sha256    identity of the N examples, independent of their order
#     mean          over all N
#     data          base64: bits, the first example in the highest bit of the first byte; losses as
#                   little-endian float16
#     per_outcome   examples that one outcome stands for, where only whole batches were scored
#
# ``data`` holds all outcomes up to ``BOUNDS``; of more examples the same subsample in every run of
# the set: those with the smallest digests. Sizes are never trusted. What is broken in any way is
# absent: outcomes only ever advise, so their absence changes no verdict.

BITS, LOSSES = "bits", "losses"
# Outcomes that a run keeps: 512 bytes of bits or 1,024 of losses. The mean variance over the
# examples is then known to about 2 % (bits) and 6 % (normal losses) of itself per pair of runs.
BOUNDS: Mapping[str, int] = {BITS: 4096, LOSSES: 512}
MOST_EXAMPLES = 10**12
KEYS = ("kind", "examples", "per_outcome", "set_sha256", "mean", "data")
# The mean as recorded and that of all kept outcomes may differ by rounding: a float16's 11 bits.
ROUNDED_BITS, ROUNDED_LOSSES = 1e-6, 2.0**-10
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Outcomes:
    """One run's outcomes: ``bits`` as one number, the first example highest, or else ``losses``.

    ``kept`` of ``examples`` outcomes are here; ``mean`` is over all of them.
    """

    set_sha256: str
    examples: int
    per_outcome: int
    kept: int
    mean: float
    bits: int | None = None
    losses: tuple[float, ...] = ()

    @property
    def population(self) -> tuple[str, int, int, int, bool]:
        """Equal for runs whose outcomes are of the same examples, one by one."""
        return (
            self.set_sha256, self.examples, self.per_outcome, self.kept, self.bits is None,
        )  # fmt: skip


def read_outcomes(document: object) -> Outcomes | None:
    """The outcomes of a run, None where there are none or anything of them is broken."""
    if not isinstance(document, Mapping):
        return None
    try:
        read = _read(Fields(document), document.get("data"))
    except (InvalidInputError, ValueError):
        return None
    return read if _agrees(read) else None


def outcomes_document(document: object) -> dict[str, Any] | None:
    """What a run of the evidence keeps of the outcomes that a job left, None of broken ones."""
    if read_outcomes(document) is None or not isinstance(document, Mapping):
        return None
    return {key: document[key] for key in KEYS if key in document}


def _read(fields: Fields, data: object) -> Outcomes:
    """Raises InvalidInputError or ValueError for what is not as the module says."""
    kind = fields.choice("kind", tuple(BOUNDS))
    set_sha256 = fields.text("set_sha256")
    examples = fields.integer("examples", "examples", low=2, high=MOST_EXAMPLES)
    kept = min(examples, BOUNDS[kind])
    if not SHA256.fullmatch(set_sha256):
        raise ValueError("set_sha256 is no digest")
    return Outcomes(
        set_sha256=set_sha256,
        examples=examples,
        per_outcome=fields.integer("per_outcome", "examples", low=1, default=1),
        kept=kept,
        mean=fields.number("mean", "the metric's own unit"),
        bits=_bits(data, kept) if kind == BITS else None,
        losses=struct.unpack(f"<{kept}e", _bytes(data, 2 * kept)) if kind == LOSSES else (),
    )


def _bits(data: object, kept: int) -> int:
    number, padding = int.from_bytes(_bytes(data, -(-kept // 8)), "big"), -kept % 8
    if number & ((1 << padding) - 1):
        raise ValueError("bits after the last example")
    return number >> padding


def _bytes(text: object, size: int) -> bytes:
    """Exactly ``size`` bytes of base64; raises ValueError where it is anything else."""
    if not isinstance(text, str) or len(text) != 4 * -(-size // 3):
        raise ValueError("data has another size")
    data = binascii.a2b_base64(text, strict_mode=True)
    if len(data) != size:
        raise ValueError("data has another size")
    return data


def _agrees(read: Outcomes) -> bool:
    """Whether the recorded mean is possible, and that of the outcomes where all were kept.

    The last batch may be smaller, so that the mean over batches is a weighted one.
    """
    if not all(map(math.isfinite, (read.mean, *read.losses))):
        return False
    if read.bits is not None:
        own, room, low, high = read.bits.bit_count() / read.kept, ROUNDED_BITS, 0.0, 1.0
    else:
        low, high = min(read.losses), max(read.losses)
        own, room = math.fsum(read.losses) / read.kept, ROUNDED_LOSSES * max(-low, high)
        room += ROUNDED_BITS
    if read.kept < read.examples:  # the others may be anything
        return read.bits is None or low <= read.mean <= high
    if read.per_outcome > 1:
        return low - room <= read.mean <= high + room
    return abs(own - read.mean) <= room


# Steps and blocks beyond this are typing errors.
_MOST = 10**9
_MEAN = "mean of all steps, None where none recorded any"
TRIAL = "trial"
PROBATION = "probation"
PHASES = (TRIAL, PROBATION)
# Another machine, image, launcher or script: no job can hold such an arm and the baseline.
OWN_NODES = frozenset(
    {"instance_type", "instance_count", "distribution", "framework", "entry_point"}
)


@dataclass(frozen=True)
class Run:
    """What every run has.

    ``record`` is the run as its document has it, with keys beyond the contract: it is written as
    it was read, so that a document of another release stays what it is.
    """

    finished: bool
    applied: bool | None
    record: Mapping[str, Any]

    @property
    def job(self) -> str:
        """The job that made the run, empty where it is not recorded."""
        return str(self.record.get("job") or "")

    @cached_property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """What the run was made of, None where it is not recorded."""
        value = self.record.get("fingerprint")
        return value if isinstance(value, Mapping) and value else None


@dataclass(frozen=True)
class Work(Section):
    """What the lines of a full run's steps add up to."""

    steps: int = key("0 where it left none", "steps", low=0, high=_MOST)
    seconds: float = key("that they took", "seconds", default=0.0, low=0.0)
    samples_per_step: float | None = key(_MEAN, "samples", default=None, above=0.0)
    tokens_per_step: float | None = key(_MEAN, "tokens", default=None, above=0.0)


@dataclass(frozen=True)
class SpeedRun(Run):
    """One short segment of one arm; segments of equal block ran back to back on one node.

    ``full_run_steps`` are those of a production run as the job knew them, None or 0 unknown.
    """

    block: int
    node: str | None
    compile_seconds: float
    step_seconds: tuple[float, ...]
    samples_per_step: float | None
    full_run_steps: int | None
    tokens_per_step: float | None = None


@dataclass(frozen=True)
class FullRun(Run):
    """One full run; ``metric`` is None when it diverged, ``wall_seconds`` covers the whole job.

    ``order`` is its position in time over all full runs of all arms; ``confirm`` marks a run
    that the judge asked for to check an alarm. ``launched_by`` is TEAM for a job that a team's
    own pipeline started, of which no other arm can be requested. ``work`` is None where it was not
    added up. ``job_seconds`` is how long the service says that
    the job's container trained, None where that is unknown or was interrupted.
    """

    stage: str
    order: int
    mode: str
    seed: int | None
    metric: float | None
    wall_seconds: float | None
    confirm: bool
    launched_by: str | None
    work: Work | None = None
    job_seconds: float | None = None

    @property
    def may_check(self) -> bool:
        """Whether it checks an open alarm: it was requested, or no request is possible."""
        return self.confirm or self.launched_by == TEAM

    @cached_property
    def outcomes(self) -> Outcomes | None:
        """Its outcomes per example; None where it recorded none, or anything of them is broken."""
        return read_outcomes(self.record.get("outcomes"))

    @property
    def initial_weights(self) -> str | None:
        """Fingerprint of the weights that it started from, None where it is not recorded."""
        return self._digest("initial_weights_sha256")

    @property
    def final_weights(self) -> str | None:
        """Fingerprint of all its final weights and buffers, None where it is not recorded."""
        return self._digest("final_weights_sha256")

    @property
    def trained_weights(self) -> str | None:
        """Fingerprint, taken as that of a start, of what it ended with.

        None where it is not recorded, and where the run ended with what it had started from.
        """
        end = self._digest("final_start_sha256")
        return None if end == self.initial_weights else end

    def _digest(self, key: str) -> str | None:
        value = self.record.get(key)
        return value if isinstance(value, str) and value else None

    def at(self, order: int) -> FullRun:
        """The run at that position in time."""
        return replace(self, order=order, record={**self.record, "order": order})

    def timed_by(self, job_seconds: float | None) -> FullRun:
        """The run with what the service says of its job's time."""
        record = {**self.record, "job_seconds": job_seconds}
        return replace(self, job_seconds=job_seconds, record=record)


@dataclass(frozen=True)
class Arm:
    """One side of the comparison; ``full_run_steps`` is None while unknown."""

    name: str
    full_run_steps: int | None
    usd_per_hour: float | None
    devices: int
    speed: tuple[SpeedRun, ...]
    quality: tuple[FullRun, ...]
    probation: tuple[FullRun, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def full_runs(self) -> tuple[FullRun, ...]:
        """Every full run of the arm, those of the trial first."""
        return (*self.quality, *self.probation)

    @property
    def runs(self) -> tuple[SpeedRun | FullRun, ...]:
        """Every run of the arm, short segments first."""
        return (*self.speed, *self.full_runs)


@dataclass(frozen=True)
class TrialPlan(Section):
    """How a trial is cut into rounds; USD figures are estimates and None when unknown.

    ``runs_at_start`` is None where the evidence gives one number of remaining runs, which is then
    taken for that.
    """

    speed_steps: int = key("of one segment", "steps", default=320, low=1, high=_MOST)
    blocks_per_round: int = key("short blocks", "blocks", default=2, low=1, high=_MOST)
    max_blocks: int = key("of the whole trial", "blocks", default=6, low=1, high=_MOST)
    production_beside: bool = key(
        "production's own baseline runs are evidence, so that a shadow trial need not pay for them",
        default=True,
    )
    asked_quality_runs: str | None = key(
        "the policy's, where the trial runs in another mode", default=None, allowed=QUALITY_RUNS
    )
    runs_as_shadow_because: str | None = key("why it does", default=None)
    usd_per_block: float | None = key("of every arm", "USD", default=None, low=0.0)
    usd_per_quality_run: float | None = key("of one arm", "USD", default=None, low=0.0)
    spent_usd: float | None = key("so far", "USD", default=None, low=0.0)
    runs_at_start: float | None = key(
        "of production that remained when the trial began", "runs", default=None, low=0.0
    )


@dataclass(frozen=True)
class Evidence:
    """One workload's evidence, validated; ``controls`` tell effects apart and are not judged.

    ``content`` identifies the document that it was read from, independent of the order of its
    arms and runs. ``history_left_out`` past runs were scored on other evaluation examples.
    """

    workload: str
    phase: str
    promoted: str | None
    policy: Policy
    quality: Quality
    history_wall_seconds: tuple[float, ...]
    runs_per_week: float | None
    runs_remaining: float | None
    arms: tuple[Arm, ...]
    plan: TrialPlan
    controls: tuple[Arm, ...] = ()
    content: str = ""
    history_left_out: int = 0

    @property
    def baseline(self) -> Arm:
        """The arm that everything is compared with."""
        return next(arm for arm in self.arms if arm.name == BASELINE)

    @property
    def candidates(self) -> tuple[Arm, ...]:
        """Every arm but the baseline, in the order of the document."""
        return tuple(arm for arm in self.arms if arm.name != BASELINE)

    def arm(self, name: str) -> Arm | None:
        """The arm of that name, None when there is none."""
        return next((arm for arm in self.arms if arm.name == name), None)

    @property
    def promoted_arm(self) -> Arm:
        """The arm that a probation's evidence is about; the baseline where none is named."""
        return self.arm(self.promoted or "") or self.baseline

    def runs_left(self, before: Arm | None = None) -> float | None:
        """Production runs still to come, now or when the first full run of ``before`` was made.

        Those that production has made for the trial are taken off what there was at its start.
        """
        at_start = self.plan.runs_at_start
        at_start = self.runs_remaining if at_start is None else at_start
        if at_start is None:
            return None
        own = before.quality if before else ()
        begun = min((run.order for run in own), default=math.inf)
        made = sum(
            run.mode != "shadow" and run.order < begun for arm in self.arms for run in arm.quality
        )
        return max(at_start - made, 0.0)

    def with_runs_left(self, runs: float) -> Evidence:
        """The evidence as it would be with so many production runs still to come."""
        made = sum(run.mode != "shadow" for arm in self.arms for run in arm.quality)
        return replace(self, plan=replace(self.plan, runs_at_start=runs + made))

    def oriented(self, values: Sequence[float]) -> list[float]:
        """Metrics turned so that higher is better."""
        sign = 1.0 if self.quality.goal == "maximize" else -1.0
        return [sign * value for value in values]

    def price_ratio(self, arm: Arm) -> float:
        """The arm's price per hour over the baseline's; 1 where either is unknown."""
        rate = self.baseline.usd_per_hour
        return 1.0 if rate is None or arm.usd_per_hour is None else arm.usd_per_hour / rate


def finished(runs: Sequence[FullRun]) -> list[FullRun]:
    """The runs that ended with a metric, in the order of time."""
    return sorted((run for run in runs if run.finished), key=attrgetter("order"))


def data_of(run: FullRun) -> str | None:
    """What a run was trained on, None where unknown: production may train on new data."""
    value = (run.fingerprint or {}).get("data_sha256")
    return value if isinstance(value, str) else None


def metrics(runs: Sequence[FullRun]) -> list[float]:
    """Final metrics of the runs that have one, in the order of time."""
    return [run.metric for run in finished(runs) if run.metric is not None]


def walls(runs: Sequence[FullRun]) -> list[float]:
    """Wall-clock seconds of the finished runs that recorded them, in the order of time."""
    return [run.wall_seconds for run in finished(runs) if run.wall_seconds]


def mean_or_none(values: Sequence[float]) -> float | None:
    """Their mean, None where there is nothing to average."""
    return mean(values) if values else None


def may_run_apart(candidate: Arm, baseline: Arm) -> bool:
    """Whether the candidate's own change explains other nodes than the baseline's."""
    return (
        bool(OWN_NODES & candidate.overrides.keys())
        or compiler_named(candidate.overrides.get("compiler")).own_image
        or candidate.devices != baseline.devices
        or candidate.usd_per_hour != baseline.usd_per_hour
    )


def runs_apart(candidate: Arm, baseline: Arm) -> bool:
    """Whether the arms' blocks ran on different nodes: as recorded, else by the change."""
    nodes = {run.block: run.node for run in baseline.speed if run.node}
    pairs = [
        (run.node, nodes[run.block]) for run in candidate.speed if run.node and run.block in nodes
    ]
    if pairs:
        return any(ours != theirs for ours, theirs in pairs)
    return may_run_apart(candidate, baseline)
