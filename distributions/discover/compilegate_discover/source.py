"""Fetches the code of a workload's newest job, and reads its script without running it.

The SageMaker SDK's estimators and its version 2 pack the code into a bundle. The ModelTrainer of
version 3 lays its files below a channel named ``code``, and what starts them below ``sm_drivers``:
``sourcecode.json`` there has the arguments of its ``SourceCode`` (sagemaker.train.model_trainer).
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compilegate.adapters.stores import error_code
from compilegate.domain.errors import CompilegateError
from compilegate_discover.grouping import Group
from compilegate_discover.job import Job
from compilegate_discover.proposal import Code
from compilegate_init.project import described

MOST_BYTES, MOST_UNPACKED, MOST_FILES = 50_000_000, 200_000_000, 5_000
SOURCES = "source"
PACKED, STARTED = ".tar.gz", "sourcecode.json"
TOO_LARGE = "the job's code is larger than code is"


def fetch(group: Group, name: str, folder: Path, s3: Any) -> Code | str:
    """The code below ``folder``, or why there is none."""
    job = group.newest
    place = folder / SOURCES / name
    try:
        script = job.setup.program or _started_script(job, s3)
        file = _script(place, script)
        if not place.exists():
            with _fresh(place) as fresh:
                if job.source.endswith(PACKED):
                    unpack(_object(job.source, s3), fresh)
                else:
                    _download(job.source, fresh, s3)
        return Code(f"{SOURCES}/{name}", script, described(file))
    except (ClientError, BotoCoreError) as error:
        return f"{job.source} cannot be read ({error_code(error) or error})"
    except (tarfile.TarError, EOFError, OSError, ValueError, CompilegateError) as error:
        return str(error)


def _started_script(job: Job, s3: Any) -> str:
    """What the SDK's version 3 starts, empty where it names no Python script."""
    if not job.drivers:
        return ""
    document = json.loads(_object(f"{job.drivers.rstrip('/')}/{STARTED}", s3))
    arguments = document if isinstance(document, dict) else {}
    words = str(arguments.get("command") or arguments.get("entry_script")).split()
    return next((word for word in words if word.endswith(".py")), "")


def _script(place: Path, script: str) -> Path:
    if not script.endswith(".py"):
        raise ValueError("the job names no Python script")
    if not (place / script).resolve().is_relative_to(place.resolve()):
        raise ValueError("the job's script lies outside its bundle")
    return place / script


@contextmanager
def _fresh(place: Path) -> Iterator[Path]:
    """A folder that takes its place once it is whole."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as fresh:
        folder = Path(fresh) / "code"
        folder.mkdir()
        yield folder
        folder.rename(place)


def _split(uri: str) -> tuple[str, str]:
    """Bucket and key; ValueError for a place that is not in S3."""
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise ValueError("the job names no code in S3")
    return bucket, key


def _object(uri: str, s3: Any, most: int = MOST_BYTES) -> bytes:
    bucket, key = _split(uri)
    body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read(most + 1)
    if len(body) > most:
        raise ValueError(TOO_LARGE)
    return body


def _download(source: str, folder: Path, s3: Any) -> None:
    """Copy the objects below a prefix that stay inside the folder."""
    bucket, key = _split(source)
    prefix, left = f"{key.rstrip('/')}/", MOST_BYTES
    keys = [*islice(_keys(bucket, prefix, s3), MOST_FILES + 1)]
    if not 0 < len(keys) <= MOST_FILES:
        raise ValueError(TOO_LARGE if keys else f"there is no code below {source}")
    for name in keys:
        file = folder / name.removeprefix(prefix)
        if not file.resolve().is_relative_to(folder.resolve()):
            raise ValueError("a file of the job's code lies outside its folder")
        body = _object(f"s3://{bucket}/{name}", s3, left)
        left -= len(body)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)


def _keys(bucket: str, prefix: str, s3: Any) -> Iterator[str]:
    """Keys below a prefix, without those that stand for a folder."""
    request = {"Bucket": bucket, "Prefix": prefix}
    while True:
        answer = s3.list_objects_v2(**request)
        keys = (item["Key"] for item in answer.get("Contents", ()))
        yield from (key for key in keys if not key.endswith("/"))
        if not answer.get("NextContinuationToken"):
            return
        request["ContinuationToken"] = answer["NextContinuationToken"]


def unpack(body: bytes, folder: Path) -> None:
    """Unpack files and folders that stay inside ``folder``; raises ValueError for too much."""
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as bundle:
        members: list[tarfile.TarInfo] = []
        size = 0
        for member in bundle:
            members.append(member)
            size += member.size
            if len(members) > MOST_FILES or size > MOST_UNPACKED:
                raise ValueError(TOO_LARGE)
        bundle.extractall(folder, members, filter="data")
