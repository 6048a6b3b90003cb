"""Links into the AWS console: they hold as long as what they name, for people who may see it there.

A signed link would end with the credentials of the function that signed it, within hours.
Domains: AWS General Reference, "AWS Management Console endpoints", and the user guides of the
China and GovCloud partitions.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

_DOMAINS = (("cn-", "console.amazonaws.cn"), ("us-gov-", "console.amazonaws-us-gov.com"))
TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"


def s3_object(region: str, bucket: str, key: str) -> str:
    """The page of one object, from which it is opened."""
    return f"{_home(region)}/s3/object/{quote(bucket)}?{_query(region, prefix=key)}"


def training_job(region: str, job: str) -> str:
    """A training job of SageMaker."""
    return f"{_home(region)}/sagemaker/home?{_query(region)}#/jobs/{quote(job)}"


def training_log(region: str, job: str) -> str:
    """The log streams of a training job, one of each of its nodes."""
    # What follows the fragment's mark is escaped once more, with a dollar for each percent sign.
    group, end = (
        quote(quote(text, safe=""), safe="").replace("%", "$") for text in (TRAINING_LOGS, "/")
    )
    page = f"{_home(region)}/cloudwatch/home?{_query(region)}"
    return f"{page}#logsV2:log-groups/log-group/{group}$3FlogStreamNameFilter$3D{quote(job)}{end}"


def execution(region: str, arn: str) -> str:
    """An execution of a state machine."""
    return f"{_home(region)}/states/home?{_query(region)}#/v2/executions/details/{quote(arn)}"


def parameter(region: str, name: str) -> str:
    """A parameter of Parameter Store, such as a workload's flag."""
    place = f"{_home(region)}/systems-manager/parameters{quote(name)}/description"
    return f"{place}?{_query(region)}"


def _home(region: str) -> str:
    domain = next((domain for prefix, domain in _DOMAINS if region.startswith(prefix)), None)
    return f"https://{region}.{domain or 'console.aws.amazon.com'}"


def _query(region: str, **more: str) -> str:
    return urlencode({"region": region, **more}, quote_via=quote)
