"""Whatever a job leaves, it is read within bounds or refused with one kind of error."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from compilegate.adapters import job_outputs
from compilegate.adapters.job_outputs import read_output, read_steps
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.job_output import quality_run
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.workload.quality import Quality
from tests.archives import tarball

LOSS = Quality("eval_loss", "minimize", 0.1)

SUMMARY = {
    "schema": 1, "seed": 17, "finished": True, "metrics": {"eval_loss": 0.5}, "wall_seconds": 60.0,
}  # fmt: skip
STEP = {"step": 1, "seconds": 0.5, "samples": 8, "loss": 2.0}
DIGITS = int("9" * 400)


def output_of(body: bytes) -> FullRun:
    """The full run of an output, as RecordRun reads it."""
    output = read_output(io.BytesIO(body), len(body))
    return quality_run(output, job="j", quality=LOSS)


def with_summary(**changes: Any) -> bytes:
    return tarball({"evidence/summary.json": {**SUMMARY, **changes}})


NO_FIGURES: Sequence[object] = (
    DIGITS, -DIGITS, "text", [[]], float("nan"), float("-inf"), True,
)  # fmt: skip
NO_STEPS: Sequence[object] = (
    10**30, DIGITS, -1, "text", float("nan"), float("inf"), [], {}, True,
)  # fmt: skip


def with_steps(*lines: object) -> bytes:
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    return tarball({"evidence/summary.json": SUMMARY, "evidence/steps.jsonl": text})


@pytest.mark.parametrize(
    "changes",
    [
        {key: value}
        for key in ("steps", "seconds", "wall_seconds", "initial_loss", "peak_memory_gib", "seed")
        for value in NO_FIGURES
    ]
    + [{"metrics": {"eval_loss": value}} for value in (DIGITS, "0.5", None, float("nan"), [1])]
    + [{"compiler": {"compile_seconds": value}} for value in (DIGITS, float("inf"), -1, "x")]
    + [{"reason": value} for value in (5, ["x"], "x" * 2**19)],
    ids=lambda changes: str(changes)[:40],
)
def test_one_malformed_figure_is_read_as_none_or_refused(changes: Mapping[str, Any]) -> None:
    try:
        run = output_of(with_summary(**changes))
    except InvalidEvidenceError as error:
        assert len(str(error)) < 700
        return
    text = json.dumps(run.record, allow_nan=False)

    assert len(text) < 10_000


@pytest.mark.parametrize(
    "line",
    [{**STEP, key: value} for key in STEP | {"steps": 1} for value in NO_STEPS]
    + [[], "text", None, 5],
    ids=lambda line: str(line)[:50],
)
def test_one_malformed_step_is_a_gap_or_ends_the_steps(line: object) -> None:
    curve = output_of(with_steps(STEP, line, STEP)).record["loss_curve"]

    assert [1, 2.0, 0.5] == curve[0]
    json.dumps(curve, allow_nan=False)


def test_brackets_without_end_are_no_step_and_no_summary() -> None:
    lines = [json.dumps(STEP).encode(), b"[" * 60_000 + b"\n"]

    assert 1 == len(read_steps(lines).seconds)
    with pytest.raises(InvalidEvidenceError, match=r"summary\.json is broken"):
        output_of(tarball({"evidence/summary.json": b"[" * 60_000}))


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header block that says so, whatever follows it."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def sparse(numbers: bytes) -> bytes:
    """A file whose attributes announce a sparse map of so many rows."""
    records = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n25 GNU.sparse.realsize=9\n"
    own = header("evidence/summary.json", 2**30) + numbers
    return attributes(records) + own


def attributes(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """A header with these records about the file that follows."""
    return header("pax", len(records), kind) + records.ljust(512, b"\0")


BLANK = b"\0" * 2**20
END = b"\0" * 1024
TEXT = json.dumps(SUMMARY).encode()
SUMMARY_FILE = header("evidence/summary.json", len(TEXT)) + TEXT.ljust(512, b"\0")
HIDDEN_SUMMARY = header("./evidence/summary.json", len(TEXT)) + TEXT.ljust(512, b"\0")
BROKEN_ARCHIVES: dict[str, Callable[[], bytes]] = {
    "a name of 600 MB": lambda: header("x", 600 * 2**20, tarfile.GNUTYPE_LONGNAME) + BLANK * 16,
    "attributes of 600 MB": lambda: header("x", 600 * 2**20, tarfile.XHDTYPE) + BLANK * 16,
    "names without end": lambda: (header("x", 1, tarfile.GNUTYPE_LONGNAME) + BLANK[:512]) * 9000,
    "a negative size": lambda: header("x", -512) + END,
    "an old sparse file": lambda: header("x", 0, tarfile.GNUTYPE_SPARSE) + END,
    "a sparse file": lambda: attributes(b"22 GNU.sparse.major=1\n") + SUMMARY_FILE + END,
    "a record longer than its header": lambda: attributes(b"99 a=b\n") + SUMMARY_FILE + END,
    "attributes of nothing": lambda: attributes(b"6 a=b\n") + END,
    "a header of no bytes": lambda: header("x", 0, tarfile.XHDTYPE) + SUMMARY_FILE + END,
    "a length of six digits": lambda: attributes(b"000011 a=b\n") + SUMMARY_FILE + END,
    "a sparse map without rows": lambda: sparse(b"x" * 512),
    "a sparse map of many rows": lambda: sparse(b"99999999\n" + b"1\n" * 2**22),
    "a size in words": lambda: attributes(b"12 size=big\n"),
    "a record of length 0": lambda: attributes(b"0 path=x\n"),
    "a negative record": lambda: attributes(b"-9 path=x"),
    "a record without its end": lambda: attributes(b"11 path=abc") + SUMMARY_FILE + END,
    "a record without a value": lambda: attributes(b"8 path:\n") + SUMMARY_FILE + END,
    "attributes in many records": lambda: attributes(b"5 a=\n" * 3000) * 1000,
    "a second summary": lambda: SUMMARY_FILE * 2 + END,
    "a second summary with another path": lambda: SUMMARY_FILE + HIDDEN_SUMMARY + END,
    "second steps": lambda: header("evidence/steps.jsonl", 0) * 2 + END,
    "something after its end": lambda: SUMMARY_FILE + END + SUMMARY_FILE + END,
    "no end": lambda: header("x", 0),
    "no header": lambda: b"x" * 512,
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_ARCHIVES)
def test_a_broken_archive_is_refused_and_costs_little(name: str) -> None:
    body = gzip.compress(BROKEN_ARCHIVES[name](), 1)
    tracemalloc.start()
    with pytest.raises(InvalidEvidenceError):
        read_output(io.BytesIO(body), len(body))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 * 2**20


def test_a_file_that_is_too_large_is_refused_before_it_is_gone_through() -> None:
    body = gzip.compress(header("x", 16 * 2**30 + 1))
    with pytest.raises(InvalidEvidenceError, match="unpacked, has 17179869185 bytes"):
        output_of(body)


def test_an_archive_cut_anywhere_is_refused() -> None:
    body = with_steps(*[STEP] * 50)

    for length in range(len(body)):
        with pytest.raises(InvalidEvidenceError, match="broken"):
            output_of(body[:length])


@pytest.mark.parametrize("last", range(1, 9))
def test_a_checksum_or_length_that_is_wrong_is_noticed(last: int) -> None:
    body = bytearray(with_steps(*[STEP] * 50))
    body[-last] ^= 1

    with pytest.raises(InvalidEvidenceError, match="broken"):
        output_of(bytes(body))


PACKED = gzip.compress(SUMMARY_FILE + END)
# A header with the name of a file that never ends, an empty part that never ends in zeros.
NAMED = b"\x1f\x8b\x08\x08" + bytes(6)


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(b"", 1) * 200_000 + PACKED,
        NAMED + b"x" * 2**23,
        PACKED + b"more",
    ],
    ids=["parts without end", "a name without end", "something behind it"],
)
def test_a_stream_that_only_costs_time_is_refused(body: bytes) -> None:
    began = time.process_time()
    with pytest.raises(InvalidEvidenceError):
        output_of(body)

    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "body",
    [gzip.compress(SUMMARY_FILE[:700]) + gzip.compress(SUMMARY_FILE[700:] + END), PACKED + BLANK],
    ids=["in two parts", "padded"],
)
def test_a_stream_as_other_packers_write_it_is_read(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_outputs, "MOST_PARTS", 2)
    assert 0.5 == output_of(body).metric
    with pytest.raises(InvalidEvidenceError, match="has 3 compressed parts, and 2 can be"):
        output_of(gzip.compress(b"") * 2 + body)


@pytest.mark.parametrize(
    "files",
    [
        {"evidence/summary.json": '{"schema": 1, "metrics": {"a": 1, "a": 2}}'},
        {"evidence/summary.json": '{"schema": 1, "seed": 1, "seed": 2}'},
        {"evidence/summary.json": SUMMARY, "evidence/steps.jsonl": '{"step": 1, "step": 2}'},
    ],
    ids=["inside", "outside", "in a step"],
)
def test_a_key_that_occurs_twice_is_broken_evidence(files: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidEvidenceError, match="twice"):
        output_of(tarball(files))


def test_long_names_and_attributes_are_read_as_every_writer_has_them() -> None:
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz", format=form) as tar:
            for name in (f"./{'d' * 90}/{'n' * 90}", "evidence/summary.json"):
                text = json.dumps(SUMMARY).encode()
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime = len(text), 1.5
                tar.addfile(entry, io.BytesIO(text))

        assert 0.5 == output_of(archive.getvalue()).metric


LINE = f"{json.dumps(STEP)}\n"
MIXED = {
    f"evidence/block-{number}/{arm}/{name}": text
    for number in range(3) for arm in "ab"
    for name, text in (("summary.json", SUMMARY), ("steps.jsonl", LINE * 2))
}  # fmt: skip
FULL = {"evidence/summary.json": SUMMARY, "evidence/steps.jsonl": LINE * 3}
# What follows the first block of zeros, to the end of the last record of 20 blocks.
BEHIND = 2 * tarfile.RECORDSIZE - 24 * tarfile.BLOCKSIZE - 512


@pytest.mark.parametrize(
    ("limit", "exact", "files", "named"),
    [
        ("LARGEST_OUTPUT", len(tarball(FULL)), FULL, "the job's output has"),
        ("LARGEST_UNPACKED", 6 * (len(TEXT) + 2 * len(LINE)) + BEHIND, MIXED, "unpacked"),
        ("LARGEST_SUMMARY", len(TEXT), MIXED, r"block-0/a/summary\.json"),
        ("LARGEST_STEPS", 3 * len(LINE), FULL, r"evidence/steps\.jsonl"),
        ("LARGEST_STEPS", 12 * len(LINE), MIXED, r"block-2/b/steps\.jsonl"),
        ("LARGEST_SUMMARIES", 6 * len(TEXT), MIXED, "all summaries"),
        ("MOST_LINES", 3, FULL, "all steps has 3 lines"),
        ("MOST_SEGMENT_LINES", 12, MIXED, "all steps has 2 lines"),
        ("MOST_EVIDENCE", 12, MIXED, "files of evidence"),
        ("MOST_FILES", 12, MIXED, "files"),
    ],
)
def test_what_is_too_large_to_be_gone_through_says_so_each_file_and_all_together(
    limit: str, exact: int, files: Mapping[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = tarball(files)
    monkeypatch.setattr(job_outputs, limit, exact)
    assert len(files) == sum(map(len, vars(read_output(io.BytesIO(body), len(body))).values()))

    monkeypatch.setattr(job_outputs, limit, exact - 1)
    with pytest.raises(InvalidEvidenceError, match=named):
        read_output(io.BytesIO(body), len(body))


# Name and size in records whose values hold spaces and equals signs; the last one counts.
RECORDS = [
    b"path=evidence/a b.json", b"comment=a b=\xff", b"path=evidence/summary.json", b"\xff b=cde",
    b"size=511",
]  # fmt: skip
LINES = b"".join(b"%d %s\n" % (len(one) + 4, one) for one in RECORDS) + b"\0"
# A link's name and attributes of all files are passed over, each with a byte.
OTHERS = b"".join(
    header("x", 1, kind) + BLANK[:512] for kind in (tarfile.GNUTYPE_LONGLINK, tarfile.XGLTYPE)
)


@pytest.mark.parametrize(
    ("limit", "exact"),
    [("LONGEST_HEADER", len(LINES)), ("LARGEST_HEADERS", len(LINES) + 2), ("MOST_HEADERS", 3)],
)
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE])
def test_attributes_are_those_of_the_file_behind_them(
    limit: str, exact: int, kind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = attributes(LINES, kind) + OTHERS + header("x", 7) + TEXT.ljust(511) + b"\0"
    body = gzip.compress(named + header("y", 0) + END)
    monkeypatch.setattr(job_outputs, limit, exact)

    assert ["evidence/summary.json"] == [*read_output(io.BytesIO(body), len(body)).summaries]
    monkeypatch.setattr(job_outputs, limit, exact - 1)
    with pytest.raises(InvalidEvidenceError):
        read_output(io.BytesIO(body), len(body))


def test_a_long_name_is_one_and_links_have_no_content_whatever_they_say() -> None:
    named = b"".join(
        header("x", len(name), tarfile.GNUTYPE_LONGNAME) + name.ljust(512, b"\0") + entry
        for name, entry in (
            (b"\xff", header("l", 512, tarfile.SYMTYPE)),
            (b"unheard of", header("z", 512, b"Z") + b"x" * 512),
            (b"evidence/summary.json\0more\0", header("s", len(TEXT)) + TEXT.ljust(512, b"\0")),
        )
    )

    assert 0.5 == output_of(gzip.compress(named + END)).metric
