"""``discover`` on accounts in memory: what is found, what is written, what is missing."""

from __future__ import annotations

import io
import json
import tarfile
from datetime import datetime, timedelta

import pytest

from compilegate.adapters.yaml_document import load_yaml
from distributions.discover.tests.cloud import AccountInMemory
from distributions.discover.tests.jobs import IMAGE, NOW, REGION, channels, daily, record
from distributions.discover.tests.test_grouping import DAYS, names_of

SETTINGS = {"per_device_train_batch_size": "16", "learning_rate": "5e-5", "bf16": "true",
            "model_name_or_path": '"bert-base"', "hub_token": "hf_secret"}  # fmt: skip
PRICE = 1.408  # of an hour on ml.g5.xlarge, as shipped


def bert():
    jobs = daily(names_of("sdk v2", "bert-docs"), data="s3://data/docs/", settings=SETTINGS,
                 tags={"team": "nlp"})  # fmt: skip
    for place, job in enumerate(jobs):
        job["FinalMetricDataList"] = [
            {"MetricName": "train_loss", "Value": 1.0, "Timestamp": NOW},
            {"MetricName": "eval_accuracy", "Value": 0.9 + place % 2 / 100, "Timestamp": NOW},
        ]
    return jobs


def fill_in(file):
    """The file with what a person writes."""
    text = file.read_text().replace("source_dir: TODO", "source_dir: src")
    text = text.replace("full_run_samples: TODO", "full_run_samples: 100000")
    file.write_text(text.replace("static: TODO", "static: true"))
    (file.parent / "src").mkdir(exist_ok=True)
    (file.parent / "src" / "train.py").write_text("")
    return file.read_text()


def test_schedule_length_cost_and_saving_of_a_workload(discover):
    jobs = bert()
    jobs[3] |= {"TrainingJobStatus": "Failed", "BillableTimeInSeconds": 1800}
    jobs[4]["WarmPoolStatus"] = {
        "Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1800,
    }  # fmt: skip
    busy = {job["TrainingJobName"]: 40.0 for job in jobs[-2:]}
    document = discover(AccountInMemory({REGION: jobs}, busy=busy))
    (row,) = document["workloads"]
    assert ("bert-docs", DAYS, DAYS - 1, 1) == (
        row["name"], row["jobs"], row["runs"], row["failed"],
    )  # fmt: skip
    assert pytest.approx(7 * 18 / 19) == row["runs_per_week"]
    assert pytest.approx(DAYS * PRICE) == row["usd_seen"]
    assert pytest.approx(DAYS * PRICE / 19 * row["runs_per_week"] * 52) == row["usd_per_year"]
    assert ("about 20:00 UTC", 1.0, 0.4) == (
        row["starts"], row["run_hours"], row["gpu_utilization"],
    )  # fmt: skip
    low, high = row["plausible_annual_saving_usd"]
    assert 0 <= low < high < row["usd_per_year"]
    assert row["stopped_by"] is None


def test_the_file_has_what_was_read_and_check_says_what_is_left(discover, invoke, tmp_path):
    account = AccountInMemory({REGION: bert()})
    (row,) = discover(account)["workloads"]
    file = tmp_path / row["file"]
    document = load_yaml(file)
    training = document["training"]
    assert ("nlp", "2.8.0", "bf16", 16, 5e-5) == (
        document["owner"], document["framework"]["version"], training["precision"],
        training["batch_size"], training["learning_rate"],
    )  # fmt: skip
    assert {"train": "s3://data/docs/"} == training["inputs"]
    assert "hf_secret" not in file.read_text()
    assert ("eval_accuracy", "maximize") == (
        document["quality"]["metric"], document["quality"]["goal"],
    )  # fmt: skip
    values = [line for line in file.read_text().splitlines() if not line.endswith(":")]
    assert all(": TODO  # " in one or "# read: " in one or "# computed: " in one
               for one in values if not one.startswith("#"))  # fmt: skip
    left = "jobs/bert-docs.yaml: 3 values to write (TODO): " + ", ".join(row["unknown"])
    checked = invoke(account, "check", "jobs")
    assert (2, [f"Error: {left}"]) == (checked.exit_code, checked.stderr.splitlines())
    fill_in(file)
    answer = json.loads(invoke(account, "check", "jobs", "--json").stdout)
    assert ["bert-docs"] == [one["workload"] for one in answer]


