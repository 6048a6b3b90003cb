"""What a training job reaches: its own workload's objects, and nothing of another's."""

import pytest

from compilegate.domain import naming
from tests.stacks.policies import Call, allowed

OWN, VICTIM = "bert", "bert-docs"  # names that begin alike
TRIAL, RUN = "m0abc123", "q1a7"
GET, PUT, DELETE = "s3:GetObject", "s3:PutObject", "s3:DeleteObject"


def keys_of(workload):
    """(action, key) of everything that a workload's own jobs do."""
    jobs = naming.jobs_prefix(workload, TRIAL)
    output = naming.job_output_key(workload, TRIAL, f"cg-{workload}-{TRIAL}-{RUN}-r0")
    production = naming.production_jobs_prefix(workload, TRIAL)
    checkpoint = f"{naming.checkpoint_prefix(workload, TRIAL, RUN)}step-10"
    cache = f"{naming.compile_cache_prefix(workload)}inductor/fxgraph/ab"
    return [
        (GET, naming.source_key(workload, "abc")),
        (GET, f"{naming.input_prefix(workload, 'train', 'abc')}data.jsonl"),
        (PUT, output), (PUT, f"{jobs}/job/model.tar.gz"), (PUT, f"{production}/job/output/x"),
        (GET, checkpoint), (PUT, checkpoint), (DELETE, checkpoint),
        (GET, f"{production}/checkpoints/p0/x"), (DELETE, f"{production}/checkpoints/p0/x"),
        (GET, cache), (PUT, cache),
    ]  # fmt: skip


@pytest.fixture
def may(template):
    """Whether a job of ``OWN`` may do something to an object."""
    (bucket,) = template.of_type("AWS::S3::Bucket")
    statements = template.statements("training")

    def answer(action, key, workload=OWN):
        tags = {"aws:PrincipalTag/compilegate-workload": workload} if workload else {}
        return allowed(Call(action, f"<{bucket}.Arn>/{key}", tags), statements)

    return answer


def test_a_job_reaches_what_its_own_workload_needs(may):
    assert [] == [one for one in keys_of(OWN) if not may(*one)]


def test_a_job_reaches_nothing_of_another_workload(may):
    assert [] == [
        (action, key) for _, key in keys_of(VICTIM) for action in (GET, PUT, DELETE)
        if may(action, key)
    ]  # fmt: skip


def test_a_role_without_its_tag_reaches_nothing(may):
    assert [] == [one for one in keys_of(OWN) if may(*one, workload=None)]


@pytest.mark.parametrize(
    "key",
    [
        naming.request_key(OWN, TRIAL, RUN),
        naming.production_request_key(OWN, TRIAL, 0),
        naming.stop_key(OWN, TRIAL, "job"),
        naming.registration_key(OWN),
        naming.spec_key(OWN, "abc"),
        naming.source_key(OWN, "abc"),
        naming.record_key(OWN, TRIAL, "evidence"),
        naming.report_key(OWN, TRIAL, "html"),
    ],
)
def test_a_job_writes_nothing_that_its_own_trial_is_steered_by(may, key):
    assert not may(PUT, key)
    assert not may(DELETE, key)


def test_a_job_overwrites_no_result_of_a_run_by_deleting_it(may):
    output = naming.job_output_key(OWN, TRIAL, f"cg-{OWN}-{TRIAL}-{RUN}-r0")

    assert not may(DELETE, output)
    assert not may(GET, output)


def test_a_job_writes_its_own_log_alone(template):
    tag = {"aws:PrincipalTag/compilegate-workload": OWN}
    group = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/TrainingJobs"
    statements = template.statements("training")

    def may_write(stream):
        return allowed(Call("logs:PutLogEvents", f"{group}:log-stream:{stream}", tag), statements)

    runs = (RUN, naming.speed_run(3), naming.speed_run(1, 0, 5), naming.attempt(2))
    for job in (naming.job_base(OWN, TRIAL, run) for run in runs):
        assert may_write(f"{job}-r0/algo-1-1790000000")
        assert may_write(f"{job}-rb/algo-12-1790000000")
    for other in ("other", VICTIM, f"{OWN}-fraudnet", f"{OWN}-two-words", f"{OWN}-{TRIAL}"):
        for job in (naming.job_base(other, TRIAL, run) for run in runs):
            assert not may_write(f"{job}-r0/algo-1-1790000000")
