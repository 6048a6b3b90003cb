"""Fetches the code of a workload's newest job, and reads its script without running it."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compilegate.adapters.stores import error_code
from compilegate.domain.errors import CompilegateError
from compilegate_discover.grouping import Group
from compilegate_discover.proposal import Code
from compilegate_init.project import described

MOST_BYTES, MOST_UNPACKED, MOST_FILES = 50_000_000, 200_000_000, 5_000
SOURCES = "source"


def fetch(group: Group, name: str, folder: Path, s3: Any) -> Code | str:
    """The code below ``folder``, or why there is none."""
    job = group.newest
    script, place = job.setup.program, folder / SOURCES / name
    try:
        file = _script(place, script)
        if not place.exists():
            unpack(_bundle(job.source, s3), place)
        return Code(f"{SOURCES}/{name}", script, described(file))
    except (ClientError, BotoCoreError) as error:
        return f"s3:GetObject of {job.source} failed ({error_code(error) or error})"
    except (tarfile.TarError, EOFError, OSError, ValueError, CompilegateError) as error:
        return str(error)


def _script(place: Path, script: str) -> Path:
    if not script.endswith(".py"):
        raise ValueError("the job names no Python script")
    if not (place / script).resolve().is_relative_to(place.resolve()):
        raise ValueError("the job's script lies outside its bundle")
    return place / script


def _bundle(source: str, s3: Any) -> bytes:
    bucket, _, key = source.removeprefix("s3://").partition("/")
    if not source.startswith("s3://") or not key.endswith(".tar.gz"):
        raise ValueError("the job names no bundle (sourcedir.tar.gz)")
    body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError(f"the bundle has more than {MOST_BYTES // 10**6} MB")
    return body


def unpack(body: bytes, place: Path) -> None:
    """Unpack files and folders that stay inside ``place``; raises ValueError for too much."""
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as bundle:
        members: list[tarfile.TarInfo] = []
        size = 0
        for member in bundle:
            members.append(member)
            size += member.size
            if len(members) > MOST_FILES or size > MOST_UNPACKED:
                raise ValueError("the bundle is larger than code is")
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as fresh:
            bundle.extractall(Path(fresh) / "code", members, filter="data")
            (Path(fresh) / "code").rename(place)
