"""``check`` and ``plan``: what could be gained and what finding out costs, without an account."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from compilegate.domain.workload.file import parse_workload
from tests.cli.conftest import Invoke
from tests.cli.project import write_project

TREES = (
    ('name: pytorch\n  version: "2.13.0"', 'name: xgboost\n  version: "1.7-1"'),
    ("family: transformer", "family: gbt"),
)
RAGGED = ("static: true", "static: false\n  padding: longest")
BF16 = ("precision: fp32", "precision: bf16")
SMALL_CAP = ("quality:", "policy: {max_trial_usd: 1}\nquality:")
CANDIDATES = """candidates:
  - {name: compile, compiler: torch_compile}
  - {name: p4d, instance_type: ml.p4d.24xlarge, distribution: torch_distributed}
  - name: pair
    compiler: sagemaker_training_compiler
    framework: {name: pytorch, version: "1.13.1", python: py39}
quality:"""
SEVERAL = (("quality:", CANDIDATES), ("run_hours: 6.0", "run_hours: 1.0"))


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [((), "eligible", 0), ((RAGGED, BF16), "benchmark", 11), (TREES, "ineligible", 10)],
)
def test_the_verdict_is_the_exit_code(
    changes: tuple[tuple[str, str], ...], verdict: str, code: int, tmp_path: Path, invoke: Invoke
) -> None:
    result = invoke("check", write_project(tmp_path, *changes), "--json")

    assert (verdict, code) == (json.loads(result.stdout)["verdict"], result.exit_code)


def test_people_get_the_verdict_the_money_and_reasons_with_fixes_in_80_columns(
    tmp_path: Path, invoke: Invoke
) -> None:
    result = invoke("check", write_project(tmp_path, BF16, RAGGED))

    text = " ".join(result.stdout.split())
    assert result.stdout.startswith("bert-docs: to measure\n")
    assert "- warning: shapes change from step to step" in text
    assert "Fix: pad to a few fixed lengths" in text
    assert text.index("training costs per year $") < text.index("- warning:")
    assert "a run pays off from 15 min on at best (compiling: 3 to 300 s, assumed)" in text
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert "\x1b" not in result.stdout


ALIKE = """profile: {data_wait_fraction: 0.1, communication_fraction: 0.05}
candidates:
  - {name: managed, compiler: sagemaker_training_compiler}
  - {name: again, compiler: sagemaker_training_compiler, hyperparameters: {layers: 2}}
  - name: pair
    compiler: sagemaker_training_compiler
    framework: {name: pytorch, version: "1.13.1", python: py39}
  - {name: one, compiler: torch_compile}
  - {name: two, compiler: torch_compile, hyperparameters: {layers: 2}}
