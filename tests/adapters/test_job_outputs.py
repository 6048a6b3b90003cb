"""What a job left is read whole, whatever its length and however it ended."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
import zlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.adapters.job_outputs import LONGEST_LINE, StoredOutputs, read_output, read_steps
from compilegate.adapters.stores import Fetched
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.job_output import CURVE_POINTS, JobOutput, quality_run, speed_runs
from compilegate.domain.judging.evidence import Work
from compilegate.domain.production.attempts import JobEvidence
from compilegate.domain.workload.quality import Metric, Quality
from tests.archives import tarball

LOSS = Quality("eval_loss", "minimize", 0.1)

SUMMARY = {"schema": 1, "seed": 17, "finished": True}


def line(step: int, **changes) -> bytes:
    text = {"step": step, "seconds": 0.5, "samples": 8, "loss": 1 / step, **changes}
    return json.dumps(text).encode() + b"\n"


def read(body: bytes) -> JobOutput:
    return read_output(io.BytesIO(body), len(body))


def test_a_summary_that_is_broken_or_missing_is_an_error_that_names_it() -> None:
    for body in (b"{", b"[]", b'{"schema": 2}'):
        with pytest.raises(InvalidEvidenceError, match=r"evidence/summary\.json"):
            read(tarball({"evidence/summary.json": body}))
    with pytest.raises(InvalidEvidenceError, match="is missing"):
        read(tarball({})).summary("evidence/summary.json")


@pytest.mark.slow
def test_many_steps_cost_little_memory_and_are_thinned_for_the_chart() -> None:
    """A million steps are kept in tens of megabytes; parsed lines would take a gigabyte."""
    count = 20_000
    lines = (line(step) for step in range(1, count + 1))  # made as they are read, thus traced
    tracemalloc.start()
    steps = read_steps(lines)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == len(steps.seconds)
    assert peak / count < 60
    assert CURVE_POINTS <= len(steps.loss_curve()) <= 2 * CURVE_POINTS


@pytest.mark.parametrize("finished", [True, False])
def test_the_other_metrics_that_are_asked_for_stand_beside_the_first(finished: bool) -> None:
    """One that the job lacks is the judge's to name: the run stays a record."""
    unusable = {"gap": "0.1", "perplexity": -1e300, "tokens": 10**400}
    values = {"eval_loss": 1.0, "top5": 0.9, **unusable, "unasked": 3.0}
    summary = json.dumps({**SUMMARY, "finished": finished, "metrics": values}).encode()
    output = read(tarball({"evidence/summary.json": summary}))
    others = tuple(Metric(name, "maximize", 0.1) for name in ("top5", *unusable))
    several = replace(LOSS, guardrails=others)
    run = quality_run(output, job="j", quality=several)
    alone = quality_run(output, job="j", quality=LOSS)
    top5 = 0.9 if finished else None

    assert ({"top5": 0.9, **dict.fromkeys(unusable)} if finished else {}) == run.record["metrics"]
    assert {**alone.record, "metrics": run.record["metrics"]} == run.record
    assert [top5, None] == [run.by(one).metric for one in ("top5", "perplexity")]


def test_a_line_without_end_ends_the_steps_and_a_link_is_passed_over() -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        link = tarfile.TarInfo("evidence/summary.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    files = {
        "evidence/summary.json": json.dumps(SUMMARY).encode(),
        "evidence/steps.jsonl": line(1) + b" " * LONGEST_LINE + line(2),
    }

    assert 1 == len(read(tarball(files)).steps_beside("evidence/summary.json").seconds)
    assert {} == read(archive.getvalue()).summaries


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no archive",
        b"\x1f\x8b\x08\x00" + b"0" * 50,
        tarball({"a": b"x" * 9999})[:60],
        zlib.compress(gzip.decompress(tarball({}))),
    ],
    ids=["nothing", "garbage", "bad compression", "cut short", "other compression"],
)
def test_an_output_that_is_no_tarball_is_evidence_that_is_broken(body: bytes) -> None:
    with pytest.raises(InvalidEvidenceError, match="the job's output is broken"):
        read(body)


@pytest.mark.parametrize(("error", "said"), [(EOFError("cut"), "cut"), (EOFError(), "EOFError")])
def test_an_error_is_said_in_its_words_or_named_by_its_kind(error: Exception, said: str) -> None:
    def ended(_: int) -> bytes:
        raise error

    with pytest.raises(InvalidEvidenceError, match=f"is broken: {said}"):
        read_output(SimpleNamespace(read=ended), 1)


# What the runs of a trial and of production are made of (compilegate/domain/job_output.py).
KEYS = (
    "schema", "seed", "finished", "compiler", "metrics", "outcomes", "fingerprint", "equivalence",
    "numerics", "initial_loss", "initial_weights_sha256", "final_weights_sha256",
    "final_start_sha256", "peak_memory_gib", "reason", "wall_seconds", "steps", "seconds",
    "full_run_steps", "examining", "profile", "process_seconds", "evaluations", "compile_bundle",
)  # fmt: skip


