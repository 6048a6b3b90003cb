"""The ledger of one workload over years, with every kind of entry that production writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.ledger import Swept
from compilegate.domain.records.production import (
    BegunRun,
    CapacityWait,
    ProbationEnd,
    ProductionRun,
    RegistrationChange,
    Review,
)
from compilegate.domain.records.trials import TrialDecided, TrialFailed, TrialStarted

NOW, DAY = 1_790_000_000, 86_400
TEMPLATE, OWNER, TRIAL = "w00000", "ml-platform", "0mabc123"
RUNS_PER_YEAR = 156  # three a week
BETWEEN_SECONDS, RUN_SECONDS = 7 * DAY // 3, 6 * 3600
PROBATION_RUNS = 12
# Beside a permanent promotion one run in so many is the baseline's; during its probation, six.
HELD_BACK, REFRESHED = 25, 6
MACHINE = "arn:aws:states:us-east-1:111122223333:execution:compilegate-prod"
SPEC_KEY = naming.spec_key(TEMPLATE, "d" * 16)
FINGERPRINT = {
    "gpu": "NVIDIA A10G", "gpu_count": 4, "torch": "2.8.0+cu128", "cuda": "12.8",
    "code_sha256": "0" * 64, "command": "train.py --epochs 3", "instance": "ml.g5.12xlarge",
    "driver": "570.1",
}  # fmt: skip
OVERRIDES = {"compiler": "torch_compile", "environment": {"TORCHINDUCTOR_CACHE_DIR": "/opt/ml/c"}}
PROBATION = Flag(True, "probation", "compile", OVERRIDES, "d1", "2023-01-01T00:00:00Z")
PERMANENT = Flag(True, "permanent", "compile", OVERRIDES, "d2", "2023-02-01T00:00:00Z")


def ledger(years: int, phase: float, *, under_way: bool = False) -> list[tuple[str, str]]:
    """Sort keys and texts in order; ``under_way``: a run that began an hour ago has not ended.

    ``phase`` is how long ago the last run ended, as a share of the time from one to the next.
    """
    number = RUNS_PER_YEAR * years
    last = NOW - RUN_SECONDS - 100 - round(phase * BETWEEN_SECONDS)
    starts = [last - (number - 1 - place) * BETWEEN_SECONDS for place in range(number)]
    began = [_begun(number, NOW - 3600)] if under_way else []
    records = [*_life(starts[0]), *chain(*(_run(*one) for one in enumerate(starts))), *began]
    return sorted((one.key, json.dumps(one.to_entry(), sort_keys=True)) for one in records)


def _life(first: int) -> Iterator[LedgerRecord]:
    """Registrations, a trial that failed and one that was promoted, and what became of it."""
    decided_at = first - DAY
    permanent_at = first + PROBATION_RUNS * BETWEEN_SECONDS + 8 * 3600
    document = {
        "schema": 1, "workload": TEMPLATE, "owner": OWNER, "spec_key": SPEC_KEY, "revision": 1,
        "source_digest": "d", "schedule": "cron(0 2 ? * MON,WED,FRI *)", "active": True,
    }  # fmt: skip
    for revision in (1, 2):
        yield RegistrationChange(revision, True, at=first - 3 * DAY + revision, document=document)
    execution = f"{MACHINE}-evaluate:{TEMPLATE}"
    yield TrialStarted(first - 3 * DAY, f"{execution}-0mabc111")
    yield TrialFailed(
        first - 2 * DAY, "0mabc111", f"{execution}-0mabc111", "States.Timeout", "late"
    )
    yield TrialStarted(first - 2 * DAY, f"{execution}-{TRIAL}", 0)
    key = naming.record_key(TEMPLATE, TRIAL, "decision")
    yield TrialDecided(decided_at, TRIAL, "promote", key, "d1", "compile", spent_usd=91.2)
    yield ProbationEnd(permanent_at, TRIAL, "r", "d2", None, None, "permanent", "compile", "1")
    yield Swept(first - DAY, released_locks_of=(f"{execution}-0mabc111",))
    changes = [
        (decided_at, "evaluate", "enable", PROBATION),
        (permanent_at, "train", "permanent", PERMANENT),
    ]
    for version, (at, by, action, flag) in enumerate(changes, 1):
        yield FlagVersion(
            version, at, f"c{version}", by, action, "proven", flag.to_json(), decision_id="d1",
            details={"trial": TRIAL},
        )  # fmt: skip


def _arm(number: int) -> str:
    each = REFRESHED if number < PROBATION_RUNS else HELD_BACK
    return "baseline" if number % each == each - 1 else "compile"


def _begun(number: int, at: int) -> BegunRun:
    run, arm = naming.trial_id(1000 * at), _arm(number)
    flag = PROBATION if number < PROBATION_RUNS else PERMANENT
    return BegunRun(
        at, run, f"{MACHINE}-train:{TEMPLATE}-{run}", arm, "flag", number + 1, number + 1, SPEC_KEY,
        naming.source_key(TEMPLATE, "d" * 16), {} if arm == "baseline" else flag.overrides,
        scheduled="2026-09-21T02:00:00Z", flag=flag.to_json(), decision_id=flag.decision_id,
    )  # fmt: skip


def _run(number: int, at: int) -> Iterator[LedgerRecord]:
    """A run as it begins, waits once in a while, ends, and is reviewed."""
    begun, ended = _begun(number, at), at + RUN_SECONDS
    yield begun
    job = f"{naming.job_base(TEMPLATE, begun.run, 'p0')}-r0"
    if number % 20 == 0:
        reason = "CapacityError: Unable to provision requested ML compute capacity."
        yield CapacityWait(at + 60, begun.run, 0, job, begun.arm, reason, 60.0, 300.0)
        job = job.replace("-p0-", "-p1-")
    is_baseline = begun.arm == "baseline"
    wall = (21_600.0 if is_baseline else 15_800.0) * (1 + 0.01 * (number % 3))
    yield ProductionRun(
        begun.run, job, begun.arm, float(at + 300), float(ended),
        {
            "finished": True, "applied": True, "metric": 0.913, "wall_seconds": wall,
            "seed": number, "fingerprint": FINGERPRINT, "steps": 50_000,
            "work": {"steps": 50_000.0, "samples_per_step": 32.0, "tokens_per_step": 16_384.0},
        },
        True, begun.why, decision_id="d1", instance_type="ml.g5.12xlarge", usd=wall / 3600 * 7.09,
        billable_seconds=wall, details={"scheduled": begun.scheduled, "ending": "completed"},
        at=ended + 60,
    )  # fmt: skip
    yield Review(
        ended + 70, begun.run, TRIAL, "compile", not_compared=("driver",), runs=number + 1,
        launched_by=("train",), cooldown_days=14.0,
    )  # fmt: skip