quality:"""
HOOKED = ("max_runtime_hours", "hyperparameters: {rules: all}\n  max_runtime_hours")


def test_what_holds_for_all_is_reported_once_and_equals_are_shown_together(
    tmp_path: Path, invoke: Invoke
) -> None:
    text = invoke("check", write_project(tmp_path, BF16, HOOKED, ("quality:", ALIKE))).stdout

    assert 1 == text.count("rules is an argument of the SDK")
    assert "every candidate:" in text
    assert "one, two (torch_compile): eligible" in text
    assert 1 == text.count("the managed compiler is frozen")
    assert "managed, again (sagemaker_training_compiler): not eligible" in text
    assert "- as for managed: image_unpatched" in text
    assert "Amdahl's law allows     1.40x" in text


def test_the_configuration_to_copy_stands_on_lines_of_its_own(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, ("quality:", ALIKE))
    lines = invoke("check", file).stdout.splitlines()

    assert '      framework: {name: pytorch, version: "1.13.1", python: py39}' in lines


def test_too_small_a_saving_is_not_worth_a_benchmark(tmp_path: Path, invoke: Invoke) -> None:
    named = ("quality:", "candidates: [{name: compile, compiler: torch_compile}]\nquality:")
    rare = ("runs_per_week: 3\n", "runs_per_week: 0.1\n")
    result = invoke("check", write_project(tmp_path, BF16, named, rare))

    assert 10 == result.exit_code
    assert "not eligible (not worth a benchmark)" in result.stdout


def test_the_plan_shows_arms_rounds_and_the_expected_cost(tmp_path: Path, invoke: Invoke) -> None:
    result = invoke("plan", write_project(tmp_path, BF16))

    text = " ".join(result.stdout.split())
    assert 0 == result.exit_code
    assert "bert-docs in us-east-1: 1 candidate beside the baseline" in text
    assert "baseline as it runs today 1 x 1.41 $" in text
    assert "compile one factor: torch_compile 1 x" in text
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []
    assert "probably 3 of each candidate (at most 12)" in text
    assert "Hard limit: $5,000 (policy.max_trial_usd)" in text
    assert "Quota: up to 4 x ml.g5.xlarge at once; not known" in text
    assert "(compilegate facts refresh reads it). Assumed: 1, those of one job." in text
    assert "jobs take turns: 1 of up to 8 full runs at a time" in text
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_the_articles_cluster_is_planned_for_a_quota_of_one_job(invoke: Invoke) -> None:
    article = Path(__file__).parents[2] / "workloads" / "article-bert.yaml"
    document = json.loads(invoke("plan", article, "--json").stdout)

    (need,) = document["quotas"]
    assert (8, 48, None) == (need["one_job"], need["at_once"], need["quota"])
    assert [("speed", 6, 1), ("quality", 8, 1)] == [
        (one["stage"], one["jobs"], one["at_once"]) for one in document["layout"]
    ]
    hours = document["estimate"]["hours"]
    assert hours > 2 * document["estimate"]["hours_side_by_side"] > 60


def test_every_kind_of_arm_is_planned_with_its_role_its_label_and_its_nodes(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, *SEVERAL)
    shown = invoke("plan", file)
    document = json.loads(invoke("plan", file, "--json").stdout)

    assert [
        ("baseline", "baseline", "as it runs today"),
        ("compile", "candidate", "one factor: compiler"),
        ("p4d", "candidate", "bundle of batch size, instances and distribution"),
        ("pair", "candidate", "bundle of compiler and framework"),
        ("pair-native", "control", "one factor: framework"),
    ] == [(arm["name"], arm["role"], arm["label"]) for arm in document["arms"]]
    assert "3 candidates and 1 control beside the baseline" in shown.stdout
    assert "4 jobs for every block" in " ".join(shown.stdout.split())
    assert [line for line in shown.stdout.splitlines() if len(line) > 80] == []


def test_arms_on_other_nodes_have_speed_jobs_of_their_own_and_controls_no_full_run(
    tmp_path: Path, invoke: Invoke
) -> None:
    document = json.loads(invoke("plan", write_project(tmp_path, *SEVERAL), "--json").stdout)

    names = [request["TrainingJobName"].rpartition("-")[2] for request in document["examples"]]
    assert ["s0a0", "s0b0", "s0c0", "s0d0", "q1a17", "q1b17", "q1c17", "q1d17"] == names


def test_what_is_not_known_stands_in_and_is_labelled(tmp_path: Path, invoke: Invoke) -> None:
    document = json.loads(invoke("plan", write_project(tmp_path), "--json").stdout)

    request = json.dumps(document["examples"][0])
    assert all(name in request for name in document["placeholders"])
    channel = document["examples"][0]["InputDataConfig"][0]
    uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
    assert "s3://data-bucket/workloads/bert-docs/inputs/train/digest/" == uri


def test_explain_says_why_each_arm_is_there_and_what_the_figures_rest_on(
    tmp_path: Path, invoke: Invoke
) -> None:
    result = invoke("plan", write_project(tmp_path, *SEVERAL), "--explain")

    text = " ".join(result.stdout.split())
    assert "compile: named in the workload file: the compiler alone" in text
    assert "It breaks even in dollars per sample at 17.93x the baseline's speed" in text
    assert "never promoted" in text
    assert "0 past runs are on record" in text
    assert "Prices on demand: ml.g5.xlarge $1.41 an hour (high, undated)" in text
    assert "A speed job, assumed: 3 min to start" in text
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_explain_says_what_was_left_out_and_why(tmp_path: Path, invoke: Invoke) -> None:
    text = " ".join(invoke("plan", write_project(tmp_path), "--explain").stdout.split())

    assert "compile: the compiler alone at the same batch" in text
    assert "bf16: the job trains in fp32" in text
    assert "larger batch: profile.peak_memory_gib is not set" in text


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ((SMALL_CAP,), "trial_over_budget", "max_trial"),
        (TREES, "ineligible", "no candidate is eligible"),
    ],
)
def test_a_trial_that_would_be_refused_is_exit_11(
    changes: tuple[tuple[str, str], ...], code: str, message: str, tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, *changes)

    shown = invoke("plan", file)
    document = json.loads(invoke("plan", file, "--json").stdout)

    assert 11 == shown.exit_code
    assert "the trial would be refused" in shown.stdout
    assert message in shown.stdout
    assert code == document["refused"]["code"]


def test_the_examples_in_the_workloads_folder_are_valid(invoke: Invoke) -> None:
    folder = Path(__file__).resolve().parents[2] / "workloads"
    files = sorted(folder.glob("*.yaml"))

    names = [parse_workload(yaml.safe_load(file.read_text())).name for file in files]

    assert len(names) == len(set(names)) > 0


def test_a_teams_words_are_never_read_as_markup(tmp_path: Path, invoke: Invoke) -> None:
    odd = (
        "candidates:\n  - {name: odd, entry_point: launch.py, "
        "hyperparameters: {script: train.py, at: '[/30] :x:'}}\nquality:"
    )
    result = invoke("plan", write_project(tmp_path, ("quality:", odd)))

    assert 0 == result.exit_code, result.output
    assert "at [/30] :x:" in " ".join(result.stdout.split())


XLA_PAIR = (
    "    framework: {name: pytorch",
    "    distribution: pytorchxla\n    framework: {name: pytorch",
)
ONE_JOB = """candidates:
  - {name: ddp, distribution: pytorchddp}
  - {name: smddp, distribution: smddp}
  - {name: alone, distribution: none}
