"""What is read of an account's jobs: Search, GetMetricData, and the bill in Cost Explorer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import botocore.session
import pytest
from botocore.validate import ParamValidator

from compilegate.facts import load_facts
from compilegate_localcloud.emulator.sagemaker.costs import CostExplorer
from compilegate_localcloud.emulator.sagemaker.failures import ApiError
from compilegate_localcloud.emulator.sagemaker.search import search

NAMESPACE = "/aws/sagemaker/TrainingJobs"
HOUR = 3600.0
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC).timestamp()


def job(name: str, created: float, kind: str = "ml.g5.xlarge", **shown: object) -> SimpleNamespace:
    """A job as the service has it."""
    description = {
        "TrainingJobName": name, "TrainingJobStatus": "Completed", "CreationTime": created,
        "LastModifiedTime": created + 10, "HyperParameters": {"a.b": "x"},
        "TrainingStartTime": created + 5, "TrainingEndTime": created + 10,
        "EnableManagedSpotTraining": created > MIDNIGHT,
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": 2, "VolumeSizeInGB": 1},
        "FinalMetricDataList": [{"MetricName": "loss", "Value": 0.5, "Timestamp": created}],
        "NotOfSearch": 1, **shown,
    }  # fmt: skip
    return SimpleNamespace(
        tags={"owner": "nlp"}, account="111122223333", region="us-east-1",
        describe=lambda: description,
    )  # fmt: skip


JOBS = [
    job("bert-1", MIDNIGHT),
    job("bert-2", MIDNIGHT + HOUR, TrainingJobStatus="Failed"),
    job("other", MIDNIGHT + 2 * HOUR, "ml.m5.xlarge", TuningJobArn="arn:aws:sagemaker"),
]


def names(found):
    return [result["TrainingJob"]["TrainingJobName"] for result in found["Results"]]


def searched(*filters, **request):
    keys = ("Name", "Operator", "Value")
    expression = {"Filters": [dict(zip(keys, one, strict=False)) for one in filters]}
    return search(
        JOBS, {"Resource": "TrainingJob", "SearchExpression": expression, "SortBy": "CreationTime",
               "SortOrder": "Ascending", **request},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (("TrainingJobName", "Contains", "bert"), ["bert-1", "bert-2"]),
        (("TrainingJobStatus", "Equals", "Failed"), ["bert-2"]),
        (("TrainingJobName", "In", "bert-1, other"), ["bert-1", "other"]),
        (("CreationTime", "GreaterThan", "2026-03-01T01:00:00"), ["other"]),
        (("CreationTime", "GreaterThanOrEqualTo", "2026-03-01T01:00:00Z"), ["bert-2", "other"]),
        (("CreationTime", "LessThanOrEqualTo", "2026-03-01T01:00:00"), ["bert-1", "bert-2"]),
        (("LastModifiedTime", "LessThan", "2026-03-01T00:00:10"), []),
        (("EnableManagedSpotTraining", "Equals", "True"), ["bert-2", "other"]),
        (("TuningJobArn", "NotExists"), ["bert-1", "bert-2"]),
        (("TuningJobArn", "NotEquals", "x"), ["other"]),
        (("ResourceConfig.InstanceType", "Equals", "ml.m5.xlarge"), ["other"]),
        (("ResourceConfig.InstanceCount", "GreaterThan", "10"), []),
        (("HyperParameters.a.b", "Equals", "x"), ["bert-1", "bert-2", "other"]),
        (("ResourceConfig.InstanceType.x", "Exists"), []),
        (("Tags.owner", "Equals", "risk"), []),
        (("Metrics.loss", "LessThan", "0.6"), ["bert-1", "bert-2", "other"]),
    ],
)
def test_a_filter_leaves_the_jobs_whose_property_compares(one, expected):
    assert names(searched(one)) == expected


def test_expressions_are_joined_by_their_operator():
    failed = {"Name": "TrainingJobStatus", "Value": "Failed"}
    other = {"Name": "TrainingJobName", "Value": "other"}
    either = {"Filters": [failed, other], "Operator": "Or"}
    both = {"Filters": [failed], "SubExpressions": [either]}

    assert names(searched(SearchExpression=either)) == ["bert-2", "other"]
    assert names(searched(SearchExpression=both)) == ["bert-2"]
    assert names(searched(SearchExpression={**either, "Operator": "And"})) == []
    assert len(names(searched(SearchExpression={"Operator": "Or"}))) == len(JOBS)


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"Resource": "Model"}, "Model"),
        ({"NextToken": "x"}, "NextToken"),
        ({"SortBy": "Metrics"}, "Metrics"),
        ({"SearchExpression": {"NestedFilters": []}}, "NestedFilters"),
        ({"SearchExpression": {"Filters": [{"Name": "Colour", "Value": "x"}]}}, "Colour"),
        ({"SearchExpression": {"Filters": [{"Name": "CreationTime", "Value": "x"}]}}, "'x'"),
    ],
)
def test_what_is_not_searched_is_refused(request_, named):
    with pytest.raises(ApiError, match=named) as caught:
        searched(**request_)

    assert caught.value.code == "ValidationException"


def billed(*jobs, **changes):
    request = {
        "TimePeriod": {"Start": "2026-02-28", "End": "2026-03-03"}, "Granularity": "DAILY",
        "Metrics": ["UnblendedCost", "UsageQuantity"], **changes,
    }  # fmt: skip
    explorer = CostExplorer(lambda account: [one for one in jobs if one.account == account])
    status, _, body = explorer.respond(
        "GetCostAndUsage", json.dumps(request).encode(), "111122223333"
    )
    return status, json.loads(body)


def ran(kind="ml.g5.xlarge", begin=MIDNIGHT - HOUR, seconds=2 * HOUR, **shown):
    times = {"TrainingStartTime": begin, "TrainingEndTime": begin + seconds}
    return job("ran", begin, kind, BillableTimeInSeconds=seconds, **times, **shown)


def test_a_job_is_billed_on_the_days_on_which_it_ran():
    _, bill = billed(ran(seconds=3 * HOUR))
    days = [
        (day["TimePeriod"]["Start"], float(day["Total"]["UsageQuantity"]["Amount"]))
        for day in bill["ResultsByTime"]
    ]
    usd = float(bill["ResultsByTime"][1]["Total"]["UnblendedCost"]["Amount"])

    assert days == [("2026-02-28", 2.0), ("2026-03-01", 4.0), ("2026-03-02", 0.0)]
    assert usd == pytest.approx(4 * load_facts().prices["ml.g5.xlarge"].usd_per_hour)


def test_costs_are_grouped_by_dimensions_and_filtered():
    group = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 4, "InstanceGroupName": "a"}
    without_price = {**group, "InstanceType": "ml.c5.xlarge"}
    groups_of_instances = [group, without_price, {**group, "InstanceCount": 1}]
    mixed = ran(ResourceConfig={"InstanceGroups": groups_of_instances})
    unpriced = ran("ml.c5.xlarge")
    never = job("never", MIDNIGHT)
    keys = [{"Type": "DIMENSION", "Key": key} for key in ("USAGE_TYPE", "REGION")]
    service = {"Dimensions": {"Key": "SERVICE", "Values": ["Amazon SageMaker"]}}
    cheap = {"Dimensions": {"Key": "INSTANCE_TYPE", "Values": ["ml.m5.xlarge"]}}
    jobs = (ran(), mixed, unpriced, never)

    def groups(expression):
        _, bill = billed(*jobs, GroupBy=keys, Filter=expression, Granularity="MONTHLY")
        return {
            tuple(one["Keys"]): float(one["Metrics"]["UsageQuantity"]["Amount"])
            for one in bill["ResultsByTime"][0]["Groups"]
        }

    small = {("USE1-Train:ml.m5.xlarge", "us-east-1"): 5.0}
    large = {("USE1-Train:ml.g5.xlarge", "us-east-1"): 2.0}

    assert groups(service) == {**large, **small}
    assert groups({"And": [service, cheap]}) == small
    assert groups({"And": [service, {"Not": cheap}]}) == large
    assert groups({"Or": [{"Not": service}, cheap]}) == small


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"Granularity": "HOURLY"}, "DAILY"),
        ({"TimePeriod": {"Start": "2026-03-03", "End": "2026-03-03"}}, "before"),
        ({"Metrics": ["NormalizedUsageAmount"]}, "NormalizedUsageAmount"),
        ({"GroupBy": [{"Type": "TAG", "Key": "owner"}]}, "dimensions"),
        ({"GroupBy": [{"Type": "DIMENSION", "Key": "AZ"}]}, "AZ"),
        ({"Filter": {"CostCategories": {"Key": "a", "Values": ["b"]}}}, "CostCategories"),
    ],
)
def test_costs_that_are_not_known_are_refused(changes, named):
    status, refusal = billed(ran(), **changes)

    assert (status, refusal["__type"]) == (400, "ValidationException")
    assert named in refusal["message"]


def valid(service, operation, answer):
    """Whether the service's published model allows the answer."""
    model = botocore.session.get_session().get_service_model(service)
    shown = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
    report = ParamValidator().validate(shown, model.operation_model(operation).output_shape)
    return report.generate_report() == ""


