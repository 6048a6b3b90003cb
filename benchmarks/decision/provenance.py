"""What decides: the judge's own code and all that it loads, and the name of it beside results."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tools.archive_judge import judge_of

REPOSITORY = Path(__file__).resolve().parents[2]
SHOWN = 8


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over places and contents."""
    total = hashlib.sha256()
    for place, content in sorted(files.items()):
        total.update(f"{place}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


@cache
def judge_name(checkout: Path = REPOSITORY) -> str:
    """The judge's version, and a digest of the code that decides: results name what they are of.

    Comments, layout and texts for people are left out: no decision depends on them.
    """
    version, files = judge_of(checkout)
    own = {place: deciding(source) for place, source in files.items()}
    return f"{version} ({digest(own)[:SHOWN]})"


def deciding(source: bytes) -> bytes:
    """What of a file's source decides: all but comments, layout and texts for people."""
    return "\n".join(_tokens(source)).encode()


def _tokens(source: bytes) -> Iterator[str]:
    """The tokens of a file without comments, line breaks within brackets, and strings of words.

    A string with a blank in it is one of words. Python 3.12 and later take an f-string apart; it
    is put together again, so that every release of Python gives the same tokens.
    """
    lines = source.decode().splitlines(keepends=True)
    depth, start = 0, (0, 0)
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        name, text = tokenize.tok_name[token.type], token.string
        if name == "FSTRING_START":
            depth, start = depth + 1, start if depth else token.start
        elif name == "FSTRING_END":
            depth -= 1
            text = _between(lines, start, token.end)
        if depth or name in ("COMMENT", "NL", "ENCODING"):
            continue
        if name in ("INDENT", "DEDENT", "NEWLINE"):
            yield name
        elif name not in ("STRING", "FSTRING_END") or " " not in text:
            yield text


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Source from one place to another; rows from 1, columns from 0."""
    whole = lines[start[0] - 1 : end[0]]
    whole[-1] = whole[-1][: end[1]]
    whole[0] = whole[0][start[1] :]
    return "".join(whole)
