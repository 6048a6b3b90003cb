"""A team's own job carries the flag in whichever form it is written, or stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.flags import (
    estimator_arguments,
    model_trainer_arguments,
    training_job_request,
)
from tests.flags.ssm import FakeSsm, promoted, refusal

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:2"
FRAMEWORK = {"name": "pytorch", "version": "2.8.0"}
ESTIMATOR = {
    "entry_point": "train.py", "source_dir": "src", "role": "r", "instance_type": "ml.g5.2xlarge",
    "instance_count": 1, "max_run": 3600, "hyperparameters": {"epochs": 3, "batch_size": 32},
    "tags": [{"Key": "team", "Value": "nlp"}], "environment": {"A": "1"},
}  # fmt: skip
TRAINER = {
    "training_image": "own:1", "compute": {"instance_type": "ml.g5.2xlarge", "volume": 30},
    "source_code": {"source_dir": "src", "entry_script": "train.py"},
    "hyperparameters": {"epochs": 3, "batch_size": 32}, "environment": {"A": "1"},
    "tags": [{"key": "team", "value": "nlp"}],
}  # fmt: skip
REQUEST = {
    "TrainingJobName": "nightly-1",
    "AlgorithmSpecification": {"TrainingImage": "own:1", "TrainingInputMode": "File"},
    "HyperParameters": {
        "epochs": "3", "batch_size": "32", "sagemaker_program": '"train.py"',
        "sagemaker_instance_type": '"ml.g5.2xlarge"',
    },
    "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "Environment": {"A": "1"}, "Tags": [{"Key": "team", "Value": "nlp"}],
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One way to write the same job down, and where its parts are found in it."""

    job: dict[str, Any]
    carry: Callable[..., dict[str, Any]]

    def asked(self, client: Any, *, name: str = "bert-docs", **changes: Any) -> dict[str, Any]:
        return self.carry(name, client=client, **{**self.job, **changes})

    def hyperparameters(self, job: dict[str, Any]) -> dict[str, Any]:
        values = job.get("hyperparameters", job.get("HyperParameters"))
        return {key: _value(value) for key, value in values.items()}

    def tagged(self, tags: dict[str, str]) -> dict[str, Any]:
        """The field of a job that holds these tags."""
        ((field, key, value),) = (
            (field, *self.job[field][0]) for field in ("tags", "Tags") if field in self.job
        )
        return {field: [{key: name, value: text} for name, text in tags.items()]}

    def tags(self, job: dict[str, Any]) -> dict[str, str]:
        """Its tags, each written as its form does and once."""
        (field,) = self.tagged({})
        key, value = self.job[field][0]
        tags = [(tag[key], tag[value]) for tag in job[field]]
        assert len(dict(tags)) == len(tags)
        return dict(tags)

    def variables(self, job: dict[str, Any]) -> dict[str, str]:
        result: dict[str, str] = job.get("environment", job.get("Environment"))
        return result

    def without_marks(self, job: dict[str, Any]) -> dict[str, Any]:
        marks = ("tags", "Tags", "environment", "Environment")
        return {key: value for key, value in job.items() if key not in marks}


