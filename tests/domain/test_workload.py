"""A wrong workload file is refused with the field, the value and the fix; schedules among them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Policy
from compilegate.domain.workload.schedule_expression import schedule_problem, timezone_problem

WORKLOAD: dict[str, Any] = {
    "schema": 1,
    "name": "bert-docs",
    "framework": {"name": "pytorch", "version": "2.13.0"},
    "model": {"family": "transformer", "name": "bert-base"},
    "training": {
        "source_dir": "training", "entry_point": "train.py", "instance_type": "ml.g5.xlarge",
        "instance_count": 1, "distribution": "none", "precision": "fp32", "batch_size": 32,
        "learning_rate": 5e-5, "hyperparameters": {"epochs": 3},
        "inputs": {"train": "s3://bucket/train/"}, "max_runtime_hours": 12,
    },
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 3, "run_hours": 6.0},
    "quality": {"metric": "eval_accuracy", "goal": "maximize", "margin": 0.005},
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(WORKLOAD)
    *parents, last = path.split(".")
    target = document
    for key in parents:
        target = target.setdefault(key, {})
    target[last] = value
    return document


def test_defaults_are_the_contracts():
    workload = parse_workload(WORKLOAD)

    policy = Policy(
        min_mean_speedup=1.20, min_proven_speedup=1.10, alpha=0.05, quality_runs="hybrid",
        max_quality_runs=96, max_trial_usd=5000.0, hold_models=True, approval="none",
        probation_runs=12, on_stale="fall_back", cooldown_days=14.0,
    )  # fmt: skip
    assert policy == workload.policy
    assert workload.training.volume_gb == 100
    assert workload.shapes.padding == "max_length"


TOP5 = {"metric": "top5", "goal": "maximize", "margin": 0.01}


def test_guardrails_and_signals_are_read_and_written_only_where_there_are_any():
    gap = {"metric": "gap", "goal": "minimize", "margin": 0.1, "history": [0.2]}
    workload = parse_workload(changed("quality", {**WORKLOAD["quality"], "guardrails": [TOP5],
                                                  "signals": [gap]}))  # fmt: skip

    assert ("eval_accuracy", "top5", "gap") == workload.quality.reported
    assert workload == parse_workload(workload.to_dict())
    assert (
        WORKLOAD["quality"].keys() | {"history"}
        == parse_workload(WORKLOAD).to_dict()["quality"].keys()
    )


@pytest.mark.parametrize(
    ("key", "listed", "field"),
    [
        ("guardrails", [TOP5, TOP5], "quality.guardrails[1].metric"),
        ("guardrails", [{**TOP5, "metric": "eval_accuracy"}], "quality.guardrails[0].metric"),
        ("signals", [{**TOP5, "metric": "eval_accuracy"}], "quality.signals[0].metric"),
        ("guardrails", [{**TOP5, "metric": f"m{n}"} for n in range(9)], "quality.guardrails"),
        ("guardrails", [{**TOP5, "margin": 0}], "quality.guardrails[0].margin"),
        ("guardrails", [{**TOP5, "metric": "top 5"}], "quality.guardrails[0].metric"),
        ("guardrails", [{"metric": "top5", "margin": 1}], "quality.guardrails[0].goal"),
    ],
)
def test_a_guardrail_that_says_nothing_of_its_own_is_refused(key, listed, field):
    with pytest.raises(InvalidInputError) as caught:
        parse_workload(changed(f"quality.{key}", listed))

    assert [field] == [one.field for one in caught.value.each]


@pytest.mark.parametrize(
    ("path", "value", "field", "fix"),
    [
        ("schema", 2, "schema", "use 1"),
        ("colour", "red", "colour", "Known keys here"),
        ("training.batchsize", 3, "training.batchsize", "did you mean `batch_size`"),
        ("name", "Bert_Docs", "name", "lower-case letters"),
        ("name", "x" * 33, "name", "1 to 32"),
        ("name", "-bert", "name", "lower-case letters"),
        ("framework.version", 2.1, "framework.version", 'version: "…"'),
        ("framework.name", "pytroch", "framework.name", "did you mean pytorch?"),
        ("training.instance_type", "g5.xlarge", "training.instance_type", "ml.g5.48xlarge"),
        ("training.instance_count", 0, "training.instance_count", "use 1 to"),
        ("training.batch_size", "32 per GPU", "training.batch_size", "for example"),
        ("training.max_runtime_hours", "12h", "training.max_runtime_hours", "unit is hours"),
        ("training.learning_rate", 0, "training.learning_rate", "above 0"),
        ("training.learning_rate", float("nan"), "training.learning_rate", "above 0"),
        ("training.hyperparameters", {"a": [1]}, "training.hyperparameters.a", "plain"),
        ("training.hyperparameters", {"max_steps": 9}, "training.hyperparameters.max_steps",
         "full_run_steps"),
        ("shapes.static", "yes", "shapes.static", "static: true"),
        ("quality.goal", "maximise", "quality.goal", "did you mean maximize?"),
        ("quality.margin", -0.1, "quality.margin", "above 0"),
        ("quality.history", [0.9, "x"], "quality.history", "not a number"),
        ("quality.history", [0.9, float("inf")], "quality.history", "remove it"),
        ("profile", {"gpu_utilization": 90}, "profile.gpu_utilization", "at most 1"),
        ("policy", {"min_mean_speedup": 1.05}, "policy.min_mean_speedup",
         "set min_mean_speedup to"),
        ("policy", {"max_trial_usd": "cheap"}, "policy.max_trial_usd", "US dollars"),
        ("policy", {"on_stale": "keepp"}, "policy.on_stale", "did you mean keep?"),
        ("policy", {"cooldown_days": -1}, "policy.cooldown_days", "at least 0"),
        ("policy", {"approval": "yes"}, "policy.approval", "use one of none, required"),
        ("policy", {"hold_models": "no"}, "policy.hold_models", "hold_models: true"),
        ("candidates", [{"name": "a"}], "candidates[0].name", "add what it changes"),
        ("candidates", [{"name": "baseline"}], "candidates[0].name", "own name"),
        ("candidates", [{"name": "a-native", "precision": "bf16"}], "candidates[0].name",
         "controls"),
        ("candidates", {"name": "a"}, "candidates", "start each item"),
        ("training", None, "training", "key: value"),
    ],
)  # fmt: skip
def test_a_wrong_value_names_the_field_and_the_fix(path, value, field, fix):
    with pytest.raises(InvalidInputError) as caught:
        parse_workload(changed(path, value))

    assert field == caught.value.field
    assert fix in str(caught.value)


def test_every_section_says_what_is_wrong_with_it():
    document = {"schema": 1, "framework": {"name": "pytorch"}, "training": [], "colour": "red"}

    with pytest.raises(InvalidInputError) as caught:
        parse_workload(document)

    fields = [one.field for one in caught.value.each]
    assert [
        "framework.version", "training", "name", "model", "shapes", "schedule", "quality", "colour",
    ] == fields  # fmt: skip
    assert len(fields) == len(str(caught.value).splitlines()) - 1


def test_what_sections_mean_together_is_asked_of_sound_ones_only():
    document = changed("schedule.run_hours", 20)
    with pytest.raises(InvalidInputError, match=r"is above training\.max_runtime_hours"):
        parse_workload(document)

    document["training"]["max_runtime_hours"] = "12h"
    with pytest.raises(InvalidInputError) as caught:
        parse_workload(document)
    assert ["training.max_runtime_hours"] == [one.field for one in caught.value.each]


# The examples of EventBridge's own pages, and their wildcards.
SCHEDULES = [
    "cron(0 10 * * ? *)", "cron(15 12 * * ? *)", "cron(0 18 ? * MON-FRI *)", "cron(0 8 1 * ? *)",
    "cron(0/15 * * * ? *)", "cron(*/10 * ? * MON-FRI *)", "cron(0/5 8-17 ? * mon-fri *)",
    "cron(15 10 ? * 6L 2022-2023)", "cron(0 0 L * ? *)", "cron(0 9 3W * ? *)", "cron(0 9 LW * ? *)",
    "cron(0 9 ? * 3#2 *)", "cron(0 9 ? JAN,FEB,MAR SUN 1970)", "cron(0,30 0-2 1-7 */3 ? 2199)",
    "cron(0   3 * * ? *)", "rate(1 minute)", "rate(5 minutes)", "rate(1 hour)", "rate(7 days)",
]  # fmt: skip
WRONG_SCHEDULES = [
    "", " ", "daily", "@daily", "0 3 * * 1", "cron()", "cron(0 3 * * ?)", "cron(0 3 * * ? * *)",
    "cron(60 3 * * ? *)", "cron(0 24 * * ? *)", "cron(0 3 32 * ? *)", "cron(0 3 0 * ? *)",
    "cron(0 3 * 13 ? *)", "cron(0 3 ? * 8 *)", "cron(0 3 ? * 0 *)", "cron(0 3 * * ? 1969)",
    "cron(0 3 * * * *)", "cron(0 3 ? * ? *)", "cron(0 3 1 * MON *)", "cron(? 3 * * ? *)",
    "cron(0 3 ? * MOON *)", "cron(0 3 ? * 3#6 *)", "cron(0/0 3 * * ? *)", "cron(-1 3 * * ? *)",
    "cron(0 3 * * ? *", "cron(0 3 * * ? *) ", "rate(0 days)", "rate(-1 days)", "rate(1.5 hours)",
    "rate(5 weeks)", "rate(5)", "rate(5  minutes)", "at(2026-12-01T03:00:00)",
    "cron(1,,2 * * * ? *)",
]  # fmt: skip


@pytest.mark.parametrize("expression", SCHEDULES)
def test_a_sound_schedule_has_no_problem(expression):
    assert schedule_problem(expression) is None


@pytest.mark.parametrize("expression", WRONG_SCHEDULES)
def test_a_wrong_schedule_has_a_problem_and_a_fix(expression):
    assert all(schedule_problem(expression) or ("",))


@given(
    text=st.text(max_size=40)
    | st.lists(st.text("0123456789*?/,-LW#MONJAN", max_size=5), max_size=8).map(
        lambda fields: f"cron({' '.join(fields)})"
    )
)
def test_any_text_has_an_answer(text):
    schedule_problem(text)


@pytest.mark.parametrize("zone", ["", "+02:00", "Europe/", "Europe/Berlin;", "a/b/c/d", "Türkiye"])
def test_other_text_is_not_a_time_zone(zone):
    _, fix = timezone_problem(zone, "cron(0 3 * * ? *)") or ("", "")

    assert "Europe/Berlin" in fix


@pytest.mark.parametrize("expression", [None, "rate(7 days)"])
def test_a_time_zone_needs_a_cron(expression):
    assert timezone_problem("Europe/Berlin", expression) is not None
    assert timezone_problem("UTC", expression) is None