quality:"""
OLD = (
    ('version: "2.13.0"', 'version: "2.1.0"'),
    ("ml.g5.xlarge", "ml.p4d.24xlarge"),
    ("distribution: none", "distribution: torch_distributed"),
)


def test_prices_of_another_region_are_reported_by_check_and_plan(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, BF16, ("ml.g5.xlarge", "ml.g4dn.xlarge"))
    checked = " ".join(invoke("check", file, "--region", "eu-west-1").stdout.split())
    planned = " ".join(invoke("plan", file, "--region", "eu-west-1").stdout.split())
    same = invoke("plan", file, "--region", "us-west-2").stdout

    assert "of us-west-2; the job's region is eu-west-1" in checked
    priced = r"Prices on demand: ml\.g4dn\.xlarge \$[\d.]+ an hour \(\w+, us-west-2, [\w -]+\)\."
    assert re.search(priced + " compilegate facts refresh reads those of eu-west-1", planned)
    assert "facts refresh reads those" not in " ".join(same.split())


def test_of_two_candidates_that_are_one_job_the_second_is_left_out(
    tmp_path: Path, invoke: Invoke
) -> None:
    cap = ("quality:", "policy: {max_trial_usd: 100000}\nquality:")
    file = write_project(tmp_path, BF16, *OLD, ("quality:", ONE_JOB), cap)
    plan = json.loads(invoke("plan", file, "--json").stdout)
    table = invoke("plan", file).stdout

    assert ["baseline", "ddp", "alone"] == [arm["name"] for arm in plan["arms"]]
    assert ["smddp"] == [left["name"] for left in plan["left_out"]]
    assert "the same job as ddp" in plan["left_out"][0]["why"]
    assert "one factor: no launcher" in " ".join(table.split())


def test_the_managed_compilers_own_launcher_is_no_second_change(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # so that no cell is wrapped
    table = invoke("plan", write_project(tmp_path, *SEVERAL, XLA_PAIR)).stdout

    assert "managed compiler (by pytorchxla)" in " ".join(table.split())


def test_compiling_that_costs_nothing_pays_from_the_first_minute(
    tmp_path: Path, invoke: Invoke
) -> None:
    free = ("quality:", "profile: {compile_seconds: 0, compile_seconds_cold: 0}\nquality:")
    text = " ".join(invoke("check", write_project(tmp_path, BF16, free)).stdout.split())

    assert "a run pays off from the first minute at best (compiling: 0 s, measured)" in text


COMPILES = "import torch\nmodel = torch.compile(model)\n"
LAUNCHED = "entry_point: launch.py\n  hyperparameters: {script: train.py}"


def test_a_script_that_already_compiles_saves_against_an_uncompiled_run(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, ("entry_point: train.py", LAUNCHED))
    quiet = [invoke(command, file).stdout for command in ("check", "plan")]
    (tmp_path / "training" / "train.py").write_text(COMPILES.replace(")\n", ") # \x1b[31m\n"))
    texts = [" ".join(invoke(command, file).stdout.split()) for command in ("check", "plan")]
    documents = [
        json.loads(invoke(command, file, "--json").stdout) for command in ("check", "plan")
    ]

    place = {"script": "train.py", "line": 2, "source": "model = torch.compile(model) # \x1b[31m"}
    assert [place, place] == [document["script_compiles"] for document in documents]
    assert "per year, against an uncompiled run" in texts[0]
    assert not any("\x1b" in text for text in texts)
    assert all("train.py already compiles (line 2: model = torch.compile(model)" in text
               for text in texts)  # fmt: skip
    assert not any("already compiles" in text or "uncompiled" in text for text in quiet)


def test_another_entry_points_own_compiling_stays_in_the_baseline(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path)
    (tmp_path / "training" / "train.py").write_text(COMPILES)

    assert "script_compiles" not in json.loads(invoke("check", file, "--json").stdout)


def test_lines_and_totals_say_which_savings_are_against_an_uncompiled_run(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, ("entry_point: train.py", LAUNCHED))
    (tmp_path / "training" / "train.py").write_text(COMPILES)
    for index in range(4):
        text = file.read_text().replace("bert-docs", f"job-{index}")
        (file.parent / f"job-{index}.yaml").write_text(text)

    text = " ".join(invoke("check", tmp_path).stdout.split())

    assert "a year, against" in text
    assert "(5 against an uncompiled run)" in text
