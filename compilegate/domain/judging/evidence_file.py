"""Reads an evidence document (docs/contracts.md), rejects what breaks it, and identifies it.

The same evidence and the same judge give the same decision id, in whatever order arms and runs are
listed. Step times go in as eight-byte floats: a million steps are hashed in little time and memory.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter
from typing import Any

from compilegate.domain.decision import SHADOW
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError
from compilegate.domain.faults import FaultTable
from compilegate.domain.fields import Fields
from compilegate.domain.judging.evidence import (
    PHASES,
    PROBATION,
    TRIAL,
    Arm,
    Evidence,
    FullRun,
    SpeedRun,
    TrialPlan,
    Work,
)
from compilegate.domain.workload.model import BASELINE, Policy
from compilegate.domain.workload.quality import GOALS, Quality

STAGES = ("speed", "quality", "probation")
MODES = ("shadow", "canary", "production")
ID_LENGTH = 16
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def read_evidence(document: object) -> Evidence:
    """Read an evidence document; raises InvalidEvidenceError naming the field."""
    with _contract():
        fields = Fields(document)
        evidence = _evidence(fields)
    return replace(_without_other_history(evidence), content=content_of(fields.record))


def read_run(record: object, path: str = "run") -> SpeedRun | FullRun:
    """Read one recorded run of a trial, which names its job.

    Raises InvalidEvidenceError naming the field.
    """
    with _contract():
        fields = Fields(record, path)
        fields.text("job")
        return _run(fields)


def read_speed_run(record: object, path: str = "run") -> SpeedRun:
    """Read one short segment of a job's output; raises as ``read_run``.

    The record's ``stage`` is not looked at. ``full_run_steps`` becomes that of the arm.
    """
    with _contract():
        fields = Fields(record, path)
        run = _speed_run(fields)
        return replace(run, full_run_steps=fields.integer("full_run_steps", "steps", default=None))


def read_full_run(record: object, path: str = "run") -> FullRun:
    """Read one full run; raises as ``read_run``."""
    with _contract():
        return _full_run(Fields(record, path))


@contextmanager
def _contract() -> Iterator[None]:
    try:
        yield
    except InvalidInputError as error:
        raise InvalidEvidenceError(str(error)) from error


def _evidence(fields: Fields) -> Evidence:
    if fields.integer("schema", "schema version") != 1:
        raise fields.wrong("schema", "is a version this release cannot read", "use 1")
    quality, policy = fields.section("quality"), fields.optional_section("policy")
    plan, table = fields.optional_section("plan"), fields.optional_section("equivalence")
    arms, controls = _arms(fields)
    evidence = Evidence(
        workload=fields.text("workload"),
        phase=fields.choice("phase", PHASES, TRIAL),
        promoted=fields.text("promoted", None),
        policy=Policy() if policy is None else policy.read(Policy),
        quality=_quality(quality),
        history_wall_seconds=quality.numbers("history_wall_seconds"),
        runs_per_week=fields.number("runs_per_week", "runs", above=0.0, default=None),
        run_hours=fields.number("run_hours", "hours", above=0.0, default=None),
        runs_remaining=fields.number("runs_remaining", "runs", low=0.0, default=None),
        arms=arms,
        plan=TrialPlan() if plan is None else plan.values(TrialPlan),
        controls=controls,
        equivalence=None if table is None else table.read(FaultTable),
        on_top_of=fields.text("on_top_of", ""),
    )
    if any(seconds <= 0 for seconds in evidence.history_wall_seconds):
        fix = "remove runs without a duration"
        raise quality.wrong("history_wall_seconds", "must be above 0", fix)
    if evidence.phase == PROBATION and evidence.promoted not in [
        arm.name for arm in evidence.candidates
    ]:
        raise fields.wrong("promoted", "must name an arm", "name the candidate that is on")
    tried_on = [arm.name for arm in evidence.arms if arm.name != BASELINE]
    if evidence.on_top_of and (evidence.on_top_of not in tried_on or not evidence.candidates):
        fix = "name the arm that is on, beside a candidate that is tried on top of it"
        raise fields.wrong("on_top_of", "must name an arm, and another be tried", fix)
    if evidence.phase == TRIAL and evidence.promoted is not None:
        raise fields.wrong(
            "promoted", "names what is on although a trial is judged", "set phase: probation"
        )
    return evidence


def _quality(fields: Fields) -> Quality:
    quality = Quality(
        metric=fields.text("metric"),
        goal=fields.choice("goal", GOALS),
        margin=fields.number("margin", "the metric's own unit", above=0.0),
        history=fields.numbers("history"),
        history_set=fields.value("history_set", Quality.keys()["history_set"]),
        early_stopping=fields.flag("early_stopping", None),
        target=fields.number("target", "the metric's own unit", default=None),
        guardrails=fields.value("guardrails", Quality.keys()["guardrails"]),
        signals=fields.value("signals", Quality.keys()["signals"]),
    )
    for problem in quality.problems():
        raise fields.wrong(*problem)
    return quality


def _without_other_history(evidence: Evidence) -> Evidence:
    """A trial's evidence without a history of another set than its runs were scored on."""
    history, known = evidence.quality.history, evidence.quality.history_set
    today = {identity for arm in evidence.arms for identity in arm.evaluation_sets}
    if (
        known is None
        or evidence.phase == PROBATION
        or all(identity.startswith(known) for identity in today)
    ):
        return evidence
    guardrails, signals = (
        tuple(replace(one, history=()) for one in metrics)
        for metrics in (evidence.quality.guardrails, evidence.quality.signals)
    )
    quality = replace(evidence.quality, history=(), guardrails=guardrails, signals=signals)
    return replace(evidence, quality=quality, history_left_out=len(history))


