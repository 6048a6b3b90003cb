"""Reads the evidence in a job's output tarball.

What a job left is its own word: it is taken by value (compilegate/domain/outside.py) and within
bounds, and whatever is wrong with it is an InvalidEvidenceError.
"""

from __future__ import annotations

import json
import logging
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BufferedIOBase, BufferedReader, RawIOBase
from typing import IO, TYPE_CHECKING, Any

from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.failures import COMPLETED, ENDED
from compilegate.domain.job_output import (
    FULL,
    STEPS,
    SUMMARY,
    JobOutput,
    Steps,
    is_evidence,
    kept_run,
    output_uri,
    paired_runs,
    quality_run,
    speed_runs,
)
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.outside import BROKEN, once, read_json, shorten
from compilegate.domain.production.attempts import JobEvidence
from compilegate.domain.workload.quality import Quality

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from compilegate.adapters.stores import Fetched


# Goes through a job's output tarball from front to back, within bounds, keeping nothing.
#
# The tarball is a training job's own, so every size, name and header in it may be false.
# ``tarfile`` reads one header block at a time; what a header announces is refused before it is
# read, where that module would read it whole (a long name) or keep it (a sparse map, every member).
# It is unpacked by zlib alone, to its end, checksum included: ``gzip`` would go through a name or
# parts without end.

# Bytes. The reader has five minutes and a gigabyte of memory: a stream of this size goes
# through in less than two minutes.
LARGEST_OUTPUT, LARGEST_UNPACKED = 4 * 2**30, 16 * 2**30
# So many headers are read in five seconds of a processor, of which the reader has half.
MOST_FILES = 200_000
# Bytes of a header that carries a name, four times Linux's longest path (PATH_MAX of limits.h), and
# how many such headers a file may have: name, link, attributes of its own and of all files.
LONGEST_HEADER, MOST_HEADERS = 16 * 2**10, 4
# Bytes of all such headers.
LARGEST_HEADERS = 32 * 2**20
# Streams of gzip that follow each other; a packer that works in parallel writes one per megabyte.
MOST_PARTS = 50_000
AT_ONCE, PACKED_AT_ONCE = 2**18, 2**16
DIGITS = 6  # of the length of a record of attributes, with the space behind it
GZIP = 16 + zlib.MAX_WBITS  # as zlib takes it: with header and checksum
END = b"\0" * tarfile.BLOCKSIZE
_NAME = tarfile.GNUTYPE_LONGNAME
_ATTRIBUTES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENDS = (_NAME, tarfile.GNUTYPE_LONGLINK, tarfile.XGLTYPE, *_ATTRIBUTES)


@dataclass
class ArchivedFile:
    """One file of an archive; its content can be read until the next one is asked for."""

    name: str
    size: int
    _stream: BufferedIOBase
    _left: int

    def content(self) -> bytes:
        """All of it."""
        self._left -= self.size
        return _exactly(self._stream, self.size)

    def lines(self, longest: int) -> Iterator[bytes]:
        """Its lines; one that is longer comes in pieces."""
        while self._left > 0:
            line = self._stream.readline(min(longest, self._left))
            if not line:
                raise EOFError("it ends within a file")
            self._left -= len(line)
            yield line

    def skip(self) -> None:
        """Go past what of it was not read."""
        self._left += -self.size % tarfile.BLOCKSIZE
        while self._left > 0:
            self._left -= len(_exactly(self._stream, min(self._left, AT_ONCE)))


class _Unzipped(RawIOBase):
    """The content of gzip streams that follow each other, with zeros behind them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._packed = stream, b""
        self._part, self._parts = zlib.decompressobj(GZIP), 1

    def readable(self) -> bool:
        """It can be read, once and forwards."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the buffer as far as one step goes; raises EOFError where the stream is cut."""
        room = memoryview(buffer)
        while not self._part.eof or self._next_part():
            content = self._part.decompress(self._packed, len(room))
            self._packed = self._part.unconsumed_tail
            if content:
                room[: len(content)] = content
                return len(content)
            if not self._part.eof:  # all that was read has been taken
                self._packed = self._stream.read(PACKED_AT_ONCE)
                if not self._packed:
                    raise EOFError("it ends within its compressed stream")
        return 0

    def _next_part(self) -> bool:
        """Begin the stream behind the one that has ended, if there is one."""
        packed = self._part.unused_data
        while not (begun := packed.lstrip(b"\0")):
            packed = self._stream.read(PACKED_AT_ONCE)
            if not packed:
                return False
        self._packed, self._part = begun, zlib.decompressobj(GZIP)
        self._parts += 1
        bound("the job's output", self._parts, MOST_PARTS, unit="compressed parts")
        return True


