"""Arms of a plan: what each changes, what stands beside it, and why it is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.naming import parse_run, quality_run
from compilegate.domain.planning.arms import (
    ArmPlan,
    Cluster,
    arm_of,
    controls_of,
    measured_by,
    node_groups,
    plan_arms,
    promoted,
    speed_jobs,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate, Framework, Profile, Workload
from compilegate.facts import load_facts
from tests.domain.workload_builder import ARTICLE, COMPILE, PYTORCH_XLA, SOUND, XLA, change
from tests.domain.workload_builder import PAIR as MANAGED_PAIR

PAIR = replace(MANAGED_PAIR, name="managed-pair")
PRICES = load_facts().prices


def arms_of(workload: Workload, *candidates: Candidate) -> dict[str, ArmPlan]:
    arms = plan_arms(workload, candidates, load_facts(), region="us-east-1")
    assert not isinstance(arms, Reason), arms
    return {arm.name: arm for arm in arms}


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"compiler": "torch_compile"}, "one factor: compiler"),
        ({"compiler": "torch_compile", "compile_mode": "max-autotune"}, "one factor: compiler"),
        ({"batch_size": 48, "learning_rate_scaling": "linear"}, "one factor: batch size"),
        ({"batch_size": 32}, "changes nothing"),
        ({"precision": "fp8"}, "one factor: precision"),
        ({"instance_type": "ml.p4d.24xlarge"}, "one factor: instances"),
        ({"instance_count": 2}, "bundle of batch size and instances"),
        ({"instance_count": 2, "batch_size": 16}, "one factor: instances"),
        ({"distribution": "smddp"}, "one factor: distribution"),
        ({"entry_point": "other.py"}, "one factor: script"),
        ({"hyperparameters": {"warmup": 10}}, "one factor: hyperparameters"),
        (
            {"compiler": "torch_compile", "batch_size": 48},
            "bundle of compiler and batch size",
        ),
        (
            {"compiler": "torch_compile", "batch_size": 48, "precision": "fp16"},
            "bundle of compiler, batch size and precision",
        ),
    ],
)
def test_an_arm_is_labelled_by_the_factors_that_it_changes(changes, label):
    arms = arms_of(SOUND, Candidate(name="arm", **changes))  # type: ignore[arg-type]

    assert ("as it runs today", label) == (arms["baseline"].label, arms["arm"].label)


RATE = SOUND.training.learning_rate
TWICE = Candidate(name="twice", instance_count=2, learning_rate_scaling="linear")
PORTED = replace(PAIR, batch_size=48, entry_point="train_xla.py", hyperparameters={"a": 1})
ONE_GPU = change(SOUND, training__instance_type="ml.g5.xlarge", training__distribution="none")
NATIVE = "managed-pair-native"
IMAGES = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
# What of an arm follows from what: workload, candidate, the arm's name, fields.
ARMS: list[tuple[Workload, Candidate, str, dict[str, object]]] = [
    # The launcher that only the managed compiler has is no factor of its own.
    (PYTORCH_XLA, XLA, "managed", {"factors": ("compiler",)}),
    (PYTORCH_XLA, replace(XLA, distribution="smddp"), "managed",
     {"factors": ("compiler", "distribution")}),
    (ARTICLE, PAIR, "managed-pair",
     {"framework": {"name": "pytorch", "version": "1.13.1", "python": "py39"}}),
    # The learning rate follows the batch of all devices.
    (SOUND, Candidate(name="b64", batch_size=64, learning_rate_scaling="linear"), "b64",
     {"global_batch": 512, "learning_rate": 2 * RATE}),
    (SOUND, Candidate(name="b64", batch_size=64, learning_rate_scaling="sqrt"), "b64",
     {"learning_rate": RATE * 2**0.5}),
    (SOUND, Candidate(name="b64", batch_size=64), "b64", {"learning_rate": RATE}),
    (SOUND, TWICE, "twice", {"global_batch": 512, "learning_rate": 2 * RATE}),
    (SOUND, replace(TWICE, name="kept", batch_size=16), "kept",
     {"global_batch": 256, "learning_rate": RATE}),
    # A control keeps batch and precision, but not the compiler's own launcher and script.
    (ARTICLE, PAIR, NATIVE,
     {"role": "control", "compiler": "none", "distribution": "torch_distributed"}),
    (ARTICLE, replace(PAIR, distribution="smddp", compile_mode="x", hyperparameters={"a": 1}),
     NATIVE, {"distribution": "smddp", "compile_mode": None, "hyperparameters": {"a": 1}}),
    (ARTICLE, PORTED, NATIVE, {"batch_size": 48, "entry_point": None, "hyperparameters": {}}),
    (ONE_GPU, PAIR, NATIVE, {"distribution": "none"}),
    (SOUND, Candidate(name="cpu", instance_type="ml.m5.xlarge"), "cpu",
     {"image": f"{IMAGES}/pytorch:2.13.0-cpu-amzn2023-sagemaker"}),
    (SOUND, Candidate(name="p4d", instance_type="ml.p4d.24xlarge", instance_count=2), "p4d",
     {"cluster": Cluster("ml.p4d.24xlarge", 2), "devices": 16,
      "usd_per_hour": 2 * PRICES["ml.p4d.24xlarge"].usd_per_hour}),
    # A first compilation takes the profiled seconds, or the assumed, at most a run.
    (SOUND, COMPILE, "baseline", {"compile_seconds": None}),
    (SOUND, COMPILE, "compile", {"compile_seconds": 300.0}),
    (change(SOUND, profile=Profile(compile_seconds_cold=42.0)), COMPILE, "compile",
     {"compile_seconds": 42.0}),
    (change(SOUND, schedule__run_hours=0.01), COMPILE, "compile", {"compile_seconds": 36.0}),
    # The profile is of torch.compile.
    (change(PYTORCH_XLA, profile=Profile(compile_seconds_cold=42.0)), XLA, "managed",
     {"compile_seconds": 900}),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "candidate", "name", "fields"), ARMS)
def test_an_arm_has_these_fields(workload, candidate, name, fields):
    arm = arms_of(workload, candidate)[name]

    assert fields == {key: getattr(arm, key) for key in fields}


BUNDLE = Candidate(
    name="compile-b48", compiler="torch_compile", batch_size=48, learning_rate_scaling="linear"
)
B48 = Candidate(name="b48", batch_size=48, learning_rate_scaling="sqrt")
HALF = Candidate(name="half", precision="fp16")
BOTH = Candidate(name="compile-half", compiler="torch_compile", precision="fp16")


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ((COMPILE,), "compare it with compile, which changes less"),
        # However each scales its learning rate.
        ((COMPILE, B48, HALF, BOTH), "compare it with compile and b48, which changes less"),
        ((HALF,), "no other candidate makes a part of these changes"),
        ((), "no other candidate makes a part of these changes"),
    ],
    ids=["a part", "both parts", "another change", "alone"],
)
def test_a_bundle_says_what_to_read_it_beside(others, words):
    assert words in arms_of(SOUND, *others, BUNDLE)["compile-b48"].why


def test_what_is_on_has_its_role_and_an_arm_the_reason_that_it_came_with():
    arms = plan_arms(
        SOUND, [COMPILE, HALF], load_facts(), region="us-east-1", why={"half": "because"},
        on="compile",
    )  # fmt: skip

    assert not isinstance(arms, Reason)
    assert ["baseline", "on", "candidate"] == [arm.role for arm in arms]
    assert "because" == arms[2].why != arms[1].why


@pytest.mark.parametrize(
    ("candidate", "overrides"),
    [
        (COMPILE, {"compiler": "torch_compile"}),
        (BUNDLE, {"compiler": "torch_compile", "batch_size": 48, "learning_rate": 1.5 * RATE}),
        (Candidate(name="b64", batch_size=64), {"batch_size": 64, "learning_rate": RATE}),
        # The rate follows the batch of all devices, however that changes.
        (TWICE, {"instance_count": 2, "learning_rate": 2 * RATE}),
        (replace(TWICE, learning_rate_scaling=None), {"instance_count": 2}),
    ],
)
def test_a_proven_arms_flag_carries_its_changes(candidate, overrides):
    today, arm = arms_of(SOUND, candidate).values()
    moved = replace(arm, image="other:1")

    for one, more in ((arm, {}), (moved, {"image": "other:1"})):
        assert Flag(True, "probation", arm.name, overrides | more, "d1", "t") == promoted(
            one, today, decision_id="d1", since="t"
        )


@pytest.mark.parametrize(
    ("candidate", "facts", "code"),
    [
        (Candidate(name="odd", instance_type="ml.g9.xlarge"), {}, "price_unknown"),
        (COMPILE, {"prices": {}}, "price_unknown"),
        (COMPILE, {"instances": {}}, "price_unknown"),
        (Candidate(name="odd", framework=Framework("pytorch", "0.4.1")), {}, "no_compiler_image"),
    ],
    ids=["type", "price", "machine", "image"],
)
def test_without_price_or_image_there_is_no_arm(candidate, facts, code):
    refusal = plan_arms(SOUND, [candidate], replace(load_facts(), **facts), region="us-east-1")

    assert isinstance(refusal, Reason)
    assert code == refusal.code


@pytest.mark.parametrize(
    ("workload", "candidate"),
    [
        (PYTORCH_XLA, replace(XLA, framework=PYTORCH_XLA.framework)),
        (PYTORCH_XLA, replace(XLA, framework=Framework("pytorch", "1.13"))),
        (ARTICLE, replace(PAIR, framework=Framework(
            "huggingface-pytorch", "1.11.0", "4.21.1", "py38"))),
        (SOUND, replace(PAIR, framework=Framework("tensorflow", "2.11.0"), distribution="none",
                        entry_point="tf.py")),
    ],
    ids=["the same versions", "written more loosely", "no image without the compiler",
         "a script of another framework"],
)  # fmt: skip
def test_no_control_is_planned(workload, candidate):
    assert ["baseline", candidate.name] == list(arms_of(workload, candidate))


# Which jobs measure a step's speed blocks.
BASE, COMPILED = arms_of(SOUND, COMPILE).values()
TUNED = replace(COMPILED, name="tuned", compile_mode="max-autotune")
APART = replace(COMPILED, name="apart", image="other:1")
NATIVE_APART = replace(BASE, name="apart-native", image="other:2", role="control")
EVERY = (BASE, COMPILED, APART, NATIVE_APART)


COMPILE_NATIVE = replace(BASE, name="compile-native", role="control")
# Jobs of three blocks on nodes of their own, by run.
BLOCKS = {f"s7{group}{block}": name for block in (1, 2, 3)
          for group, name in (("a", "baseline"), ("b", "apart"))}  # fmt: skip
CONTROLS = ("s7c1", "s7c2", "s7c3")


def names(arms: tuple[ArmPlan, ...]) -> tuple[str, ...]:
    return tuple(arm.name for arm in arms)


@pytest.mark.parametrize(
    "differs",
    [
        {"image": "other:1"}, {"instance_type": "ml.g5.xlarge"}, {"instance_count": 2},
        {"distribution": "smddp"}, {"entry_point": "other.py"}, {"role": "control"},
        {"compiler": "sagemaker_training_compiler"},  # switched on for a whole job
    ],
    ids=str,
)  # fmt: skip
def test_arms_share_a_jobs_nodes_unless_the_job_itself_would_differ(differs):
    groups = node_groups((BASE, replace(COMPILED, name="other", **differs), TUNED))

    assert [("baseline", "tuned"), ("other",)] == [names(group) for group in groups]


@pytest.mark.parametrize(
    ("arms", "measured", "had", "expected"),
    [
        ((BASE, COMPILED, TUNED), "baseline compile", {}, {"s7": "baseline compile"}),
        ((BASE, APART), "baseline apart", {}, BLOCKS),
        ((BASE, COMPILED, APART), "baseline compile", {}, {"s7": "baseline compile"}),
        # A control has three blocks in all, beside its own candidate alone.
        (EVERY, "baseline apart", {}, BLOCKS | dict.fromkeys(CONTROLS, "apart-native")),
        (EVERY, "baseline apart", {"apart-native": 2}, BLOCKS | {"s7c1": "apart-native"}),
        (EVERY, "baseline apart", {"apart-native": 3}, BLOCKS),
        (EVERY, "baseline compile", {}, {"s7": "baseline compile"}),
        ((BASE, COMPILED, COMPILE_NATIVE), "baseline compile", {"compile-native": 2},
         {"s7a1": "baseline compile", "s7b1": "compile-native",
          "s7a2": "baseline compile", "s7a3": "baseline compile"}),
    ],
    ids=["one job", "a job for each block", "left out", "a control", "its last block",
         "a control that is done", "no control", "a control of shared nodes"],
)  # fmt: skip
def test_a_step_is_measured_by_one_job_or_by_one_for_each_group_and_block(
    arms, measured, had, expected
):
    jobs = speed_jobs(arms, measured.split(), first_block=1, blocks=3, control_blocks=had)

    assert expected == {job.run(7): " ".join(names(job.arms)) for job in jobs}
    assert {3 if len(expected) == 1 else 1} == {job.blocks for job in jobs}
    assert all(job.usd_per_hour == job.arms[0].usd_per_hour for job in jobs)
    assert all(job.decides is ("native" not in job.arms[0].name) for job in jobs)


@pytest.mark.parametrize(
    ("run", "arm", "measured", "controls"),
    [
        ("s7", "baseline", None, ()),
        ("s7a1", "baseline", ("baseline", "compile"), ()),
        ("s7b1", "apart", ("apart",), ()),
        ("s7c2", "apart-native", ("apart-native",), ("apart-native",)),
        (quality_run(7, 2, 17), "apart", None, ()),
    ],
)
def test_a_runs_id_leads_to_the_arms_of_its_job(run, arm, measured, controls):
    one = parse_run(run)
    assert one is not None

    assert (arm, measured, controls) == (
        arm_of(one, EVERY).name, measured_by(one, EVERY), controls_of(one, EVERY),
    )  # fmt: skip


def test_a_bundle_with_a_control_is_read_beside_it_and_one_factor_stands_alone():
    arms = arms_of(ARTICLE, COMPILE, PAIR)

    assert f"its control {NATIVE} separates their effects" in arms["managed-pair"].why
    assert "what that version costs" in arms[NATIVE].why
    ported = arms_of(ARTICLE, PORTED)[NATIVE].why
    assert "what that version with batch size of the candidate costs" in ported
    assert arms["compile"].why.endswith("the compiler alone, which isolates its effect")
    assert "changes nothing" in arms_of(SOUND, Candidate(name="same"))["same"].why


def test_a_candidate_that_is_a_controls_name_takes_its_place():
    own = Candidate(name=NATIVE, framework=PAIR.framework, distribution="torch_distributed")
    arms = arms_of(ARTICLE, PAIR, own, replace(PAIR, name="other"))

    assert ["baseline", "managed-pair", NATIVE, "other", "other-native"] == list(arms)
    assert "candidate" == arms[NATIVE].role
