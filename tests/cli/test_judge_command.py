"""``judge``: the contract's documents and exit codes; a stream carries nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.domain.evidence_builder import GOOD, NOISY, WORSE, document
from tools.docs.examples import probation


def unfair() -> dict[str, Any]:
    evidence = document(metrics=GOOD)
    evidence["arms"][1]["runs"][0]["applied"] = False
    return evidence


def watched(runs: int) -> dict[str, Any]:
    """A probation of so many sound runs, ten asked for."""
    evidence = {**probation(), "policy": {"probation_runs": 10}}
    compiled = evidence["arms"][1]
    sound = next(run for run in compiled["runs"] if run["stage"] == "probation")
    kept = [run for run in compiled["runs"] if run["stage"] != "probation"]
    compiled["runs"] = [*kept, *({**sound, "order": 10 + n} for n in range(runs))]
    base = evidence["arms"][0]
    base["runs"] = [run for run in base["runs"] if run["stage"] != "probation"]
    return evidence


CASES = [
    (document(metrics=GOOD), "promote", 0, "lm: turn it on (promote)"),
    (document(metrics=WORSE), "stay_off", 10, "lm: leave it off (stay_off)"),
    (document(metrics=NOISY), "inconclusive", 11, "lm: not proven (inconclusive)"),
    (document(), "continue", 11, "lm: in progress (continue)"),
    (unfair(), "invalid", 13, "lm: no valid comparison (invalid)"),
    (watched(10), "permanent", 0, "bert-docs: on permanently (permanent)"),
    (watched(4), "continue", 11, "bert-docs: in progress (continue)"),
    (probation(), "revert", 12, "bert-docs: turned back off (revert)"),
]


@pytest.mark.parametrize(("evidence", "verdict", "code", "first"), CASES)
def test_verdict_and_exit_code_and_the_verdict_first_within_80_columns(
    *, evidence, verdict, code, first, tmp_path, invoke
):
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(evidence))

    result, shown = invoke("judge", file, "--json", "--stage", "prod"), invoke("judge", file)

    decision, lines = json.loads(result.stdout), shown.stdout.splitlines()
    assert (verdict, code, code) == (decision["verdict"], result.exit_code, shown.exit_code)
    assert (
        f"/compilegate/prod/workloads/{evidence['workload']}/compiler" == decision["flag"]["name"]
    )
    assert first == lines[0]
    assert "\x1b" not in shown.stdout
    assert [] == [line for line in lines if len(line) > 80]


def test_a_stream_answers_every_line_in_order_and_says_nothing_else(invoke):
    stdin = "\n".join(json.dumps(evidence) for evidence, *_ in CASES)

    result = invoke("judge", "--jsonl", "-", stdin=stdin)

    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert [verdict for _, verdict, *_ in CASES] == [d["verdict"] for d in decisions]
    assert (0, "") == (result.exit_code, result.stderr)


def test_a_line_that_is_not_json_is_decided_as_invalid_and_the_rest_goes_on(tmp_path, invoke):
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(["nonsense", "[]", "", json.dumps(document(metrics=GOOD))]))

    result = invoke("judge", "--jsonl", file)

    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert ["invalid", "invalid", "promote"] == [d["verdict"] for d in decisions]
    assert decisions[0]["reasons"][0]["message"].startswith("line 1 is not JSON")
    assert 2 == result.exit_code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "FILE is missing"),
        (("a.json", "--jsonl", "b.jsonl"), "FILE cannot be combined with --jsonl"),
        (("nowhere.json",), "nowhere.json: is not a file. Fix: name an evidence document"),
        (("--jsonl", "nowhere.jsonl"), "nowhere.jsonl: is not a file. Fix: name a file of JSON"),
        (("nowhere.yaml", "--plan"), "nowhere.yaml"),
        (("nowhere.json", "--plan"), "nowhere.json: is not a file"),
        (("--plan", "--spread", "1"), "--margin: is missing"),
        (("--plan", "--margin", "1"), "--spread: is missing"),
        (
            ("--plan", "--history", "3"),
            "--history: requires --spread and --margin, or a FILE (got 3)",
        ),
        (("--plan", "--max-runs", "3"), "--max-runs: requires --spread and --margin, or a FILE"),
        (("--plan", "--alpha", "0.7"), "--alpha: is out of range (got 0.7). Fix: use 0.0001 to"),
        (("--plan", "--spread", "nan", "--margin", "1"), "--spread: is out of range (got nan)"),
        (("--plan", "--spread", "-1", "--margin", "1"), "--spread: is out of range (got -1.0)"),
        (("--plan", "--candidates", "0"), "--candidates: is out of range (got 0)"),
        (("--plan", "--max-runs", "1"), "--max-runs: is out of range (got 1). Fix: use 2 to"),
        (("--plan", "--explain"), "--explain: cannot be combined with --plan"),
        (("--plan", "--jsonl", "a"), "--jsonl: cannot be combined with --plan"),
        (("--explain", "--jsonl", "a"), "--explain: cannot be combined with --jsonl"),
        (("a.json", "--margin", "1"), "--margin: requires --plan (got 1.0). Fix: add --plan"),
        (("evidence.json", "--replay", "x"), "FILE: cannot be combined with --replay"),
        (("--jsonl", "-", "--replay", "x"), "--jsonl: cannot be combined with --replay"),
        (("--plan", "--replay", "x"), "--plan: cannot be combined with --replay"),
        (("--max-runs", "3", "--replay", "x"), "--max-runs: cannot be combined with --replay"),
        (("evidence.json", "--local"), "--local: requires --replay"),
        (("evidence.json", "--workload", "x"), "--workload: requires --replay"),
    ],
)
def test_options_that_do_not_fit_together_are_refused_with_a_fix(arguments, message, invoke):
    result = invoke("judge", *arguments)

    assert (2, "") == (result.exit_code, result.stdout)
    assert message in result.stderr
    assert "Fix: " in result.stderr


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('{"schema": 1}\n{"schema": 1}\n', "need --jsonl"),
        ("# Compilegate\n", "name an evidence document"),
        ('{"schema": 1,\n', "name an evidence document"),
        ("0.5\n0.6\n", "name an evidence document"),
    ],
)
def test_a_file_that_is_not_json_is_bad_input_with_the_fix_of_its_own_fault(
    text, fix, tmp_path, invoke
):
    file = tmp_path / "evidence.json"
    file.write_text(text)

    result = invoke("judge", file)

    assert 2 == result.exit_code
    assert f"{file}: is not JSON" in result.stderr
    assert fix in result.stderr.partition("Fix: ")[2]


def test_a_failure_is_shown_with_what_the_job_said_and_what_helps(tmp_path, invoke):
    file = tmp_path / "evidence.json"
    evidence = document(metrics=GOOD)
    run = next(run for run in evidence["arms"][1]["runs"] if run["stage"] == "quality")
    run.update(finished=False, metric=None, reason="CUDA out of memory")
    file.write_text(json.dumps(evidence))

    shown = " ".join(invoke("judge", file).stdout.split())

    assert "(full run with seed 17: CUDA out of memory). Fix: " in shown
    assert shown.index("CUDA out of memory") < shown.index("short blocks alone predict")


def test_a_saving_is_conditional_where_the_candidate_stays_off(tmp_path, invoke):
    file = tmp_path / "evidence.json"
    shown = []
    for metrics in (GOOD, NOISY):
        file.write_text(json.dumps(document(metrics=metrics)))
        shown += [line for line in invoke("judge", file).stdout.splitlines() if "saving" in line]

    assert [False, True] == ["per year if on" in line for line in shown]


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (document(), "next 2 shadow runs (compile seed 17, compile seed 18), about $0.038: extra"),
        (document(blocks=0), "next 1 block from 0 on (baseline, compile): 1 short block"),
        (watched(4), "next 1 run (compile): the next scheduled production run"),
        (
            document(policy={"quality_runs": "canary"}),
            "compile seed 17, baseline seed 17), no extra cost: scheduled production runs",
        ),
    ],
)
def test_an_open_decision_shows_the_next_runs_and_their_cost(evidence, message, tmp_path, invoke):
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(evidence))

    result = invoke("judge", file)

    assert message in " ".join(result.stdout.split())
    assert 11 == result.exit_code


@pytest.mark.slow
def test_a_document_of_a_million_steps_is_judged(tmp_path, invoke):
    evidence = document(metrics=GOOD)
    for arm in evidence["arms"]:
        for run in arm["runs"]:
            if run["stage"] == "speed":
                run["step_seconds"] += run["step_seconds"][1:] * 1100
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(evidence))

    assert "promote" == json.loads(invoke("judge", file, "--json").stdout)["verdict"]
