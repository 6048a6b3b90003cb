"""``flag show``, ``history``, ``set``, ``revert`` and ``repair``."""

import getpass
import json
from dataclasses import replace

import pytest

from compilegate.cli.common import cloud as who
from compilegate.domain import naming
from compilegate.domain.flag import Flag, Layer
from compilegate.usecases.flag.change_flag import change_flag
from tests.usecases.flag_changes import flag_change

SHOW = ("flag", "show", "bert-docs")
FLAG = "/compilegate/dev/workloads/bert-docs/compiler"
WHY = "loss spikes since Monday"


def entries(cloud):
    return [dict(entry) for entry in cloud.services.ledger.raw.entries("bert-docs", "flag#")]


def revert(invoke, *options):
    return invoke("flag", "revert", "bert-docs", "--reason", WHY, *options)


@pytest.mark.parametrize("error", [None, PermissionError("may not publish")])
def test_a_person_turns_the_flag_off_and_the_owner_is_notified(error, invoke, promoted, providers):
    """The override stands where that fails."""
    topic = KeptTopic(error)
    providers.aws_cloud = replace(promoted, topic=topic)

    result, document = revert(invoke, "--yes"), json.loads(revert(invoke, "-y", "--json").stdout)

    entry, me = entries(promoted)[-1], getpass.getuser()
    assert (f"human:{me}", "revert", WHY) == (entry["by"], entry["action"], entry["reason"])
    assert entry["to"] == promoted.services.flags.read(FLAG)
    after = json.loads(entry["to"])
    assert (False, "reverted") == (after["enabled"], after["state"])
    assert f"on -> off (reverted), candidate compile, revert by {me}" in result.stdout
    unsent = error and "PermissionError: may not publish"
    assert (unsent is None, unsent) == (document["notified"], document["not_notified_because"])
    assert (f"The owner was not notified ({unsent})." in result.stdout) is bool(unsent)
    assert ([] if error else ["changed"] * 2) == [one.kind for one in topic.sent]


def test_the_page_of_the_trial_says_who_turned_its_candidate_off(invoke, promoted, monkeypatch):
    (trial,) = (entry["trial"] for entry in entries(promoted))
    page, store = naming.report_key("bert-docs", trial, "md"), promoted.services.store
    with monkeypatch.context() as patched:
        patched.setattr(store, "put", denied)
        failed = json.loads(revert(invoke, "-y", "--json").stdout)
    followed = json.loads(revert(invoke, "-y", "--json").stdout)

    written = store.get(page).decode()
    assert f"it is off (state reverted), by {getpass.getuser()}: “{WHY}”" in written
    assert (True, True) == (failed["changed"], failed["written"])
    assert ("PermissionError: may not write", None) == (
        failed["report_not_written_because"], followed["report_not_written_because"],
    )  # fmt: skip


def denied(*_):
    raise PermissionError("may not write")


class KeptTopic:
    """Keeps what is sent, or fails."""

    def __init__(self, error=None):
        self.sent = []
        self.error = error

    def publish(self, message):
        if self.error:
            raise self.error
        self.sent.append(message)


def test_an_override_that_is_recorded_but_not_written(invoke, promoted, providers, monkeypatch):
    topic = KeptTopic()
    providers.aws_cloud = replace(promoted, topic=topic)
    with monkeypatch.context() as patched:
        patched.setattr(promoted.services.flags, "write", denied)
        shown, document = revert(invoke, "--yes"), json.loads(revert(invoke, "-y", "--json").stdout)

    assert 1 == shown.exit_code
    message = " ".join(shown.stdout.split())
    assert "Recorded as version 2: " in message
    assert "The parameter could not be written: may not write." in message
    assert "  compilegate flag repair bert-docs\n" in shown.stdout
    assert (False, "may not write", 2) == (
        document["written"], document["unwritten_because"], document["version"],
    )  # fmt: skip
    assert ["changed", "changed"] == [one.kind for one in topic.sent]
    assert "The parameter differs from the ledger" in invoke("flag", "show", "bert-docs").stdout

    assert 0 == revert(invoke, "--yes").exit_code
    assert 2 == len(entries(promoted))
    assert entries(promoted)[-1]["to"] == promoted.services.flags.read(FLAG)


def test_an_override_that_was_not_even_recorded_is_an_error(invoke, promoted, monkeypatch):
    def broken(*_):
        raise ConnectionError("gone")

    monkeypatch.setattr(promoted.services.ledger.raw, "put_once", broken)
    result = revert(invoke, "--yes")

    assert (1, 1) == (result.exit_code, len(entries(promoted)))
    assert "gone" in result.stderr
    assert "Recorded" not in result.stdout


def test_what_will_happen_is_reported_before_it_is_asked_for(invoke, promoted, monkeypatch):
    monkeypatch.setattr("compilegate.cli.common.output.is_interactive", lambda: True)
    command = ["flag", "set", "bert-docs", "--candidate", "compile", "--reason", "why not"]

    no, before = invoke(*command, stdin="n\n"), len(entries(promoted))
    yes, after = invoke(*command, stdin="y\n"), len(entries(promoted))

    message = " ".join(no.stdout.split())
    assert ((1, 1), (0, 2)) == ((no.exit_code, before), (yes.exit_code, after))
    assert "Nothing was changed." in message
    assert "turns the flag on for candidate compile (compiler torch_compile)" in message
    assert "has proven it. The flag is in probation" in message