def test_a_second_run_updates_its_own_lines_and_leaves_a_persons(discover, tmp_path):
    discover(AccountInMemory({REGION: bert()}))
    file = tmp_path / "jobs" / "bert-docs.yaml"
    text = fill_in(file).replace("margin: 0.01 ", "margin: 0.02 ")
    text = text.replace("precision: bf16  # read: bf16", "precision: bf16  # we checked")
    (epochs,) = [line for line in text.splitlines(keepends=True) if "    epochs: 3" in line]
    text = text.replace(epochs, "")
    file.write_text(text.replace("  volume_gb: 50", "  # disks\n  volume_gb: 50"))
    later = bert()
    for job in later[-3:]:
        job["ResourceConfig"] |= {"InstanceType": "ml.g5.2xlarge", "VolumeSizeInGB": 80}
        job["HyperParameters"] |= {"bf16": "false", "fp16": "true", "warmup": "10"}
    (row,) = discover(AccountInMemory({REGION: later}))["workloads"]
    assert ("bert-docs", "updated") == (row["name"], row["state"])
    assert {"training.source_dir", "training.precision", "shapes.static"} < {*row["of_person"]}
    now = load_yaml(file)
    assert ("ml.g5.2xlarge", 80, "bf16", "src", 0.02) == (
        now["training"]["instance_type"], now["training"]["volume_gb"],
        now["training"]["precision"], now["training"]["source_dir"], now["quality"]["margin"],
    )  # fmt: skip
    assert "  # disks\n  volume_gb: 80" in file.read_text()
    assert (10, False) == (
        now["training"]["hyperparameters"].get("warmup"),
        "epochs" in now["training"]["hyperparameters"],
    )
    before = file.read_bytes()
    discover(AccountInMemory({REGION: later}))
    assert before == file.read_bytes()


@pytest.mark.parametrize(
    "content", ["a person's\n", "schema: 1\n", "\0", None], ids=["words", "YAML", "NUL", "folder"]
)
def test_what_is_not_ours_is_left_and_said(discover, tmp_path, content):
    places = [tmp_path / "jobs" / name for name in ("bert-docs.yaml", "discovered.html")]
    (tmp_path / "jobs").mkdir()
    for place in places:
        place.mkdir() if content is None else place.write_text(content)
    document = discover(AccountInMemory({REGION: bert()}))
    assert ["left"] == [row["state"] for row in document["workloads"]]
    assert [True, True] == ["stays as it is" in note for note in document["notes"]]
    assert [content, content] == [None if one.is_dir() else one.read_text() for one in places]


def test_a_file_that_is_no_yaml_any_more_is_left(discover, tmp_path):
    discover(AccountInMemory({REGION: bert()}))
    file = tmp_path / "jobs" / "bert-docs.yaml"
    file.write_text(file.read_text() + "\tbroken: [")
    broken = file.read_bytes()
    document = discover(AccountInMemory({REGION: bert()}))
    assert ["left"] == [row["state"] for row in document["workloads"]]
    assert broken == file.read_bytes()


def test_a_run_that_was_stopped_goes_on_with_its_files(discover, tmp_path):
    account = AccountInMemory({REGION: bert()})
    discover(account)
    (tmp_path / "jobs" / "discovered.json").unlink()
    assert ["written"] == [row["state"] for row in discover(account)["workloads"]]


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", '{"schema": 1, "kind": "x", "workloads": []}',
        '{"schema": 1, "kind": "compilegate discover", "workloads": [{"name": "x"}]}',
    ],
)  # fmt: skip
def test_another_index_is_refused(invoke, tmp_path, content):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "discovered.json").write_text(content)
    result = invoke(AccountInMemory({REGION: bert()}), "discover")
    assert (2, True) == (result.exit_code, "--to" in result.stderr)


def test_without_search_jobs_are_listed_and_described(discover):
    account = AccountInMemory({REGION: bert()})
    account.denied = {"Search", "GetMetricData", "GetCostAndUsage"}
    document = discover(account, "--most", 15)
    assert [15] == [row["jobs"] for row in document["workloads"]]
    assert 15 == sum(name == "DescribeTrainingJob" for name, _ in account.calls)
    said = " ".join(document["notes"])
    assert all(name in said for name in ("Search", "GetMetricData", "GetCostAndUsage"))


