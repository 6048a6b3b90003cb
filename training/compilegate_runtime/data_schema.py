"""Which columns the data has: a job that is fed other columns is no longer what was measured."""

import csv
import hashlib
import itertools
import json

# A key that is optional shows within so many lines; more would delay the first step.
LINES = 1000


def data_schema_digest(folders):
    """SHA-256 over names and types of the columns of every channel's first file of each kind.

    Read are CSV (names, or how many columns where the first line holds none), JSON lines and
    parquet; None where no channel has any of them, or one cannot be read.
    """
    found = {}
    for channel, folder in sorted(folders.items()):
        for suffix, columns in COLUMNS.items():
            files = sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file())
            if files:
                try:
                    found[f"{channel}{suffix}"] = columns(files[0])
                except Exception:  # noqa: BLE001 - a fingerprint must not stop a training job
                    return None
    text = json.dumps(found, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest() if found else None


def csv_columns(path):
    """Names of the first line; their number where it holds a number, as data without a head do."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = next(csv.reader(file), [])
    return len(first) if any(_is_number(cell) for cell in first) else first


def json_columns(path):
    """Types by key over the first lines; a missing value says nothing of its type."""
    types = {}
    with path.open(encoding="utf-8") as file:
        for line in itertools.islice(file, LINES):
            row = json.loads(line) if line.strip() else {}
            for key, value in row.items() if isinstance(row, dict) else ():
                types.setdefault(key, set()).update(() if value is None else {_kind(value)})
    return {key: sorted(kinds) for key, kinds in types.items()}


def parquet_columns(path):
    """Names and types as the file's schema has them."""
    import pyarrow.parquet  # noqa: PLC0415 - only a job that reads parquet has it

    return {column.name: str(column.type) for column in pyarrow.parquet.read_schema(path)}


def _kind(value):
    """JSON does not tell 1 from 1.0."""
    return "number" if type(value) in (int, float) else type(value).__name__


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


COLUMNS = {
    ".csv": csv_columns,
    ".jsonl": json_columns,
    ".parquet": parquet_columns,
}
