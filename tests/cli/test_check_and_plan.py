"""``check`` and ``plan``: what could be gained and what finding out costs, of one file or many."""

import json
from pathlib import Path

import pytest

from compilegate.cli.check import Totals
from compilegate.domain.economics import Range
from compilegate.domain.eligibility.check import CandidateEligibility, Eligibility
from compilegate.domain.eligibility.payoff import Economics
from compilegate.domain.errors import path_shown
from compilegate.domain.workload.model import Candidate
from tests.cli.project import COMPILES, LAUNCHED, write_compiling, write_project

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
SCREENS = {
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
def test_programs_get_verdict_and_refusal(changes, verdict, refused, tmp_path, asked):
    file = write_project(tmp_path, *changes)

    assert verdict == asked("check", file)["verdict"]
    assert refused == asked("plan", file).get("refused", {}).get("code")


def test_prices_of_the_jobs_own_region_need_no_others(tmp_path, shown):
    file = write_project(tmp_path, BF16, ("ml.g5.xlarge", "ml.g4dn.xlarge"))

    assert "facts refresh reads those" not in shown("plan", file, "--region", "us-west-2")


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


def test_of_two_candidates_that_are_one_job_the_second_is_left_out(tmp_path, shown, asked):
    cap = ("quality:", "policy: {max_trial_usd: 100000}\nquality:")
    file = write_project(tmp_path, BF16, *OLD, ("quality:", ONE_JOB), cap)
    plan = asked("plan", file)

    assert ["baseline", "ddp", "alone"] == [arm["name"] for arm in plan["arms"]]
    assert ["smddp"] == [left["name"] for left in plan["left_out"]]
    assert "the same job as ddp" in plan["left_out"][0]["why"]
    assert "one factor: no launcher" in shown("plan", file)


def test_a_script_that_already_compiles_saves_against_an_uncompiled_run(tmp_path, invoke):
    file = write_project(tmp_path, LAUNCHED)
    quiet = [invoke(command, file).stdout for command in ("check", "plan")]
    plain = write_project(tmp_path / "plain")
    (tmp_path / "plain" / "training" / "train.py").write_text(COMPILES)  # stays in the baseline
    quiet.append(invoke("check", plain).stdout)
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


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        (("quality:", "policy: {holdback: 0}\nquality:"), True),
        (("quality:", "policy: {holdback: 0.01}\nquality:"), False),
        (("runs_per_week: 3", "runs_per_week: 0.4"), True),
    ],
)
def test_without_a_holdback_the_saving_is_unknown(change, unknown, tmp_path, shown, asked):
    file = write_project(tmp_path, change)

    assert unknown is ("no_holdback" in asked("check", file))
    assert unknown is ("what it saves from then on is unknown" in shown("check", file))


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
    """Two teams' folders: five sound workloads, one that no compiler helps, one with a mistake."""
    good = write_project(tmp_path / "a")
    text = good.read_text()
    for index in range(4):
        name = f"job-{index}"
        (good.parent / f"{name}.yml").write_text(text.replace("bert-docs", name))
    trees = write_project(tmp_path / "b", *TREES, ("name: bert-docs", "name: trees"))
    wrong = text.replace("name: bert-docs", "name: wrong").replace("margin: 0.005", "margin: -1")
    (trees.parent / "wrong.yaml").write_text(wrong)
    (trees.parent / "values.yaml").write_text("replicas: 2\nimage: web\n")
    hidden = tmp_path / "b" / ".cache"
    hidden.mkdir()
    (hidden / "old.yaml").write_text(text)
    return tmp_path


def test_a_folder_is_searched_for_what_looks_like_a_workload(team, invoke):
    result = invoke("check", team, "--jsonl")

    answers = [json.loads(line) for line in result.stdout.splitlines()]
    names = [Path(answer["file"]).name for answer in answers]
    assert [
        "bert-docs.yaml", "job-0.yml", "job-1.yml", "job-2.yml", "job-3.yml", "bert-docs.yaml",
        "wrong.yaml",
    ] == names  # fmt: skip


def test_many_get_a_line_each_and_a_sum(team, invoke):
    result = invoke("check", team)

    lines = result.stdout.splitlines()
    text = " ".join(result.stdout.split())
    assert 2 == result.exit_code
    assert ["bert-docs", "job-0", "job-1", "job-2", "job-3", "trees"] == [
        line[14:].split()[0] for line in lines[:6]
    ]
    assert "6 workloads: " in text
    assert "1 not eligible, 1 file invalid" in text
    assert "training costs per year" in text
    assert "Largest training costs without an eligible compiler" in text
    assert [line for line in lines if len(line) > 80] == []
    assert "\x1b" not in result.stdout


def test_the_sum_is_the_sum_of_the_documents(team, invoke):
    (team / "b" / "workloads" / "wrong.yaml").unlink()
    documents = json.loads(invoke("check", team, "--json").stdout)

    result = invoke("check", team)

    usd = sum(document["economics"]["annual_training_usd"] for document in documents)
    assert f"training costs per year   ${usd:,.0f}" in result.stdout
    assert 6 == len(documents)
    assert {document["verdict"] for document in documents} >= {"ineligible"}


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


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 3000 + "b.yaml", "nothing-here"])
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


def test_a_workload_without_a_known_price_is_counted_and_not_taken_for_free():
    totals = Totals()
    totals.add(answered("w", None, None))

    assert (1, 0.0, []) == (totals.unpriced, totals.training_usd, totals.most_to_gain)