def recorded_spend(document: Mapping[str, Any]) -> float | None:
    """USD that a trial had spent by its evidence, which need not be valid; None where unknown."""
    plan = document.get("plan")
    spent = plan.get("spent_usd") if isinstance(plan, Mapping) else None
    is_number = isinstance(spent, int | float) and not isinstance(spent, bool)
    return spent if is_number else None


def _arms(fields: Fields) -> tuple[tuple[Arm, ...], tuple[Arm, ...]]:
    """The arms that are judged, and the controls."""
    rate = fields.number("usd_per_hour", "USD", above=0.0, default=None)
    steps = fields.integer("full_run_steps", "steps", low=1, default=None)
    devices = fields.integer("devices", "devices", low=1, default=1)
    arms = tuple(_arm(item, rate, steps, devices) for item in fields.sections("arms"))
    names = [arm.name for arm in arms]
    if names.count(BASELINE) != 1 or len(set(names)) != len(names) or len(names) < 2:
        raise fields.wrong(
            "arms", "must be one arm named baseline and candidates with other names", "rename them"
        )
    controls = tuple(_arm(item, rate, steps, devices) for item in fields.sections("controls"))
    names += [control.name for control in controls]
    if len(set(names)) != len(names) or any(control.full_runs for control in controls):
        raise fields.wrong(
            "controls", "must be arms with names of their own and speed runs only", "rename them"
        )
    return arms, controls


def _arm(fields: Fields, rate: float | None, steps: int | None, devices: int) -> Arm:
    full_run_steps = fields.integer("full_run_steps", "steps", low=1, default=steps)
    runs = [_run(run) for run in fields.sections("runs")]
    speed = [run for run in runs if isinstance(run, SpeedRun)]
    full = sorted((run for run in runs if isinstance(run, FullRun)), key=attrgetter("order"))
    arm = Arm(
        name=fields.text("name"),
        full_run_steps=full_run_steps,
        usd_per_hour=fields.number("usd_per_hour", "USD", above=0.0, default=rate),
        devices=fields.integer("devices", "devices", low=1, default=devices),
        speed=tuple(sorted(speed, key=attrgetter("block"))),
        quality=tuple(run for run in full if run.stage != PROBATION),
        probation=tuple(run for run in full if run.stage == PROBATION),
        overrides=fields.mapping("overrides", nested=True),
    )
    if full_run_steps is None and any(run.finished for run in speed):
        fix = "give the steps of a production run"
        raise InvalidInputError("is missing", field=fields.path("full_run_steps"), fix=fix)
    return arm


