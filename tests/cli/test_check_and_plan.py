"""``check`` and ``plan``: what could be gained and what finding out costs, of one file or many."""

import json

import pytest

from compilegate.cli.check import Totals
from compilegate.domain.economics import Range
from compilegate.domain.eligibility.check import CandidateEligibility, Eligibility
from compilegate.domain.eligibility.payoff import Economics
from compilegate.domain.errors import path_shown
from compilegate.domain.workload.model import Candidate
from tests.cli.project import COMPILES, LAUNCHED, write_compiling, write_project

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
SCREENS = {
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
    "a team's words": ((("quality:", ODD),), "plan", 0, ("at [/30] :x:",)),
    "why each arm is there": (
        SEVERAL, "plan --explain", 0,
        ("Prices on demand: ml.g5.xlarge $1.41 an hour (high, undated)",
         "compile: named in the workload file: the compiler alone",
         "It breaks even in dollars per sample at 17.93x the baseline's speed", "never promoted",
         "0 past runs are on record", "A speed job, assumed: 3 min to start"),
    ),
    "a trial over its budget": (
        (SMALL_CAP,), "plan", 11, ("the trial would be refused", "max_trial"),
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


def test_the_configuration_to_copy_stands_on_lines_of_its_own(tmp_path, invoke):
    file = write_project(tmp_path, ("quality:", ALIKE))
    lines = invoke("check", file).stdout.splitlines()

    assert '      framework: {name: pytorch, version: "1.13.1", python: py39}' in lines


def test_a_script_that_already_compiles_saves_against_an_uncompiled_run(tmp_path, invoke):
    file = write_project(tmp_path, LAUNCHED)
    plain = write_project(tmp_path / "plain")
    (tmp_path / "plain" / "training" / "train.py").write_text(COMPILES)  # stays in the baseline
    quiet = [invoke("check", file).stdout, invoke("check", plain).stdout]
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


def test_lines_and_totals_say_which_savings_are_against_an_uncompiled_run(tmp_path, invoke):
    file = write_compiling(tmp_path)
    for index in range(4):
        text = file.read_text().replace("bert-docs", f"job-{index}")
        (file.parent / f"job-{index}.yaml").write_text(text)

    text = " ".join(invoke("check", tmp_path).stdout.split())

    assert "a year, against" in text
    assert "(5 against an uncompiled run)" in text


@pytest.fixture
def team(tmp_path):
    """A folder of five sound workloads, and what is none or hidden."""
    good = write_project(tmp_path / "a")
    text = good.read_text()
    for index in range(4):
        name = f"job-{index}"
        (good.parent / f"{name}.yml").write_text(text.replace("bert-docs", name))
    (good.parent / "values.yaml").write_text("replicas: 2\nimage: web\n")
    (good.parent / ".old.yaml").write_text(text)
    return tmp_path


def test_a_name_used_twice_is_reported_and_counted_once(team, invoke):
    first, second = (team / "a" / "workloads" / f"job-{index}.yml" for index in (0, 1))
    second.write_text(first.read_text())

    result = invoke("check", first, second, "--json")

    answers = json.loads(result.stdout)
    assert (2, [False, True]) == (result.exit_code, ["error" in answer for answer in answers])
    assert f"{second}: name: is also the name of the workload in {first}" in result.stderr


def test_a_file_named_twice_is_checked_once(team, invoke):
    folder = team / "a" / "workloads"

    result = invoke("check", folder, folder / "job-0.yml", "--jsonl")

    assert 5 == len(result.stdout.splitlines())


def test_a_folder_without_workloads_is_bad_input(tmp_path, invoke):
    (tmp_path / "values.yaml").write_text("replicas: 2\n")

    result = invoke("check", tmp_path)

    assert 2 == result.exit_code
    assert f"{tmp_path}: contains no workload file" in result.stderr


@pytest.mark.parametrize(
    "name",
    [
        "x" * 300,
        "a/" * 3000 + "b.yaml",
    ],
)
def test_a_name_that_the_disk_refuses_is_bad_input(name, invoke):
    result = invoke("check", name)

    assert 2 == result.exit_code
    assert result.stderr.startswith(f"Error: {path_shown(name)}: ")


def test_an_error_of_many_files_is_counted(team, invoke):
    for index in range(4):
        file = team / "a" / "workloads" / f"job-{index}.yml"
        file.write_text(file.read_text().replace("  run_hours: 6.0\n", ""))

    result = invoke("check", team)

    assert "in 4 files: schedule.run_hours is missing" in result.stdout
    assert ", 4 files invalid" in result.stdout
    assert 4 == result.stderr.count("schedule.run_hours: is missing")


def test_two_forms_of_output_are_one_too_many(team, invoke):
    result = invoke("check", team, "--json", "--jsonl")

    assert (2, "--jsonl") == (result.exit_code, json.loads(result.stdout)["error"]["field"])


def answered(name, usd, saving):
    """A workload that may be tried; USD per year."""
    economics = Economics(
        annual_training_usd=usd, plausible_annual_saving_usd=saving, plausible_speedup=None,
        largest_speedup=None, trial_usd=None, break_even=None, overhead=None, payback_days=None,
        region="us-east-1", prices_region=None, prices_as_of=None, price_source=None,
    )  # fmt: skip
    candidate = CandidateEligibility(Candidate(name="compile"), "torch_compile", ())
    return Eligibility(name, (candidate,), (), economics)


def test_the_few_that_matter_most_are_kept_whatever_their_order():
    totals = Totals()
    for usd in (3, 9, 1, 7, 5, 8, 2, 6, 4):
        totals.add(answered(f"w{usd}", 10.0 * usd, Range(0, usd)))

    assert [9, 8, 7, 6, 5] == sorted((usd for usd, *_ in totals.most_to_gain), reverse=True)
    assert (450.0, 45.0) == (totals.training_usd, totals.saving_high)
