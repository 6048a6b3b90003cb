"""A killed local cloud goes on where it was with the next command."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from compilegate_localcloud.errors import NotReadyError
from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests.conftest import FAST, make_places
from distributions.localcloud.tests.helpers import (
    ROLE,
    Machines,
    Trainer,
    ended,
    eventually,
    function_bundle,
    wait_for_none,
)
from distributions.localcloud.tests.state_language_cases import (
    chain,
    jsonata,
    passing,
    single_state,
    task,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc"),
]
TABLE = {
    "TableName": "table",
    "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
# Counts its calls; waits for a file where the event names one; fails where that says so.
FUNCTION = """
import os, time
def handler(event, context):
    time.sleep(event.get("sleep", 0))
    with open(event["count"], "a") as file:
        file.write("x")
    if event.get("fails") and os.path.getsize(event["count"]) <= event["fails"]:
        raise ValueError("not yet")
    while event.get("until") and not os.path.exists(event["until"]):
        time.sleep(0.05)
    return {"is": event["is"], "calls": os.path.getsize(event["count"])}
"""

MODEL = """
import os, pathlib
pathlib.Path(os.environ["SM_MODEL_DIR"], "model").write_text("model")
"""


@pytest.fixture
def cloud(tmp_path):
    one = LocalCloud(places=make_places(tmp_path / "home"))
    one.start(attached=False, extra_arguments=FAST)
    yield one
    one.stop()


def kill(cloud):
    """Kill the emulator and start another one, as the next command does."""
    state = cloud.running_state()
    os.kill(state.pid, signal.SIGKILL)
    assert [] == wait_for_none(state.run_id)
    assert cloud.state() is None
    return cloud.start(attached=False, extra_arguments=FAST)


def fill(state):
    """Objects with versions, an item and a parameter."""
    s3 = state.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    for body in (b"first", b"second \xff"):
        s3.put_object(
            Bucket="bucket", Key="folder/key", Body=body, Metadata={"who": "me"}, Tagging="a=b"
        )
    s3.put_object(Bucket="bucket", Key="deleted", Body=b"first")
    s3.delete_object(Bucket="bucket", Key="deleted")
    state.client("dynamodb").create_table(**TABLE)
    item = {"key": {"S": "a"}, "number": {"N": "1.5"}, "bytes": {"B": b"\0\xff"}}
    state.client("dynamodb").put_item(TableName="table", Item=item)
    for value in ("1", "2"):
        state.client("ssm").put_parameter(Name="/flag", Value=value, Type="String", Overwrite=True)


def content(state):
    """All of what ``fill`` made, with what only the service itself knows."""
    s3 = state.client("s3")
    listed = s3.list_object_versions(Bucket="bucket")
    versions = [
        (one, s3.get_object(Bucket="bucket", Key=one["Key"], VersionId=one["VersionId"]))
        for one in listed["Versions"]
    ]
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket="bucket")["Contents"]]
    return {
        "keys": keys,
        "tags": [s3.get_object_tagging(Bucket="bucket", Key=key)["TagSet"] for key in keys],
        "versions": [
            (one, answer["Body"].read(), answer["Metadata"], answer["LastModified"])
            for one, answer in versions
        ],
        "markers": listed["DeleteMarkers"],
        "items": state.client("dynamodb").scan(TableName="table")["Items"],
        "parameter": state.client("ssm").get_parameter(Name="/flag")["Parameter"],
    }


def test_objects_items_and_parameters_are_there_after_two_kills(cloud):
    fill(cloud.running_state())
    before = content(cloud.running_state())
    assert ["folder/key"] == before["keys"]
    assert [[{"Key": "a", "Value": "b"}]] == before["tags"]
    assert 3 == len(before["versions"])
    assert 2 == before["parameter"]["Version"]

    assert kill(cloud).resumed
    assert before == content(cloud.running_state())
    s3, names = cloud.client("s3"), {"Bucket": "bucket", "Key": "folder/key"}
    s3.put_object(Bucket="bucket", Key="same", Body=before["versions"][0][1])
    for version in s3.list_object_versions(Bucket="bucket", Prefix="folder/")["Versions"]:
        s3.delete_object(**names, VersionId=version["VersionId"])
    s3.delete_object(Bucket="bucket", Key="deleted")
    kill(cloud)
    after = content(cloud.running_state())
    assert ["same"] == after["keys"]
    assert [before["versions"][0][1], b"first"] == sorted(
        (body for _, body, *_ in after["versions"]), key=lambda body: body == b"first"
    )
    assert 2 == len(after["markers"])


def test_one_that_was_stopped_leaves_nothing(cloud):
    fill(cloud.running_state())
    cloud.stop()
    assert not cloud.places.journal.exists()

    state = cloud.start(attached=False, extra_arguments=FAST)
    assert not state.resumed
    assert [] == state.client("s3").list_buckets()["Buckets"]


def test_down_after_a_kill_leaves_nothing(cloud):
    fill(cloud.running_state())
    os.kill(cloud.running_state().pid, signal.SIGKILL)
    eventually(lambda: cloud.state() is None, 10, "the emulator lives")
    assert cloud.places.journal.exists()
    cloud.stop()

    assert not cloud.places.journal.exists()


def test_damaged_journal_is_one_error_and_the_next_command_starts_an_empty_cloud(cloud):
    fill(cloud.running_state())
    os.kill(cloud.running_state().pid, signal.SIGKILL)
    eventually(lambda: cloud.state() is None, 10, "the emulator lives")
    for path in cloud.places.journal.glob("journal.sqlite*"):
        path.write_bytes(b"no database" * 1000)
    with pytest.raises(NotReadyError, match=r"journal-unusable\. Run the command again"):
        cloud.start(attached=False, extra_arguments=FAST)

    assert not cloud.start(attached=False, extra_arguments=FAST).resumed


def test_jobs_that_ended_stay_and_one_that_ran_has_lost_its_machine(cloud):
    trainer = Trainer(cloud.client)
    done = trainer.run(MODEL)
    runs = trainer.start("import time\nprint('up', flush=True)\ntime.sleep(99)")
    trainer.wait_until_training(runs)
    kill(cloud)
    trainer = Trainer(cloud.client)
    lost = trainer.wait(runs)

    for answer in (done, kept := trainer.describe(done["TrainingJobName"])):
        answer.pop("ResponseMetadata")
    assert "Completed" == kept["TrainingJobStatus"], kept["FailureReason"]
    assert done == kept
    assert {"model": b"model"} == trainer.archive(kept["ModelArtifacts"]["S3ModelArtifacts"])
    assert "Failed" == lost["TrainingJobStatus"]
    assert lost["FailureReason"].startswith("InternalServerError: ")
    assert lost["TrainingEndTime"].timestamp() <= cloud.running_state().started_at
    assert "Completed" == trainer.run("print('again')")["TrainingJobStatus"]


def calling(function, **payload):
    return task(
        "lambda:invoke",
        Arguments={"FunctionName": function, "Payload": payload},
        Output="{% $states.result.Payload %}",
    )


def counted(path):
    return path.stat().st_size if path.exists() else 0


@pytest.fixture
def function(cloud):
    return cloud.client("lambda").create_function(
        FunctionName="counts", Runtime="python3.12", Handler="index.handler", Role=ROLE,
        Code={"ZipFile": function_bundle(FUNCTION)}, Timeout=60,
    )["FunctionArn"]  # fmt: skip


def test_execution_goes_on_and_what_it_had_done_is_not_done_again(cloud, function, tmp_path):
    """Three items, of which the first ends, the second fails once, the third is in the middle.

    The first comes to its state last of all, but not when it goes on.
    """
    go = tmp_path / "go"
    counts = [tmp_path / f"count-{number}" for number in range(4)]
    of_item = {name: f"{{% $states.input.{name} %}}" for name in ("is", "count", "until", "fails")}
    first = calling(function, count=str(counts[3]), **{"is": "{% $random() %}"})
    before = calling(
        function, count=str(tmp_path / "before"), sleep="{% $states.input.sleep %}",
        **{"is": "{% $states.input.is %}"},
    )  # fmt: skip
    retry = {"ErrorEquals": ["ValueError"], "IntervalSeconds": 1, "MaxAttempts": 2}
    items = [
        {"count": str(counts[number]), "is": number, "until": until, "fails": fails, "sleep": sleep}
        for number, (until, fails, sleep) in enumerate([("", 0, 2), ("", 1, 0), (str(go), 0, 0)])
    ]
    each = chain(
        Before={**before, "Output": "{% $states.input %}"},
        One={**calling(function, **of_item), "Retry": [retry]},
    )
    machine = jsonata(
        chain(
            First={**first, "Assign": {"drawn": "{% $states.result.Payload.is %}"}},
            Each={
                "Type": "Map",
                "Items": items,
                "ItemProcessor": each,
                "Output": {"drawn": "{% $drawn %}", "items": "{% $states.result %}"},
            },
        )
    )
    arn = Machines(cloud.client).start(machine)
    eventually(lambda: [1, 2, 1, 1] == [*map(counted, counts)], 20, "the tasks were not called")
    states = cloud.client("stepfunctions")
    eventually(lambda: 6 == events(states, arn).count("TaskSucceeded"), 10, "the tasks did not end")
    drawn = outputs(states, arn)[0]["is"]
    state = kill(cloud)
    eventually(lambda: counted(counts[2]) == 2, 20, "the task in the middle is not called again")
    go.touch()
    end = ended(state.client("stepfunctions"), arn, 20)

    assert "SUCCEEDED" == end["status"], (end.get("error"), end.get("cause"))
    output = json.loads(end["output"])
    assert drawn == output["drawn"]
    assert [(0, 1), (1, 2), (2, 2)] == [(one["is"], one["calls"]) for one in output["items"]]
    assert [1, 2, 2, 1, 3] == [*map(counted, [*counts, tmp_path / "before"])]
    assert 7 == events(state.client("stepfunctions"), arn).count("TaskSucceeded")


def history(states, arn):
    return states.get_execution_history(executionArn=arn, maxResults=1000)["events"]


def events(states, arn):
    return [event["type"] for event in history(states, arn)]


def outputs(states, arn):
    return [
        json.loads(event["taskSucceededEventDetails"]["output"])["Payload"]
        for event in history(states, arn)
        if event["type"] == "TaskSucceeded"
    ]


def test_execution_that_waited_waits_for_the_rest_of_its_time(cloud):
    """Of which nothing is left here when the next command comes."""
    seconds = 8
    states = cloud.client("stepfunctions")
    arn = Machines(cloud.client).start(single_state("Wait", Seconds=seconds))
    eventually(lambda: "WaitStateEntered" in events(states, arn), 10, "it does not wait")
    os.kill(cloud.running_state().pid, signal.SIGKILL)
    time.sleep(seconds)
    states = cloud.start(attached=False, extra_arguments=FAST).client("stepfunctions")
    assert "SUCCEEDED" == ended(states, arn, 30)["status"]

    at = {event["type"]: event["timestamp"] for event in history(states, arn)}
    waited = at["WaitStateExited"] - at["WaitStateEntered"]
    assert waited.total_seconds() < seconds / 2


def test_job_that_an_execution_waited_for_fails_it_as_a_lost_machine_does(cloud):
    trainer = Trainer(cloud.client)
    request = trainer.request("import time\nprint('up', flush=True)\ntime.sleep(99)")
    train = task(
        "sagemaker:createTrainingJob.sync",
        Parameters=request,
        Catch=[{"ErrorEquals": ["States.TaskFailed"], "Next": "Caught"}],
    )
    machine = chain(Train=train, Caught=passing())
    arn = Machines(cloud.client).start(machine)
    trainer.wait_until_training(request["TrainingJobName"])
    state = kill(cloud)
    end = ended(state.client("stepfunctions"), arn, 20)

    assert "SUCCEEDED" == end["status"], (end.get("error"), end.get("cause"))
    cause = json.loads(json.loads(end["output"])["Cause"])
    assert request["TrainingJobName"] == cause["TrainingJobName"]
    assert cause["FailureReason"].startswith("InternalServerError: ")
