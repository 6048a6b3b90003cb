"""Compiled code as a bundle: a trial leaves it, all ranks restore it by its digest, or none."""

import hashlib
import json
import os
import sys
import threading
import types
from pathlib import Path
from unittest.mock import patch

import pytest
from compilegate_runtime import compile_bundle, compile_cache
from compilegate_runtime.ranks import Ranks

from tests.training.jobs import SCRIPTS
from tests.training.stand_ins import Store

PURPOSE = {"torch": "2.13.0", "world_size": 1, "arm": "compile"}


@pytest.fixture
def torch(monkeypatch, tmp_path):
    """PyTorch's two functions; what was loaded is in ``loaded``."""
    loaded = []
    compiler = types.SimpleNamespace(
        save_cache_artifacts=lambda: (b"compiled", None),
        load_cache_artifacts=lambda data: loaded.append(data) or "info",
    )
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(compiler=compiler))
    local = tmp_path / "local"
    (local / "ab").mkdir(parents=True)
    (local / "ab" / "kernel.so").write_bytes(b"library")
    (local / "ab" / "kernel.cpp").write_bytes(b"source")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv(compile_cache.LOCAL, str(local))
    monkeypatch.setenv(compile_cache.KEPT, str(tmp_path / "s3" / "inductor"))
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", "none")
    for name in (compile_cache.BUNDLES, compile_cache.BUNDLE, "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return types.SimpleNamespace(compiler=compiler, loaded=loaded, local=str(local))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "s3" / "bundles"


ONE = Ranks(0, 1)


def restored(digest, ranks=ONE, purpose=PURPOSE):
    restoring = compile_bundle.Restoring(digest, ranks, purpose)
    restoring()
    return restoring.document


def archive_of(place):
    (path,) = place.glob("*.zip")
    return path


def test_what_a_run_compiled_comes_back_with_its_libraries_in_a_folder_of_its_own(torch, place):
    saved = compile_bundle.save(ONE, PURPOSE)
    document = restored(saved["sha256"])

    assert ("saved", 1, PURPOSE) == (saved["state"], saved["ranks"], saved["made_for"])
    manifest = (place / f"{saved['sha256']}.json").read_bytes()
    assert saved["sha256"] == hashlib.sha256(manifest).hexdigest()
    assert [b"compiled"] == torch.loaded
    assert ("restored", 1, ["restored"]) == tuple(
        document[key] for key in ("state", "restored", "by_rank")
    )
    folder = Path(os.environ[compile_cache.LOCAL])
    assert Path(torch.local) != folder
    assert ["kernel.so"] == [path.name for path in (folder / "ab").iterdir()]
    assert b"library" == (folder / "ab" / "kernel.so").read_bytes()


def test_equal_code_is_equal_bytes_and_is_written_once(torch, place):
    first = compile_bundle.save(ONE, PURPOSE)
    inodes = {path.name: path.stat().st_ino for path in place.iterdir()}

    assert first == compile_bundle.save(ONE, PURPOSE)
    assert inodes == {path.name: path.stat().st_ino for path in place.iterdir()}


def test_a_run_leaves_what_it_has_compiled_whatever_is_there_for_the_same_purpose(torch, place):
    torch.compiler.save_cache_artifacts = lambda: (b"of an earlier job", None)
    earlier = compile_bundle.save(ONE, PURPOSE)
    torch.compiler.save_cache_artifacts = lambda: (b"compiled", None)
    own = compile_bundle.save(ONE, PURPOSE)

    assert earlier["sha256"] != own["sha256"]
    assert "restored" == restored(own["sha256"], ONE, PURPOSE)["state"]
    assert [b"compiled"] == torch.loaded


def test_a_damaged_archive_is_replaced_by_the_next_run_that_leaves_the_same(torch, place):
    saved = compile_bundle.save(ONE, PURPOSE)
    (archive,) = place.glob("*.zip")
    data = archive.read_bytes()
    archive.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))

    assert saved == compile_bundle.save(ONE, PURPOSE)
    assert data == archive.read_bytes()


def test_a_bundle_is_made_for_the_way_in_which_it_was_compiled():
    made = [
        compile_bundle.made_for({}, {}, types.SimpleNamespace(requested="torch_compile", how=how))
        for how in ({"mode": "default"}, {"mode": "max-autotune"})
    ]
    assert ["how"] == [key for key in made[0] if made[0][key] != made[1][key]]


@pytest.mark.parametrize("returned", [None, "no function"])
def test_where_pytorch_returns_nothing_there_is_no_bundle(torch, place, returned):
    if returned is None:
        torch.compiler.save_cache_artifacts = lambda: None
    else:
        del torch.compiler.save_cache_artifacts

    assert compile_bundle.save(ONE, PURPOSE) is None
    assert not place.exists()


