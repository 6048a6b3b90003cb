"""Links into the console, in the forms that its own address bar shows."""

from __future__ import annotations

from compilegate.domain import console


def test_each_link_names_region_and_thing():
    home = "https://eu-west-1.console.aws.amazon.com"
    logs = "log-groups/log-group/$252Faws$252Fsagemaker$252FTrainingJobs"
    arn = "arn:aws:states:eu-west-1:123456789012:execution:cg:bert-1"

    assert [
        f"{home}/s3/object/data?region=eu-west-1&prefix=reports%2Fa%26b%2Freport.html",
        f"{home}/sagemaker/home?region=eu-west-1#/jobs/cg-bert-1",
        f"{home}/cloudwatch/home?region=eu-west-1#logsV2:{logs}"
        "$3FlogStreamNameFilter$3Dcg-bert-1$252F",
        f"{home}/states/home?region=eu-west-1#/v2/executions/details/{arn.replace(':', '%3A')}",
        f"{home}/systems-manager/parameters/compilegate/prod/x/description?region=eu-west-1",
    ] == [
        console.s3_object("eu-west-1", "data", "reports/a&b/report.html"),
        console.training_job("eu-west-1", "cg-bert-1"),
        console.training_log("eu-west-1", "cg-bert-1"),
        console.execution("eu-west-1", arn),
        console.parameter("eu-west-1", "/compilegate/prod/x"),
    ]
