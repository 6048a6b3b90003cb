"""How each kind of arm is launched, and what a spot job, its tags and its arm add."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.argument_text import decoded_document
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request.build import (
    XLA_LAUNCHER,
    ProductionJob,
    production_request,
    quality_request,
    speed_request,
)
from compilegate.domain.workload.model import Framework, Workload
from tests.domain.test_request import CONTEXT, arm, workload

MANAGED_COMPILER = "sagemaker_training_compiler"
LARGE = {"instance_type": "ml.g5.48xlarge", "devices": 16, "instance_count": 2}
HF = Framework("huggingface-pytorch", "2.1.0", "4.36.0", "py310")
HF_XLA = Framework("huggingface-pytorch", "1.11.0", "4.21.1", "py38")
HF_OLD = Framework("huggingface-pytorch", "1.10.2", "4.17.0", "py38")
PYTORCH = Framework("pytorch", "2.1.0", None, "py310")
PYTORCH_XLA = Framework("pytorch", "1.13.1", None, "py39")
TENSORFLOW = Framework("tensorflow", "2.11.0", None, "py39")
XGBOOST = Framework("xgboost", "1.7-1")
PARTITIONING = {"partitions": 2, "ddp": True}


def job(framework: Framework = PYTORCH, **changes: Any) -> Workload:
    return dataclasses.replace(workload(**changes), framework=framework)


def request(of: Workload, **changes: Any) -> dict[str, Any]:
    return quality_request(of, arm(**changes), run="q1b17", replicate=0, seed=17, context=CONTEXT)


def speed(of: Workload, **changes: Any) -> dict[str, Any]:
    return speed_request(
        of, [arm(**changes)], run="s0", first_block=0, blocks=1, steps=9, context=CONTEXT
    )


def decoded(request_: dict[str, Any]) -> dict[str, Any]:
    """Decoded hyperparameters of the launch and the script."""
    return {key: json.loads(value) for key, value in request_["HyperParameters"].items()}


def launch(request_: dict[str, Any]) -> dict[str, Any]:
    common = ("program", "submit_directory", "container_log_level", "region")
    ours = {f"sagemaker_{key}" for key in common}
    return {
        key: value
        for key, value in decoded(request_).items()
        if key.startswith("sagemaker_") and key not in ours
    }


@pytest.mark.parametrize(
    ("version", "runner"),
    [("2.0.0", "sagemaker_torch_distributed_enabled"), ("1.13.1", "sagemaker_mpi_enabled")],
)
def test_model_parallelism_is_started_by_torchrun_since_pytorch_2(version, runner):
    """What tests/conformance compares with the SDK, every other launcher among it, has no 2.0."""
    framework = Framework("pytorch", version)

    assert launch(request(job(framework), distribution="smp", **LARGE))[runner] is True


@pytest.mark.parametrize(
    ("framework", "distribution", "devices", "runner", "gpus"),
    [
        (PYTORCH_XLA, "pytorchxla", 16, True, None),
        (HF_XLA, "pytorchxla", 16, True, None),
        (HF_XLA, "none", 2, False, "1"),
        (HF_OLD, "none", 2, False, "1"),
        (TENSORFLOW, "none", 16, False, None),
    ],
)
def test_the_managed_compiler_is_switched_on_and_finds_its_gpus(
    framework, distribution, devices, runner, gpus
):
    sent = request(
        job(framework), compiler=MANAGED_COMPILER, distribution=distribution,
        **{**LARGE, "devices": devices},
    )  # fmt: skip
    expected = {
        "sagemaker_training_compiler_enabled": True,
        "sagemaker_training_compiler_debug_mode": False,
        **({"sagemaker_pytorch_xla_multi_worker_enabled": True} if runner else {}),
    }

    assert expected == launch(sent)
    assert gpus == sent["Environment"].get("GPU_NUM_DEVICES")


def test_before_pytorch_1_11_a_launcher_script_starts_the_training_script():
    full = request(job(HF_OLD), compiler=MANAGED_COMPILER, **LARGE)

    assert (XLA_LAUNCHER, "train.py") == (
        decoded(full)["sagemaker_program"], decoded(full)["training_script"],
    )  # fmt: skip
    assert "8" == full["Environment"]["GPU_NUM_DEVICES"]


@pytest.mark.parametrize(
    ("framework", "distribution", "launcher"),
    [(HF_OLD, "none", "sm_dist"), (PYTORCH_XLA, "pytorchxla", "xla_spawn"),
     (TENSORFLOW, "none", None)],
)  # fmt: skip
def test_a_speed_job_starts_the_managed_compilers_segments_itself(
    framework, distribution, launcher
):
    short = speed(job(framework), compiler=MANAGED_COMPILER, distribution=distribution, **LARGE)
    values = decoded(short)

    assert ("compilegate_runtime/speed_gate.py", "train.py", launcher) == (
        values["sagemaker_program"], values["program"], values.get("launcher"),
    )  # fmt: skip
    assert {
        "sagemaker_training_compiler_enabled": True,
        "sagemaker_training_compiler_debug_mode": False,
    } == launch(short)
    assert "training_script" not in values


@pytest.mark.parametrize(
    ("framework", "compiler", "distribution", "fix"),
    [
        (PYTORCH, "none", "pytorchxla", "pytorchddp, smddp, smp, torch_distributed"),
        (XGBOOST, "none", "smddp", "use one of none"),
        (TENSORFLOW, "none", "torch_distributed", "none, smddp, smp"),
        (PYTORCH_XLA, MANAGED_COMPILER, "torch_distributed", "none, pytorchxla"),
        (HF_OLD, MANAGED_COMPILER, "pytorchxla", "use one of none"),
        (TENSORFLOW, MANAGED_COMPILER, "smddp", "use one of none"),
    ],
)
def test_a_launcher_that_does_not_exist_is_refused(framework, compiler, distribution, fix):
    with pytest.raises(InvalidInputError) as refused:
        request(job(framework), compiler=compiler, distribution=distribution, **LARGE)

    assert distribution == refused.value.value
    assert fix in refused.value.fix


def test_an_arm_may_have_its_own_script_mode_and_values():
    sent = request(
        job(), entry_point="other.py", compile_mode="max-autotune", hyperparameters={"epochs": 9}
    )

    expected = {"sagemaker_program": "other.py", "compile_mode": "max-autotune", "epochs": 9}
    assert expected.items() <= decoded(sent).items()
    assert "compile_mode" not in decoded(request(job()))


def test_partitioning_reaches_the_library_as_an_object_also_in_a_speed_job():
    split = job(hyperparameters={"mp_parameters": json.dumps(PARTITIONING)})
    short = speed(split, distribution="smp", **LARGE)

    assert PARTITIONING == decoded(request(split))["mp_parameters"]
    assert PARTITIONING == decoded(short)["mp_parameters"]
    assert "mp_parameters" not in decoded_document(decoded(short)["arm_0"])["hyperparameters"]


@pytest.mark.parametrize("value", ["{", "[1]", 3])
def test_partitioning_must_be_an_object(value):
    with pytest.raises(InvalidInputError, match="must be a JSON object"):
        request(job(hyperparameters={"mp_parameters": value}))


def test_names_of_the_platform_are_refused_among_hyperparameters():
    with pytest.raises(InvalidInputError, match=r"hyperparameters\.sagemaker_mpi_enabled"):
        request(job(hyperparameters={"sagemaker_mpi_enabled": True}))


def test_every_job_is_spot_or_none_is():
    spot = job(spot=True, max_runtime_hours=2, max_wait_hours=5)
    full, short = request(spot), speed(spot)

    assert full["EnableManagedSpotTraining"] is short["EnableManagedSpotTraining"] is True
    assert {"MaxRuntimeInSeconds": 7200, "MaxWaitTimeInSeconds": 18000} == full["StoppingCondition"]
    # The same three hours of waiting on top of a shorter job.
    assert 3 * 3600 == (
        short["StoppingCondition"]["MaxWaitTimeInSeconds"]
        - short["StoppingCondition"]["MaxRuntimeInSeconds"]
    )
    assert "EnableManagedSpotTraining" not in request(job())


@pytest.mark.parametrize(("hours", "wait"), [(2.0, 14400), (0.01, 1800)])
def test_a_spot_job_may_wait_as_long_as_it_trains_by_default(hours, wait):
    limits = request(job(spot=True, max_runtime_hours=hours))["StoppingCondition"]

    assert wait == limits["MaxWaitTimeInSeconds"] == 2 * limits["MaxRuntimeInSeconds"]


def test_a_spot_job_resumes_from_its_own_runs_checkpoints_only():
    mine, shared = request(job(spot=True)), request(job())
    other = quality_request(
        job(spot=True), arm(), run="q1b18", replicate=0, seed=18, context=CONTEXT
    )

    places = [sent["CheckpointConfig"]["S3Uri"] for sent in (mine, other, shared)]
    assert 3 == len(set(places))
    assert naming.CHECKPOINT_PATH == mine["CheckpointConfig"]["LocalPath"]
    # A script that looks for checkpoints finds none of another run.
    assert naming.COMPILE_CACHE_PATH == shared["CheckpointConfig"]["LocalPath"]
    for sent in (mine, shared):
        assert naming.INDUCTOR_CACHE_PATH == sent["Environment"]["COMPILEGATE_COMPILE_CACHE"]
        assert naming.INDUCTOR_CACHE_PATH.startswith(sent["CheckpointConfig"]["LocalPath"])


def tags_of(sent: dict[str, Any]) -> dict[str, str]:
    tags = [(tag["Key"], tag["Value"]) for tag in sent["Tags"]]
    assert len(dict(tags)) == len(tags)
    return dict(tags)


@pytest.mark.parametrize(
    ("owner", "team"),
    [
        (None, {"cost-center": "42", "owner": "someone"}),
        ("ml@example.com", {"cost-center": "42", "other": "43"}),
        ("ml@example.com", {}),
        (None, {}),
    ],
)
def test_the_teams_tags_stand_beside_the_trials(owner, team):
    tagged = dataclasses.replace(job(), tags=team, owner=owner)
    also = {"compilegate:decision": "d1"}
    in_production = ProductionJob(run="r1", number=2, replicate=0, seed=17, tags=also)
    context = dataclasses.replace(CONTEXT, trial="r1")

    of_every_job = {
        "compilegate:workload": "bert-docs", "compilegate:execution": CONTEXT.execution,
        **({"owner": owner} if owner else {}), **team,
    }  # fmt: skip
    of_full_run = {"compilegate:trial": "abcd1234", "compilegate:run": "q1b17",
                   "compilegate:stage": "quality", "compilegate:arm": "compile"}  # fmt: skip
    of_segments = {**of_full_run, "compilegate:run": "s0", "compilegate:stage": "speed",
                   "compilegate:arm": "all"}  # fmt: skip
    of_production = {"compilegate:run": "r1", "compilegate:stage": "production",
                     "compilegate:arm": "compile", **also}  # fmt: skip
    assert {**of_every_job, **of_full_run} == tags_of(request(tagged))
    assert {**of_every_job, **of_segments} == tags_of(speed(tagged))
    assert {**of_every_job, **of_production} == tags_of(
        production_request(tagged, arm(), in_production, context)
    )


def test_full_runs_that_a_trial_asks_for_end_with_the_check():
    first = ProductionJob(run="r1", number=0, replicate=0, seed=17)
    canary = dataclasses.replace(first, examined=True)
    requests = [
        request(job()), production_request(job(), arm(), canary, CONTEXT),
        production_request(job(), arm(), first, CONTEXT), speed(job()),
    ]  # fmt: skip

    asked = [one["Environment"].get("COMPILEGATE_EQUIVALENCE") for one in requests]
    assert ["last", "last", None, None] == asked


@pytest.mark.parametrize("key", ["aws:x", "AWS:x", "compilegate:arm", "Compilegate:x"])
def test_reserved_prefixes_are_refused_among_tags(key):
    with pytest.raises(InvalidInputError, match="reserved prefix"):
        request(dataclasses.replace(job(), tags={key: "v"}))