def test_a_spot_job_and_one_without_a_place_leave_none(torch, place, monkeypatch, tmp_path):
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", str(tmp_path))
    assert compile_bundle.save(ONE, PURPOSE) is None
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", "none")
    monkeypatch.delenv(compile_cache.KEPT)
    assert compile_bundle.save(ONE, PURPOSE) is None
    assert not place.exists()


def truncate(place, _digest):
    data = archive_of(place).read_bytes()
    archive_of(place).write_bytes(data[:-1])


def change(place, _digest):
    data = archive_of(place).read_bytes()
    archive_of(place).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def swap_manifest(place, digest):
    path = place / f"{digest}.json"
    path.write_text(path.read_text().replace("2.13.0", "2.14.0"))


def lose_archive(place, _digest):
    archive_of(place).unlink()


def lose_manifest(place, digest):
    (place / f"{digest}.json").unlink()


@pytest.mark.parametrize(
    ("harm", "state"),
    [
        (truncate, "mismatch"),
        (change, "mismatch"),
        (swap_manifest, "mismatch"),
        (lose_archive, "absent"),
        (lose_manifest, "absent"),
    ],
)
def test_nothing_is_loaded_of_what_is_not_the_named_bundle(torch, place, harm, state):
    digest = compile_bundle.save(ONE, PURPOSE)["sha256"]
    harm(place, digest)
    document = restored(digest)

    assert (state, 0) == (document["state"], document["restored"])
    assert [] == torch.loaded
    assert torch.local == os.environ[compile_cache.LOCAL]


@pytest.mark.parametrize("field", sorted(PURPOSE))
def test_a_bundle_that_was_made_for_something_else_is_stale_and_says_in_what(torch, field):
    digest = compile_bundle.save(ONE, PURPOSE)["sha256"]
    document = restored(digest, purpose={**PURPOSE, field: "other"})

    assert ("stale", [field]) == (document["state"], document["differs"])
    assert [] == torch.loaded


def test_a_manifest_of_another_schema_is_stale(torch, place):
    manifest = json.dumps({"schema": compile_bundle.SCHEMA + 1}).encode()
    digest = hashlib.sha256(manifest).hexdigest()
    place.mkdir(parents=True)
    (place / f"{digest}.json").write_bytes(manifest)

    assert "stale" == restored(digest)["state"]


def refuse(_data):
    raise OSError(30, "Read-only file system")


@pytest.mark.parametrize("load", [refuse, lambda _: None, None])
def test_what_cannot_be_loaded_leaves_the_cache_as_it_was(torch, load):
    digest = compile_bundle.save(ONE, PURPOSE)["sha256"]
    torch.compiler.load_cache_artifacts = load  # None: as where PyTorch has no such function

    assert "rank_failed" == restored(digest)["state"]
    assert torch.local == os.environ[compile_cache.LOCAL]


class Saying(Ranks):
    """Two processes, the other one of which says ``word``."""

    def __init__(self, *words):
        super().__init__(0, 2, Store())
        self.words = words

    def voted(self, _name, word):
        return [word, *self.words] if self.words != ("unreachable",) else None


@pytest.mark.parametrize(
    ("other", "state"),
    [
        ("restored", "restored"),
        ("mismatch", "rank_failed"),
        ("absent", "rank_failed"),
        (None, "rank_failed"),  # too late, or gone
        ("unreachable", "rank_failed"),
    ],
)
def test_no_rank_uses_what_another_one_lacks(torch, place, other, state):
    purpose = {**PURPOSE, "world_size": 2}
    one = compile_bundle.save(ONE, purpose)
    manifest = json.loads((place / f"{one['sha256']}.json").read_text())
    manifest["ranks"] *= 2
    data = json.dumps(manifest).encode()
    digest = hashlib.sha256(data).hexdigest()
    (place / f"{digest}.json").write_bytes(data)
    document = restored(digest, Saying(other), purpose)

    assert (state, 2 if state == "restored" else 0) == (document["state"], document["restored"])
    assert (torch.local == os.environ[compile_cache.LOCAL]) == (state != "restored")


def both(work):
    """What ``work(ranks)`` returns in each of two threads, with the ranks of two processes."""
    store, results, own = Store(), [None, None], threading.local()

    def run(rank):
        own.rank = rank
        results[rank] = work(Ranks(rank, 2, store))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    with patch.object(compile_bundle.environment, "rank", lambda: own.rank):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return results


def test_processes_vote_alike():
    assert [["yes0", "yes1"]] * 2 == both(lambda ranks: ranks.voted("x", f"yes{ranks.rank}"))


