"""``check`` and ``plan``: what could be gained and what finding out costs, without an account."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from compilegate.domain.workload.file import parse_workload
from tests.cli.project import write_project

ARTICLE = Path(__file__).parents[2] / "workloads" / "article-bert.yaml"
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


XLA_PAIR = (
    "    framework: {name: pytorch",
    "    distribution: pytorchxla\n    framework: {name: pytorch",
)
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
ODD = (
    "candidates:\n  - {name: odd, entry_point: launch.py, "
    "hyperparameters: {script: train.py, at: '[/30] :x:'}}\nquality:"
)
# What is changed, the command, its exit code, and what is said in this order.
SCREENS: dict[str, tuple[tuple[tuple[str, str], ...], str, int, tuple[str, ...]]] = {
    "eligible": ((), "check", 0, ("bert-docs: eligible",)),
    "to measure, with the money before the reasons": (
        (RAGGED, BF16), "check", 11,
        ("bert-docs: to measure training costs per year $",
         "a run pays off from 15 min on at best (compiling: 3 to 300 s, assumed)",
         "- warning: shapes change from step to step", "Fix: pad to a few fixed lengths"),
    ),
    "not eligible": (TREES, "check", 10, ("bert-docs: not eligible",)),
    "what holds for all once, equals together": (
        (BF16, HOOKED, ("quality:", ALIKE)), "check", 0,
        ("Amdahl's law allows 1.40x", "every candidate:", "rules is an argument of the SDK",
         "managed, again (sagemaker_training_compiler): not eligible",
         "the managed compiler is frozen", "- as for managed: image_unpatched",
         "one, two (torch_compile): eligible"),
    ),
    "too small a saving": (
        (BF16, ("quality:", "candidates: [{name: compile, compiler: torch_compile}]\nquality:"),
         ("runs_per_week: 3\n", "runs_per_week: 0.1\n")), "check", 10,
        ("not eligible (not worth a benchmark)",),
    ),
    "compiling that costs nothing": (
        (BF16, ("quality:", "profile: {compile_seconds: 0, compile_seconds_cold: 0}\nquality:")),
        "check", 0,
        ("a run pays off from the first minute at best (compiling: 0 s, measured)",),
    ),
    "prices of another region": (
        (BF16, ("ml.g5.xlarge", "ml.g4dn.xlarge")), "check --region eu-west-1", 0,
        ("of us-west-2; the job's region is eu-west-1",),
    ),
    "a plan's arms, rounds and cost": (
        (BF16,), "plan", 0,
        ("bert-docs in us-east-1: 1 candidate beside the baseline",
         "baseline as it runs today 1 x 1.41 $", "compile one factor: torch_compile 1 x",
         "probably 3 of each candidate (at most 12)",
         "Hard limit: $5,000 (policy.max_trial_usd)",
         "Quota: up to 4 x ml.g5.xlarge at once; not known",
         "(compilegate facts refresh reads it). Assumed: 1, those of one job.",
         "jobs take turns: 1 of up to 8 full runs at a time"),
    ),
    "a plan of several kinds of arms": (
        SEVERAL, "plan", 0,
        ("3 candidates and 1 control beside the baseline", "4 jobs for every block"),
    ),
    "the managed compiler's own launcher": (
        (*SEVERAL, XLA_PAIR), "plan", 0, ("managed compiler", "(by pytorchxla)"),
    ),
    "a team's words": ((("quality:", ODD),), "plan", 0, ("at [/30] :x:",)),
    "why each arm is there": (
        SEVERAL, "plan --explain", 0,
        ("Prices on demand: ml.g5.xlarge $1.41 an hour (high, undated)",
         "compile: named in the workload file: the compiler alone",
         "It breaks even in dollars per sample at 17.93x the baseline's speed", "never promoted",
         "0 past runs are on record", "A speed job, assumed: 3 min to start"),
    ),
    "what was left out": (
        (), "plan --explain", 0,
        ("compile: the compiler alone at the same batch", "bf16: the job trains in fp32",
         "larger batch: profile.peak_memory_gib is not set"),
    ),
    "prices of another region in a plan": (
        (BF16, ("ml.g5.xlarge", "ml.g4dn.xlarge")), "plan --region eu-west-1", 0,
        ("Prices on demand: ml.g4dn.xlarge $", "facts refresh reads those of eu-west-1"),
    ),
    "a trial over its budget": (
        (SMALL_CAP,), "plan", 11, ("the trial would be refused", "max_trial"),
    ),
    "a trial of nothing": (
        TREES, "plan", 11, ("the trial would be refused", "no candidate is eligible"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCREENS)
def test_people_read_it_in_80_columns(case, tmp_path, invoke):
    changes, words, code, expected = SCREENS[case]
    command, *options = words.split()

    result = invoke(command, write_project(tmp_path, *changes), *options)

    text = " ".join(result.stdout.split())
    places = [text.find(part) for part in expected]
    lines = result.stdout.splitlines()
    assert code == result.exit_code, result.output
    assert sorted(places) == places, dict(zip(expected, places, strict=True))
    assert -1 not in places, dict(zip(expected, places, strict=True))
    assert [] == [line for line in lines if len(line) > 80 or line != line.rstrip()]
    assert "\x1b" not in result.stdout
    for once in ("rules is an argument of the SDK", "the managed compiler is frozen"):
        assert text.count(once) <= 1


@pytest.mark.parametrize(
    ("changes", "verdict", "refused"),
    [
        ((), "eligible", None), ((RAGGED, BF16), "benchmark", None),
        ((SMALL_CAP,), "eligible", "trial_over_budget"), (TREES, "ineligible", "ineligible"),
    ],
)  # fmt: skip
def test_programs_get_verdict_and_refusal(changes, verdict, refused, tmp_path, invoke):
    file = write_project(tmp_path, *changes)
    checked, planned = (
        json.loads(invoke(command, file, "--json").stdout) for command in ("check", "plan")
    )

    assert verdict == checked["verdict"]
    assert refused == planned.get("refused", {}).get("code")


def test_prices_of_the_jobs_own_region_need_no_others(tmp_path, invoke):
    file = write_project(tmp_path, BF16, ("ml.g5.xlarge", "ml.g4dn.xlarge"))
    planned = invoke("plan", file, "--region", "us-west-2").stdout

    assert "facts refresh reads those" not in " ".join(planned.split())


def test_the_configuration_to_copy_stands_on_lines_of_its_own(tmp_path, invoke):
    file = write_project(tmp_path, ("quality:", ALIKE))
    lines = invoke("check", file).stdout.splitlines()

    assert '      framework: {name: pytorch, version: "1.13.1", python: py39}' in lines


def test_the_articles_cluster_is_planned_for_a_quota_of_one_job(invoke):
    document = json.loads(invoke("plan", ARTICLE, "--json").stdout)

    (need,) = document["quotas"]
    assert (8, 48, None) == (need["one_job"], need["at_once"], need["quota"])
    assert [("speed", 6, 1), ("quality", 8, 1)] == [
        (one["stage"], one["jobs"], one["at_once"]) for one in document["layout"]
    ]
    hours = document["estimate"]["hours"]
    assert hours > 2 * document["estimate"]["hours_side_by_side"] > 60


def test_a_plan_says_which_gains_its_policy_could_prove_with_assumed_spreads(invoke):
    proves = json.loads(invoke("plan", ARTICLE, "--json").stdout)["resolution"]
    shown = " ".join(invoke("plan", ARTICLE).stdout.split())

    assert [(1.005, None), (1.02, None), (1.05, 12), (1.1, 3)] == [
        (one["speedup"], one["runs"]) for one in proves
    ]
    assert "at least 12 full runs for 1.05x, 3 full runs for 1.1x. A gain of 1.02x or less" in shown
    assert "This is by assumed spreads. A trial takes those that its deployment has" in shown


def test_every_kind_of_arm_is_planned_with_its_role_its_label_and_its_nodes(tmp_path, invoke):
    file = write_project(tmp_path, *SEVERAL)
    document = json.loads(invoke("plan", file, "--json").stdout)

    assert [
        ("baseline", "baseline", "as it runs today"),
        ("compile", "candidate", "one factor: compiler"),
        ("p4d", "candidate", "bundle of batch size, instances and distribution"),
        ("pair", "candidate", "bundle of compiler and framework"),
        ("pair-native", "control", "one factor: framework"),
    ] == [(arm["name"], arm["role"], arm["label"]) for arm in document["arms"]]
    # Arms on other nodes have speed jobs of their own, and controls no full run.
    names = [request["TrainingJobName"].rpartition("-")[2] for request in document["examples"]]
    assert ["s0a0", "s0b0", "s0c0", "s0d0", "q1a17", "q1b17", "q1c17", "q1d17"] == names


def test_what_is_not_known_stands_in_and_is_labelled(tmp_path, invoke):
    document = json.loads(invoke("plan", write_project(tmp_path), "--json").stdout)

    request = json.dumps(document["examples"][0])
    assert all(name in request for name in document["placeholders"])
    channel = document["examples"][0]["InputDataConfig"][0]
    uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
    assert "s3://data-bucket/workloads/bert-docs/inputs/train/digest/" == uri


def test_the_examples_in_the_workloads_folder_are_valid(invoke):
    folder = Path(__file__).resolve().parents[2] / "workloads"
    files = sorted(folder.glob("*.yaml"))

    names = [parse_workload(yaml.safe_load(file.read_text())).name for file in files]

    assert len(names) == len(set(names)) > 0


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


def test_of_two_candidates_that_are_one_job_the_second_is_left_out(tmp_path, invoke):
    cap = ("quality:", "policy: {max_trial_usd: 100000}\nquality:")
    file = write_project(tmp_path, BF16, *OLD, ("quality:", ONE_JOB), cap)
    plan = json.loads(invoke("plan", file, "--json").stdout)
    table = invoke("plan", file).stdout

    assert ["baseline", "ddp", "alone"] == [arm["name"] for arm in plan["arms"]]
    assert ["smddp"] == [left["name"] for left in plan["left_out"]]
    assert "the same job as ddp" in plan["left_out"][0]["why"]
    assert "one factor: no launcher" in " ".join(table.split())


COMPILES = "import torch\nmodel = torch.compile(model)\n"
LAUNCHED = "entry_point: launch.py\n  hyperparameters: {script: train.py}"


def test_a_script_that_already_compiles_saves_against_an_uncompiled_run(tmp_path, invoke):
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


def test_without_a_holdback_the_saving_is_said_to_be_unknown(tmp_path, invoke):
    file = write_project(tmp_path)
    text = file.read_text()
    file.write_text(f"{text}\npolicy: {{holdback: 0}}\n")
    document = json.loads(invoke("check", file, "--json").stdout)

    assert {} == document["no_holdback"]
    assert "what it saves from then on is unknown" in " ".join(invoke("check", file).stdout.split())
    file.write_text(f"{text}\npolicy: {{holdback: 0.01}}\n")
    assert "no_holdback" not in json.loads(invoke("check", file, "--json").stdout)
    file.write_text(re.sub(r"runs_per_week: \d+", "runs_per_week: 0.4", text))
    assert "no_holdback" in json.loads(invoke("check", file, "--json").stdout)


def test_another_entry_points_own_compiling_stays_in_the_baseline(tmp_path, invoke):
    file = write_project(tmp_path)
    (tmp_path / "training" / "train.py").write_text(COMPILES)

    assert "script_compiles" not in json.loads(invoke("check", file, "--json").stdout)


def test_lines_and_totals_say_which_savings_are_against_an_uncompiled_run(tmp_path, invoke):
    file = write_project(tmp_path, ("entry_point: train.py", LAUNCHED))
    (tmp_path / "training" / "train.py").write_text(COMPILES)
    for index in range(4):
        text = file.read_text().replace("bert-docs", f"job-{index}")
        (file.parent / f"job-{index}.yaml").write_text(text)

    text = " ".join(invoke("check", tmp_path).stdout.split())

    assert "a year, against" in text
    assert "(5 against an uncompiled run)" in text
