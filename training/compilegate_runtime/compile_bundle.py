"""What a run compiled as one artefact: a trial leaves it, production restores it by its digest.

A bundle is a manifest, ``DIGEST.json``, and an archive for each process of the job. The manifest
says what the bundle was made for and has each archive's SHA-256; its own SHA-256 is its name, and
what a flag names. An archive has what ``torch.compiler.save_cache_artifacts`` (PyTorch 2.7) returns
in a process, and the libraries that a C++ compiler made, which that leaves out.

Loading compiled code is running it. So nothing is loaded but the bundle that the flag names, and
nothing of it before its digest was checked. Each process loads its archive into a folder that
nothing reads yet; then all say how it went. Unless all were successful none uses that folder, and
all compile from nothing: processes of which some find compiled code and others compile would wait
for each other, or compute with different kernels.
"""

import hashlib
import io
import json
import os
import platform
import tempfile
import time
import zipfile
from pathlib import Path, PurePosixPath

from compilegate_runtime import compile_cache, environment
from compilegate_runtime.progress import write_line

# What came of a bundle; the first three are also a process's own word.
ABSENT, MISMATCH, STALE, RANK_FAILED = "absent", "mismatch", "stale", "rank_failed"
RESTORED, SAVED = "restored", "saved"
PENDING = "pending"  # nothing was compiled yet
SCHEMA = 1
MOST_BYTES = 2**30  # of a process's archive
MOST_MANIFEST_BYTES = 2**20
ARTEFACTS, LIBRARIES, LIBRARY = "torch", "libraries", ".so"
# Members of an archive have the oldest date that the format has: equal code, equal bytes.
NO_DATE = (1980, 1, 1, 0, 0, 0)
GATHERED_WITHIN_SECONDS = 60.0


