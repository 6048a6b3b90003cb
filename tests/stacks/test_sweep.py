"""The sweep comes by itself once a day, and may stop this project's jobs only."""

from tests.stacks.template import ACCOUNT, REGION, as_list

STATES = f"arn:aws:states:{REGION}:{ACCOUNT}:execution:compilegate-prod"
JOBS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/cg-*"
LOG_GROUP = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs"


def test_a_rule_starts_it_every_day_and_never_twice(template):
    key, _ = template.function("sweep")
    (rule,) = [
        item["Properties"]
        for item in template.of_type("AWS::Events::Rule").values()
        if {"Ref": template.live(key)}
        in [target["Arn"] for target in item["Properties"]["Targets"]]
    ]

    assert "cron(30 5 * * ? *)" == rule["ScheduleExpression"]
    assert 0 == rule["Targets"][0]["RetryPolicy"]["MaximumRetryAttempts"]


def test_it_asks_about_executions_of_its_own_deployment_only(template):
    expected = [f"{STATES}-evaluate:*", f"{STATES}-train:*"]

    assert expected == template.allowed("states:DescribeExecution")["sweep"]


def test_it_touches_jobs_of_this_project_only(template):
    for action in ("sagemaker:StopTrainingJob", "sagemaker:ListTags"):
        assert [JOBS] == template.allowed(action)["sweep"]
    assert "sweep" not in template.allowed("sagemaker:CreateTrainingJob")


def test_the_logs_of_all_training_jobs_are_left_alone_unless_asked_for(template, changed):
    actions = {
        action
        for statement in template.statements("sweep")
        for action in as_list(statement["Action"])
    }

    assert "logs:PutRetentionPolicy" not in actions
    assert "TRAINING_LOG_DAYS" not in variables(template)
    assert "30" == variables(changed)["TRAINING_LOG_DAYS"]
    allowed = changed.allowed("logs:PutRetentionPolicy")
    assert {"sweep": [LOG_GROUP, f"{LOG_GROUP}:*"]} == allowed


def variables(template):
    """Its environment."""
    return template.function("sweep")[1]["Properties"]["Environment"]["Variables"]
