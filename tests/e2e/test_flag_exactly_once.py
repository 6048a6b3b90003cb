"""A flag change on real adapters: processes and Lambdas that die in the middle of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compilegate.adapters.stores import SsmFlags
from compilegate.domain import ledger_keys, naming
from compilegate.usecases.flag.change_flag import change_flag, repair_flag
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate_localcloud.places import REPOSITORY
from distributions.localcloud.tests.helpers import alive, marked_processes
from tests import fakes
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND
from tests.e2e.flag_writer import DIED
from tests.usecases.flag_changes import flag_change

pytestmark = pytest.mark.e2e
# Read the ledger, append, write the parameter, read the ledger.
CALLS = 4
FUNCTION = "compilegate-local-apply-flag"


class Flag:
    """One workload's flag in the local cloud, as ledger and parameter have it."""

    def __init__(self, app: Any, workload: str) -> None:
        self.workload = workload
        self.name = naming.flag_parameter("local", workload)
        self.services = replace(
            fakes.services("local"), ledger=app.ledger, flags=SsmFlags(app.client("ssm"))
        )

    def entries(self) -> list[Any]:
        return list(self.services.ledger.raw.entries(self.workload, ledger_keys.FLAG_ENTRIES))

    def parameter(self) -> str | None:
        return self.services.flags.read(self.name)

    def change(self, kind: str, change_id: str | None = None) -> Any:
        return change_flag(self.workload, flag_change(kind, change_id), services=self.services)

    def assert_sound(self, versions: int) -> None:
        entries = self.entries()
        assert list(range(1, versions + 1)) == [entry["version"] for entry in entries]
        assert len({entry["change_id"] for entry in entries}) == versions
        assert entries[-1]["to"] == self.parameter()


def write_and_die(app: Any, workload: str, kind: str, number: int, when: str) -> int:
    """Exit code of a process that makes the change and dies at this call."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    arguments = [workload, kind, str(number), when]
    return subprocess.run(
        [sys.executable, "-m", "tests.e2e.flag_writer", *arguments],
        check=False,
        cwd=REPOSITORY,
        env={
            **variables,
            **app.cloud.running_state().environment(),
            "DATA_BUCKET": app.outputs["DataBucket"],
            "LEDGER_TABLE": app.outputs["LedgerTable"],
            "JOB_ROLES": app.outputs["JobRoles"],
            "STAGE": "local",
        },
    ).returncode


def test_a_process_that_dies_at_any_call_is_repaired_by_running_again(app):
    # Before a call everything is as after the one before it.
    moments = [*((number, "before") for number in range(CALLS)), (CALLS - 1, "after")]
    with ThreadPoolExecutor(max_workers=2) as pool:
        ended = pool.map(
            lambda at: write_and_die(app, f"died-{at[1]}-{at[0]}", "enable", *at), moments
        )
        assert [DIED] * len(moments) == list(ended)

    for number, when in moments:
        flag = Flag(app, f"died-{when}-{number}")
        assert (number > 1) is bool(flag.entries()), (number, when)
        assert flag.change("enable").changed
        flag.assert_sound(1)


def test_a_change_makes_these_calls_and_no_more(app):
    assert 0 == write_and_die(app, "never-died", "enable", CALLS, "before")
    Flag(app, "never-died").assert_sound(1)


def test_many_writers_at_once_lose_nothing(app):
    flag = Flag(app, "many-writers")
    kinds = ["human set", "human revert"] * 6
    # More at once are refused for longer than a client tries again, at the service's rate.
    with ThreadPoolExecutor(max_workers=3) as pool:
        made = list(pool.map(flag.change, kinds, [f"change#{i}" for i in range(len(kinds))]))

    assert all(change.changed for change in made)
    assert set(range(1, len(kinds) + 1)) == {change.version for change in made}
    flag.assert_sound(len(kinds))


def test_a_parameter_that_is_gone_comes_back(app):
    flag = Flag(app, "lost-parameter")
    flag.change("enable")
    app.client("ssm").delete_parameter(Name=flag.name)

    assert repair_flag(flag.workload, flag.services)
    flag.assert_sound(1)


class Silent:
    """An endpoint that takes a request and never answers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            if connection.recv(1):
                self.asked.set()

    def close(self) -> None:
        for one in (*self._open, self._socket):
            one.close()


@contextmanager
def parameter_store_silent(app: Any) -> Iterator[Silent]:
    """The function's calls of Parameter Store are taken and never answered."""
    functions, silent = app.client("lambda"), Silent()
    variables = functions.get_function_configuration(FunctionName=FUNCTION)["Environment"][
        "Variables"
    ]
    deaf = {**variables, "AWS_ENDPOINT_URL_SSM": silent.url}
    try:
        functions.update_function_configuration(
            FunctionName=FUNCTION, Environment={"Variables": deaf}
        )
        yield silent
    finally:
        silent.close()
        functions.update_function_configuration(
            FunctionName=FUNCTION, Environment={"Variables": variables}
        )


def workers(app: Any) -> list[int]:
    """Processes of the function's workers."""
    pids = []
    for pid in marked_processes(app.cloud.state().run_id):
        # A process has the last letters of its function's name.
        if FUNCTION.endswith(Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()):
            pids.append(pid)
    return pids


def promotion(app: Any, workload: str) -> dict[str, Any]:
    """The event of a promotion whose decision and plan lie where ApplyFlag reads them."""
    trial = naming.trial_id(int(time.time() * 1000))
    key = naming.record_key(workload, trial, "decision")
    app.store.put(key, to_json(decision_document()))
    spec_key = naming.spec_key(workload, "any")
    app.store.put(spec_key, to_json({"workload": SOUND.to_dict(), "source_key": "none"}))
    event = {"workload": workload, "trial": trial, "spec_key": spec_key, "decision_key": key,
             "execution": "e"}  # fmt: skip
    plan_trial(event, services=replace(fakes.services("local"), store=app.store))
    return event


def invoke(app: Any, event: dict[str, Any]) -> dict[str, Any]:
    answer = app.cloud.client("lambda").invoke(FunctionName=FUNCTION, Payload=json.dumps(event))
    answered: dict[str, Any] = json.loads(answer["Payload"].read())
    return answered


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc")
def test_a_lambda_killed_between_ledger_and_parameter_is_repaired_by_invoking_it_again(app):
    event = promotion(app, "killed-lambda")
    flag = Flag(app, event["workload"])
    with ThreadPoolExecutor(max_workers=1) as pool, parameter_store_silent(app) as silent:
        answer = pool.submit(invoke, app, event)
        assert silent.asked.wait(30), "the function never wrote the parameter"
        killed = workers(app)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert "errorMessage" in answer.result(30)

    assert killed
    assert not any(alive(pid) for pid in killed)
    assert 1 == len(flag.entries())
    assert flag.parameter() is None

    again = invoke(app, event)

    assert (True, True) == (again["changed"], again["enabled"])
    flag.assert_sound(1)