def test_of_a_summary_that_is_kept_which_a_run_is_made_of() -> None:
    left = {**dict.fromkeys(KEYS, 1), "of_the_team": 2}
    body = json.dumps(left).encode()

    assert dict.fromkeys(KEYS, 1) == read(tarball({FULL: body})).summary(FULL)


FULL, PAIRED = "evidence/summary.json", "evidence/run-3/compile/summary.json"
BLOCK = "evidence/block-2/compile/summary.json"
RUN = {**SUMMARY, "metrics": {"eval_loss": 0.5}, "process_seconds": 70.0}


def outputs(left: Any) -> StoredOutputs:
    """Of a job that left these files; reading them may end in an error instead."""

    def fetch(uri: str) -> Fetched:
        assert "s3://data/o/j/output/output.tar.gz" == uri
        if isinstance(left, Exception):
            raise left
        body = tarball(left)
        return Fetched(len(body), io.BytesIO(body), {"output_etag": "e"})

    return StoredOutputs(fetch)


@pytest.mark.parametrize(
    ("status", "left", "expected"),
    [
        ("InProgress", {FULL: RUN}, JobEvidence()),
        ("Stopping", {FULL: RUN}, JobEvidence()),
        ("Completed", {FULL: RUN}, None),
        ("Completed", NotFoundError("gone"),
         JobEvidence(problem="it left no evidence that can be read: gone")),
        ("Completed", InvalidEvidenceError("no"),
         JobEvidence(problem="its evidence cannot be read: no")),
        ("Completed", ZeroDivisionError("odd"),
         JobEvidence(problem="its evidence cannot be read: odd")),
        ("Failed", NotFoundError("gone"), JobEvidence()),
        ("Failed", {FULL: RUN}, JobEvidence()),
        ("Failed", {FULL: {**RUN, "examining": 1}}, JobEvidence()),
        ("Stopped", {FULL: {**RUN, "examining": True}}, JobEvidence(ended_examined=True)),
    ],
)  # fmt: skip
def test_a_production_job_left_its_run_or_there_is_a_problem(
    status: str, left: object, expected: JobEvidence | None, caplog: pytest.LogCaptureFixture
) -> None:
    place = {"S3OutputPath": "s3://data/o/"}
    described = {"TrainingJobName": "j", "TrainingJobStatus": status, "OutputDataConfig": place}
    evidence = outputs(left).production_run(described, LOSS)

    if expected is None:
        assert ("", False) == (evidence.problem, evidence.ended_examined)
        assert (0.5, "e", 17) == tuple(
            evidence.result[name] for name in ("metric", "output_etag", "seed")
        )
    else:
        assert expected == evidence
    # An error that no reader foresaw is ours to see.
    assert isinstance(left, ArithmeticError) == ("no evidence of j" in caplog.text)


def test_a_trials_job_left_its_runs_or_nothing() -> None:
    uri = "s3://data/o/j/output/output.tar.gz"
    there, gone = outputs({FULL: RUN, PAIRED: RUN, BLOCK: RUN}), outputs(NotFoundError("gone"))

    ((place, run),) = there.paired_runs(uri, "j", LOSS).items()
    assert ((3, "compile"), 70.0, 0.5) == (place, run.record["job_seconds"], run.metric)
    ((arm, segment),) = there.segments(uri, "j")
    assert ("compile", 2, "j", "e") == (arm, segment.block, *map(
        segment.record.get, ("job", "output_etag"),
    ))  # fmt: skip
    assert ("j", 0.5) == tuple(map(there.full_run(uri, "j", LOSS).record.get, ("job", "metric")))
    assert ((), {}) == (gone.segments(uri, "j"), gone.paired_runs(uri, "j", LOSS))
    with pytest.raises(InvalidEvidenceError, match="is missing"):
        gone.full_run(uri, "j", LOSS)


OUTCOMES = {
    "kind": "bits", "examples": 8, "per_outcome": 1, "set_sha256": "ab" * 32, "mean": 0.5,
    "data": "8A==",
}  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "kept"),
    [
        ({"eval_loss": OUTCOMES}, OUTCOMES),
        ({"eval_loss": {**OUTCOMES, "more": "x" * 5000}}, OUTCOMES),
        ({"eval_accuracy": OUTCOMES}, None),
        ({"eval_loss": {**OUTCOMES, "examples": 2**60}}, None),
        ({"eval_loss": {**OUTCOMES, "data": "8A==" * 50_000}}, None),
        ({"eval_loss": {**OUTCOMES, "mean": 0.9}}, None),
        ({"eval_loss": "8A=="}, None),
        ([OUTCOMES], None),
        (None, None),
    ],
)
def test_outcomes_of_the_workloads_metric_are_kept_and_broken_ones_are_absent(
    recorded: object, kept: object
) -> None:
    summary = {**SUMMARY, "metrics": {"eval_loss": 0.5}, "outcomes": recorded}
    files = {"evidence/summary.json": json.dumps(summary).encode()}
    run = quality_run(read(tarball(files)), job="j", quality=LOSS)

    assert kept == run.record.get("outcomes")
    assert 0.5 == run.metric