def test_without_any_permission_nothing_is_written(invoke, tmp_path):
    account = AccountInMemory({REGION: bert()})
    account.denied = {"Search", "ListTrainingJobs"}
    result = invoke(account, "discover")
    assert (1, True) == (result.exit_code, "AccessDenied" in result.stderr)
    assert not (tmp_path / "jobs").exists()


def test_an_empty_account_without_search_is_empty(discover):
    account = AccountInMemory({})
    account.denied = {"Search"}
    assert ([], 1) == (discover(account)["workloads"], len(discover(account)["notes"]))


def test_workloads_of_one_name_keep_their_files(discover, tmp_path):
    one = daily(names_of("sdk v2", "pytorch-training"), data="s3://data/docs/")
    other = daily(names_of("sdk v3", "pytorch-training"), data="s3://data/prices/")
    account = AccountInMemory({REGION: [*one, *other[:15]]})
    before = {row["name"]: row["jobs"] for row in discover(account)["workloads"]}
    assert {"docs": 20, "prices": 15} == before
    for job in other:
        job["ResourceConfig"]["InstanceType"] = "ml.p4d.24xlarge"
    more = discover(AccountInMemory({REGION: [*one, *other]}))["workloads"]
    assert {"docs": 20, "prices": 20} == {row["name"]: row["jobs"] for row in more}
    for row in more:
        inputs = load_yaml(tmp_path / row["file"])["training"]["inputs"]
        assert {"train": f"s3://data/{row['name']}/"} == inputs


def test_an_empty_account_writes_nothing(discover, invoke, tmp_path):
    assert [] == discover(AccountInMemory({}))["workloads"]
    assert "0 training jobs" in invoke(AccountInMemory({}), "discover").stdout
    assert not (tmp_path / "jobs").exists()


def test_two_regions_and_one_that_cannot_be_read(discover):
    account = AccountInMemory({REGION: bert(), "eu-west-1": bert()})
    document = discover(account, "--region", REGION, "--region", "eu-west-1")
    names = {row["region"]: row["name"] for row in document["workloads"]}
    assert {"bert-docs", "bert-docs-2"} == {*names.values()}
    again = discover(account, "--region", "eu-west-1", "--region", REGION)
    assert names == {row["region"]: row["name"] for row in again["workloads"]}


def test_all_pages_of_all_weeks_are_read_once(discover):
    many = [record(f"docs-{place}-2026-01-01", place / 4 + 0.1) for place in range(359)]
    document = discover(AccountInMemory({REGION: many}))
    assert [359] == [row["jobs"] for row in document["workloads"]]
    account = AccountInMemory({REGION: many})
    assert 8 == discover(account, "--since", "2d")["totals"]["jobs"]
    (filters,) = (r["SearchExpression"]["Filters"] for name, r in account.calls if name == "Search")
    begin, end = (datetime.fromisoformat(one["Value"]) for one in filters)
    assert (NOW, timedelta(days=2)) == (end, end - begin)


def test_what_has_ended_what_compiles_and_what_has_no_price(discover):
    ended = [record(f"old-{day}-2026-01-01", 80 - day) for day in range(10)]
    compiled = daily(names_of("sdk v2", "fast"), program="fast.py",
                     settings={"torch_compile": "True"})  # fmt: skip
    dear = daily(names_of("sdk v2", "dear"), program="dear.py",
                 resources={"InstanceType": "ml.unheard.xlarge"})  # fmt: skip
    document = discover(AccountInMemory({REGION: [*ended, *compiled, *dear]}))
    rows = {row["name"]: row for row in document["workloads"]}
    codes = {name: (row["stopped_by"] or {}).get("code") for name, row in rows.items()}
    assert ("ended", "compiles_already") == (codes["old"], codes["fast"])
    assert (None, None, ["ml.unheard.xlarge"]) == (
        rows["old"]["file"], rows["dear"]["usd_per_year"], rows["dear"]["unpriced"],
    )  # fmt: skip
    assert any("ml.unheard.xlarge" in note for note in document["notes"])


