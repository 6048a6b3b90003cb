"""Property tests whose examples are expensive, and what breaks whatever comes from outside.

A case follows from its target's name, ``FUZZ_SEED`` and its number alone. A few of each target run
with the other tests; ``make fuzz`` runs ``FUZZ_CASES`` of them in all.
"""

from __future__ import annotations

import copy
import gzip
import json
import math
import os
import random
import signal
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, settings

SEED = os.environ.get("FUZZ_SEED", "1")
CASES = int(os.environ.get("FUZZ_CASES", "0"))
# Seconds of processor time: another program's load is no hang.
LONGEST = 2.0
# What no reader of a document may take for a figure, or stumble over.
BROKEN = [
    None, -1, 0, -0.0, 1e-300, 1e14, 1e308, 10**30, 10**400, -(10**400), 2**63, 2**64 + 1, "", "x",
    "0.9", "baseline", "none", [], {}, [[]], {"": None}, True, False, math.nan, math.inf, -math.inf,
    "\ud800", "\x1b[31m", "\u202e", "\x00", "<!channel>", "x" * 5000, "9" * 5000,
    json.loads("[" * 200 + "]" * 200),
]  # fmt: skip


def at_most(examples: int) -> settings:
    """As many examples as the profile asks for, but no more than this."""
    return settings(
        max_examples=min(examples, settings.default.max_examples),
        suppress_health_check=list(HealthCheck),
    )


class HangError(Exception):
    """A case that took longer than any may."""


@dataclass(frozen=True)
class Target:
    """``attempt`` makes a case of chance and tries it; it raises for what must not happen.

    ``share`` of all cases are its own; ``quick`` run with the other tests.
    """

    name: str
    attempt: Callable[[random.Random], None]
    share: float
    quick: int

    @property
    def cases(self) -> int:
        """How many are tried."""
        return round(self.share * CASES) or self.quick


def run(target: Target) -> str:
    """Try every case; returns how many there were, and how many a second.

    Raises AssertionError for the first that fails, with what repeats it.
    """
    began = time.monotonic()
    for number in range(target.cases):
        repeated(target, number)
    seconds = max(time.monotonic() - began, 1e-9)
    rate = f"{target.cases / seconds:,.0f} a second"
    return f"{target.name}: {target.cases:,} cases, {rate}"


def repeated(target: Target, number: int) -> None:
    """One case, by its number."""
    chance = random.Random(f"{SEED} {target.name} {number}")
    try:
        with within(LONGEST):
            target.attempt(chance)
    except Exception as error:
        where = f'fuzzing.repeated(TARGETS["{target.name}"], {number})  # FUZZ_SEED={SEED}'
        raise AssertionError(f"{where}: {type(error).__name__}: {error!s:.500}") from error


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises HangError after so many seconds of this process's time."""

    def give_up(_number: int, _frame: object) -> None:
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every key and index; of a long list of numbers only the first and the last."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = [0, len(value) - 1] if len(value) > 20 else list(range(len(value)))
    own = [(*path, key) for key in keys]
    return own + [deeper for place in own for deeper in places(value[place[-1]], place)]


def corrupt(doc: Any, place: tuple[Any, ...], how: str, value: object) -> None:
    """Drop, repeat, negate or set one place; raises where an earlier fault took it away."""
    target = doc
    for key in place[:-1]:
        target = target[key]
    if how == "drop":
        del target[place[-1]]
    elif how == "repeat" and isinstance(target, list):
        target.append(copy.deepcopy(target[place[-1]]))
    elif how == "negate" and isinstance(target[place[-1]], int | float):
        target[place[-1]] = -target[place[-1]]
    else:
        target[place[-1]] = copy.deepcopy(value)


def broken(
    doc: Any, chance: random.Random, spared: frozenset[Any] = frozenset(), most: int = 3
) -> Any:
    """A copy with up to ``most`` faults; keys of ``spared`` stay as they are."""
    doc = json.loads(json.dumps(doc))
    own = [place for place in places(doc) if not spared & set(place)]
    for _ in range(chance.randint(1, most)):
        how = chance.choice(("drop", "repeat", "negate", "set", "set", "set"))
        try:
            corrupt(doc, chance.choice(own), how, chance.choice(BROKEN))
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return json.loads(json.dumps(doc))  # which has no keys but text


def torn(text: bytes, chance: random.Random) -> bytes:
    """The bytes with up to three holes, bytes of chance, or a part of theirs repeated."""
    body = bytearray(text)
    for _ in range(chance.randint(1, 3)):
        start = chance.randint(0, len(body))
        end = min(len(body), start + chance.choice((0, 1, 1, 8, 64, 1024)))
        filling = chance.choice((b"", chance.randbytes(end - start or 1), bytes(body[:end]), b"\0"))
        body[start:end] = filling
    return bytes(body)


def archived(files: dict[str, bytes], chance: random.Random) -> bytes:
    """A tarball of these files, of which something is wrong in a place of chance."""
    blocks = b"".join(map(_member, *zip(*files.items(), strict=True), [chance] * len(files)))
    body = blocks + b"\0" * 1024
    if chance.random() < 0.3:
        body = torn(body, chance)
    packed = gzip.compress(body, 1)
    return torn(packed, chance) if chance.random() < 0.1 else packed


_TYPES = [bytes([kind]) for kind in b"0\x001234567LKSxgXVDM?"]
_NUMBERS = [
    b"\x80" + b"\xff" * 11, b"\xff" * 12, b"77777777777\0", b"abc", b"-0000000001\0", b"\0" * 12,
]  # fmt: skip
_RECORDS = [
    b"11 size=99\n", b"14 size=-1000\n", b"18 path=evidence/\n", b"0 a=b\n", b"-5 a=b\n",
    b"9 path=", b"22 GNU.sparse.major=1\n", b"22 GNU.sparse.minor=0\n", b"99999 path=x\n",
    b"12 path=\xff\xfe\n", b"27 GNU.sparse.map=0,99999\n",
]  # fmt: skip
# Fields of a header by where they begin (POSIX ustar), and what may stand there.
_FIELDS = ((124, _NUMBERS), (156, _TYPES), (136, _NUMBERS), (0, [b"/" * 100]))


def _member(name: str, content: bytes, chance: random.Random) -> bytes:
    header = bytearray(_header(name, len(content)))
    if chance.random() < 0.4:
        at, values = chance.choice(
            ((124, _NUMBERS), (156, _TYPES), (136, _NUMBERS), (0, [b"/" * 100]))
        )
        value = chance.choice(values)
        header[at : at + len(value)] = value
        if chance.random() < 0.9:
            header[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(header))[0]
    before = b""
    while chance.random() < 0.2:
        records = b"".join(chance.choices(_RECORDS, k=chance.randint(1, 4)))
        kind = chance.choice((tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME))
        before += _header("h", len(records), kind) + _padded(records)
    return before + bytes(header) + _padded(content)


def _header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 512)
