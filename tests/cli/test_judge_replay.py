"""``judge --replay``: equal or not, in words, as a document and as an exit code."""

import json

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.place import PROJECT
from compilegate_judge import command as screen
from compilegate_judge import judges
from compilegate_judge import replay as replaying
from tools.archive_judge import archive


def entry(promoted):
    (one,) = (
        e for e in promoted.services.ledger.raw.entries("bert-docs") if e["kind"] == "decision"
    )
    return dict(one)


def change(promoted, **changes):
    key = entry(promoted)["decision_key"]
    decision = json.loads(promoted.services.store.get(key))
    promoted.services.store.put(key, json.dumps({**decision, **changes}).encode())


@pytest.mark.parametrize("narrow", [(), ("--workload", "bert-docs")])
def test_a_replay_with_the_same_decision_exits_0(narrow, invoke, asked, promoted):
    decided = entry(promoted)
    result = invoke("judge", "--replay", decided["decision_id"], *narrow)
    document = asked("judge", "--replay", decided["decision_id"])

    name = f"bert-docs-{decided['trial']}: decision {decided['decision_id']} (promote)"
    key = naming.record_key("bert-docs", decided["trial"], "evidence")
    assert 0 == result.exit_code
    assert f"{name} is the same, field by field." in " ".join(result.stdout.split())
    assert f"  s3://data/{key}\n" in result.stdout
    assert (True, [], None, key) == (
        document["equal"], document["differences"], document["why_not"], document["evidence_key"],
    )  # fmt: skip


def test_another_decision_is_13_and_names_the_fields(invoke, promoted):
    change(promoted, candidate="other")
    replay = ("judge", "--replay", entry(promoted)["decision_id"])

    result, document = invoke(*replay), json.loads(invoke(*replay, "--json").stdout)

    said = 'differs in 1 field: candidate: recorded "other", now "compile"'
    difference = {"field": "candidate", "recorded": "other", "replayed": "compile"}
    assert 13 == result.exit_code
    assert said in " ".join(result.stdout.split())
    assert ([difference], None) == (document["differences"], document["judge_versions"])


def test_an_archived_judge_is_named(shown, asked, promoted, monkeypatch, tmp_path):
    archive(PROJECT, tmp_path)
    monkeypatch.setattr(judges, "FOLDER", tmp_path)
    for module in (replaying, screen):
        monkeypatch.setattr(module, "JUDGE_VERSION", "99.0.0")
    replay = ("judge", "--replay", entry(promoted)["decision_id"])

    document = asked(*replay)

    assert f"Judge {JUDGE_VERSION} made it and repeated it from its archive" in shown(*replay)
    assert [True, [JUDGE_VERSION, "99.0.0"]] == [document["equal"], document["judge_versions"]]


@pytest.mark.parametrize(
    ("changes", "options", "code", "said"),
    [
        ({"judge_version": "0.9.0"}, (), 2,
         "Fix: use a release of Compilegate that has judge 0.9.0"),
        ({"stage": "eligibility", "verdict": "ineligible"}, (), 11,
         "(ineligible) cannot be replayed: the workload was not eligible"),
        ({}, ("0123",), 2, "--replay: is not a decision recorded for bert-docs (got '0123')"),
        ({}, ("0123", "--workload", "bert-dosc"), 2, "did you mean bert-docs?"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_says_why(*, changes, options, code, said, invoke, promoted):
    change(promoted, **changes)

    result = invoke("judge", "--replay", *(options or (entry(promoted)["decision_id"],)))

    assert (code, code == 2) == (result.exit_code, not result.stdout)
    assert said in " ".join(result.output.split())