def made_for(fingerprint, run, compiler):
    """What compiled code depends on, by the run's own record."""
    recorded = fingerprint or {}
    own = ("torch", "cuda", "image", "code_sha256", "precision", "world_size")
    return {
        **{name: recorded.get(name) for name in own},
        "device": recorded.get("gpu"),
        "machine": platform.machine(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "arm": run.get("arm"),
        "compiler": compiler.requested,
        "how": compiler.how,
    }


# ---- a trial's run leaves it ---------------------------------------------------------------


def save(ranks, purpose):
    """Leave the bundle of a run that is complete; what the first process records of it, or None.

    Every process calls this. The bundle is of what this run has compiled or loaded, whatever
    earlier jobs have left: it is what the trial measures. A spot job leaves none, since no other
    job gets its checkpoints.
    """
    place = compile_cache.bundles()
    if place is None or environment.checkpoint_folder() is not None:
        return None
    entries = ranks.gathered("bundle", _write_archive(place), GATHERED_WITHIN_SECONDS)
    if not entries or not all(entries):
        return None
    manifest = {"schema": SCHEMA, "made_for": purpose, "ranks": entries}
    data = json.dumps(manifest, indent=1, sort_keys=True).encode()
    digest = hashlib.sha256(data).hexdigest()
    _write(place / (digest + ".json"), data)
    return _saved(digest, manifest)


def _saved(digest, manifest):
    entries = manifest["ranks"]
    return {
        "state": SAVED,
        "sha256": digest,
        "bytes": sum(entry["bytes"] for entry in entries),
        "ranks": len(entries),
        "made_for": manifest["made_for"],
    }


def _write_archive(place):
    """This process's archive; how the manifest names it, None where PyTorch gives nothing."""
    import torch  # noqa: PLC0415 — only compiled jobs pay for it

    save_artefacts = getattr(torch.compiler, "save_cache_artifacts", None)
    recorded = save_artefacts() if save_artefacts is not None else None
    if not recorded:
        return None
    data = _packed(recorded[0], Path(os.environ.get(compile_cache.LOCAL) or os.devnull))
    if len(data) > MOST_BYTES:
        write_line(f"compilegate compile_bundle=too_large bytes={len(data)}")
        return None
    entry = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    _write(_archive(place, entry), data)
    return entry


def _packed(artefacts, local):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:

        def add(name, data):
            member = zipfile.ZipInfo(name, NO_DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)

        add(ARTEFACTS, artefacts)
        for path in sorted(local.rglob("*" + LIBRARY)):
            if path.is_file() and not path.is_symlink():
                add(LIBRARIES + "/" + path.relative_to(local).as_posix(), path.read_bytes())
    return buffer.getvalue()


def _write(path, data):
    """Write a file that is whole or not there; one that has this content already stays."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{environment.rank()}{compile_cache.PARTIAL}")
    partial.write_bytes(data)
    partial.replace(path)


# ---- production restores it ----------------------------------------------------------------


class Restoring:
    """Restores a bundle in all processes or in none; ``document`` says what came of it.

    ``digest`` is the bundle's name, ``purpose`` is what this run would make a bundle for.
    """

    def __init__(self, digest, ranks, purpose):
        self._ranks, self._purpose = ranks, purpose
        self.document = {
            "state": PENDING,
            "sha256": digest,
            "ranks": ranks.count,
            "restored": 0,
            "by_rank": [],
            "differs": [],
            "seconds": 0.0,
        }

    def __call__(self):
        """Called by every process before it compiles anything."""
        began, before = time.perf_counter(), os.environ.get(compile_cache.LOCAL)
        name = "bundle-" + self.document["sha256"][:16]
        os.environ[compile_cache.LOCAL] = str(Path(tempfile.gettempdir()) / "compilegate" / name)
        try:
            words = self._ranks.voted("bundle", self._word())
        except BaseException:
            _set_back(before)
            raise
        states = words or [RANK_FAILED] * self._ranks.count  # None: they cannot reach each other
        states = [word or RANK_FAILED for word in states]
        state = states[0] if len(set(states)) == 1 else RANK_FAILED
        if state != RESTORED:
            _set_back(before)
        restored = self._ranks.count if state == RESTORED else 0
        self.document.update(
            state=state,
            restored=restored,
            by_rank=states,
            seconds=round(time.perf_counter() - began, 3),
        )
        write_line(
            f"compilegate compile_bundle={state} ranks={restored}/{self._ranks.count} "
            f"seconds={self.document['seconds']}"
        )

    def _word(self):
        try:
            return self._load()
        except Exception as error:  # noqa: BLE001 — whatever it is, the run compiles
            write_line(f"compilegate compile_bundle=not_loaded reason={error}")
            return RANK_FAILED

    def _load(self):
        """Load this process's archive where nothing reads it yet; how that went."""
        place, digest = compile_cache.bundles(), self.document["sha256"]
        if place is None:
            return ABSENT
        manifest = _manifest(place / (digest + ".json"), digest)
        if not isinstance(manifest, dict):
            return manifest
        wrong = {*manifest["made_for"], *self._purpose}
        differs = sorted(
            key for key in wrong if manifest["made_for"].get(key) != self._purpose.get(key)
        )
        if differs or len(manifest["ranks"]) != self._ranks.count:
            self.document["differs"] = differs
            return STALE
        data = _checked(place, manifest["ranks"][self._ranks.rank])
        if not isinstance(data, bytes):
            return data
        _unpack(data, Path(os.environ[compile_cache.LOCAL]))
        return RESTORED


def renew(digest):
    """Write a bundle anew that was restored, so that its copy in S3 does not expire in use."""
    place = compile_cache.bundles()
    manifest = _manifest(place / (digest + ".json"), digest)
    if isinstance(manifest, dict):
        names = {_archive(place, entry).name for entry in manifest["ranks"]}
        for name in (*sorted(names), digest + ".json"):
            path = place / name
            partial = path.with_name(name + compile_cache.PARTIAL)
            partial.write_bytes(path.read_bytes())
            partial.replace(path)


def _manifest(path, digest):
    """The manifest; ABSENT or MISMATCH where there is none, or another one has its name."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_MANIFEST_BYTES + 1)
    except OSError:
        return ABSENT
    if hashlib.sha256(data).hexdigest() != digest:
        return MISMATCH
    manifest = json.loads(data.decode())
    return manifest if manifest.get("schema") == SCHEMA else STALE


def _checked(place, entry):
    """The bytes of an archive, which are loaded from memory; ABSENT or MISMATCH otherwise."""
    try:
        with _archive(place, entry).open("rb") as file:
            data = file.read(min(entry["bytes"], MOST_BYTES) + 1)
    except OSError:
        return ABSENT
    same = len(data) == entry["bytes"] and hashlib.sha256(data).hexdigest() == entry["sha256"]
    return data if same else MISMATCH


def _unpack(data, local):
    import torch  # noqa: PLC0415 — only compiled jobs pay for it

    local.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            parts = PurePosixPath(name).parts
            if parts[0] == LIBRARIES and ".." not in parts:
                _write(local.joinpath(*parts[1:]), archive.read(name))
        if torch.compiler.load_cache_artifacts(archive.read(ARTEFACTS)) is None:
            raise ValueError("PyTorch could not read the artefacts")


def _archive(place, entry):
    return place / (entry["sha256"] + ".zip")


def _set_back(before):
    os.environ.pop(compile_cache.LOCAL, None)
    if before is not None:
        os.environ[compile_cache.LOCAL] = before
