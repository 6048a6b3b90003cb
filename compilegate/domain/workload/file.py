"""Reads a workload document into a Workload, or says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compilegate.domain.fields import Fields
from compilegate.domain.workload.candidates import parse_candidates, parse_name
from compilegate.domain.workload.model import (
    APPROVALS,
    FAMILIES,
    GOALS,
    LOADERS,
    ON_STALE,
    PADDINGS,
    QUALITY_RUNS,
    SCHEMA,
    Model,
    Policy,
    Profile,
    Quality,
    Schedule,
    Shapes,
    Training,
    Workload,
)
from compilegate.domain.workload.names import check_metric, check_tags
from compilegate.domain.workload.own_facts import fact_overrides
from compilegate.domain.workload.schedule_expression import (
    UTC,
    schedule_problem,
    timezone_problem,
)
from compilegate.domain.workload.training import MOST_HOURS, parse_framework, parse_training

# Larger values are typing errors.
MOST_RUNS_PER_WEEK = 1e5
MOST_USD = 1e9
MOST_RUNS = 10_000
MOST_SECONDS = 1e6
MOST_DAYS = 3650
MOST_GIB = 1e5
# A smaller error takes more runs than any team makes.
LEAST_ALPHA = 1e-6
# As many digits of a digest as a person copies.
SET = re.compile(r"[0-9a-f]{12,64}")


def parse_workload(document: object) -> Workload:
    """Read a workload document.

    Raises InvalidInputError naming the field, the value and the fix.
    """
    fields = Fields(document)
    if fields.integer("schema", "schema version") != SCHEMA:
        raise fields.wrong("schema", "is a version this release cannot read", f"use {SCHEMA}")
    framework = parse_framework(fields.section("framework"))
    training = parse_training(fields.section("training"))
    workload = Workload(
        name=parse_name(fields),
        owner=fields.text("owner", None),
        framework=framework,
        model=_model(fields.section("model")),
        training=training,
        shapes=_shapes(fields.section("shapes")),
        schedule=_schedule(fields.section("schedule"), training),
        profile=_profile(fields.optional_section("profile")),
        quality=_quality(fields.section("quality")),
        policy=parse_policy(fields.optional_section("policy")),
        candidates=parse_candidates(fields, training, framework),
        tags=fields.words("tags", "cost-centre: ml"),
        facts=fact_overrides(fields.optional_section("facts")),
    )
    fields.done()
    check_tags(fields, workload.tags, owner=workload.owner)
    return workload


def _model(fields: Fields) -> Model:
    model = Model(family=fields.choice("family", FAMILIES), name=fields.text("name"))
    return fields.complete(model)


def _shapes(fields: Fields) -> Shapes:
    shapes = Shapes(
        static=fields.flag("static"),
        padding=fields.choice("padding", PADDINGS, "max_length"),
        drop_last=fields.flag("drop_last", True),
        loader=fields.choice("loader", LOADERS, "standard"),
    )
    return fields.complete(shapes)


def _schedule(fields: Fields, training: Training) -> Schedule:
    schedule = Schedule(
        runs_per_week=fields.number(
            "runs_per_week", "runs per week", above=0.0, high=MOST_RUNS_PER_WEEK
        ),
        run_hours=fields.number("run_hours", "hours", above=0.0, high=MOST_HOURS),
        cron=fields.text("cron", None),
        timezone=fields.text("timezone", UTC),
        max_wait_hours=fields.number(
            "max_wait_hours", "hours", low=0.0, high=MOST_HOURS, default=None
        ),
    )
    fields.done()
    problem = None if schedule.cron is None else schedule_problem(schedule.cron)
    if problem:
        raise fields.wrong("cron", *problem)
    problem = timezone_problem(schedule.timezone, schedule.cron)
    if problem:
        raise fields.wrong("timezone", *problem)
    if schedule.run_hours > training.max_runtime_hours:
        raise fields.wrong(
            "run_hours",
            f"is above training.max_runtime_hours ({training.max_runtime_hours:g}), where a job "
            "is cut off",
            "raise the limit, or correct how long a run takes",
        )
    return schedule


def _profile(fields: Fields | None) -> Profile | None:
    if fields is None:
        return None
    names = ("gpu_utilization", "data_wait_fraction", "communication_fraction")
    shares = {
        name: fields.number(name, "share of 1", low=0.0, high=1.0, default=None) for name in names
    }
    gib = fields.number("peak_memory_gib", "GiB per device", above=0.0, high=MOST_GIB, default=None)
    warm, cold = (
        fields.number(key, "seconds", low=0.0, high=MOST_SECONDS, default=None)
        for key in ("compile_seconds", "compile_seconds_cold")
    )
    fields.done()
    data, communication = (shares[name] or 0.0 for name in names[1:])
    if data + communication > 1.0:
        problem = f"and data_wait_fraction ({data:g}) are together more than a whole step"
        raise fields.wrong("communication_fraction", problem, "measure both as shares of one step")
    if warm is not None and cold is not None and warm > cold:
        problem = f"is above compile_seconds_cold ({cold:g})"
        raise fields.wrong("compile_seconds", problem, "a warm cache cannot take longer: swap them")
    return Profile(**shares, peak_memory_gib=gib, compile_seconds=warm, compile_seconds_cold=cold)


def _quality(fields: Fields) -> Quality:
    quality = Quality(
        metric=fields.text("metric"),
        goal=fields.choice("goal", GOALS),
        margin=fields.number("margin", "the metric's own unit", above=0.0),
        history=fields.numbers("history"),
        history_set=parse_history_set(fields),
    )
    fields.done()
    check_metric(fields, quality.metric)
    return quality


def parse_history_set(fields: Fields) -> str | None:
    """The evaluation set that past runs were scored on, or enough of its digest to tell it."""
    known: str | None = fields.text("history_set", None)
    if known is not None and not SET.fullmatch(known):
        problem = "is no digest of an evaluation set"
        raise fields.wrong("history_set", problem, "use 12 to 64 digits of a run's set_sha256")
    return known


def parse_policy(fields: Fields | None) -> Policy:
    """Read a policy section, defaults where it is absent."""
    if fields is None:
        return Policy()
    base = Policy()

    def number(key: str, unit: str, **bounds: float) -> Any:
        return fields.number(key, unit, default=getattr(base, key), **bounds)

    def runs(key: str, unit: str, low: int) -> Any:
        return fields.integer(key, unit, low=low, high=MOST_RUNS, default=getattr(base, key))

    def choice(key: str, allowed: Sequence[str]) -> Any:
        return fields.choice(key, allowed, getattr(base, key))

    policy = Policy(
        promote_speedup=number("promote_speedup", "times baseline", low=1.0),
        reject_speedup=number("reject_speedup", "times baseline", low=1.0),
        alpha=number("alpha", "error probability", low=LEAST_ALPHA, high=0.5),
        quality_runs=choice("quality_runs", QUALITY_RUNS),
        max_quality_runs=runs("max_quality_runs", "runs per candidate", low=2),
        max_trial_usd=number("max_trial_usd", "US dollars", above=0.0, high=MOST_USD),
        hold_models=fields.flag("hold_models", base.hold_models),
        approval=choice("approval", APPROVALS),
        probation_runs=runs("probation_runs", "runs", low=1),
        on_stale=choice("on_stale", ON_STALE),
        cooldown_days=number("cooldown_days", "days", low=0.0, high=MOST_DAYS),
    )
    fields.done()
    if policy.promote_speedup < policy.reject_speedup:
        raise fields.wrong(
            "promote_speedup",
            f"is below reject_speedup ({policy.reject_speedup:g})",
            "set promote_speedup to reject_speedup or more",
        )
    return policy
