"""``flag set``, ``revert`` and ``repair``: a person's word, recorded and binding."""

from __future__ import annotations

import getpass
import json
from dataclasses import replace
from typing import Any

import pytest
import typer

from compilegate.cli.common import cloud as who
from compilegate.cli.common.cloud import Cloud
from tests.cli.conftest import Invoke
from tests.cli.flags import FLAG, WHY, entries, revert
from tests.fakes import FakeProviders


def test_a_person_turns_the_flag_off_under_their_name(invoke: Invoke, promoted: Cloud) -> None:
    result = revert(invoke, "--yes")

    entry = entries(promoted)[-1]
    me = getpass.getuser()
    assert (f"human:{me}", "revert", WHY) == (entry["by"], entry["action"], entry["reason"])
    assert entry["to"] == promoted.services.flags.read(FLAG)
    assert (False, "reverted") == (
        json.loads(entry["to"])["enabled"],
        json.loads(entry["to"])["state"],
    )
    assert "bert-docs: turns the flag off; production trains the baseline" in result.stdout
    assert f"on -> off (reverted), candidate compile, revert by {me}" in result.stdout


def test_everyone_is_told_of_a_persons_word(
    invoke: Invoke, promoted: Cloud, providers: FakeProviders
) -> None:
    topic = KeptTopic()
    providers.aws_cloud = replace(promoted, topic=topic)

    document = json.loads(revert(invoke, "--yes", "--json").stdout)

    (told,) = topic.told
    assert (True, None) == (document["told"], document["untold_because"])
    assert f"bert-docs: {getpass.getuser()} turned the compiler off: {WHY}\n" in told.text
    assert ("changed", False, "reverted") == (
        told.kind, told.flag["enabled"], told.flag["state"],
    )  # fmt: skip


def test_a_word_stands_even_where_nobody_can_be_told(
    invoke: Invoke, promoted: Cloud, providers: FakeProviders
) -> None:
    providers.aws_cloud = replace(promoted, topic=KeptTopic(PermissionError("may not publish")))

    result = revert(invoke, "--yes")

    assert 0 == result.exit_code
    assert "The owner was not notified (PermissionError: may not publish)." in result.stdout
    assert "revert" == entries(promoted)[-1]["action"]


