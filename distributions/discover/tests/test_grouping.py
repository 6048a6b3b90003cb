"""Which jobs are runs of one workload, by names that the tools of SageMaker's users give."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

import pytest

from compilegate_discover.grouping import group_jobs
from compilegate_discover.names import stable_stems, stem_of
from distributions.discover.tests.jobs import NOW, daily, read, record

DAYS = 20


def names_of(style: str, base: str) -> list[str]:
    """Names of daily runs in a style."""
    draw = random.Random(f"{style} {base}")

    def drawn(letters: str, length: int) -> str:
        return "".join(draw.choices(letters, k=length))

    lower = "abcdefghijklmnopqrstuvwxyz0123456789"
    made = []
    for day in range(DAYS):
        at = NOW + timedelta(days=day, minutes=draw.randrange(60))
        made.append({
            "sdk v2": f"{base}-{at:%Y-%m-%d-%H-%M-%S}-{draw.randrange(1000):03}",
            "sdk v2, short": f"{base}-{at:%y%m%d-%H%M}",
            "sdk v2, epoch": f"{base}-{at.timestamp():.0f}-{drawn('0123456789abcdef', 4)}",
            "sdk v3": f"{base}-{at:%Y%m%d%H%M%S}",
            "sdk v3, cut": f"{base}{'x' * (51 - len(base))}-{at:%Y%m%d%H%M%S}"[:63],
            "pipelines": f"pipelines-{drawn(lower, 12)}-{base}-{drawn(lower, 10)}",
            "airflow": f"{base}-train-{at:%Y%m%dT%H%M%S}",
            "airflow, day first": f"{at:%Y-%m-%d}-{base}",
            "month by name": f"{base}-{at:%d%b%Y-%H%M%S}",
            "counted, tried again": f"{base}-run{day + 7}" + ("-r2" if day % 4 == 0 else ""),
            "step functions": f"{base}-{uuid.UUID(int=draw.getrandbits(128), version=4)}",
            "counted": f"{base}-run{day + 7}",
            "drawn": f"{base}-{drawn(lower, 5)}",
            "by commit": f"{base}-{drawn('0123456789abcdef', 6)}1a",
            "tried again": f"{base}-{at:%Y%m%d}" + ("-retry-2" if day % 3 else ""),
        }[style])  # fmt: skip
    return made


STYLES = (
    "sdk v2", "sdk v2, short", "sdk v2, epoch", "sdk v3", "sdk v3, cut", "pipelines", "airflow",
    "airflow, day first", "month by name", "step functions", "counted", "counted, tried again",
    "drawn", "by commit", "tried again",
)  # fmt: skip


def sizes(*records: list[dict]) -> list[int]:
    groups = group_jobs(read(*(one for some in records for one in some)))
    return sorted(len(group.jobs) for group in groups)


@pytest.mark.parametrize("style", STYLES)
def test_runs_of_two_workloads_of_one_script_are_two_groups(style):
    first = daily(names_of(style, "fraud-ranker"), data="s3://data/fraud/")
    second = daily(names_of(style, "churn-50"), data="s3://data/churn/")
    assert [DAYS, DAYS] == sizes(first, second)


def test_a_workload_of_another_name_is_followed_by_its_data():
    before = [record(f"ranker-{day}-2026-01-01", 40 - day) for day in range(10)]
    after = [record(f"reranker-{day}-2026-01-01", 20 - day) for day in range(10)]
    assert [20] == sizes(before, after)
    beside = [record(f"reranker-{day}-2026-01-01", 39.5 - day) for day in range(10)]
    assert [10, 10] == sizes(before, beside)


def test_teams_that_share_a_name_are_apart_by_tag_or_by_role_and_data():
    mine = daily(names_of("sdk v2", "ranker"), tags={"team": "ads"}, data="")
    theirs = daily(names_of("sdk v3", "ranker"), tags={"team": "shop"}, data="")
    assert [DAYS, DAYS] == sizes(mine, theirs)
    elsewhere = {"RoleArn": "arn:aws:iam::123456789012:role/other", "data": "s3://other/"}
    assert [DAYS, DAYS] == sizes(daily(names_of("sdk v2", "ranker")),
                                 daily(names_of("sdk v3", "ranker"), **elsewhere))  # fmt: skip


def test_another_instance_image_tag_and_setting_stay_in_the_group():
    jobs = daily(names_of("sdk v2", "ranker"))
    jobs[9]["ResourceConfig"]["InstanceType"] = "ml.p4d.24xlarge"
    jobs[10]["AlgorithmSpecification"] = {"TrainingImage": "763104351884.dkr.ecr.us-east-1."
                                          "amazonaws.com/pytorch-training:2.9"}  # fmt: skip
    jobs[11]["HyperParameters"]["warmup"] = "10"
    assert [DAYS] == sizes(jobs)


def test_numbers_that_come_back_are_parts_of_names():
    stems = {f"net-{size}-{run}": 1 for size in (50, 101) for run in range(20)}
    assert {"net-50-#", "net-101-#"} == set(stable_stems(stems).values())
    counted = {f"net-{run // 5}-{run % 5}": 1 for run in range(20)}
    assert {"net-#-#"} == set(stable_stems(counted).values())
    folds = {f"fold-{number}": 30 for number in range(5)}
    assert folds.keys() == set(stable_stems(folds).values())


def test_jobs_of_other_services_and_of_a_trial_are_left_out():
    left_out = [
        record("a", 1, TuningJobArn="arn:aws:sagemaker:us-east-1:1:hyper-parameter-tuning-job/a"),
        record("b", 1, AutoMLJobArn="arn:aws:sagemaker:us-east-1:1:automl-job/b"),
        record("cg-docs-m1-q1b1", 1, tags={"compilegate:workload": "docs"}),
    ]
    assert [] == read(*left_out)
    assert ["cg-painter"] == [job.name for job in read(record("cg-painter", 1, tags={"a": "b"}))]


def test_a_record_without_anything_but_a_name_and_a_time_is_a_job():
    (job,) = read({"TrainingJobName": "x", "CreationTime": NOW, "HyperParameters": None})
    assert (job.setup.program, job.instances) == ("", (("", 1),))
    assert "" == stem_of("2026-11-26-20-15-00-123")


DOCS, TEAM = {"data": "s3://data/docs/"}, {"tags": {"team": "nlp"}}
NOTHING, OUT = {"data": ""}, {"OutputDataConfig": {"S3OutputPath": "s3://out/docs"}}
ROLE = {"RoleArn": "arn:aws:iam::123456789012:role/other"}
MORE = {"settings": {"a": "1", "b": "1", "c": "1"}}
IMAGE = {"AlgorithmSpecification": {"TrainingImage": "1.dkr.ecr.us-east-1.amazonaws.com/own:1"}}
BERT, GPT = ({"settings": {"model_name": name}} for name in ("bert", "gpt"))
USUAL, OWN = "pytorch-training", "ranker"


@pytest.mark.parametrize(
    ("groups", "name", "first", "second"),
    [
        (1, OWN, DOCS, NOTHING),
        (1, OWN, DOCS, {"data": "s3://data/prices/"}),
        (2, OWN, DOCS, {"data": "s3://data/prices/"} | MORE),
        (2, OWN, DOCS | TEAM, {"data": "s3://data/docs/", "tags": {"team": "ads"}} | MORE),
        (2, USUAL, DOCS, NOTHING),
        (1, USUAL, DOCS | OUT, OUT | NOTHING),
        (1, USUAL, DOCS | TEAM, TEAM | NOTHING),
        (1, USUAL, DOCS | BERT, BERT | NOTHING),
        (2, USUAL, DOCS | BERT, DOCS | GPT),
        (2, USUAL, DOCS, DOCS | ROLE),
        (1, USUAL, DOCS, DOCS | MORE),
        (2, USUAL, DOCS | TEAM | OUT, TEAM | OUT | NOTHING | MORE),
        (2, USUAL, DOCS | TEAM | OUT, TEAM | OUT | NOTHING | IMAGE),
        (1, USUAL, DOCS, DOCS | IMAGE),
    ],
)
def test_what_speaks_for_one_workload_and_against_it(groups, name, first, second):
    jobs = daily(names_of("sdk v2", name), **first), daily(names_of("sdk v3", name), **second)
    assert groups == len(sizes(*jobs))


@pytest.mark.parametrize(
    ("groups", "begun", "first", "second"),
    [
        (1, 10, DOCS, DOCS),
        (2, 10, DOCS, DOCS | MORE),
        (2, 10, DOCS, {"data": "s3://data/prices/"}),
        (2, 19.5, DOCS | TEAM, DOCS | TEAM),
    ],
)
def test_another_name_needs_the_same_data_at_a_later_time(groups, begun, first, second):
    before = [record(f"ranker-2026-01-{day:02}", 40 - day, **_fresh(first)) for day in range(1, 25)]
    after = [record(f"rerank-2026-01-{day:02}", begun - day, **_fresh(second)) for day in range(9)]
    assert groups == len(sizes(before, after))


def _fresh(changes):
    return {key: dict(one) if isinstance(one, dict) else one for key, one in changes.items()}


@pytest.mark.parametrize(("groups", "data"), [(1, "s3://data/docs/"), (2, "s3://data/prices/")])
def test_a_name_with_r2_is_a_retry_where_the_data_is_the_same(groups, data):
    first = daily(names_of("sdk v2", "ranker"), **DOCS)
    assert groups == len(sizes(first, daily(names_of("sdk v2", "ranker-r2"), data=data)))
