"""What only one form of a team's job has, and what a job says nothing of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flags.forms import ESTIMATOR, FORMS, FRAMEWORK, IMAGE, REQUEST, warned
from tests.flags.ssm import promoted

HERE = Path(__file__).parent
VERSIONS = (
    "framework_version", "transformers_version", "pytorch_version", "tensorflow_version",
)  # fmt: skip
SMALLEST: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sdk v2": (
        {"role": "r"},
        {"hyperparameters": {"compiler": "torch_compile", "arm": "compile"}},
    ),
    "sdk v3": (
        {"role": "r"},
        {"hyperparameters": {"compiler": "torch_compile", "arm": "compile"}},
    ),
    "request": (
        {"TrainingJobName": "n"},
        {"HyperParameters": {"compiler": '"torch_compile"', "arm": '"compile"'}},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_job_that_says_almost_nothing_gets_what_the_flag_says_and_no_more(name: str) -> None:
    form, (job, added) = FORMS[name], SMALLEST[name]
    followed = form.carry("bert-docs", client=promoted(compiler="torch_compile"), **job)

    assert {**job, **added} == form.without_marks(followed)
    assert "compile" == form.variables(followed)["COMPILEGATE_ARM"]


@pytest.mark.parametrize(
    ("name", "place", "keys"),
    [
        ("sdk v2", None, ("instance_type", "instance_count")),
        ("sdk v3", "compute", ("instance_type", "instance_count")),
        ("request", "ResourceConfig", ("InstanceType", "InstanceCount")),
    ],
)
def test_machines_are_named_where_the_job_names_none(
    name: str, place: str | None, keys: tuple[str, str]
) -> None:
    client = promoted(instance_type="ml.p4d.24xlarge", instance_count=2)
    form, (job, _) = FORMS[name], SMALLEST[name]
    followed = form.carry("bert-docs", client=client, **job)

    machines = followed[place] if place else followed
    assert {"ml.p4d.24xlarge", 2} == {machines[key] for key in keys}
    assert "sagemaker_instance_type" not in form.hyperparameters(followed)


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
    algorithm = {"TrainingImage": IMAGE, "TrainingInputMode": "File"}
    assert algorithm == request["AlgorithmSpecification"]
    assert '"ml.p4d.24xlarge"' == request["HyperParameters"]["sagemaker_instance_type"]


@pytest.mark.parametrize(
    ("form_name", "changes", "overrides", "why"),
    [
        ("sdk v2", {"instance_groups": ["gpu"]}, {"instance_type": "ml.p4d.24xlarge"}, "groups"),
        ("sdk v2", {"compiler_config": object()}, {"compiler": "torch_compile"},
         "compiler_config is set"),
        ("sdk v2", {}, {"distribution": "smp"}, "distribution smp needs"),
        ("sdk v2", {}, {"framework": FRAMEWORK}, "without its image"),
        *(("sdk v2", {version: "2.1"}, {"framework": FRAMEWORK, "image": IMAGE},
           f"{version} names one") for version in VERSIONS),
        ("sdk v3", {"algorithm_name": "a"}, {"image": IMAGE}, "names an algorithm"),
        ("sdk v3", {"hyperparameters": "values.yaml"}, {"compiler": "torch_compile"}, "in a file"),
        ("sdk v3", {}, {"distribution": "torch_distributed"}, "object of the SDK"),
        ("sdk v3", {"compute": {"instance_groups": [1]}}, {"instance_count": 2}, "groups"),
        ("sdk v3", {"source_code": {"command": "sh x.sh", "source_dir": str(HERE)}},
         {"entry_point": Path(__file__).name}, "starts a command"),
        ("request", {}, {"distribution": "torch_distributed"}, "needs an estimator"),
        ("request", {"AlgorithmSpecification": {"AlgorithmName": "a"}}, {"image": IMAGE},
         "names no TrainingImage"),
        ("request", {"AlgorithmSpecification": None}, {"image": IMAGE}, "names no TrainingImage"),
        ("request", {"ResourceConfig": {"InstanceGroups": [{}]}}, {"instance_count": 2}, "groups"),
    ],
)  # fmt: skip
def test_a_job_that_cannot_carry_the_flag_trains_the_baseline_and_says_why(
    form_name: str,
    changes: dict[str, Any],
    overrides: dict[str, Any],
    why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    form = FORMS[form_name]
    job = form.asked(promoted(**overrides), **changes)

    assert form.without_marks({**form.job, **changes}) == form.without_marks(job)
    assert "baseline" == form.tags(job)["compilegate:arm"]
    said = warned(caplog)
    assert "the flag cannot be applied to its job" in said
    assert why in said


class OfTheSdk:
    """As the SDK's own settings: fields are attributes, a copy has other values."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def model_copy(self, *, update: dict[str, Any]) -> OfTheSdk:
        return OfTheSdk(**{**vars(self), **update})