def _value(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _request(name: str, *, client: Any, names: Any = None, **job: Any) -> dict[str, Any]:
    return training_job_request(name, job, client=client, names=names)


FORMS = {
    "sdk v2": Form(ESTIMATOR, estimator_arguments),
    "sdk v3": Form(TRAINER, model_trainer_arguments),
    "request": Form(REQUEST, _request),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    result: Form = request.param
    return result


def warned(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(
        record.getMessage() for record in caplog.records if record.name == "compilegate.flags"
    )


def test_the_script_gets_what_the_flag_says_beside_its_own_values(form: Form) -> None:
    client = promoted(
        compiler="torch_compile", compile_mode="max-autotune", precision="bf16", batch_size=48,
        learning_rate=7.5e-5, hyperparameters={"compile_regions": "auto"},
    )  # fmt: skip
    values = form.hyperparameters(form.asked(client))

    expected = {
        "epochs": 3, "batch_size": 48, "learning_rate": 7.5e-5, "compiler": "torch_compile",
        "arm": "compile", "compile_regions": "auto", "compile_mode": "max-autotune",
        "precision": "bf16",
    }  # fmt: skip
    assert expected == {key: values[key] for key in values if not key.startswith("sagemaker_")}


@pytest.mark.parametrize("decision", ["d1", None])
def test_the_run_is_found_again_by_its_tags_and_the_team_s_stay(
    form: Form, decision: str | None
) -> None:
    """A tag of ours that the team has set, in a copy of a job's settings, counts no more."""
    flag = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, decision)
    job = form.asked(
        FakeSsm(flag.to_json()),
        **form.tagged({"compilegate:arm": "baseline", "team": "nlp", "empty": ""}),
    )

    assert {
        "team": "nlp", "empty": "", "compilegate:workload": "bert-docs",
        "compilegate:stage": "team", "compilegate:deployment": "prod",
        "compilegate:arm": "compile", **({"compilegate:decision": "d1"} if decision else {}),
    } == form.tags(job)  # fmt: skip


def test_the_script_in_the_job_gets_its_arm_by_a_variable(form: Form) -> None:
    """So that its own resolve() asks nobody and cannot disagree with the tags."""
    variables = form.variables(form.asked(promoted(compiler="torch_compile")))

    expected = {"A": "1", "COMPILEGATE_ARM": "compile", "COMPILEGATE_STAGE": "prod"}
    image = variables.pop("COMPILEGATE_IMAGE", None)
    assert expected == variables
    assert (None if form.job is ESTIMATOR else "own:1") == image


@pytest.mark.parametrize(
    "client",
    [
        FakeSsm(refusal("ParameterNotFound")),
        FakeSsm(refusal("AccessDeniedException")),
        FakeSsm("not json"),
        FakeSsm('{"schema": 1, "enabled": false, "state": "reverted"}'),
        promoted(compiler="no_such_compiler"),
        promoted(batch_size="48"),
        promoted(color="red"),
        promoted(compiler="sagemaker_training_compiler", image=IMAGE),
        promoted(entry_point="other.py"),
    ],
    ids=["absent", "denied", "malformed", "off", "word", "type", "key", "managed", "no such file"],
)
def test_otherwise_the_job_is_today_s_and_a_baseline_run_is_recorded(
    form: Form, client: FakeSsm
) -> None:
    job = form.asked(client)

    assert form.without_marks(form.job) == form.without_marks(job)
    tags = form.tags(job)
    assert ("baseline", "team", "bert-docs") == tuple(
        tags[f"compilegate:{key}"] for key in ("arm", "stage", "workload")
    )
    assert "baseline" == form.variables(job)["COMPILEGATE_ARM"]


def test_what_was_passed_in_is_not_changed(form: Form) -> None:
    before = json.dumps(form.job, sort_keys=True)
    form.asked(promoted(compiler="torch_compile", batch_size=48, instance_count=2))

    assert before == json.dumps(form.job, sort_keys=True)


def test_a_hyperparameter_that_may_be_the_same_under_another_name_is_not_guessed(
    form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    key = "HyperParameters" if form.job is REQUEST else "hyperparameters"
    own = {key: {"per_device_train_batch_size": "32"}}
    client = promoted(batch_size=48)

    refused = form.hyperparameters(form.asked(client, **own))
    renamed = form.hyperparameters(
        form.asked(client, names={"batch_size": "per_device_train_batch_size"}, **own)
    )

    assert "arm" not in refused
    assert "pass names={'batch_size': 'per_device_train_batch_size'}" in warned(caplog)
    assert {"per_device_train_batch_size": 48, "arm": "compile"} == renamed


def test_more_tags_than_a_job_may_have_leave_the_job_as_it_was(
    form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    of_team = {count: form.tagged({f"t{n}": "x" for n in range(count)}) for count in (45, 46, 47)}
    job = {
        count: form.asked(promoted(compiler="torch_compile"), **tags)
        for count, tags in of_team.items()
    }

    arms = {count: form.tags(job[count]).get("compilegate:arm") for count in job}
    assert {45: "compile", 46: "baseline", 47: None} == arms
    assert [50, 50, 47] == [len(form.tags(one)) for one in job.values()]
    assert {**form.job, **of_team[47]} == job[47]
    assert "its run will not be recorded" in warned(caplog)


def test_too_many_hyperparameters_are_a_baseline_run(form: Form) -> None:
    key = "HyperParameters" if form.job is REQUEST else "hyperparameters"
    many = {key: {f"h{number}": "1" for number in range(99)}}
    job = form.asked(promoted(compiler="torch_compile"), **many)

    assert many[key] == job[key]
    assert "baseline" == form.tags(job)["compilegate:arm"]


@pytest.mark.parametrize("name", FORMS)
def test_another_framework_is_applied_where_the_image_alone_says_it(name: str) -> None:
    form = FORMS[name]
    job = form.asked(promoted(framework=FRAMEWORK, image=IMAGE))

    assert IMAGE in json.dumps(form.without_marks(job))
    assert "framework" not in job
    assert "compile" == form.tags(job)["compilegate:arm"]


def test_machines_and_image_follow_the_flag() -> None:
    client = promoted(instance_type="ml.p4d.24xlarge", instance_count=2, image=IMAGE)

    v2 = FORMS["sdk v2"].asked(client)
    assert ("ml.p4d.24xlarge", 2, IMAGE) == (
        v2["instance_type"], v2["instance_count"], v2["image_uri"],
    )  # fmt: skip
    assert IMAGE == v2["environment"]["COMPILEGATE_IMAGE"]
    v3 = FORMS["sdk v3"].asked(client)
    compute = {"instance_type": "ml.p4d.24xlarge", "instance_count": 2, "volume": 30}
    assert (compute, IMAGE) == (v3["compute"], v3["training_image"])
    request = FORMS["request"].asked(client)
    cluster = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30}
    assert cluster == request["ResourceConfig"]
    assert IMAGE == request["AlgorithmSpecification"]["TrainingImage"]
    assert '"ml.p4d.24xlarge"' == request["HyperParameters"]["sagemaker_instance_type"]


@pytest.mark.parametrize(
    ("form_name", "changes", "overrides"),
    [
        ("sdk v2", {"instance_groups": ["gpu"]}, {"instance_type": "ml.p4d.24xlarge"}),
        ("sdk v2", {"compiler_config": object()}, {"compiler": "torch_compile"}),
        ("sdk v2", {}, {"distribution": "smp"}),
        ("sdk v2", {}, {"framework": FRAMEWORK}),
        ("sdk v2", {"framework_version": "2.1"}, {"framework": FRAMEWORK, "image": IMAGE}),
        ("sdk v3", {"algorithm_name": "a"}, {"image": IMAGE}),
        ("sdk v3", {"hyperparameters": "values.yaml"}, {"compiler": "torch_compile"}),
        ("sdk v3", {}, {"distribution": "torch_distributed"}),
        ("sdk v3", {"compute": {"instance_groups": [1]}}, {"instance_count": 2}),
        ("request", {}, {"distribution": "torch_distributed"}),
        ("request", {"AlgorithmSpecification": {"AlgorithmName": "a"}}, {"image": IMAGE}),
        ("request", {"ResourceConfig": {"InstanceGroups": [{}]}}, {"instance_count": 2}),
    ],
)
def test_a_job_that_cannot_carry_the_flag_trains_the_baseline_and_says_why(
    form_name: str,
    changes: dict[str, Any],
    overrides: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    form = FORMS[form_name]
    job = form.asked(promoted(**overrides), **changes)

    assert form.without_marks({**form.job, **changes}) == form.without_marks(job)
    assert "baseline" == form.tags(job)["compilegate:arm"]
    assert "the flag cannot be applied to its job" in warned(caplog)


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        ("torch_distributed", {"torch_distributed": {"enabled": True}}),
        ("smddp", {"smdistributed": {"dataparallel": {"enabled": True}}}),
        ("none", None),
    ],
)
def test_an_estimator_is_launched_as_the_flag_says(distribution: str, expected: Any) -> None:
    job = FORMS["sdk v2"].asked(
        promoted(distribution=distribution), distribution={"pytorchddp": {"enabled": True}}
    )

    assert expected == job.get("distribution")


def test_a_distribution_that_is_changed_later_changes_no_other_job() -> None:
    client = promoted(distribution="smddp")

    first = FORMS["sdk v2"].asked(client)["distribution"]
    first["smdistributed"]["dataparallel"]["enabled"] = False

    second = FORMS["sdk v2"].asked(client)["distribution"]
    assert {"smdistributed": {"dataparallel": {"enabled": True}}} == second


def test_another_entry_point_is_applied_where_its_file_is_known_to_be(tmp_path: Path) -> None:
    (tmp_path / "ported.py").write_text("")
    client = promoted(entry_point="ported.py")
    bundle = "s3://data/workloads/bert-docs/source/0a1b/sourcedir.tar.gz"

    v2 = FORMS["sdk v2"].asked(client, source_dir=str(tmp_path))
    from_bundle = FORMS["sdk v2"].asked(client, source_dir=bundle)
    elsewhere = FORMS["sdk v2"].asked(client, source_dir="s3://data/mine.tar.gz")
    v3 = FORMS["sdk v3"].asked(client, source_code={"source_dir": str(tmp_path)})
    values = {**REQUEST["HyperParameters"], "sagemaker_submit_directory": json.dumps(bundle)}
    request = FORMS["request"].asked(client, HyperParameters=values)

    assert ("ported.py", "ported.py", "train.py") == tuple(
        job["entry_point"] for job in (v2, from_bundle, elsewhere)
    )
    assert "ported.py" == v3["source_code"]["entry_script"]
    assert '"ported.py"' == request["HyperParameters"]["sagemaker_program"]


def test_tags_may_be_a_mapping_as_newer_releases_of_the_sdk_take_them() -> None:
    job = FORMS["sdk v2"].asked(promoted(compiler="torch_compile"), tags={"team": "nlp"})

    assert "nlp" == FORMS["sdk v2"].tags(job)["team"]


def test_a_job_asked_for_in_several_forms_reads_the_flag_once() -> None:
    client = promoted(compiler="torch_compile")
    for form in FORMS.values():
        form.asked(client)

    assert 1 == len(client.asked)
