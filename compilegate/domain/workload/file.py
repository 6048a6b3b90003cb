"""Reads a workload document into a Workload, or says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Form, Reading
from compilegate.domain.fields import Fields
from compilegate.domain.workload.candidates import (
    check_candidates,
    parse_candidates,
    parse_name,
)
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
    Workload,
)
from compilegate.domain.workload.names import METRIC, check_tags
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
_SET = Form(
    re.compile(r"[0-9a-f]{12,64}"), "is no digest of an evaluation set",
    "use 12 to 64 digits of a run's set_sha256",
)  # fmt: skip

_ROLE = Form(
    re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}"),
    "is not the ARN of an IAM role", "give one such as arn:aws:iam::123456789012:role/training",
)  # fmt: skip


def parse_workload(document: object, reading: Reading | None = None) -> Workload:
    """Read a workload document; ``reading`` may collect what is expected of it.

    Raises InvalidInputError naming every wrong field, its value and the fix.
    """
    reading = reading or Reading()
    fields = Fields(document, reading=reading)
    version = fields.integer("schema", "schema version", about="version of this format")
    if isinstance(version, int) and version != SCHEMA:
        fields.refuse("schema", "is a version this release cannot read", f"use {SCHEMA}")
    framework = parse_framework(fields.section("framework", about="image of the job"))
    training = parse_training(fields.section("training", about="the job as it runs today"))
    workload = Workload(
        name=parse_name(fields),
        owner=fields.text("owner", None, about="receives messages; a tag of every job"),
        framework=framework,
        model=_model(fields.section("model", about="what is trained")),
        training=training,
        shapes=_shapes(fields.section("shapes", about="of the tensors of a step")),
        schedule=_schedule(fields.section("schedule", about="of production")),
        profile=_profile(fields.optional_section("profile", about="measured in production")),
        quality=_quality(fields.section("quality", about="what must not get worse")),
        policy=parse_policy(fields.optional_section("policy", about="what the team accepts")),
        candidates=parse_candidates(fields),
        tags=fields.words("tags", "cost-centre: ml", about="of every job"),
        facts=fact_overrides(fields.optional_section("facts", about="own prices and images")),
    )
    check_tags(fields, workload.tags, owner=workload.owner)
    fields.done()
    reading.end()
    reading.errors += _between_sections(workload)
    reading.end()
    return workload


def _between_sections(workload: Workload) -> Iterator[InvalidInputError]:
    """What is wrong although every section is sound by itself."""
    hours, most = workload.schedule.run_hours, workload.training.max_runtime_hours
    if hours > most:
        yield InvalidInputError(
            f"is above training.max_runtime_hours ({most:g}), where a job is cut off",
            field="schedule.run_hours",
            value=hours,
            fix="raise the limit, or correct how long a run takes",
        )
    yield from check_candidates(workload.candidates, workload.training, workload.framework)


def _model(fields: Fields) -> Model:
    model = Model(
        family=fields.choice("family", FAMILIES, about="kind of model"),
        name=fields.text("name", about="for people"),
    )
    return fields.complete(model)


def _shapes(fields: Fields) -> Shapes:
    shapes = Shapes(
        static=fields.flag("static", about="every step has the same tensor shapes"),
        padding=fields.choice("padding", PADDINGS, "max_length", about="of a batch's samples"),
        drop_last=fields.flag("drop_last", True, about="a smaller last batch is left out"),
        loader=fields.choice("loader", LOADERS, "standard", about="who loads the data"),
    )
    return fields.complete(shapes)


def _schedule(fields: Fields) -> Schedule:
    schedule = Schedule(
        runs_per_week=fields.number(
            "runs_per_week", "runs per week", above=0.0, high=MOST_RUNS_PER_WEEK,
            about="of production",
        ),
        run_hours=fields.number(
            "run_hours", "hours", above=0.0, high=MOST_HOURS,
            about="typical wall clock of a production run",
        ),
        cron=fields.text(
            "cron", None, about="cron(…) or rate(…) of EventBridge Scheduler; absent: the team "
            "starts its runs",
        ),
        timezone=fields.text("timezone", UTC, about="in which cron is read"),
        max_wait_hours=fields.number(
            "max_wait_hours", "hours", low=0.0, high=MOST_HOURS, default=None,
            about="for machines; absent: until the next run, at most 24",
        ),
        team_role=fields.text(
            "team_role", None, form=_ROLE,
            about="ARN of the role that the team's own pipeline trains as; absent: the workload's",
        ),
    )  # fmt: skip
    if not fields.done():
        return schedule
    problem = None if schedule.cron is None else schedule_problem(schedule.cron)
    if problem:
        fields.refuse("cron", *problem)
    problem = timezone_problem(schedule.timezone, schedule.cron)
    if problem:
        fields.refuse("timezone", *problem)
    return schedule


_SHARES = {
    "gpu_utilization": "of the time in which the GPU works",
    "data_wait_fraction": "of a step that waits for data",
    "communication_fraction": "of a step that exchanges gradients",
}
_SECONDS = {
    "compile_seconds": "compilation per run, with a warm cache",
    "compile_seconds_cold": "compilation per run, without one",
}


def _profile(fields: Fields | None) -> Profile | None:
    if fields is None:
        return None
    shares = {
        name: fields.number(name, "share of 1", low=0.0, high=1.0, default=None, about=about)
        for name, about in _SHARES.items()
    }
    gib = fields.number(
        "peak_memory_gib", "GiB per device", above=0.0, high=MOST_GIB, default=None,
        about="peak memory of one GPU",
    )  # fmt: skip
    seconds = {
        name: fields.number(name, "seconds", low=0.0, high=MOST_SECONDS, default=None, about=about)
        for name, about in _SECONDS.items()
    }
    profile = Profile(**shares, peak_memory_gib=gib, **seconds)
    if not fields.done():
        return profile
    data, communication = profile.data_wait_fraction or 0.0, profile.communication_fraction or 0.0
    if data + communication > 1.0:
        problem = f"and data_wait_fraction ({data:g}) are together more than a whole step"
        fields.refuse("communication_fraction", problem, "measure both as shares of one step")
    warm, cold = profile.compile_seconds, profile.compile_seconds_cold
    if warm is not None and cold is not None and warm > cold:
        problem = f"is above compile_seconds_cold ({cold:g})"
        fields.refuse("compile_seconds", problem, "a warm cache cannot take longer: swap them")
    return profile


def _quality(fields: Fields) -> Quality:
    quality = Quality(
        metric=fields.text("metric", form=METRIC, about="name that the job reports it under"),
        goal=fields.choice("goal", GOALS, about="which way is better"),
        margin=fields.number(
            "margin", "the metric's own unit", above=0.0,
            about="smallest loss that is not accepted, fixed before any run",
        ),
        history=fields.numbers(
            "history", about="final metrics of past production baseline runs, newest last"
        ),
        history_set=parse_history_set(fields),
        early_stopping=fields.flag(
            "early_stopping", None,
            about="whether the script decides when a run ends; equal steps are then compared",
        ),
    )  # fmt: skip
    return fields.complete(quality)


def parse_history_set(fields: Fields) -> str | None:
    """The evaluation set that past runs were scored on, or enough of its digest to tell it."""
    about = "examples that they were scored on (set_sha256); on others they do not count"
    known: str | None = fields.text("history_set", None, form=_SET, about=about)
    return known


def parse_policy(fields: Fields | None) -> Policy:
    """Read a policy section, defaults where it is absent."""
    if fields is None:
        return Policy()
    base = Policy()

    def number(key: str, unit: str, about: str, **bounds: float) -> Any:
        return fields.number(key, unit, default=getattr(base, key), about=about, **bounds)

    def runs(key: str, unit: str, low: int, about: str) -> Any:
        default = getattr(base, key)
        return fields.integer(key, unit, low=low, high=MOST_RUNS, default=default, about=about)

    def choice(key: str, allowed: Sequence[str], about: str) -> Any:
        return fields.choice(key, allowed, getattr(base, key), about=about)

    policy = Policy(
        promote_speedup=number(
            "promote_speedup", "times baseline", "promote if short blocks average this or more",
            low=1.0
        ),
        reject_speedup=number(
            "reject_speedup", "times baseline",
            "promote if short blocks and whole jobs are proven above", low=1.0
        ),
        alpha=number(
            "alpha", "error probability", "chance of promoting a bad candidate",
            low=LEAST_ALPHA, high=0.5,
        ),
        quality_runs=choice("quality_runs", QUALITY_RUNS, "who makes the full runs"),
        max_quality_runs=runs("max_quality_runs", "runs per candidate", 2, "full runs at most"),
        max_trial_usd=number(
            "max_trial_usd", "US dollars", "of a trial, never exceeded", above=0.0, high=MOST_USD
        ),
        hold_models=fields.flag(
            "hold_models", base.hold_models,
            about="hold a candidate's production models back until the verdict",
        ),
        approval=choice("approval", APPROVALS, "whether a person approves a promotion"),
        probation_runs=runs("probation_runs", "runs", 1, "of production that confirm a promotion"),
        on_stale=choice("on_stale", ON_STALE, "a promotion whose job has changed"),
        cooldown_days=number(
            "cooldown_days", "days", "without a trial after a revert", low=0.0, high=MOST_DAYS
        ),
    )  # fmt: skip
    if fields.done() and policy.promote_speedup < policy.reject_speedup:
        fields.refuse(
            "promote_speedup",
            f"is below reject_speedup ({policy.reject_speedup:g})",
            "set promote_speedup to reject_speedup or more",
        )
    return policy
