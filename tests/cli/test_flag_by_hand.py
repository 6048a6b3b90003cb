"""``flag set``, ``revert`` and ``repair``: a person's word, recorded and binding."""

from __future__ import annotations

import getpass
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compilegate.cli import who
from compilegate.cli.cloud import Cloud
from compilegate.domain.flag import Flag
from compilegate.usecases.change_flag import change_flag
from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD
from tests.fakes import FakeDoors, cloud
from tests.usecases.flag_changes import wanted

FLAG = "/compilegate/dev/workloads/bert-docs/compiler"
WHY = "loss spikes since Monday"


@pytest.fixture
def found(tmp_path: Path, invoke: Invoke, doors: FakeDoors) -> Cloud:
    """A cloud after one promoted trial of bert-docs, whose candidate is ``compile``."""
    doors.aws_cloud = cloud()
    executions(doors.aws_cloud).on_start = partial(decided, doors.aws_cloud, metrics=GOOD)
    assert 0 == invoke("run", write_project(tmp_path)).exit_code
    return doors.aws_cloud


def entries(found: Cloud) -> list[dict[str, Any]]:
    return [dict(entry) for entry in found.services.ledger.entries("bert-docs", "flag#")]


def revert(invoke: Invoke, *options: str) -> Any:
    return invoke("flag", "revert", "bert-docs", "--reason", WHY, *options)


def test_a_person_turns_the_flag_off_under_their_name(invoke: Invoke, found: Cloud) -> None:
    result = revert(invoke, "--yes")

    entry = entries(found)[-1]
    me = getpass.getuser()
    assert (f"human:{me}", "revert", WHY) == (entry["by"], entry["action"], entry["reason"])
    assert entry["to"] == found.services.flags.read(FLAG)
    assert (False, "reverted") == (
        json.loads(entry["to"])["enabled"],
        json.loads(entry["to"])["state"],
    )
    assert "bert-docs: the flag goes off; production trains the baseline" in result.stdout
    assert f"on -> off (reverted), candidate compile, revert by {me}" in result.stdout


def test_everyone_is_told_of_a_persons_word(invoke: Invoke, found: Cloud, doors: FakeDoors) -> None:
    topic = KeptTopic()
    doors.aws_cloud = replace(found, topic=topic)

    document = json.loads(revert(invoke, "--yes", "--json").stdout)

    (told,) = topic.told
    assert (True, None) == (document["told"], document["untold_because"])
    assert f"bert-docs: {getpass.getuser()} turned the compiler off: {WHY}\n" in told.text
    assert ("changed", False, "reverted") == (
        told.kind, told.flag["enabled"], told.flag["state"],
    )  # fmt: skip


def test_a_word_stands_even_where_nobody_can_be_told(
    invoke: Invoke, found: Cloud, doors: FakeDoors
) -> None:
    doors.aws_cloud = replace(found, topic=KeptTopic(PermissionError("may not publish")))

    result = revert(invoke, "--yes")

    assert 0 == result.exit_code
    assert "Nobody was told of it (PermissionError: may not publish)." in result.stdout
    assert "revert" == entries(found)[-1]["action"]


