"""``judge``: the contract's documents and exit codes; a stream carries nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke
from tests.domain.evidence_builder import GOOD, NOISY, WORSE, document


def unfair() -> dict[str, Any]:
    found = document(metrics=GOOD)
    found["arms"][1]["runs"][0]["applied"] = False
    return found


CASES = [
    (document(metrics=GOOD), "promote", 0),
    (document(metrics=WORSE), "stay_off", 10),
    (document(metrics=NOISY), "inconclusive", 11),
    (document(), "continue", 11),
    (unfair(), "invalid", 13),
]


@pytest.mark.parametrize(("evidence", "verdict", "code"), CASES)
def test_verdict_and_exit_code(
    evidence: dict[str, Any], verdict: str, code: int, tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(evidence))

    result = invoke("judge", file, "--json", "--stage", "prod")

    decision = json.loads(result.stdout)
    assert (verdict, code) == (decision["verdict"], result.exit_code)
    assert "/compilegate/prod/workloads/lm/compiler" == decision["flag"]["name"]


def test_people_read_the_verdict_first_within_80_columns(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(document(metrics=GOOD)))

    result = invoke("judge", file)

    lines = result.stdout.splitlines()
    assert lines[0].startswith("lm: turn it on (promote)")
    assert [line for line in lines if len(line) > 80] == []
    assert "\x1b" not in result.stdout


def test_a_stream_answers_every_line_in_order_and_says_nothing_else(invoke: Invoke) -> None:
    given = "\n".join(json.dumps(evidence) for evidence, _, _ in CASES)

    result = invoke("judge", "--jsonl", "-", given=given)

    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert [verdict for _, verdict, _ in CASES] == [d["verdict"] for d in decisions]
    assert (0, "") == (result.exit_code, result.stderr)


def test_a_line_that_is_not_json_is_decided_as_invalid_and_the_rest_goes_on(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(["nonsense", "[]", "", json.dumps(document(metrics=GOOD))]))

    result = invoke("judge", "--jsonl", file)

    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert ["invalid", "invalid", "promote"] == [d["verdict"] for d in decisions]
    assert decisions[0]["reasons"][0]["message"].startswith("line 1 is not JSON")
    assert 2 == result.exit_code


def test_evidence_that_breaks_its_contract_is_invalid_and_names_the_field(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps({**document(), "arms": 3}))

    result = invoke("judge", file, "--json")

    decision = json.loads(result.stdout)
    assert (13, "invalid", "keep") == (
        result.exit_code, decision["verdict"], decision["flag"]["action"],
    )  # fmt: skip
    assert "arms: must be a list" in decision["reasons"][0]["message"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give either FILE or --jsonl FILE"),
        (("a.json", "--jsonl", "b.jsonl"), "give either FILE or --jsonl FILE"),
        (("nowhere.json",), "nowhere.json: is not a file. Fix: name an evidence document"),
        (("--jsonl", "nowhere.jsonl"), "nowhere.jsonl: is not a file. Fix: name a file of JSON"),
    ],
)
def test_bad_arguments_are_bad_input(arguments: tuple[str, ...], told: str, invoke: Invoke) -> None:
    result = invoke("judge", *arguments)

    assert 2 == result.exit_code
    assert told in result.stderr
    assert "" == result.stdout


def test_a_file_that_is_not_json_is_bad_input(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "evidence.json"
    file.write_text('{"schema": 1}\n{"schema": 1}\n')

    result = invoke("judge", file)

    assert 2 == result.exit_code
    assert f"{file}: is not JSON" in result.stderr
    assert "need --jsonl" in result.stderr


def test_a_saving_is_conditional_where_the_candidate_stays_off(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "evidence.json"
    said = []
    for metrics in (GOOD, NOISY):
        file.write_text(json.dumps(document(metrics=metrics)))
        said += [line for line in invoke("judge", file).stdout.splitlines() if "saving" in line]

    assert [False, True] == [line.endswith("per year if on") for line in said]