def files(stream: IO[bytes], size: int) -> Iterator[ArchivedFile]:
    """The plain files of a tarball of ``size`` bytes.

    Raises InvalidEvidenceError for what is too large, TarError, EOFError, OSError, ValueError or
    zlib.error for what is broken; so does reading a file.
    """
    bound("the job's output", size, LARGEST_OUTPUT)
    unpacked = count = 0
    unzipped = BufferedReader(_Unzipped(stream), AT_ONCE)
    headers = _Headers(unzipped)
    while (member := headers.next()) is not None:
        count, unpacked = count + 1, unpacked + member.size
        bound("the job's output, unpacked,", unpacked, LARGEST_UNPACKED)
        bound("the job's output", count, MOST_FILES, unit="files")
        file = ArchivedFile(member.name.removeprefix("./"), member.size, unzipped, member.size)
        if member.isreg():
            yield file
        file.skip()
    while padding := unzipped.read(AT_ONCE):
        unpacked += len(padding)
        bound("the job's output, unpacked,", unpacked, LARGEST_UNPACKED)
        if padding.strip(b"\0"):
            raise tarfile.ReadError("it goes on behind its end")


def bound(what: str, size: int, most: int, *, unit: str = "bytes") -> None:
    """Raises InvalidEvidenceError where ``size`` is more than ``most``."""
    if size > most:
        raise InvalidEvidenceError(
            f"{what} has {size} {unit}, and {most} can be gone through",
            fix="write checkpoints to /opt/ml/checkpoints and models to SM_MODEL_DIR, not to "
            "the output folder",
        )


@dataclass
class _Headers:
    """The headers of an archive; ``_size`` is that of names and attributes so far."""

    _stream: BufferedIOBase
    _size: int = 0

    def next(self) -> tarfile.TarInfo | None:
        """The next member with its real name and size, None at the end."""
        own: dict[str, str] = {}
        for _ in range(MOST_HEADERS + 1):
            block = self._stream.read(tarfile.BLOCKSIZE)
            if block == END and not own:
                return None
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            if header.type not in _EXTENDS:
                return _completed(header, own)
            text = self._text(header.size)
            if header.type == _NAME:
                own["path"] = text.partition(b"\0")[0].decode(errors="surrogateescape")
            elif header.type in _ATTRIBUTES:
                own |= _attributes(text)
        raise tarfile.ReadError(f"a file has more than {MOST_HEADERS} headers")

    def _text(self, size: int) -> bytes:
        if not 0 < size <= LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes is none")
        self._size += size
        bound("names and attributes in the job's output", self._size, LARGEST_HEADERS)
        return _exactly(self._stream, size + -size % tarfile.BLOCKSIZE)[:size]


def _completed(member: tarfile.TarInfo, own: dict[str, str]) -> tarfile.TarInfo:
    """The member with what the headers before it say."""
    member.name = own.get("path", member.name)
    member.size = int(own.get("size", member.size))
    if member.type in tarfile.SUPPORTED_TYPES and not member.isreg():
        member.size = 0  # links and folders have no content, whatever they say
    sparse = member.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sp") for key in own)
    if sparse or member.size < 0:
        raise tarfile.ReadError("it has a sparse file, or one of a negative size")
    return member


def _attributes(text: bytes) -> dict[str, str]:
    """The records of a header of attributes, ``length key=value`` and a line break (POSIX pax)."""
    attributes: dict[str, str] = {}
    begin, end = 0, len(text.rstrip(b"\0"))
    while begin < end:
        length = int(text[begin : text.find(b" ", begin, begin + DIGITS)])
        record = text[begin : begin + length]
        key, _, value = record.partition(b" ")[2].partition(b"=")
        if not (value.endswith(b"\n") and len(record) == length):
            raise tarfile.ReadError("a header has a record that is none")
        attributes[key.decode(errors="replace")] = value[:-1].decode(errors="surrogateescape")
        begin += length
    return attributes


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    """So many bytes; raises EOFError where there are fewer."""
    content = stream.read(size)
    if len(content) < size:
        raise EOFError("it ends too early")
    return content


