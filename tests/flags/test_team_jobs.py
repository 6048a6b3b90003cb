"""A team's own job carries the flag in whichever form it is written, or stays as it is."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from compilegate.flags import overlay
from compilegate.flags.overlay import CannotCarryError, hyperparameters
from compilegate.flags.reading import Choice
from tests.flags.forms import FORMS, IMAGE, REQUEST, Form, warned
from tests.flags.ssm import FakeSsm, promoted, refusal


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    result: Form = request.param
    return result


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


@pytest.mark.parametrize(("own", "arm"), [(97, "compile"), (98, None)])
def test_more_variables_than_a_job_may_have_leave_the_job_as_it_was(
    own: int, arm: str | None
) -> None:
    """Ours are three: of the arm, of the stage, of the image."""
    variables = {f"V{number}": "1" for number in range(own)}
    form = FORMS["request"]
    job = form.asked(promoted(compiler="torch_compile"), Environment=variables)

    assert arm == job["Environment"].get("COMPILEGATE_ARM")
    assert (100 if arm else own) == len(job["Environment"])


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


@pytest.mark.parametrize(
    ("key", "alias"),
    [("batch_size", alias) for alias in (
        "per_device_train_batch_size", "train_batch_size", "batch-size", "train-batch-size", "bs",
    )] + [("learning_rate", alias) for alias in ("lr", "learning-rate")],
)  # fmt: skip
def test_a_script_s_other_name_for_ours_is_known(key: str, alias: str) -> None:
    choice = Choice("compile", {key: 2, "precision": "bf16"})
    asked = functools.partial(hyperparameters, choice=choice, script="train.py")

    with pytest.raises(CannotCarryError, match=f"hyperparameter {alias} looks like {key}:"):
        asked({alias: 1}, names={})
    assert {"arm": "compile", "precision": "bf16", alias: 2} == asked(
        {alias: 1}, names={key: alias}
    )
    assert {"arm": "compile", "precision": "bf16", alias: 1, key: 2} == asked(
        {alias: 1, key: 1}, names={}
    )


def test_a_tag_of_ours_that_a_team_wrote_itself_is_written_once(form: Form) -> None:
    tags = form.tagged({"compilegate:arm": "theirs", "team": "nlp"})
    written = form.tags(form.asked(promoted(batch_size=48), **tags))

    assert ("compile", "nlp") == (written["compilegate:arm"], written["team"])


def test_a_version_stays_where_the_flag_names_no_framework() -> None:
    form = FORMS["sdk v2"]
    job = form.asked(promoted(batch_size=48), framework_version="2.8.0")

    assert ("compile", "2.8.0") == (
        form.variables(job)["COMPILEGATE_ARM"], job["framework_version"],
    )  # fmt: skip
    # Its image is the SDK's to choose, so that nothing is said of one.
    assert "COMPILEGATE_IMAGE" not in form.variables(job)


def test_groups_of_instances_are_left_to_a_flag_that_changes_none() -> None:
    assert {} == overlay.machines({"batch_size": 48}, ["group"])
    assert {"instance_count": 2} == overlay.machines({"instance_count": 2}, None)
    with pytest.raises(overlay.CannotCarryError, match="instance groups"):
        overlay.machines({"instance_type": "ml.g5.xlarge"}, ["group"])


def test_a_script_is_looked_for_in_a_local_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("src", "s3:/src"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "other.py").touch()

    registered = "s3://data/workloads/bert-docs/source/1.tgz"
    assert ["other.py"] * 2 == [
        overlay.script("bert-docs", "other.py", place) for place in (registered, "src")
    ]
    for place in ("s3://src", None, Path("src"), "elsewhere", registered.replace("bert", "gpt")):
        with pytest.raises(overlay.CannotCarryError, match="not in the job's source folder"):
            overlay.script("bert-docs", "other.py", place)