def test_an_own_image_is_taken_for_pytorch_which_is_said(discover, tmp_path):
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"
    own = daily(names_of("sdk v2", "own"), AlgorithmSpecification={
        "TrainingImage": image, "TrainingInputMode": "File",
    })  # fmt: skip
    document = discover(AccountInMemory({REGION: own}))
    (row,) = document["workloads"]
    assert {"framework.name", "framework.version", "facts.images"} <= {*row["unknown"]}
    assert 0 < row["plausible_annual_saving_usd"][1] < row["usd_per_year"]
    assert ["PyTorch" in note for note in document["notes"]] == [True]
    assert image == load_yaml(tmp_path / row["file"])["facts"]["images"][0]["uri"]


def test_an_algorithm_of_sagemaker_is_stopped(discover):
    image = "811284229777.dkr.ecr.us-east-1.amazonaws.com/image-classification:1"
    jobs = daily(names_of("sdk v2", "pictures"), AlgorithmSpecification={
        "TrainingImage": image, "TrainingInputMode": "File",
    })  # fmt: skip
    (row,) = discover(AccountInMemory({REGION: jobs}))["workloads"]
    assert "built_in_algorithm" == row["stopped_by"]["code"]


def test_jobs_without_hyperparameters_and_with_hostile_texts(discover, tmp_path):
    bare = [
        {"TrainingJobName": f"x-{day}-2026-01-01", "CreationTime": NOW - timedelta(days=5 - day),
         "TrainingJobStatus": "Completed"} for day in range(4)
    ]  # fmt: skip
    hostile = daily(
        names_of("sdk v2", "A--B"), program='"../../etc/passwd.py"',
        data="s3://data/\u202e\n# x: [", tags={"owner": "a\n  margin: 1", "k:": "<script>"},
        settings={"a b": "1", "--flag": "x", "text": "'\n- {", "script_arg": "<img src=x>"},
    )  # fmt: skip
    document = discover(AccountInMemory({REGION: [*bare, *hostile]}), "--with-source")
    assert {"x", "a-b"} == {row["name"] for row in document["workloads"]}
    for row in document["workloads"]:
        assert isinstance(load_yaml(tmp_path / row["file"]), dict)
    assert not [*tmp_path.rglob("passwd*")]
    assert "<script>" not in (tmp_path / "jobs" / "discovered.html").read_text()


def test_the_bill_stands_beside_list_prices(discover):
    account = AccountInMemory({REGION: bert()}, usage={
        "USE1-Train:ml.g5.xlarge": 20.0, "Train:ml.p4d.24xlarge": 100.0, "USE1-Host:ml.g5": 7.0,
    })  # fmt: skip
    billed = {row["instance_type"]: row for row in discover(account)["billed"]}
    assert {"ml.g5.xlarge": 20.0, "ml.p4d.24xlarge": 100.0} == {
        kind: row["billed_usd"] for kind, row in billed.items()
    }
    assert pytest.approx(DAYS * PRICE) == billed["ml.g5.xlarge"]["listed_usd"]


def bundle(**files):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as made:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            made.addfile(info, io.BytesIO(text.encode()))
    return body.getvalue()


SCRIPT = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.1)
args = parser.parse_args()
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(3):
    for batch in torch.utils.data.DataLoader(range(100), batch_size=args.batch):
        model(batch).sum().backward()
        optimizer.step()
    print(f"val_loss={1.0}")