class KeptTopic:
    """Keeps what it is told, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[Any] = []
        self.error = error

    def publish(self, told: Any) -> None:
        if self.error:
            raise self.error
        self.told.append(told)


def test_the_same_word_again_is_one_change(invoke: Invoke, found: Cloud) -> None:
    revert(invoke, "--yes")
    revert(invoke, "--yes")
    assert 2 == len(entries(found))

    invoke("flag", "revert", "bert-docs", "--reason", "something else", "--yes")
    revert(invoke, "--yes")
    assert [WHY, "something else", WHY] == [entry["reason"] for entry in entries(found)[1:]]


def test_a_word_that_is_recorded_but_not_written_says_so_and_is_told(
    invoke: Invoke, found: Cloud, doors: FakeDoors, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(name: str, value: str) -> None:
        raise PermissionError("may not ssm:PutParameter")

    topic = KeptTopic()
    doors.aws_cloud = replace(found, topic=topic)
    with monkeypatch.context() as patched:
        patched.setattr(found.services.flags, "write", denied)
        said, document = revert(invoke, "--yes"), json.loads(revert(invoke, "-y", "--json").stdout)

    assert 1 == said.exit_code
    told = " ".join(said.stdout.split())
    assert "Recorded as version 2: " in told
    assert "The parameter could not be written: may not ssm:PutParameter." in told
    assert "  compilegate flag repair bert-docs\n" in said.stdout
    assert (False, "may not ssm:PutParameter", 2) == (
        document["written"], document["unwritten_because"], document["version"],
    )  # fmt: skip
    assert ["changed", "changed"] == [one.kind for one in topic.told]
    assert "The parameter says something else" in invoke("flag", "show", "bert-docs").stdout

    assert 0 == revert(invoke, "--yes").exit_code
    assert 2 == len(entries(found))
    assert entries(found)[-1]["to"] == found.services.flags.read(FLAG)


def test_a_word_that_was_not_even_recorded_is_an_error(
    invoke: Invoke, found: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(found.services.ledger, "put_once", broken)
    result = revert(invoke, "--yes")

    assert (1, 1) == (result.exit_code, len(entries(found)))
    assert "gone" in result.stderr
    assert "Recorded" not in result.stdout


def test_a_person_turns_on_what_a_trial_has_planned(invoke: Invoke, found: Cloud) -> None:
    revert(invoke, "--yes")
    result = invoke(
        "flag",
        "set",
        "bert-docs",
        "--candidate",
        "compile",
        "--reason",
        "agreed",
        "--yes",
        "--json",
    )

    document, entry = json.loads(result.stdout), entries(found)[-1]
    flag = json.loads(entry["to"])
    assert (True, 3, "probation", {"compiler": "torch_compile"}) == (
        document["changed"], document["version"], document["state"], document["overrides"],
    )  # fmt: skip
    assert ("set", "probation", "compile") == (entry["action"], flag["state"], flag["candidate"])
    first = entries(found)[0]
    same = ("trial", "decision_id", "decision_key", "evidence_key")
    assert {key: first[key] for key in same} == {key: entry[key] for key in same}


def test_what_will_happen_is_said_before_it_is_asked_for(
    invoke: Invoke, found: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilegate.cli.confirm._somebody_there", lambda: True)
    command = ["flag", "set", "bert-docs", "--candidate", "compile", "--reason", "why not"]

    no = invoke(*command, given="n\n")
    before = len(entries(found))
    yes = invoke(*command, given="y\n")

    assert (1, 1) == (no.exit_code, before)
    assert "Nothing was changed." in no.stdout
    told = " ".join(no.stdout.split())
    assert "goes on with candidate compile (compiler torch_compile)" in told
    assert "has proven it. The flag is in probation" in told
    assert (0, 2) == (yes.exit_code, len(entries(found)))


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_where_nobody_can_be_asked_it_takes_yes(
    options: tuple[str, ...], invoke: Invoke, found: Cloud
) -> None:
    result = revert(invoke, *options)

    assert 2 == result.exit_code
    assert "add --yes" in result.stderr
    assert 1 == len(entries(found))


def test_a_candidate_that_nobody_has_planned_is_refused_with_those_there_are(
    invoke: Invoke, found: Cloud
) -> None:
    known = ("flag", "set", "bert-docs", "--candidate", "fp8", "--reason", "x", "--yes")
    other = ("flag", "set", "other", "--candidate", "fp8", "--reason", "x", "--yes")

    assert "Fix: use one of bf16, compile" in invoke(*known).stderr
    assert "run a trial of other first" in invoke(*other).stderr
    assert (2, 2) == (invoke(*known).exit_code, invoke(*other).exit_code)


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_a_word_needs_a_reason(reason: str, invoke: Invoke, found: Cloud) -> None:
    result = invoke("flag", "revert", "bert-docs", "--reason", reason, "--yes")

    assert 2 == result.exit_code
    assert "--reason: must be one line of text" in result.stderr
    assert 1 == len(entries(found))


def test_no_reason_at_all_is_refused(invoke: Invoke, found: Cloud) -> None:
    assert 2 == invoke("flag", "revert", "bert-docs", "--yes").exit_code


def test_a_workload_that_nobody_knows_cannot_be_reverted(invoke: Invoke, found: Cloud) -> None:
    result = invoke("flag", "revert", "bert-dcos", "--reason", WHY, "--yes")

    assert 2 == result.exit_code
    assert "did you mean bert-docs?" in " ".join(result.stderr.split())
    assert "the flag" not in result.stdout  # nobody is asked about a name that there is not
    assert [] == list(found.services.ledger.entries("bert-dcos"))


def test_show_tells_a_persons_word_also_after_the_machine_overruled_it(
    invoke: Invoke, found: Cloud
) -> None:
    revert(invoke, "--yes")
    change = wanted("enable", "later", decided_at=found.services.clock.now() + 1)
    change_flag("bert-docs", change, services=found.services)

    shown = " ".join(invoke("flag", "show", "bert-docs").stdout.split())
    document = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)

    assert f"set aside: {getpass.getuser()} on 2026-09-21 14:13 UTC: {WHY}" in shown
    assert f"said before revert by {getpass.getuser()}, 2026-09-21 14:13 UTC {WHY}" in shown
    assert ("revert", WHY) == (document["human"]["action"], document["human"]["reason"])
    assert document["change"]["overrode"]["reason"] == WHY


def test_who_agreed_to_a_promotion_is_shown_beside_it(invoke: Invoke, found: Cloud) -> None:
    change = replace(wanted("enable"), details={"trial": "t", "approved_by": "human:bo"})
    change_flag("bert-docs", wanted("revert"), services=found.services)
    change_flag("bert-docs", change, services=found.services)

    assert "by a trial (EVALUATE), approved by bo" in " ".join(
        invoke("flag", "show", "bert-docs").stdout.split()
    )
    history = " ".join(invoke("flag", "history", "bert-docs").stdout.split())
    assert "enable by a trial (EVALUATE), approved by bo" in history


def test_show_says_why_a_flag_is_stale(invoke: Invoke, found: Cloud) -> None:
    change_flag("bert-docs", wanted("stale"), services=found.services)

    shown = " ".join(invoke("flag", "show", "bert-docs").stdout.split())

    assert shown.startswith("bert-docs: off (stale, candidate compile)")
    assert "stale because of stale" in shown


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (None, "The parameter is not there"),
        ("{", "The parameter cannot be read"),
        (Flag(False, "off").to_json(), "The parameter says something else"),
    ],
)
def test_a_parameter_that_differs_from_the_ledger_is_said_and_repaired(
    raw: str | None, told: str, invoke: Invoke, found: Cloud
) -> None:
    flags: Any = found.services.flags
    del flags.values[FLAG]
    if raw is not None:
        flags.write(FLAG, raw)

    shown = invoke("flag", "show", "bert-docs").stdout
    document = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)
    repaired = invoke("flag", "repair", "bert-docs")
    again = json.loads(invoke("flag", "repair", "bert-docs", "--json").stdout)

    assert told in shown
    words = " ".join(shown.split())
    assert "the ledger's latest change says on (probation). It was lost" in words
    assert "off -> on (probation), candidate compile, enable by a trial (EVALUATE)" in words
    assert "since" not in words
    assert "  compilegate flag repair bert-docs\n" in shown
    assert (False, False) == (document["agrees"], document["enabled"])
    assert "now says what the ledger does: on (probation)" in repaired.stdout
    assert (False, True) == (again["repaired"], again["enabled"])
    assert entries(found)[-1]["to"] == flags.read(FLAG)


def test_the_caller_of_aws_is_known_by_its_arn() -> None:
    class Sts:
        def get_caller_identity(self) -> dict[str, str]:
            return {"Arn": "arn:aws:sts::111122223333:assumed-role/dev/ana"}

    assert "arn:aws:sts::111122223333:assumed-role/dev/ana" == who.aws_caller(Sts())


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert who.os_user().startswith("uid ")
