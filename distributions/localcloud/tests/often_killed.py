"""One emulator after the other is killed while an execution runs and a caller writes.

``python -m distributions.localcloud.tests.often_killed --kills 100 [--seed 1]``. What must hold:
every write that was answered is there, each execution ends with the output that it would have had,
and no task is called again that had ended.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compilegate_localcloud.connection import RunState
from compilegate_localcloud.errors import CloudEndedError
from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests import helpers
from distributions.localcloud.tests.conftest import FAST, make_places

BUCKET = "bucket-of-writes"
ITEMS, AT_ONCE = 12, 3
LONGEST_SECONDS = 2.5  # between two kills
FUNCTION = """
import time
def handler(event, context):
    time.sleep(0.15)
    with open(event["count"], "a") as file:
        file.write("x")
    return event["number"] * 3 + 1
"""


class Writer:
    """Writes numbered objects, one after the other, until the cloud is gone."""

    def __init__(self) -> None:
        self.answered = 0

    def write(self, state: RunState) -> threading.Thread:
        """Begin; the thread ends with the cloud."""

        def on() -> None:
            s3 = state.client("s3")
            try:
                for number in itertools.count(self.answered):
                    s3.put_object(Bucket=BUCKET, Key=f"{number:06}", Body=str(number).encode())
                    self.answered = number + 1
                    time.sleep(0.05)
            except (BotoCoreError, ClientError, CloudEndedError, OSError):
                return

        thread = threading.Thread(target=on)
        thread.start()
        return thread

    def missing(self, state: RunState) -> list[str]:
        """Writes that were answered and are not there."""
        pages = state.client("s3").get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        there = {one["Key"] for page in pages for one in page.get("Contents", ())}
        return sorted({f"{number:06}" for number in range(self.answered)} - there)


def machine(function: str, folder: str) -> dict[str, Any]:
    """Two tasks for each of the items, some of them at once."""

    def call(state: str) -> dict[str, Any]:
        payload = {
            "number": "{% $states.input %}",
            "count": f"{{% '{folder}/{state}-' & $string($states.input) %}}",
        }
        return {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Arguments": {"FunctionName": function, "Payload": payload},
        }

    first = {**call("first"), "Output": "{% $states.input %}", "Next": "Second"}
    second = {**call("second"), "Output": "{% $states.result.Payload %}", "End": True}
    every = {
        "Type": "Map", "Items": list(range(ITEMS)), "MaxConcurrency": AT_ONCE, "End": True,
        "ItemProcessor": {"StartAt": "First", "States": {"First": first, "Second": second}},
    }  # fmt: skip
    return {"QueryLanguage": "JSONata", "StartAt": "Every", "States": {"Every": every}}


def wrong_after(kills: int, seed: int) -> Iterator[str]:
    """Everything that is wrong after so many kills."""
    moments, writer = random.Random(seed), Writer()
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as counts:
        cloud = LocalCloud(places=make_places(Path(home)))
        state = cloud.start(attached=False, extra_arguments=FAST)
        try:
            tools: Any = helpers
            helper = tools.Machines(cloud.client)
            state.client("s3").create_bucket(Bucket=BUCKET)
            function = state.client("lambda").create_function(
                FunctionName="adds", Runtime="python3.12", Handler="index.handler",
                Role=tools.ROLE, Code={"ZipFile": tools.function_bundle(FUNCTION)}, Timeout=60,
            )["FunctionArn"]  # fmt: skip
            arns = [helper.start(machine(function, counts))]
            for _ in range(kills):
                thread = writer.write(state)
                time.sleep(moments.uniform(0, LONGEST_SECONDS))
                os.kill(state.pid, signal.SIGKILL)
                thread.join()
                left = tools.wait_for_none(state.run_id)
                yield from (f"process {pid} is left" for pid in left)
                state = cloud.start(attached=False, extra_arguments=FAST)
                yield from (f"{name} was answered and is lost" for name in writer.missing(state))
                described = state.client("stepfunctions").describe_execution
                if described(executionArn=arns[-1])["status"] != "RUNNING":
                    arns.append(helper.start(machine(function, counts)))
            yield from _unlike(helper, arns)
            yield from _too_often(Path(counts), len(arns), kills)
            sys.stdout.write(f"{kills} kills, {writer.answered} writes, {len(arns)} executions\n")
        finally:
            cloud.stop()


def _unlike(machines: Any, arns: list[str]) -> Iterator[str]:
    for arn in arns:
        end = machines.wait(arn, 120)
        if json.loads(end.get("output") or "0") != [number * 3 + 1 for number in range(ITEMS)]:
            yield f"{arn}: {end['status']} {end.get('output')} {end.get('cause')}"


def _too_often(counts: Path, executions: int, kills: int) -> Iterator[str]:
    calls = sum(path.stat().st_size for path in counts.iterdir())
    tasks = executions * ITEMS * 2
    if not tasks <= calls <= tasks + kills * AT_ONCE:
        yield f"{calls} calls of {tasks} tasks in {kills} kills"


def main() -> int:
    """As many kills as asked for; exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m distributions.localcloud.tests.often_killed")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = list(wrong_after(options.kills, options.seed))
    for line in wrong:
        sys.stdout.write(f"{line}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