"""


@pytest.mark.parametrize(
    "body",
    [b"", bundle(__up="x"), bundle(**{"..__up.py": "x"}), b"\x1f\x8b"],
    ids=["empty", "no script", "outside", "cut off"],
)
def test_a_bundle_that_cannot_be_read_is_said(discover, tmp_path, body):
    source = {"sagemaker_submit_directory": "s3://code/x/sourcedir.tar.gz"}
    jobs = daily(names_of("sdk v2", "plain"), settings=source)
    account = AccountInMemory({REGION: jobs}, objects={"s3://code/x/sourcedir.tar.gz": body})
    document = discover(account, "--with-source")
    assert any("its code is not read" in note for note in document["notes"])
    assert not [*tmp_path.rglob("up.py")]
    assert not [*tmp_path.glob("jobs/source/.*")]


IN_V3 = "s3://sagemaker-us-east-1-123456789012/plain/job/input"
STARTED = {
    "AlgorithmSpecification": {
        "TrainingImage": IMAGE, "TrainingInputMode": "File",
        "ContainerEntrypoint": ["/bin/bash"],
        "ContainerArguments": ["-c", "chmod +x /opt/ml/input/data/sm_drivers/sm_train.sh"],
    },
    "HyperParameters": {"lr": "0.2"},
    "InputDataConfig": [
        *channels("s3://data/docs/"),
        *channels(f"{IN_V3}/code", "code"), *channels(f"{IN_V3}/sm_drivers", "sm_drivers"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "started",
    [
        {"entry_script": "train.py", "command": None},
        {"entry_script": "other.py", "command": "python -u train.py --lr 0.2"},
    ],
    ids=["script", "command"],
)
def test_the_code_of_the_sdks_version_3_lies_below_its_channel(discover, tmp_path, started):
    jobs = daily(names_of("sdk v3", "plain"), **STARTED)
    account = AccountInMemory({REGION: jobs}, objects={
        f"{IN_V3}/code/train.py": SCRIPT.encode(), f"{IN_V3}/code/own/model.py": b"",
        f"{IN_V3}/code/own/": b"", f"{IN_V3}/codes.py": b"",
        f"{IN_V3}/sm_drivers/sourcecode.json": json.dumps(started).encode(),
    })  # fmt: skip
    (row,) = discover(account, "--with-source")["workloads"]
    training = load_yaml(tmp_path / row["file"])["training"]
    assert ("source/plain", 8, 0.2) == (
        training["source_dir"], training["batch_size"], training["learning_rate"],
    )  # fmt: skip
    assert {"train.py", "own", "model.py"} == {
        path.name for path in (tmp_path / "jobs" / "source" / "plain").rglob("*")
    }


@pytest.mark.parametrize(
    "objects",
    [
        {}, {"sm_drivers/sourcecode.json": b"{"}, {"sm_drivers/sourcecode.json": b"[]"},
        {"sm_drivers/sourcecode.json": b'{"entry_script": "run.sh"}'},
        {"sm_drivers/sourcecode.json": b'{"entry_script": "train.py"}'},
        {"sm_drivers/sourcecode.json": b'{"entry_script": "train.py"}', "code/../up.py": b"x"},
    ],
    ids=["no object", "cut off", "a list", "no Python", "no code", "outside"],
)  # fmt: skip
def test_code_of_the_sdks_version_3_that_cannot_be_read_is_said(discover, tmp_path, objects):
    jobs = daily(names_of("sdk v3", "plain"), **STARTED)
    there = {f"{IN_V3}/{key}": body for key, body in objects.items()}
    document = discover(AccountInMemory({REGION: jobs}, objects=there), "--with-source")
    assert any("its code is not read" in note for note in document["notes"])
    assert not [*tmp_path.glob("jobs/source/*")]


@pytest.mark.parametrize("since", ["", "0d", "90", "-1d", "9999w", "1h"])
def test_a_time_back_that_is_none(invoke, since):
    assert 2 == invoke(AccountInMemory({}), "discover", "--since", since).exit_code


def test_the_code_fills_a_file_as_if_it_were_written_with_it_at_once(discover, tmp_path):
    source = {"sagemaker_submit_directory": '"s3://code/x/sourcedir.tar.gz"'}
    jobs = daily(names_of("sdk v2", "plain"), settings=source)
    discover(AccountInMemory({REGION: jobs}))
    packed = {"s3://code/x/sourcedir.tar.gz": bundle(**{"train.py": SCRIPT})}
    account = AccountInMemory({REGION: jobs}, objects=packed)
    updated, fresh = (
        load_yaml(tmp_path / discover(account, "--with-source", *to)["workloads"][0]["file"])
        for to in ((), ("--to", "fresh"))
    )
    training = updated["training"]
    assert ("source/plain", 8, 0.1) == (
        training["source_dir"], training["batch_size"], training["learning_rate"],
    )  # fmt: skip
    assert "metric_patterns" in training["hyperparameters"]
    assert fresh == updated
