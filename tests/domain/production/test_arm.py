"""A flag's overrides laid over the registered job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import CompileBundle, Flag
from compilegate.domain.planning.arms import CANDIDATE, plan_arms, promoted
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.job import (
    TRAINS,
    RunJobs,
    baseline_arm,
    on_machines,
    with_overrides,
)
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun, CanarySlot
from compilegate.domain.workload.model import Candidate, Workload
from compilegate.facts import load_facts
from compilegate.usecases.job_requests import request_limits
from tests.domain.test_request import SITE
from tests.domain.workload_builder import COMPILE, PAIR, PYTORCH_XLA, SOUND, XLA, change

FACTS = load_facts()
REGION = "us-east-1"
JOB = (
    "compiler", "compile_mode", "image", "instance_type", "instance_count", "devices",
    "usd_per_hour", "precision", "batch_size", "learning_rate", "distribution", "entry_point",
    "framework", "hyperparameters",
)  # fmt: skip
OTHERS = Candidate(
    name="other", compiler="torch_compile", compile_mode="max-autotune", batch_size=48,
    learning_rate_scaling="linear", instance_type="ml.p4d.24xlarge", instance_count=2,
    precision="fp16", entry_point="other.py", hyperparameters={"optim": "fused"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "candidate"),
    [(SOUND, COMPILE), (SOUND, OTHERS), (PYTORCH_XLA, XLA), (SOUND, PAIR)],
    ids=["compile", "everything", "managed", "framework"],
)
def test_production_trains_what_the_trial_proved(workload, candidate):
    """Overrides as the flag holds them make the very job of the trial's arm."""
    workload = change(workload, candidates=(candidate,))
    base, arm, *_ = plan_arms(workload, (candidate,), FACTS, region=REGION)
    flag = promoted(arm, base, decision_id="d")

    changed = with_overrides(
        baseline_arm(workload, FACTS, region=REGION), arm.name, flag.overrides, FACTS
    )

    for name in JOB:
        assert getattr(arm, name) == getattr(changed, name), name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compiler", "gcc"), ("precision", 16),  ("batch_size", 0),
        ("batch_size", True), ("learning_rate", -1.0), ("instance_type", "ml.unknown.large"),
        ("image", None), ("name", "baseline"),  ("hyperparameters", []),
        ("compile_mode", "bogus"), ("entry_point", "../x"), ("image", "bad image"),
        ("instance_count", 10**6), ("batch_size", 10**9), ("distribution", "bogus"),
        ("hyperparameters", {"a": {"b": 1}}),
        ("framework", {"name": "pytorch", "version": 2}),
        ("framework", {"name": "p", "version": "1", "x": 1}),
    ],
)  # fmt: skip
def test_an_override_that_does_not_fit_is_refused_by_name(key, value):
    base = baseline_arm(SOUND, FACTS, region=REGION)

    with pytest.raises(InvalidInputError) as raised:
        with_overrides(base, "compile", {key: value}, FACTS)
    assert f"flag.overrides.{key}" == raised.value.field


FLAG = Flag(
    True, "permanent", "compile", {"compiler": "torch_compile"}, "d1", "t",
    compile_bundle=CompileBundle("compile-cache/x.json", "a" * 64),
)  # fmt: skip
BEGUN = BegunRun(
    0, "r1", "exec", "compile", "flag", 7, 3, "spec.json", "source.tgz",
    overrides={"compiler": "torch_compile"}, decision_id="d1", flag=FLAG.to_json(),
    tags={"team": "nlp"},
)  # fmt: skip
AS_CHOSEN, RERUN, FALLBACK = Attempt(), Attempt(1, rerun=True), Attempt(2, False, "ml.g5.12xlarge")
OWN_CANARY = replace(BEGUN, canary=CanarySlot("t1", 0, 1))


def jobs(workload: Workload = SOUND) -> RunJobs:
    site = replace(SITE, job_roles="arn:aws:iam::123456789012:role/training-")
    return RunJobs(TrainedJob(workload, "code"), FACTS, site, request_limits())


@pytest.mark.parametrize(
    ("begun", "attempt", "spot", "restored"),
    [
        (BEGUN, AS_CHOSEN, False, True),
        (BEGUN, AS_CHOSEN, True, False),
        (BEGUN, RERUN, False, False),
        (BEGUN, FALLBACK, False, False),
        (OWN_CANARY, AS_CHOSEN, False, False),
        (replace(BEGUN, overrides={}), AS_CHOSEN, False, False),
    ],
)
def test_compiled_code_is_restored_where_the_run_follows_the_flag(begun, attempt, spot, restored):
    bundle = jobs(change(SOUND, training__spot=spot)).compile_bundle(begun, attempt)

    assert (FLAG.compile_bundle if restored else None) == bundle


@pytest.mark.parametrize(
    ("attempt", "arm", "why"),
    [
        (AS_CHOSEN, "compile", "flag"),
        (RERUN, "baseline", "rerun"),
        (FALLBACK, "baseline", "fallback"),
    ],
)
def test_only_what_was_chosen_is_tagged_with_its_decision(attempt, arm, why):
    request = jobs().request(BEGUN, attempt)
    chosen, variables = attempt == AS_CHOSEN, request["Environment"]
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}

    assert (arm, why, "r1") == tuple(
        variables[f"COMPILEGATE_{key}"] for key in ("ARM", "WHY", "RUN")
    )
    assert chosen is ("COMPILEGATE_DECISION_ID" in variables) is ("team" in tags)
    assert chosen is (tags.get(naming.TAG_DECISION) == "d1")
    assert chosen is ("COMPILEGATE_COMPILE_BUNDLE" in variables)
    assert "exec" == tags[naming.TAG_EXECUTION]
    assert "s3://data/source.tgz" in str(request)
    assert ("7", "3") == tuple(request["HyperParameters"][key] for key in ("seed", "replicate"))
    assert request["TrainingJobName"].endswith(f"-r1-{naming.attempt(attempt.number)}")
    machine = attempt.instance_type or SOUND.training.instance_type
    assert machine == request["ResourceConfig"]["InstanceType"]
    price = FACTS.price(machine)
    assert (price and price.usd_per_hour) == jobs().usd_per_hour(BEGUN, attempt)
    planned = jobs().arm(BEGUN, AS_CHOSEN)
    assert ("compile", CANDIDATE, TRAINS) == (planned.name, planned.role, planned.why)


def test_the_run_of_a_trial_is_examined_and_no_other():
    examined = ["COMPILEGATE_EQUIVALENCE" in jobs().request(begun, AS_CHOSEN)["Environment"]
                for begun in (OWN_CANARY, BEGUN)]  # fmt: skip

    assert [True, False] == examined


def test_a_request_that_the_service_would_refuse_is_refused_before():
    long = replace(BEGUN, tags={"team": "x" * 300})

    with pytest.raises(InvalidInputError, match="must be at most 256 characters"):
        jobs().request(long, AS_CHOSEN)


@pytest.mark.parametrize("missing", ["price", "instance"])
def test_machines_without_a_price_or_a_size_have_none(monkeypatch, missing):
    other = replace(baseline_arm(SOUND, FACTS, region=REGION), instance_type="ml.g5.12xlarge")
    monkeypatch.setattr(type(FACTS), missing, lambda *_: None)

    with pytest.raises(InvalidInputError, match="has no known price"):
        on_machines(other, FACTS)
