"""What next, and where records, jobs and logs are."""

import re
from dataclasses import replace

import pytest

from compilegate.report.tables import next_command
from compilegate.usecases.reports import read_trial_report
from tests.report import samples
from tests.report.browser import plain
from tests.report.samples import rendered

EXECUTION = (
    "arn:aws:states:eu-west-1:123456789012:execution:compilegate-prod-evaluate:albert-docs-x"
)


def on_aws():
    source = samples.promote()
    source["context"] |= {
        "stage": "prod", "owner": "ml-platform", "region": "eu-west-1", "bucket": "data",
    }  # fmt: skip
    source["plan"] = replace(
        source["plan"], started_at=1_793_500_000, spec_key="workloads/albert-docs/specs/a.json",
        execution=EXECUTION,
    )  # fmt: skip
    for arm in source["evidence"]["arms"]:
        for run in arm["runs"]:
            run["job"] = f"cg-albert-docs-{run['stage']}"
    return source


def links(source):
    return re.findall(r'href="(https:[^"]+)"', rendered(source).html)


@pytest.mark.parametrize(
    ("sample", "command"),
    [
        (samples.promote, "compilegate flag show albert-docs --local"),
        (samples.stay_off, "compilegate run gpt-ragged.yaml --local"),
        (samples.failed, "compilegate run albert-docs.yaml --local"),
        (samples.ineligible, "compilegate check xgb-churn.yaml"),
        (samples.reverted, "compilegate report gpt-history --history --open --local"),
    ],
)
def test_the_next_command_follows_from_the_verdict(sample, command):
    assert command == next_command(read_trial_report(sample()))[0]
    assert f"Next: {command} " in plain(rendered(sample()).html)


def test_on_aws_records_flag_execution_jobs_and_logs_are_links():
    places = [
        re.sub(r"^https://eu-west-1\.console\.aws\.amazon\.com/", "", x) for x in links(on_aws())
    ]

    for begins in ("s3/object/data?", "systems-manager/parameters/", "states/home?",
                   "sagemaker/home?region=eu-west-1#/jobs/cg-albert-docs-speed",
                   "cloudwatch/home?"):  # fmt: skip
        assert [place for place in places if place.startswith(begins)], begins


def test_hostile_names_do_not_leave_their_link():
    source = on_aws()
    hostile = '"><script>alert(1)</script>'
    source["plan"] = replace(source["plan"], spec_key=hostile)
    source["context"]["bucket"] = hostile
    source["evidence"]["arms"][0]["runs"][0]["job"] = hostile

    assert "<script" not in rendered(source).html
