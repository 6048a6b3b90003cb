"""An account in memory whose requests and answers fit botocore's models of the services."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.validate import validate_parameters

MODELS = botocore.session.get_session()
PAGE = 100


class AccountInMemory:
    """``records`` by region; ``denied`` operations are refused, ``unreached``
    regions do not answer; ``calls`` are kept in order."""

    def __init__(self, records: Mapping[str, list[dict[str, Any]]], **answers: Any) -> None:
        self.records = {
            region: sorted(some, key=lambda one: one["CreationTime"], reverse=True)
            for region, some in records.items()
        }
        self.denied: set[str] = set()
        self.unreached: set[str] = set()
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.objects: dict[str, bytes] = answers.pop("objects", {})
        self.usage: dict[str, float] = answers.pop("usage", {})
        # Percent of all GPUs of an instance, by name of the job.
        self.busy: dict[str, float] = answers.pop("busy", {})

    def client(self, service: str, region: str) -> Any:
        return _Client(self, service, region)


class _Client:
    def __init__(self, account: AccountInMemory, service: str, region: str) -> None:
        self._account, self._region = account, region
        self._model = MODELS.get_service_model(service)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        (operation,) = (one for one in self._model.operation_names if xform_name(one) == name)
        return lambda **request: self._call(operation, request)

    def _call(self, operation: str, request: dict[str, Any]) -> Any:
        model = self._model.operation_model(operation)
        validate_parameters(request, model.input_shape)
        self._account.calls.append((operation, request))
        if self._region in self._account.unreached:
            raise EndpointConnectionError(
                endpoint_url=f"https://api.sagemaker.{self._region}.amazonaws.com/"
            )
        if operation in self._account.denied:
            error = {"Code": "AccessDeniedException", "Message": f"{operation} is not allowed"}
            raise ClientError({"Error": error}, operation)
        answer = getattr(self, f"_{xform_name(operation)}")(**request)
        if operation != "GetObject":  # its body is a stream
            validate_parameters(answer, model.output_shape)
        return answer

    def _own(self) -> list[dict[str, Any]]:
        return self._account.records.get(self._region, [])

    def _search(self, **request: Any) -> Any:
        found = [{"TrainingJob": one} for one in self._own() if _matches(one, request)]
        return _page(found, "Results", request, request["MaxResults"])

    def _list_training_jobs(self, **request: Any) -> Any:
        found = [
            {
                "TrainingJobName": one["TrainingJobName"], "CreationTime": one["CreationTime"],
                "TrainingJobArn": f"arn:aws:sagemaker:{self._region}:123456789012:training-job/x",
                "TrainingJobStatus": one.get("TrainingJobStatus", "Completed"),
            }
            for one in self._own()
            if request["CreationTimeAfter"] <= one["CreationTime"] < request["CreationTimeBefore"]
        ]  # fmt: skip
        return _page(found, "TrainingJobSummaries", request, request["MaxResults"])

    def _describe_training_job(self, **request: Any) -> Any:
        named = request["TrainingJobName"]
        (one,) = (one for one in self._own() if one["TrainingJobName"] == named)
        return {key: value for key, value in one.items() if key != "Tags"} | {
            "ModelArtifacts": {"S3ModelArtifacts": "s3://b/m"}, "SecondaryStatus": "Completed",
            "TrainingJobArn": f"arn:aws:sagemaker:{self._region}:123456789012:training-job/x",
        }  # fmt: skip

    def _get_metric_data(self, **request: Any) -> Any:
        results = []
        for query in request["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            job = metric["Dimensions"][0]["Value"].partition("/")[0]
            value = self._account.busy.get(job)
            (of,) = (one for one in self._own() if one["TrainingJobName"] == job)
            begun, ended = of["TrainingStartTime"], of["TrainingEndTime"]
            assert request["StartTime"] <= begun < ended <= request["EndTime"]
            results.append({
                "Id": query["Id"], "Label": metric["MetricName"], "StatusCode": "Complete",
                "Timestamps": [] if value is None else [begun, begun + (ended - begun) / 2],
                "Values": [] if value is None else [0.0, value],
            })  # fmt: skip
        return {"MetricDataResults": results}

    def _get_cost_and_usage(self, **request: Any) -> Any:
        groups = [
            {"Keys": [kind], "Metrics": {"AmortizedCost": {"Amount": str(usd), "Unit": "USD"}}}
            for kind, usd in self._account.usage.items()
        ]
        return {"ResultsByTime": [{"TimePeriod": request["TimePeriod"], "Groups": groups}]}

    def _list_objects_v2(self, **request: Any) -> Any:
        prefix = f"s3://{request['Bucket']}/"
        keys = [key.removeprefix(prefix) for key in self._account.objects]
        found = [key for key in keys if key.startswith(request["Prefix"])]
        begin = int(request.get("ContinuationToken", 0))
        more = {"NextContinuationToken": str(begin + 1)} if begin + 1 < len(found) else {}
        return {"Contents": [{"Key": key} for key in found[begin : begin + 1]], **more}

    def _get_object(self, **request: Any) -> Any:
        body = self._account.objects.get(f"s3://{request['Bucket']}/{request['Key']}")
        if body is None:
            error = {"Code": "NoSuchKey", "Message": "The specified key does not exist."}
            raise ClientError({"Error": error}, "GetObject")
        return {"Body": io.BytesIO(body)}


def _matches(one: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    for condition in request["SearchExpression"]["Filters"]:
        bound = datetime.fromisoformat(condition["Value"])
        is_later = one[condition["Name"]] >= bound
        if is_later is not (condition["Operator"] == "GreaterThanOrEqualTo"):
            return False
    return True


def _page(found: list[Any], key: str, request: Mapping[str, Any], size: int) -> dict[str, Any]:
    begin = int(request.get("NextToken", 0))
    end = begin + size
    more = {"NextToken": str(end)} if end < len(found) else {}
    return {key: found[begin:end], **more}