SET = ("flag", "set", "bert-docs", "--candidate", "fp8")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("flag", "revert", "bert-docs", "--reason", WHY), "add --yes"),
        ((*SET, "--reason", "x", "--yes"), "Fix: use one of bf16, compile"),
        (("flag", "set", "other", *SET[3:], "--reason", "x", "--yes"),
         "run a trial of other first"),
        *(
            (("flag", "revert", "bert-docs", "--reason", reason, "--yes"), "--reason: ")
            for reason in ("  ", "two\nlines", "x" * 501)
        ),
        (("flag", "revert", "bert-dcos", "--reason", WHY, "--yes"), "did you mean bert-docs?"),
        *(
            ((*command.split(), "bert-dcos"), "is not a workload of this stage (got 'bert-dcos').")
            for command in ("flag show", "flag history", "flag repair", "status")
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_before_anything_changes(command, said, invoke, promoted):
    result = invoke(*command)

    assert 2 == result.exit_code
    assert said in " ".join(result.stderr.split())
    assert 1 == len(entries(promoted))
    assert [] == list(promoted.services.ledger.raw.entries("bert-dcos"))


def test_a_trial_that_promoted_another_candidate_proves_nothing_of_this_one(shown, promoted):
    command = ("flag", "set", "bert-docs", "--candidate", "bf16", "--reason", "try", "--yes")

    assert "ended with promote of another candidate." in shown(*command)


def test_the_caller_of_aws_is_known_by_its_arn():
    class Sts:
        def get_caller_identity(self):
            return {"Arn": "arn:aws:sts::111122223333:assumed-role/dev/ana"}

    assert "arn:aws:sts::111122223333:assumed-role/dev/ana" == who.aws_caller(Sts())


def test_a_user_without_a_name_is_a_number(monkeypatch):
    def nameless():
        raise KeyError("uid")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert who.os_user().startswith("uid ")


def test_an_override_is_shown_also_after_it_was_overruled(invoke, shown, asked, promoted):
    revert(invoke, "--yes")
    change = flag_change("enable", "later", decided_at=promoted.services.clock.now() + 1)
    change_flag("bert-docs", change, services=promoted.services)

    text, document, me = shown(*SHOW), asked(*SHOW), getpass.getuser()

    assert f"overrides: {me} on 2026-09-21 14:13 UTC: {WHY}" in text
    assert f"last override revert by {me}, 2026-09-21 14:13 UTC {WHY}" in text
    assert ("revert", WHY) == (document["human"]["action"], document["human"]["reason"])
    assert document["change"]["overrode"]["reason"] == WHY


def test_the_layers_of_a_stack_are_shown_with_what_each_gained(shown, asked, promoted):
    layers = (Layer("compile", "d1", 1.33), Layer("larger", "d2", 1.021))
    stack = replace(
        flag_change("enable").flag, candidate="larger", layers=layers,
        overrides={"compiler": "torch_compile", "batch_size": 64},
    )  # fmt: skip
    change = replace(flag_change("enable", "stack"), value=stack.to_json())
    change_flag("bert-docs", change, services=promoted.services)

    assert "layers 1.33x compile x 1.02x larger = 1.36x" in shown(*SHOW)
    assert ["compile", "larger"] == [one["candidate"] for one in asked(*SHOW)["layers"]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (None, "The parameter is missing"),
        ("{", "The parameter cannot be read"),
        (Flag(False, "off").to_json(), "The parameter differs from the ledger"),
    ],
)
def test_a_parameter_that_differs_from_the_ledger_is_repaired(raw, message, shown, asked, promoted):
    flags, repair = promoted.services.flags, ("flag", "repair", "bert-docs")
    del flags.values[FLAG]
    if raw is not None:
        flags.write(FLAG, raw)

    text, document = shown(*SHOW), asked(*SHOW)
    repaired, again = shown(*repair), asked(*repair)

    for part in (message, "after the ledger's latest change the flag is on (probation). It was",
                 "off -> on (probation), candidate compile, enable by a trial (EVALUATE)",
                 "compilegate flag repair bert-docs"):  # fmt: skip
        assert part in text
    assert "since" not in text
    assert (False, False) == (document["agrees"], document["enabled"])
    assert "was restored from the ledger: on (probation)" in repaired
    assert (False, True) == (again["repaired"], again["enabled"])
    assert entries(promoted)[-1]["to"] == flags.read(FLAG)


def test_a_parameter_that_no_recorded_change_turned_on_is_shown_as_off(asked, promoted):
    by_hand = Flag(True, "permanent", "mine", {"batch_size": 48})
    promoted.services.flags.write(FLAG, by_hand.to_json())

    document = asked(*SHOW)

    assert (False, False) == (document["enabled"], document["agrees"])
    assert "it is on (mine), but no recorded change turned it on" == document["problem"]


def test_a_flag_never_set_is_reported_so(invoke, promoted):
    promoted.services.ledger.raw.put_once(
        "other", "trial#t#started", {"kind": "started", "at": 1, "execution": "other-t"}
    )

    assert "other: off (never set" in invoke("flag", "show", "other").stdout
    assert "has never been changed" in invoke("flag", "history", "other").stdout