def test_a_late_vote_changes_nothing_of_what_stands():
    store = Store()
    first = Ranks(0, 2, store).voted("x", "yes", within_seconds=0.0)
    second = Ranks(1, 2, store).voted("x", "yes", within_seconds=0.0)

    assert first == second == ["yes", None]


def test_a_store_that_is_gone_is_no_vote():
    class Gone(Store):
        def set(self, _key, _value):
            raise RuntimeError("Connection reset by peer")

    assert Ranks(0, 2, Gone()).voted("x", "yes") is None
    assert Ranks(0, 2, Gone()).gathered("x", "yes", 0.0) is None


def test_a_bundle_has_an_archive_of_every_process_or_there_is_none(torch, place):
    words = both(lambda ranks: compile_bundle.save(ranks, {**PURPOSE, "world_size": 2}))
    assert (2, None) == (words[0]["ranks"], words[1])

    store = Store()
    store.set("compilegate/decided/bundle", "null")
    lonely = Ranks(0, 2, store).gathered("bundle", {"sha256": "0", "bytes": 1}, 0.01)
    assert lonely is None


def test_a_bundle_in_use_is_written_anew_with_the_same_bytes(torch, place):
    digest = compile_bundle.save(ONE, PURPOSE)["sha256"]
    before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in place.iterdir()}
    compile_bundle.renew(digest)
    after = {path.name: (path.stat().st_ino, path.read_bytes()) for path in place.iterdir()}

    assert before.keys() == after.keys()
    assert all(before[name][1] == after[name][1] for name in before)
    assert all(before[name][0] != after[name][0] for name in before)


def test_a_job_that_is_to_restore_a_bundle_begins_with_an_empty_folder(
    torch, monkeypatch, tmp_path
):
    kept = tmp_path / "s3" / "inductor"
    kept.mkdir(parents=True)
    (kept / "graph").write_text("of another job")
    monkeypatch.setenv(compile_cache.BUNDLE, "0" * 64)
    compile_cache.restore()

    local = Path(os.environ[compile_cache.LOCAL])
    assert tmp_path / "tmp" / "compilegate" / "inductor" == local
    assert [] == list(local.iterdir())


def test_a_run_of_pairs_leaves_its_bundle_where_the_jobs_cache_is_kept(torch, monkeypatch, place):
    variables = compile_cache.without_place(dict(os.environ))
    assert compile_cache.KEPT not in variables

    monkeypatch.delenv(compile_cache.KEPT)
    monkeypatch.setenv(compile_cache.BUNDLES, variables[compile_cache.BUNDLES])
    assert place == compile_cache.bundles()


# ---- with PyTorch, and two gloo processes ---------------------------------------------------

ARM = {
    "script": SCRIPTS / "bundled.py",
    "compiler": "torch_compile",
    "arm": "compile",
    "metric_patterns": '{"loss": "final loss ([0-9.]+)"}',
    "full_run_samples": 16,
    "batch_size": 4,
}
TRIAL = {"COMPILEGATE_EQUIVALENCE": "last", "COMPILEGATE_EQUIVALENCE_SECONDS": "0.001"}


@pytest.mark.training
def test_production_starts_warm_also_where_a_rank_comes_late(jobs, tmp_path):
    """On another machine, whose checkpoint folder is the trial's."""
    bundles = tmp_path / "s3" / "bundles"

    def run(machine, variables):
        local = tmp_path / machine
        (local / "compilegate").mkdir(parents=True)
        own = {
            "COMPILEGATE_CHECKPOINT_DIR": "none",
            "COMPILEGATE_COMPILE_CACHE": str(tmp_path / "s3" / "inductor"),
            "TMPDIR": str(local),
        }
        done = jobs.run_two("launch.py", {**own, **variables}, **ARM)
        assert 0 == done.status, done.output
        return done.summary(), {path.name: path.stat().st_ino for path in bundles.iterdir()}

    cold, before = run("first", TRIAL)
    digest = cold["compile_bundle"]["sha256"]
    warm, after = run("second", {compile_cache.BUNDLE: digest, "LATE": "1"})
    document = warm["compile_bundle"]

    assert 0 == cold["compiler"]["cache_hits"] < cold["compiler"]["cache_misses"]
    assert ("restored", 2) == (document["state"], document["restored"])
    assert 0 == document["cache_misses"] < document["cache_hits"]
    assert warm["compiler"]["compile_seconds"] < cold["compiler"]["compile_seconds"]
    assert cold["loss_curve"] == warm["loss_curve"]
    assert before.keys() == after.keys()  # it leaves none of its own
    assert all(before[name] != after[name] for name in before)  # in use: written anew