def series(client, job_name, metric, dimension):
    now = datetime.now(UTC)
    stat = {
        "Metric": {
            "Namespace": NAMESPACE, "MetricName": metric,
            "Dimensions": [{"Name": dimension, "Value": job_name}],
        },
        "Period": 60, "Stat": "Maximum",
    }  # fmt: skip
    answer = client("cloudwatch").get_metric_data(
        MetricDataQueries=[{"Id": "q", "MetricStat": stat}],
        StartTime=now - timedelta(hours=1), EndTime=now + timedelta(minutes=1),
    )  # fmt: skip
    assert valid("cloudwatch", "GetMetricData", answer)
    [result] = answer["MetricDataResults"]
    return result["StatusCode"], result["Values"]


@pytest.mark.e2e
def test_an_account_can_be_read_by_the_services_own_clients(trainer, client):
    """One job's record, its metrics, and its line on the bill."""
    algorithm = {
        "TrainingImage": "image", "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    }  # fmt: skip
    cluster = {"InstanceType": "ml.p3.8xlarge", "InstanceCount": 3, "VolumeSizeInGB": 1}
    ended = trainer.run(
        "print('loss=0.5'); print('loss=0.25'); print('loss=x')", name="read-1",
        AlgorithmSpecification=algorithm, ResourceConfig=cluster,
    )  # fmt: skip
    expression = {"Filters": [{"Name": "TrainingJobName", "Operator": "Equals", "Value": "read-1"}]}
    found = client("sagemaker").search(Resource="TrainingJob", SearchExpression=expression)
    record = found["Results"][0]["TrainingJob"]
    today = datetime.now(UTC).date()
    period = {"Start": f"{today - timedelta(days=1)}", "End": f"{today + timedelta(days=1)}"}
    bill = client("ce").get_cost_and_usage(
        TimePeriod=period, Granularity="MONTHLY", Metrics=["UnblendedCost"],
        GroupBy=[{"Type": "DIMENSION", "Key": "INSTANCE_TYPE"}],
    )  # fmt: skip
    costs = sum(
        float(group["Metrics"]["UnblendedCost"]["Amount"])
        for month in bill["ResultsByTime"]
        for group in month["Groups"]
        if group["Keys"] == ["ml.p3.8xlarge"]
    )
    usd = load_facts().prices["ml.p3.8xlarge"].usd_per_hour

    assert valid("sagemaker", "Search", found)
    assert record.pop("Tags") == [{"Key": "compilegate:stage", "Value": "quality"}]
    assert record == {name: ended[name] for name in record}
    assert {"HyperParameters", "BillableTimeInSeconds", "FinalMetricDataList"} <= record.keys()
    assert series(client, "read-1", "loss", "TrainingJobName") == ("Complete", [0.5])
    assert series(client, "read-1/algo-1", "GPUUtilization", "Host") == ("Complete", [])
    assert valid("ce", "GetCostAndUsage", bill)
    assert costs == pytest.approx(3 * usd * ended["BillableTimeInSeconds"] / HOUR)
