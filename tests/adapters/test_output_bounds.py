"""The largest outputs that are read in the functions that read them.

Each is read in a process of its own, whose peak memory and processor time are compared with what
the functions have (stacks/functions.py).
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compilegate.adapters import job_outputs
from stacks.functions import STEPS

ROOT = Path(__file__).parents[2]
BOUNDS = {
    "LARGEST_SUMMARY": 1_048_576, "LARGEST_SUMMARIES": 4_194_304, "LARGEST_STEPS": 536_870_912,
    "LONGEST_LINE": 65_536, "MOST_LINES": 2_000_000, "MOST_SEGMENT_LINES": 200_000,
    "MOST_EVIDENCE": 10_000, "LARGEST_OUTPUT": 4_294_967_296, "LARGEST_UNPACKED": 17_179_869_184,
    "MOST_FILES": 200_000, "LONGEST_HEADER": 16_384, "MOST_HEADERS": 4,
    "LARGEST_HEADERS": 33_554_432, "MOST_PARTS": 50_000, "AT_ONCE": 262_144,
    "PACKED_AT_ONCE": 65_536,
}  # fmt: skip
READERS = ("judge_arms", "on_job_ended", "record_run", "sweep")
# A function with so many megabytes has one processor (Lambda developer guide, memory).
ONE_PROCESSOR = 1769
MEGABYTES = min(step.megabytes for step in STEPS if step.name in READERS)
SECONDS = min(step.seconds for step in STEPS if step.name in READERS)
# Of either, one output may take so much: the rest is for the others of a round, for what is
# made of them, and for a slower processor.
SHARE = 3
READ = """
import json, resource, sys, time
from compilegate.adapters.job_outputs import StoredOutputs
from compilegate.adapters.stores import Fetched
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.workload.quality import Quality

def fetch(uri):
    return Fetched(int(sys.argv[2]), open(uri, "rb"))

read = getattr(StoredOutputs(fetch), sys.argv[3])
quality = [Quality(name, "minimize", 0.1) for name in sys.argv[4:]]
try:
    read(sys.argv[1], "j", *quality)
    end = "read"
except InvalidEvidenceError as error:
    end = str(error)
used = resource.getrusage(resource.RUSAGE_SELF)
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([end, peak, used.ru_utime + used.ru_stime]))
"""
SUMMARY = b'{"schema":1,"seed":17,"finished":true,"metrics":{"m":0.5},"wall_seconds":60.0}'
LINE = b'{"step":100000,"seconds":0.123456,"samples":8,"tokens":4096,"loss":2.123456}\n'
Pieces = Iterator[bytes]


def file(name: str, content: bytes = b"", times: int = 1) -> Pieces:
    """A file that repeats its content."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content) * times
    yield entry.tobuf(tarfile.GNU_FORMAT)
    for _ in range(times // 1000):
        yield content * 1000
    yield content * (times % 1000)
    yield b"\0" * (-entry.size % tarfile.BLOCKSIZE)


def most_attributes() -> Pieces:
    records = b"5 a=\n" * 3200
    entry = tarfile.TarInfo("pax")
    entry.size, entry.type = len(records), tarfile.XHDTYPE
    one = entry.tobuf(tarfile.GNU_FORMAT) + records + b"\0" * (-len(records) % 512)
    for _ in range(job_outputs.LARGEST_HEADERS // len(records)):
        yield one + b"".join(file("x"))


def most_lines() -> Pieces:
    yield from file("evidence/steps.jsonl", LINE, job_outputs.MOST_LINES)


def most_lines_of_segments() -> Pieces:
    for arm in ("baseline", "compile"):
        lines = job_outputs.MOST_SEGMENT_LINES // 2
        yield from file(f"evidence/block-0/{arm}/steps.jsonl", LINE, lines)
        yield from file(f"evidence/block-0/{arm}/summary.json", SUMMARY)


def deep_summaries() -> Pieces:
    head, filling = SUMMARY[:-1] + b',"fingerprint":{"x":[', b"[],{},"
    times = (job_outputs.LARGEST_SUMMARY - 400) // len(filling)
    text = head + filling * times + b"0]}}"
    for number in range(job_outputs.LARGEST_SUMMARIES // job_outputs.LARGEST_SUMMARY - 1):
        yield from file(f"evidence/block-{number}/a/summary.json", text)


FULL, SEGMENTS = ("full_run", "m"), ("segments",)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read there")
@pytest.mark.parametrize(
    ("made", "reader"),
    [
        (most_attributes, FULL),
        (most_lines, FULL),
        (most_lines_of_segments, SEGMENTS),
        (deep_summaries, SEGMENTS),
    ],
)
def test_the_largest_outputs_fit_into_the_functions_that_read_them(
    made: Callable[[], Pieces], reader: tuple[str, ...], tmp_path: Path
) -> None:
    output = tmp_path / "output.tar.gz"
    with gzip.open(output, "wb", compresslevel=1) as packed:
        if reader is FULL:
            packed.writelines(file("evidence/summary.json", SUMMARY))
        packed.writelines(made())
        packed.write(b"\0" * 1024)
    size = str(output.stat().st_size)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(output), size, *reader],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    ended, megabytes, seconds = json.loads(done.stdout)

    assert "read" == ended
    assert megabytes < MEGABYTES / SHARE
    assert seconds / min(MEGABYTES / ONE_PROCESSOR, 1) < SECONDS / SHARE


def test_a_bound_is_what_it_was_measured_with() -> None:
    assert BOUNDS == {name: getattr(job_outputs, name) for name in BOUNDS}