class KeptTopic:
    """Keeps what it is told, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[Any] = []
        self.error = error

    def publish(self, told: Any) -> None:
        if self.error:
            raise self.error
        self.told.append(told)


def test_the_same_word_again_is_one_change(invoke: Invoke, promoted: Cloud) -> None:
    revert(invoke, "--yes")
    revert(invoke, "--yes")
    assert 2 == len(entries(promoted))

    invoke("flag", "revert", "bert-docs", "--reason", "something else", "--yes")
    revert(invoke, "--yes")
    assert [WHY, "something else", WHY] == [entry["reason"] for entry in entries(promoted)[1:]]


def test_a_word_that_is_recorded_but_not_written_says_so_and_is_told(
    invoke: Invoke, promoted: Cloud, providers: FakeProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(name: str, value: str) -> None:
        raise PermissionError("may not ssm:PutParameter")

    topic = KeptTopic()
    providers.aws_cloud = replace(promoted, topic=topic)
    with monkeypatch.context() as patched:
        patched.setattr(promoted.services.flags, "write", denied)
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
    assert 2 == len(entries(promoted))
    assert entries(promoted)[-1]["to"] == promoted.services.flags.read(FLAG)


def test_a_word_that_was_not_even_recorded_is_an_error(
    invoke: Invoke, promoted: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(promoted.services.ledger, "put_once", broken)
    result = revert(invoke, "--yes")

    assert (1, 1) == (result.exit_code, len(entries(promoted)))
    assert "gone" in result.stderr
    assert "Recorded" not in result.stdout


def test_a_person_turns_on_what_a_trial_has_planned(invoke: Invoke, promoted: Cloud) -> None:
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

    document, entry = json.loads(result.stdout), entries(promoted)[-1]
    flag = json.loads(entry["to"])
    assert (True, 3, "probation", {"compiler": "torch_compile"}) == (
        document["changed"], document["version"], document["state"], document["overrides"],
    )  # fmt: skip
    assert ("set", "probation", "compile") == (entry["action"], flag["state"], flag["candidate"])
    first = entries(promoted)[0]
    same = ("trial", "decision_id", "decision_key", "evidence_key")
    assert {key: first[key] for key in same} == {key: entry[key] for key in same}


def test_what_will_happen_is_said_before_it_is_asked_for(
    invoke: Invoke, promoted: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilegate.cli.common.output._is_interactive", lambda: True)
    command = ["flag", "set", "bert-docs", "--candidate", "compile", "--reason", "why not"]

    no = invoke(*command, given="n\n")
    before = len(entries(promoted))
    yes = invoke(*command, given="y\n")

    assert (1, 1) == (no.exit_code, before)
    assert "Nothing was changed." in no.stdout
    told = " ".join(no.stdout.split())
    assert "turns the flag on for candidate compile (compiler torch_compile)" in told
    assert "has proven it. The flag is in probation" in told
    assert (0, 2) == (yes.exit_code, len(entries(promoted)))


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_where_nobody_can_be_asked_it_takes_yes(
    options: tuple[str, ...], invoke: Invoke, promoted: Cloud
) -> None:
    result = revert(invoke, *options)

    assert 2 == result.exit_code
    assert "add --yes" in result.stderr
    assert 1 == len(entries(promoted))


def test_a_candidate_that_nobody_has_planned_is_refused_with_those_there_are(
    invoke: Invoke, promoted: Cloud
) -> None:
    known = ("flag", "set", "bert-docs", "--candidate", "fp8", "--reason", "x", "--yes")
    other = ("flag", "set", "other", "--candidate", "fp8", "--reason", "x", "--yes")

    assert "Fix: use one of bf16, compile" in invoke(*known).stderr
    assert "run a trial of other first" in invoke(*other).stderr
    assert (2, 2) == (invoke(*known).exit_code, invoke(*other).exit_code)


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_a_word_needs_a_reason(reason: str, invoke: Invoke, promoted: Cloud) -> None:
    result = invoke("flag", "revert", "bert-docs", "--reason", reason, "--yes")

    assert 2 == result.exit_code
    assert "--reason: must be one line of text" in result.stderr
    assert 1 == len(entries(promoted))


@pytest.mark.parametrize(("characters", "code"), [(500, 0), (501, 2)])
def test_a_reason_is_short_enough_to_be_read(
    characters: int, code: int, invoke: Invoke, promoted: Cloud
) -> None:
    result = invoke("flag", "revert", "bert-docs", "--reason", "x" * characters, "--yes")

    assert code == result.exit_code
    assert ("--reason: has 501 characters, more than 500" in result.stderr) is (code == 2)


def test_a_trial_that_promoted_another_candidate_proves_nothing_of_this_one(
    invoke: Invoke, promoted: Cloud
) -> None:
    command = ("flag", "set", "bert-docs", "--candidate", "bf16", "--reason", "try", "--yes")

    told = " ".join(invoke(*command).stdout.split())

    assert "ended with promote of another candidate." in told


def test_ctrl_c_at_the_question_ends_like_ctrl_c_anywhere(
    invoke: Invoke, promoted: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> bool:
        raise typer.Abort

    monkeypatch.setattr("compilegate.cli.common.output._is_interactive", lambda: True)
    monkeypatch.setattr("typer.confirm", interrupted)
    result = revert(invoke)

    assert (130, 1) == (result.exit_code, len(entries(promoted)))
    assert "Stopped." in result.stderr


def test_no_reason_at_all_is_refused(invoke: Invoke, promoted: Cloud) -> None:
    assert 2 == invoke("flag", "revert", "bert-docs", "--yes").exit_code


def test_a_workload_that_nobody_knows_cannot_be_reverted(invoke: Invoke, promoted: Cloud) -> None:
    result = invoke("flag", "revert", "bert-dcos", "--reason", WHY, "--yes")

    assert 2 == result.exit_code
    assert "did you mean bert-docs?" in " ".join(result.stderr.split())
    assert "the flag" not in result.stdout  # nobody is asked about a name that there is not
    assert [] == list(promoted.services.ledger.entries("bert-dcos"))


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