def test_the_figures_that_these_tests_go_by() -> None:
    assert 200 == CURVE_POINTS


def test_steps_give_samples_per_step_and_a_curve_with_gaps_up_to_a_line_cut_short() -> None:
    """Samples are averaged over all steps where any recorded them."""
    cases = {
        (line(1), line(2, samples=0), line(3), line(4)): (4, 6.0),
        (line(1), line(2, samples=None)): (2, 4.0),
        (line(1, samples=None),): (1, None),
        (line(1), line(2), b'{"step": 3, "sec'): (2, 8.0),
    }
    for lines, expected in cases.items():
        steps = read_steps(lines)
        assert expected == (len(steps.seconds), steps.samples_per_step)
    curve = read_steps([line(1), line(2, loss=None), line(4)]).loss_curve()
    assert [[1, 1.0, 0.5], [4, 0.25, 1.5]] == curve


@pytest.mark.parametrize("key", ["metrics", "compiler", "fingerprint"])
def test_a_part_of_a_summary_that_is_no_mapping_is_an_error_that_names_it(key: str) -> None:
    body = json.dumps({**SUMMARY, "metrics": {"eval_loss": 1.0}, key: ["x"]}).encode()
    segments = ("evidence/cold/compile/summary.json", "evidence/block-0/compile/summary.json")

    with pytest.raises(InvalidEvidenceError, match=key):
        quality_run(read(tarball({"evidence/summary.json": body})), job="j", quality=LOSS)
    if key == "compiler":
        with pytest.raises(InvalidEvidenceError, match=key):
            list(speed_runs(read(tarball(dict.fromkeys(segments, body))), job="j"))


@pytest.mark.parametrize("key", ["equivalence", "numerics"])
def test_the_check_of_an_arm_is_in_each_of_its_segments(key: str) -> None:
    check = {"schema": 1, "weights": "first"}
    names = [f"evidence/{folder}/{arm}" for folder in ("cold", "block-0") for arm in "ab"]
    files = {f"{name}/summary.json": json.dumps(SUMMARY).encode() for name in names}
    files["evidence/cold/b/summary.json"] = json.dumps({**SUMMARY, key: check}).encode()
    runs = dict(speed_runs(read(tarball(files)), job="j"))

    assert (False, check) == (key in runs["a"].record, runs["b"].record[key])


def test_a_full_runs_work_is_what_its_lines_add_up_to() -> None:
    lines = [
        line(1, samples=4, tokens=100),
        line(11, steps=10, samples=8, tokens=None),
        line(12, samples=None, tokens=300),
    ]
    summary = json.dumps({**SUMMARY, "metrics": {"eval_loss": 2.0}}).encode()
    files = {"evidence/summary.json": summary, "evidence/steps.jsonl": b"".join(lines)}
    run = quality_run(read(tarball(files)), job="j", quality=LOSS)
    without = quality_run(read(tarball({"evidence/summary.json": summary})), job="j", quality=LOSS)

    assert run.work == Work(12, 6.0, 7.0, pytest.approx(400 / 12))
    assert without.work == Work(0, 0.0, None, None)


def test_summaries_and_the_steps_beside_them_are_found() -> None:
    output = read(
        tarball(
            {
                "./evidence/block-0/compile/summary.json": json.dumps(SUMMARY).encode(),
                "./evidence/block-0/compile/steps.jsonl": line(1) + line(2),
                "./evidence/block-0/compile/notes.txt": line(3),
                "./model/summary.json": b"not evidence",
            }
        )
    )
    name = "evidence/block-0/compile/summary.json"

    assert ([name], 1) == (list(output.summaries), len(output.steps))
    assert 17 == output.summary(name)["seed"]
    assert [0.5, 0.5] == output.steps_beside(name).seconds.tolist()


def test_what_a_run_started_from_and_ended_with_reaches_the_evidence() -> None:
    start = {
        "initial_loss": 2.5, "initial_weights_sha256": "w",
        "final_weights_sha256": "v", "final_start_sha256": "u",
    }  # fmt: skip
    summary = json.dumps({**SUMMARY, **start, "metrics": {"eval_loss": 1.0}}).encode()
    files = {"evidence/summary.json": summary, "evidence/steps.jsonl": line(1)}
    run = quality_run(read(tarball(files)), job="j", quality=LOSS)

    assert start == {key: run.record[key] for key in start}