# Bytes of one summary, of all of an output, of all its steps, and of a line. A recorder's summary
# has 20 KB, a speed job a hundred of them, and its steps stay below 100 MB
# (training/compilegate_runtime/evidence.py).
LARGEST_SUMMARY, LARGEST_SUMMARIES = 2**20, 2**22
LARGEST_STEPS, LONGEST_LINE = 2**29, 2**16
# Lines of all steps files: three times a recorder's, 64 MB as they are kept.
MOST_LINES = 2_000_000
# Lines of all segments, whose seconds are evidence one by one, and files of evidence: a speed job
# leaves some thousand lines and a hundred files.
MOST_SEGMENT_LINES = 200_000
MOST_EVIDENCE = 10_000
EVIDENCE = "files of evidence"
WHOLE_RUNS = (FULL.removesuffix(SUMMARY) + STEPS, "evidence/run-")
# What of a summary is read; the rest is a team's to look at, and not kept.
READ = frozenset({
    "schema", "seed", "finished", "compiler", "metrics", "outcomes", "fingerprint", "equivalence",
    "numerics", "initial_loss", "initial_weights_sha256", "final_weights_sha256",
    "final_start_sha256", "peak_memory_gib", "reason", "wall_seconds", "steps", "seconds",
    "full_run_steps", "examining", "profile", "process_seconds", "evaluations",
    "compile_bundle",
})  # fmt: skip
logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class StoredOutputs:
    """JobOutputs in S3; ``fetch`` gives objects by their s3:// URIs, as S3Store does."""

    fetch: Callable[[str], Fetched]

    def segments(self, uri: str, job: str) -> Sequence[tuple[str, SpeedRun]]:
        return tuple(speed_runs(self._left(uri), job=job))

    def full_run(self, uri: str, job: str, quality: Quality) -> FullRun:
        return quality_run(self._left(uri), job=job, quality=quality)

    def paired_runs(
        self, uri: str, job: str, quality: Quality
    ) -> Mapping[tuple[int, str], FullRun]:
        return paired_runs(self._left(uri), job=job, quality=quality)

    def production_run(self, described: Mapping[str, Any], quality: Quality) -> JobEvidence:
        status = described.get("TrainingJobStatus")
        if status not in ENDED:
            return JobEvidence()
        evidence = self._kept(described, quality)
        if status == COMPLETED:
            return evidence
        return JobEvidence(ended_examined=evidence.result.get("examining") is True)

    def _kept(self, described: Mapping[str, Any], quality: Quality) -> JobEvidence:
        try:
            return JobEvidence(kept_run(self._read(output_uri(described)), described, quality))
        except NotFoundError as error:
            return JobEvidence(problem=f"it left no evidence that can be read: {error}")
        except (InvalidEvidenceError, *BROKEN) as error:
            # Whatever it left, the run is recorded: an error that no reader foresaw is ours to see.
            if not isinstance(error, InvalidEvidenceError):
                logger.exception("no evidence of %s", described["TrainingJobName"])
            return JobEvidence(problem=f"its evidence cannot be read: {shorten(str(error))}")

    def _left(self, uri: str) -> JobOutput:
        """What a job left there, which may be nothing."""
        try:
            return self._read(uri)
        except NotFoundError:
            return JobOutput()

    def _read(self, uri: str) -> JobOutput:
        stored = self.fetch(uri)
        return replace(read_output(stored.stream, stored.size), identity=stored.identity)


def read_output(stream: IO[bytes], size: int) -> JobOutput:
    """Read an output tarball of ``size`` bytes from front to back, keeping the evidence only.

    Raises InvalidEvidenceError for a tarball or a summary that is broken, and for an output, or
    a part of it, that is too large to be gone through.
    """
    try:
        return _evidence(files(stream, size))
    except (tarfile.TarError, EOFError, zlib.error, *BROKEN) as error:
        why = shorten(str(error)) or type(error).__name__
        raise InvalidEvidenceError(f"the job's output is broken: {why}") from error


def _evidence(archived: Iterable[ArchivedFile]) -> JobOutput:
    summaries: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, Steps] = {}
    summaries_size = steps_size = lines = 0
    for file in archived:
        folder, slash, name = file.name.rpartition("/")
        if name not in (SUMMARY, STEPS) or not is_evidence(f"{folder}{slash}{SUMMARY}"):
            continue
        if file.name in summaries or file.name in steps:
            raise InvalidEvidenceError(f"{file.name} occurs twice in the job's output")
        bound("the job's output", len(summaries) + len(steps) + 1, MOST_EVIDENCE, unit=EVIDENCE)
        if name == SUMMARY:
            summaries_size += file.size
            bound(file.name, file.size, LARGEST_SUMMARY)
            bound("all summaries", summaries_size, LARGEST_SUMMARIES)
            summary = read_json(file.content(), file.name)
            if not isinstance(summary, dict) or summary.get("schema") != 1:
                raise InvalidEvidenceError(f"{file.name} is not evidence of schema 1")
            summaries[file.name] = {key: value for key, value in summary.items() if key in READ}
        else:
            steps_size += file.size
            bound(file.name, steps_size, LARGEST_STEPS)
            is_full = file.name.startswith(WHOLE_RUNS)
            most = MOST_LINES if is_full else MOST_SEGMENT_LINES
            steps[file.name] = read_steps(file.lines(LONGEST_LINE), most - lines)
            lines += len(steps[file.name].seconds)
    return JobOutput(summaries, steps)


def read_steps(lines: Iterable[bytes], most: int = MOST_LINES) -> Steps:
    """Step lines; one that is cut short, as by a killed job, or overlong ends them.

    Raises InvalidEvidenceError where there are more than ``most``, or a key occurs twice.
    """
    steps, read = Steps(), json.JSONDecoder(object_pairs_hook=once).decode
    for number, line in enumerate(lines, start=1):
        bound("all steps", number, most, unit="lines")
        try:
            steps.add(read(line.decode(json.detect_encoding(line), "surrogatepass")))
        except (ValueError, TypeError, RecursionError):
            break
    return steps
