"""Reads a channel's rows, one after the other, as dictionaries.

Parquet, JSON lines and CSV rows have the columns of their file; a text file's lines have one,
``text``. Only the current row (of parquet, a batch of rows) is in memory.
"""

import csv
import json
import sys

from compilegate_runtime import environment
from compilegate_runtime.errors import DataError

PARQUET_ROWS = 1024


def rows(channel):
    """Every row of every file of a channel, by file name.

    Raises DataError where the channel has no file that can be read.
    """
    folder = environment.channel(channel)
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in READERS]
    if not files:
        raise DataError(
            f"input channel {channel!r} ({folder}) holds no file ending in {', '.join(READERS)}"
        )
    for path in files:
        try:
            yield from READERS[path.suffix.lower()](path)
        except (ValueError, csv.Error) as error:
            raise DataError(f"{path} cannot be read: {error}") from error


def column(row, name, knob):
    """The value of a column. Raises DataError naming the columns there are."""
    if name in row and row[name] is None:
        raise DataError(f"a row has no value in column {name!r}: {row}; leave such rows out")
    if name not in row:
        raise DataError(
            f"a row has no column {name!r} but {', '.join(sorted(map(str, row)))}; name the right "
            f"one with --{knob}"
        )
    return row[name]


def _parquet(path):
    import pyarrow.parquet  # noqa: PLC0415 — only parquet channels need it

    with pyarrow.parquet.ParquetFile(str(path)) as file:
        for batch in file.iter_batches(PARQUET_ROWS):
            yield from batch.to_pylist()


def _json_lines(path):
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise DataError(f"{path} is not JSON lines: each line must be an object")
                yield row


def _csv(path):
    csv.field_size_limit(sys.maxsize)  # whole documents are longer than the default allows
    # With the mark that spreadsheets put at a file's beginning, or without.
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")


def _text(path):
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield {"text": line}


READERS = {
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".json": _json_lines,
    ".csv": _csv,
    ".tsv": _csv,
    ".txt": _text,
    ".text": _text,
    ".tokens": _text,  # WikiText's own ending
}