def _run(fields: Fields) -> SpeedRun | FullRun:
    is_speed = fields.choice("stage", STAGES) == "speed"
    return _speed_run(fields) if is_speed else _full_run(fields)


def _speed_run(fields: Fields) -> SpeedRun:
    block, node = fields.integer("block", "block number"), fields.text("node", None)
    compile_seconds = fields.number("compile_seconds", "seconds", low=0.0, default=0.0)
    step_seconds = fields.numbers("step_seconds")
    samples = fields.number("samples_per_step", "samples", above=0.0, default=None)
    try:
        steps = fields.integer("full_run_steps", "steps", default=None)
    except InvalidInputError:  # no contract binds what is there
        steps = None
    return SpeedRun(
        block=block,
        node=node,
        compile_seconds=compile_seconds,
        step_seconds=step_seconds,
        samples_per_step=samples,
        full_run_steps=steps,
        tokens_per_step=fields.number("tokens_per_step", "tokens", above=0.0, default=None),
        finished=fields.flag("finished", True),
        applied=fields.flag("applied", None),
        record=fields.record,
    )


def _full_run(fields: Fields) -> FullRun:
    stage, work = fields.choice("stage", STAGES[1:]), fields.optional_section("work")
    return FullRun(
        stage=stage,
        order=fields.integer("order", "position in time"),
        mode=fields.choice("mode", MODES, "production" if stage == PROBATION else SHADOW),
        seed=fields.integer("seed", "seed", high=2**63, default=None),
        metric=(metric := fields.number("metric", "the metric's own unit", default=None)),
        # A job that took no time was not measured.
        wall_seconds=fields.number("wall_seconds", "seconds", low=0.0, default=None) or None,
        # A run that says it finished but measured nothing is not a success.
        finished=fields.flag("finished") and metric is not None,
        applied=fields.flag("applied", None),
        confirm=fields.flag("confirm", False),
        launched_by=fields.text("launched_by", None),
        work=None if work is None else work.values(Work),
        job_seconds=fields.number("job_seconds", "seconds", low=0.0, default=None),
        record=fields.record,
    )


def decision_id(content: str, judge_version: str) -> str:
    """Sixteen hexadecimal digits of what was judged (``content_of``) and the judge's version."""
    return hashlib.sha256(f"{judge_version}\n{content}".encode()).hexdigest()[:ID_LENGTH]


def content_of(document: Mapping[str, Any]) -> str:
    """One text of a valid evidence document, independent of the order of its arms and runs.

    Raises InvalidEvidenceError for what JSON does not have.
    """
    rest = {key: value for key, value in document.items() if key not in ("arms", "controls")}
    try:
        digests = sorted(map(_arm_digest, document["arms"]))
        controls = sorted(map(_arm_digest, document.get("controls") or ()))
        apart = ["controls", *controls] if controls else []
        return "\n".join([_CANONICAL(rest), *digests, *apart])
    except TypeError as error:
        raise InvalidEvidenceError(f"a key or value is not one that JSON has: {error}") from error
    except (ArithmeticError, ValueError) as error:
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error
    except RecursionError as error:
        raise InvalidEvidenceError("the document is nested too deeply to be read") from error


def _arm_digest(arm: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in arm.items() if key != "runs"}
    digests = sorted(map(_run_digest, arm.get("runs") or ()))
    return hashlib.sha256("\n".join([_CANONICAL(rest), *digests]).encode()).hexdigest()


def _run_digest(run: Mapping[str, Any]) -> str:
    steps = run.get("step_seconds") or ()
    rest = {key: value for key, value in run.items() if key != "step_seconds"}
    digest = hashlib.sha256(_CANONICAL(rest).encode())
    digest.update(struct.pack(f"<{len(steps)}d", *steps))
    return digest.hexdigest()
