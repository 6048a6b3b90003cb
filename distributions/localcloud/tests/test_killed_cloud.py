"""A killed local cloud goes on where it was with the next command."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

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


def test_objects_items_and_parameters_are_there_after_a_kill_and_not_after_a_stop(cloud):
    fill(cloud.running_state())
    before = content(cloud.running_state())
    assert ["folder/key"] == before["keys"]
    assert [[{"Key": "a", "Value": "b"}]] == before["tags"]
    assert 3 == len(before["versions"])
    assert 2 == before["parameter"]["Version"]

    assert kill(cloud).resumed
    assert before == content(cloud.running_state())
    cloud.stop()
    assert not cloud.places.journal.exists()

    assert not cloud.start(attached=False, extra_arguments=FAST).resumed
    assert [] == cloud.client("s3").list_buckets()["Buckets"]


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


def test_what_had_ended_stays_what_trained_has_lost_its_machine_and_what_waited_waits_on(cloud):
    """Of the waiting execution nothing is left here when the next command comes."""
    seconds, trainer, machines = 8, Trainer(cloud.client), Machines(cloud.client)
    done = trainer.run(MODEL)
    request = trainer.request("import time\nprint('up', flush=True)\ntime.sleep(99)")
    train = task(
        "sagemaker:createTrainingJob.sync",
        Parameters=request,
        Catch=[{"ErrorEquals": ["States.TaskFailed"], "Next": "Caught"}],
    )
    trains = machines.start(chain(Train=train, Caught=passing()))
    trainer.wait_until_training(request["TrainingJobName"])
    states = cloud.client("stepfunctions")
    waits = machines.start(single_state("Wait", Seconds=seconds))
    eventually(lambda: "WaitStateEntered" in events(states, waits), 10, "it does not wait")
    os.kill(cloud.running_state().pid, signal.SIGKILL)
    time.sleep(seconds)
    state = cloud.start(attached=False, extra_arguments=FAST)
    trainer, states = Trainer(cloud.client), cloud.client("stepfunctions")
    lost = trainer.wait(request["TrainingJobName"])
    kept = trainer.describe(done["TrainingJobName"])
    for answer in (done, kept):
        answer.pop("ResponseMetadata")

    assert ("Completed", done) == (kept["TrainingJobStatus"], kept)
    assert {"model": b"model"} == trainer.archive(kept["ModelArtifacts"]["S3ModelArtifacts"])
    assert "Failed" == lost["TrainingJobStatus"]
    assert lost["FailureReason"].startswith("InternalServerError: ")
    assert lost["TrainingEndTime"].timestamp() <= state.started_at
    end = ended(states, trains, 20)
    assert "SUCCEEDED" == end["status"], (end.get("error"), end.get("cause"))
    cause = json.loads(json.loads(end["output"])["Cause"])
    assert lost["FailureReason"] == cause["FailureReason"]
    assert "SUCCEEDED" == ended(states, waits, 30)["status"]
    at = {event["type"]: event["timestamp"] for event in history(states, waits)}
    waited = at["WaitStateExited"] - at["WaitStateEntered"]
    assert waited.total_seconds() < seconds / 2
