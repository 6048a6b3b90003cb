"""``judge``: the contract's documents and exit codes; a stream answers in order and quietly."""

import io
import json
import subprocess
import sys

import pytest

from compilegate_judge.command import stream
from tests.cli.test_screen import Terminal
from tests.domain.evidence_builder import GOOD, NOISY, WORSE, document
from tools.docs.examples import probation


def unfair():
    evidence = document(metrics=GOOD)
    evidence["arms"][1]["runs"][0]["applied"] = False
    return evidence


def watched(runs):
    """A probation of so many sound runs, ten asked for."""
    evidence = {**probation(), "policy": {"probation_runs": 10}}
    compiled = evidence["arms"][1]
    sound = next(run for run in compiled["runs"] if run["stage"] == "probation")
    kept = [run for run in compiled["runs"] if run["stage"] != "probation"]
    compiled["runs"] = [*kept, *({**sound, "order": 10 + n} for n in range(runs))]
    base = evidence["arms"][0]
    base["runs"] = [run for run in base["runs"] if run["stage"] != "probation"]
    return evidence


@pytest.fixture
def judge(tmp_path, invoke):
    """The answer to evidence in a file."""

    def call(evidence, *options):
        file = tmp_path / "evidence.json"
        file.write_text(evidence if isinstance(evidence, str) else json.dumps(evidence))
        return invoke("judge", file, *options)

    return call


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
def test_the_verdict_stands_first_within_80_columns(evidence, verdict, code, first, judge):
    result, shown = judge(evidence, "--json", "--stage", "prod"), judge(evidence)

    decision, lines = json.loads(result.stdout), shown.stdout.splitlines()
    flag = f"/compilegate/prod/workloads/{evidence['workload']}/compiler"
    assert (verdict, code, code) == (decision["verdict"], result.exit_code, shown.exit_code)
    assert (flag, first) == (decision["flag"]["name"], lines[0])
    assert "\x1b" not in shown.stdout
    assert [] == [line for line in lines if len(line) > 80]


def test_a_stream_answers_every_line_in_order_and_says_nothing_else(invoke):
    stdin = "\n".join(json.dumps(evidence) for evidence, *_ in CASES)

    result = invoke("judge", "--jsonl", "-", stdin=stdin)

    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert [verdict for _, verdict, *_ in CASES] == [d["verdict"] for d in decisions]
    assert (0, "") == (result.exit_code, result.stderr)


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
    ],
)
def test_a_file_that_is_not_json_is_bad_input_with_its_own_fix(text, fix, judge):
    result = judge(text)

    assert 2 == result.exit_code
    assert "evidence.json: is not JSON" in result.stderr
    assert fix in result.stderr.partition("Fix: ")[2]


COMMAND = [sys.executable, "-m", "compilegate.cli.main", "judge", "--jsonl", "-"]
LINE = json.dumps(document(metrics=GOOD)) + "\n"


def test_each_decision_is_there_before_the_next_document_is_asked_for():
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        verdicts = []
        for _ in range(3):
            process.stdin.write(LINE)
            process.stdin.flush()
            verdicts.append(json.loads(process.stdout.readline())["verdict"])
        _, errors = process.communicate()

    assert ["promote"] * 3 == verdicts
    assert ("", 0) == (errors, process.returncode)


@pytest.mark.parametrize(
    ("line", "message", "is_json"),
    [
        ("nonsense", "line 1 is not JSON", False),
        ("[]", "the document must be a JSON object", True),
        (b"\xff\xfe", "", False),
        ("[" * 100_000, "nested too deeply", False),
        (json.dumps({**document(), "usd_per_hour": -1}), "usd_per_hour: is out of range", True),
        (LINE.replace('"lm"', '"\\ud800"', 1), "workload: has line breaks or control", True),
        (LINE.replace('"lm"', '{"a":' * 90_000 + "1" + "}" * 90_000, 1), "deeply", False),
    ],
    ids=["a word", "a list", "no text", "brackets", "a negative price", "half a character",
         "braces"],
)  # fmt: skip
def test_no_line_stops_the_stream(line, message, is_json, tmp_path, invoke):
    file = tmp_path / "many.jsonl"
    text = line if isinstance(line, bytes) else line.rstrip().encode()
    file.write_bytes(text + b"\n\n" + LINE.encode())

    result = invoke("judge", "--jsonl", file)

    decisions = [json.loads(document) for document in result.stdout.splitlines()]
    assert ["invalid", "promote"] == [document["verdict"] for document in decisions]
    assert message in decisions[0]["reasons"][0]["message"]
    assert is_json == (result.exit_code == 0)


@pytest.mark.parametrize(
    ("out", "to", "counted"),
    [
        (io.StringIO, Terminal, True),
        (io.StringIO, io.StringIO, False),
    ],
)
def test_documents_are_counted_on_a_terminal_alone(out, to, counted, tmp_path, monkeypatch):
    file, errors = tmp_path / "two.jsonl", to()
    file.write_text(2 * LINE)
    monkeypatch.setattr(sys, "stdout", out())
    monkeypatch.setattr(sys, "stderr", errors)
    stream(str(file), "dev")

    assert counted == ("Judging: 2" in errors.getvalue()) == bool(errors.getvalue())
