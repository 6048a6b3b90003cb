"""A request is one that SageMaker's own model accepts, with names within its limits."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.planning.arms import ArmPlan, scaled_learning_rate
from compilegate.domain.request.build import JobContext, JobSite, quality_request, speed_request
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import MIN_RUNTIME_SECONDS, Workload
from tests.domain.test_workload import changed

SITE = JobSite(
    stage="prod", bucket="data", region="us-east-1", job_roles="",
    kms_key_arn="arn:aws:kms:us-east-1:1:key/k", subnet_ids=("subnet-1",),
    security_group_ids=("sg-1",),
)  # fmt: skip
CONTEXT = JobContext(
    SITE, "arn:aws:iam::123456789012:role/training-role", trial="abcd1234",
    execution="arn:aws:states:us-east-1:1:execution:m:e", source_key="source.tgz",
)  # fmt: skip


def arm(**changes: Any) -> ArmPlan:
    values: dict[str, Any] = {
        "name": "compile", "compiler": "torch_compile", "image": "1.dkr.ecr.us-east-1/x:1",
        "instance_type": "ml.g5.xlarge", "instance_count": 1, "devices": 1, "usd_per_hour": 1.408,
        "precision": "fp32", "batch_size": 32, "learning_rate": 5e-5, "distribution": "none",
        "overrides": {"compiler": "torch_compile"},
    }  # fmt: skip
    return ArmPlan(**{**values, **changes})


def workload(name: str = "bert-docs", **changes: Any) -> Workload:
    document = changed("name", name)
    document["training"].update(changes)
    document["schedule"]["run_hours"] = min(6.0, document["training"]["max_runtime_hours"])
    return parse_workload(document)


def full(**changes: Any) -> dict[str, Any]:
    return quality_request(
        workload(**changes), arm(), run="q1b17", replicate=0, seed=17, context=CONTEXT
    )


def short() -> dict[str, Any]:
    arms = [arm(name="baseline", compiler="none", overrides={}), arm()]
    return speed_request(
        workload(), arms, run="s0", first_block=0, blocks=3, steps=160, context=CONTEXT
    )


def test_every_metric_of_quality_has_a_definition_once():
    listed = [{"metric": name, "goal": "minimize", "margin": 0.1} for name in ("loss", "gap")]
    quality = {"metric": "eval_accuracy", "goal": "maximize", "margin": 0.005}
    job = parse_workload(changed("quality", {**quality, "guardrails": listed}))
    request = quality_request(job, arm(), run="q1b17", replicate=0, seed=17, context=CONTEXT)
    names = [one["Name"] for one in request["AlgorithmSpecification"]["MetricDefinitions"]]

    assert {"eval_accuracy", "loss", "gap"} < set(names)
    assert len(set(names)) == len(names)


LONGEST = 10**naming.ROUND_DIGITS - 1


def test_the_longest_names_leave_room_for_the_retry_suffix():
    run = naming.quality_run(LONGEST, 25, 10**naming.SEED_DIGITS - 1)

    assert len(naming.job_base("x" * 32, "a" * 8, run) + "-r9") == naming.JOB_NAME_MAX


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (naming.quality_run(12, 1, 4_294_967_295), ("q12b4294967295", 12, 1, 4_294_967_295)),
        (naming.speed_run(3), ("s3", 3, None, None)),
        (naming.speed_run(3, 2, 12), ("s3c12", 3, None, None, 2, 12)),
        (naming.speed_run(LONGEST, 25, 999_999),
         (f"s{LONGEST}z999999", LONGEST, None, None, 25, 999_999)),
    ],
)  # fmt: skip
def test_a_run_id_says_round_arm_and_seed_or_group_and_block(run, expected):
    """Also in the name of a job, whichever retry it is."""
    parsed = naming.parse_run(run)
    job = f"{naming.job_base('w' * 32, 'a' * 8, run)}-r9"

    assert naming.RunId(*expected) == parsed == naming.job_run("w" * 32, "a" * 8, job)
    assert ("s" == run[0]) == parsed.is_speed
    assert len(job) <= naming.JOB_NAME_MAX


@pytest.mark.parametrize(("round_number", "seed"), [(1000, 1), (1, 10**10), (-1, 1), (1, -1)])
def test_what_would_not_fit_a_job_name_is_refused(round_number, seed):
    with pytest.raises(ValueError, match="does not fit"):
        naming.quality_run(round_number, 0, seed)


@pytest.mark.parametrize("job", ["cg-bert-r2-abcd1234-x-r0", "cg-other-q1b17-r0", "q1b17-r0"])
def test_a_foreign_job_has_no_run(job):
    assert naming.job_run("bert-r2", "abcd1234", job) is None


def test_arms_of_a_trial_differ_in_nothing_but_the_change():
    base = quality_request(
        workload(), arm(name="baseline", compiler="none", overrides={}),
        run="q1a17", replicate=0, seed=17, context=CONTEXT,
    )  # fmt: skip
    candidate = full()
    differing = {
        key
        for key in base["HyperParameters"]
        if base["HyperParameters"][key] != candidate["HyperParameters"][key]
    }

    assert {"arm", "compiler"} == differing
    same = {"AlgorithmSpecification", "ResourceConfig", "Environment", "InputDataConfig"}
    assert {key: base[key] for key in same} == {key: candidate[key] for key in same}


def read_by_metrics(line: str) -> dict[str, str]:
    definitions = full()["AlgorithmSpecification"]["MetricDefinitions"]
    matches = {item["Name"]: re.search(item["Regex"], line) for item in definitions}
    return {name: match[1] for name, match in matches.items() if match}


# What mpirun puts before a line: nothing without it, Open MPI 4, the toolkit's form, Open MPI 5.
@pytest.mark.parametrize(
    "tag",
    ["", "[1,0]<stdout>:", "[1,mpirank:0,algo-1]<stdout>:", "[prterun-algo-1-9@1,0]<stdout>: "],
)
def test_metric_patterns_read_the_jobs_progress_lines(tag):
    figures = {
        "step": "120", "steps": "600", "seconds": "0.0312", "samples_per_second": "512.3",
        "loss": "3.2101",
    }  # fmt: skip
    line = " ".join(f"{name}={value}" for name, value in figures.items())

    assert figures == read_by_metrics(f"{tag}compilegate {line}")


@pytest.mark.parametrize(
    "line",
    [
        "see compilegate loss=1.0",
        "note: compilegate loss=1.0",
        "[1,0]<stderr>:compilegate loss=1.0",
        "[1,0]<stdout>:see compilegate loss=1.0",
        "[1,0]<stdout>:[x]<stdout>:compilegate loss=1.0",
        "[1,0]compilegate loss=1.0",
    ],
)
def test_metric_patterns_read_no_other_line(line):
    assert {} == read_by_metrics(line)


def test_the_time_limit_is_the_workloads_own():
    assert full()["StoppingCondition"]["MaxRuntimeInSeconds"] == 12 * 3600
    assert (
        full(max_runtime_hours=0.01)["StoppingCondition"]["MaxRuntimeInSeconds"]
        == MIN_RUNTIME_SECONDS
    )


def test_learning_rate_follows_the_batch():
    assert [scaled_learning_rate(1.0, 1.5, how) for how in ("linear", "sqrt", "none", None)] == [
        1.5,
        math.sqrt(1.5),
        1.0,
        1.0,
    ]


FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:sign-in"


def ruled(image: str = "1.dkr.ecr.us-east-1.amazonaws.com/x:1", **rules: Any) -> dict[str, Any]:
    """A full run under an organisation's rules; its source has the name that bundles have."""
    site = dataclasses.replace(SITE, rules=JobRules(**rules), tags={"cost-centre": "1"})
    key = naming.source_key("bert-docs", "abc")
    context = dataclasses.replace(CONTEXT, site=site, source_key=key)
    job = workload(inputs={"train": "s3://data/train/"})
    return quality_request(
        job, arm(image=image), run="q1b17", replicate=0, seed=17, context=context
    )


