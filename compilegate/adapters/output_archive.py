"""Goes through a job's output tarball from front to back, within bounds, keeping nothing.

The tarball is a training job's own, so every size, name and header in it may be false. ``tarfile``
reads one header block at a time; what a header announces is refused before it is read, where that
module would read it whole (a long name) or keep it (a sparse map, every member).
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from gzip import GzipFile
from io import BufferedIOBase
from typing import IO

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.problem import ProblemWithFix

# Bytes. The reader has five minutes and a gigabyte of memory: a stream of this size goes
# through in less than two minutes.
LARGEST_OUTPUT, LARGEST_UNPACKED = 4 * 2**30, 16 * 2**30
# A million headers are read in half a minute.
MOST_FILES = 1_000_000
# Bytes of a header that carries a name, four times Linux's longest path (PATH_MAX of limits.h), and
# how many such headers a file may have: name, link, attributes of its own and of all files.
LONGEST_HEADER, MOST_HEADERS = 16 * 2**10, 4
AT_ONCE = 2**18
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


def files(stream: IO[bytes], size: int) -> Iterator[ArchivedFile]:
    """The plain files of a tarball of ``size`` bytes.

    Raises InvalidEvidenceError for what is too large, TarError, EOFError, OSError, ValueError or
    zlib.error for what is broken; so does reading a file.
    """
    bound("the job's output", size, LARGEST_OUTPUT)
    unpacked = count = 0
    with GzipFile(fileobj=stream) as unzipped:
        while (member := _header(unzipped)) is not None:
            count, unpacked = count + 1, unpacked + member.size
            bound("the job's output, unpacked,", unpacked, LARGEST_UNPACKED)
            bound("the job's output", count, MOST_FILES, unit="files")
            file = ArchivedFile(member.name.removeprefix("./"), member.size, unzipped, member.size)
            if member.isreg():
                yield file
            file.skip()


def bound(what: str, size: int, most: int, *, unit: str = "bytes") -> None:
    """Raises InvalidEvidenceError where ``size`` is more than ``most``."""
    if size > most:
        raise InvalidEvidenceError(
            ProblemWithFix(
                f"{what} has {size} {unit}, and {most} can be gone through",
                fix="write checkpoints to /opt/ml/checkpoints and models to SM_MODEL_DIR, not to "
                "the output folder",
            )
        )


def _header(stream: BufferedIOBase) -> tarfile.TarInfo | None:
    """The next member with its real name and size, None at the end."""
    own: dict[str, str] = {}
    for _ in range(MOST_HEADERS + 1):
        block = stream.read(tarfile.BLOCKSIZE)
        if block == END and not own:
            return None
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if header.type not in _EXTENDS:
            return _completed(header, own)
        if not 0 < header.size <= LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {header.size} bytes is none")
        text = _exactly(stream, -(-header.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
        text = text[: header.size]
        if header.type == _NAME:
            own["path"] = text.partition(b"\0")[0].decode(errors="surrogateescape")
        elif header.type in _ATTRIBUTES:
            own |= _attributes(text)
    raise tarfile.ReadError(f"a file has more than {MOST_HEADERS} headers")


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
    while text.strip(b"\0"):
        length = int(text.partition(b" ")[0])
        key, equals, value = text[:length].partition(b" ")[2].partition(b"=")
        if not (equals and value.endswith(b"\n") and 0 < length <= len(text)):
            raise tarfile.ReadError("a header has a record that is none")
        attributes[key.decode(errors="replace")] = value[:-1].decode(errors="surrogateescape")
        text = text[length:]
    return attributes


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    """So many bytes; raises EOFError where there are fewer."""
    content = stream.read(size)
    if len(content) < size:
        raise EOFError("it ends too early")
    return content
