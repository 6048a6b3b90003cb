"""What a run was made of; arms whose fingerprints differ in more than the change are invalid."""

import array
import csv
import hashlib
import itertools
import json
import os
import platform
import sys
from pathlib import Path

from compilegate_runtime import environment

# Larger files are identified by their size, first and last megabyte: a channel of terabytes
# must not delay the first step by hours.
WHOLE_FILE_BYTES = 64 * 2**20
EDGE_BYTES = 2**20
RUNTIME = "compilegate_runtime"
# A key that is optional shows within so many lines; more would delay the first step.
SCHEMA_LINES = 1000
SAMPLED = 4096  # values of a weight; a smaller one counts whole


def fingerprint(device, settings, source=None):
    """Everything that must be equal in both arms, the treatment left out.

    ``source`` is the folder of the code, that of the script that was started unless given.
    """
    facts = {
        "gpu": device.name if device.is_gpu else f"CPU {processor()}",
        "driver": _driver(),
        "torch": device.torch_version,
        "cuda": device.cuda_version,
        "image": os.environ.get("COMPILEGATE_IMAGE"),
        "code_sha256": code_digest(source or Path(sys.argv[0]).resolve().parent),
        "data_sha256": data_digest(environment.channels()),
        "data_schema_sha256": data_schema_digest(environment.channels()),
        "precision": settings.precision,
        "world_size": environment.world_size(),
        "global_batch": settings.batch_size * environment.world_size() or None,
    }
    if not device.is_gpu:
        facts["threads"] = device.threads
    return facts


def code_digest(folder):
    """SHA-256 over the names and contents of every Python file under the source folder.

    The recorder's own files are left out: they are not part of what the team trains.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if RUNTIME in path.relative_to(folder).parts:
            continue
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


def data_digest(folders):
    """SHA-256 over the files of all channels; None for a job without input."""
    digest = hashlib.sha256()
    for name, folder in sorted(folders.items()):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\0".encode())
            _add_file(digest, path)
    return digest.hexdigest() if folders else None


def file_digest(path):
    """SHA-256 of one file, a large one's by its size and edges."""
    digest = hashlib.sha256()
    _add_file(digest, path)
    return digest.hexdigest()


def _add_file(digest, path):
    size = path.stat().st_size
    digest.update(str(size).encode() + b"\0")
    with path.open("rb") as file:
        if size <= WHOLE_FILE_BYTES:
            for piece in iter(lambda: file.read(EDGE_BYTES), b""):
                digest.update(piece)
            return
        digest.update(file.read(EDGE_BYTES))
        file.seek(-EDGE_BYTES, os.SEEK_END)
        digest.update(file.read(EDGE_BYTES))


def processor():
    """Model name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _driver():
    try:
        first = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    words = first.split("Kernel Module", 1)[-1].split()
    return next((word for word in words if word[:1].isdigit()), first)


# ---- the data's columns -------------------------------------------------------------------


def data_schema_digest(folders):
    """SHA-256 over names and types of the columns of every channel's first file of each kind.

    Read are CSV (names, or how many columns where the first line holds none), JSON lines and
    parquet; None where no channel has any of them, or one cannot be read.
    """
    schema = {}
    for channel, folder in sorted(folders.items()):
        for suffix, columns in COLUMNS.items():
            files = sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file())
            if files:
                try:
                    schema[f"{channel}{suffix}"] = columns(files[0])
                except Exception:  # noqa: BLE001 - a fingerprint must not stop a training job
                    return None
    text = json.dumps(schema, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest() if schema else None


def csv_columns(path):
    """Names of the first line; their number where it holds a number, as data without a head do."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = next(csv.reader(file), [])
    return len(first) if any(_is_number(cell) for cell in first) else first


def json_columns(path):
    """Types by key over the first lines; a missing value has no type."""
    types = {}
    with path.open(encoding="utf-8") as file:
        for line in itertools.islice(file, SCHEMA_LINES):
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


# ---- initial weights ----------------------------------------------------------------------


class InitialWeights:
    """SHA-256 over the weights of the models that are added, before they train.

    A large tensor counts by some thousand values spread evenly over it: another seed, another
    pretrained file or a layer begun afresh changes them all, and a model of a billion weights
    takes a fraction of a second. Names are left out, so what wraps a model (torch.compile, DDP)
    does not matter; values are read as float32 on the processor, so a device does not either.
    """

    def __init__(self):
        self._digest, self._models, self._unknown = hashlib.sha256(), 0, False

    def add(self, model):
        """Count in a model's weights as they are now."""
        self._models += 1
        try:
            for weight in model.parameters():
                self._digest.update(str(tuple(weight.shape)).encode())
                self._digest.update(_sample(weight))
        except (RuntimeError, TypeError, ValueError):
            self._unknown = True  # no values yet, or of a kind that a processor cannot read

    def sha256(self):
        """The fingerprint, None without a model or where a weight could not be read."""
        return self._digest.hexdigest() if self._models and not self._unknown else None


def _sample(weight):
    flat = weight.detach().reshape(-1)
    # An odd step meets every column of a matrix whose width is a power of two.
    step = -(-flat.numel() // SAMPLED) | 1
    return array.array("f", flat[::step].float().cpu().tolist()).tobytes()