def test_a_job_in_network_isolation_gets_its_source_as_a_channel():
    request = ruled(network_isolation=True)
    channels = {
        channel["ChannelName"]: channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in request["InputDataConfig"]
    }

    assert request["EnableNetworkIsolation"] is True
    assert {
        "train": "s3://data/train/",
        "code": f"s3://data/{naming.source_key('bert-docs', 'abc')}",
    } == channels
    folder = '"/opt/ml/input/data/code/sourcedir.tar.gz"'
    assert folder == request["HyperParameters"]["sagemaker_submit_directory"]
    assert "EnableNetworkIsolation" not in ruled()


def test_traffic_between_instances_is_encrypted_where_the_deployment_says_so():
    assert ruled(encrypt_between_instances=True)["EnableInterContainerTrafficEncryption"] is True
    assert "EnableInterContainerTrafficEncryption" not in ruled()


def test_an_image_outside_of_ecr_is_pulled_through_the_vpc():
    private = "registry.example.com:5000/team/train:1"
    signs_in = {"TrainingRepositoryCredentialsProviderArn": FUNCTION}
    through_vpc = {"TrainingRepositoryAccessMode": "Vpc"}

    def config(request: dict[str, Any]) -> Any:
        return request["AlgorithmSpecification"].get("TrainingImageConfig")

    assert config(ruled(registry_credentials=FUNCTION)) is None
    assert through_vpc == config(ruled(private))
    signed = {**through_vpc, "TrainingRepositoryAuthConfig": signs_in}
    assert signed == config(ruled(private, registry_credentials=FUNCTION))


def test_a_deployments_tags_are_of_every_job_and_a_workloads_own_go_before_them():
    tags = {tag["Key"]: tag["Value"] for tag in ruled()["Tags"]}

    assert "1" == tags["cost-centre"]
    assert "bert-docs" == tags[naming.TAG_WORKLOAD]
    site = dataclasses.replace(SITE, tags={"cost-centre": "1"})
    own = dataclasses.replace(workload(), tags={"cost-centre": "2"})
    request = quality_request(
        own, arm(), run="q1b17", replicate=0, seed=17,
        context=dataclasses.replace(CONTEXT, site=site),
    )  # fmt: skip
    assert [{"Key": "cost-centre", "Value": "2"}] == [
        tag for tag in request["Tags"] if tag["Key"] == "cost-centre"
    ]