def test_the_sdk_s_own_objects_are_copied_with_the_changes() -> None:
    bundle = "s3://data/workloads/bert-docs/source/0a1b/sourcedir.tar.gz"
    compute = OfTheSdk(instance_type="ml.g5.2xlarge", instance_groups=None, volume=30)
    source = OfTheSdk(source_dir=bundle, entry_script="train.py", command=None)
    client = promoted(instance_type="ml.p4d.24xlarge", entry_point="ported.py")
    job = FORMS["sdk v3"].asked(client, compute=compute, source_code=source)

    assert ("ml.g5.2xlarge", "train.py") == (compute.instance_type, source.entry_script)
    assert {**vars(compute), "instance_type": "ml.p4d.24xlarge"} == vars(job["compute"])
    assert {**vars(source), "entry_script": "ported.py"} == vars(job["source_code"])


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
    elsewhere = [
        FORMS["sdk v2"].asked(client, source_dir=place)
        for place in ("s3://data/mine.tar.gz", bundle.replace("bert-docs", "gpt"))
    ]
    v3 = FORMS["sdk v3"].asked(client, source_code={"source_dir": str(tmp_path)})
    places = json.dumps(bundle), bundle, json.dumps(str(tmp_path)), str(tmp_path)
    requests = [
        FORMS["request"].asked(
            client,
            HyperParameters={**REQUEST["HyperParameters"], "sagemaker_submit_directory": place},
        )
        for place in places
    ]

    assert ["ported.py", "ported.py", "train.py", "train.py"] == [
        job["entry_point"] for job in (v2, from_bundle, *elsewhere)
    ]
    assert "ported.py" == v3["source_code"]["entry_script"]
    programs = [request["HyperParameters"]["sagemaker_program"] for request in requests]
    assert ['"ported.py"'] * len(places) == programs


def test_tags_may_be_a_mapping_as_newer_releases_of_the_sdk_take_them() -> None:
    job = FORMS["sdk v2"].asked(promoted(compiler="torch_compile"), tags={"team": "nlp"})

    assert "nlp" == FORMS["sdk v2"].tags(job)["team"]


@pytest.mark.parametrize("name", FORMS)
def test_another_framework_is_applied_where_the_image_alone_says_it(name: str) -> None:
    form = FORMS[name]
    job = form.asked(promoted(framework=FRAMEWORK, image=IMAGE))

    assert IMAGE in json.dumps(form.without_marks(job))
    assert "framework" not in job
    assert "compile" == form.tags(job)["compilegate:arm"]


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        ("torch_distributed", {"torch_distributed": {"enabled": True}}),
        ("smddp", {"smdistributed": {"dataparallel": {"enabled": True}}}),
        ("pytorchddp", {"pytorchddp": {"enabled": True}}),
        ("pytorchxla", {"pytorchxla": {"enabled": True}}),
        ("none", None),
    ],
)
def test_an_estimator_is_launched_as_the_flag_says(distribution: str, expected: Any) -> None:
    form = FORMS["sdk v2"]
    job = form.asked(promoted(distribution=distribution), distribution={"mpi": {"enabled": True}})

    values = {**ESTIMATOR["hyperparameters"], "arm": "compile"}
    launched = {"distribution": expected} if expected else {}
    assert {**form.without_marks(ESTIMATOR), "hyperparameters": values, **launched} == (
        form.without_marks(job)
    )
