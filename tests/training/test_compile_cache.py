"""The compile cache between jobs: local while a job runs, kept once at its end, never half."""

import os
import subprocess
import sys

import pytest
from compilegate_runtime import compile_cache, speed_gate

from tests.training.jobs import TRAINING

GRAPH = "inductor/fxgraph/ab/key/graph"


class Machine:
    """A job's container: a checkpoint folder that SageMaker fills, and a local disk."""

    def __init__(self, monkeypatch, folder, synchronised):
        (folder / "tmp").mkdir(parents=True)
        self.kept = synchronised / "inductor"
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        monkeypatch.setenv("COMPILEGATE_COMPILE_CACHE", str(self.kept))
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(self.kept))
        monkeypatch.delenv("RANK", raising=False)
        self.local = folder / "tmp" / "compilegate" / "inductor"

    def compile(self, name="fxgraph/ab/key/graph", text="code"):
        path = self.local / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def machine(monkeypatch, tmp_path):
    count = iter(range(9))
    return lambda: Machine(monkeypatch, tmp_path / f"machine-{next(count)}", tmp_path / "s3")


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_job_compiles_outside_of_the_folder_that_is_copied_while_it_runs(machine):
    job = machine()
    with compile_cache.preserved():
        place = os.environ["TORCHINDUCTOR_CACHE_DIR"]
        job.compile()
        during = files(job.kept.parent)

    assert str(job.local) == place
    assert [] == during
    assert [GRAPH] == files(job.kept.parent)


def test_only_what_is_new_or_changed_is_copied_back(machine, capsys):
    first = machine()
    with compile_cache.preserved():
        first.compile()
        first.compile("cache/autotuned", "one")
    old = {path: path.stat().st_ino for path in first.kept.rglob("*") if path.is_file()}
    second = machine()
    capsys.readouterr()
    with compile_cache.preserved():
        second.compile("cache/autotuned", "one and two")
        second.compile("fxgraph/cd/key/graph")

    assert "compile_cache=kept files=2" in capsys.readouterr().out
    assert "one and two" == (second.kept / "cache" / "autotuned").read_text()
    assert [second.kept / "cache" / "autotuned"] == [
        path for path, inode in old.items() if path.stat().st_ino != inode
    ]


def test_a_job_that_fails_keeps_what_it_compiled(machine):
    job = machine()
    with pytest.raises(ValueError, match="bad data"), compile_cache.preserved():
        job.compile()
        raise ValueError("bad data")

    assert [GRAPH] == files(job.kept.parent)


def test_only_the_first_process_keeps(machine, monkeypatch):
    job = machine()
    monkeypatch.setenv("RANK", "3")
    with compile_cache.preserved():
        job.compile()

    assert not job.kept.exists()


def test_files_of_processes_at_work_are_not_kept(machine):
    job = machine()
    with compile_cache.preserved():
        for name in ("locks/a.lock", "ab/.7.9.tmp", "ab/x.compilegate-partial", "ab/x.py"):
            job.compile(name)

    assert ["inductor/ab/x.py"] == files(job.kept.parent)


def test_the_next_machine_restores_what_was_kept_once_for_all_of_its_processes(machine):
    first = machine()
    with compile_cache.preserved():
        first.compile()
    second = machine()
    compile_cache.restore()
    assert ["fxgraph/ab/key/graph"] == files(second.local)
    changed = second.compile(text="compiled anew")
    compile_cache.restore()

    assert "compiled anew" == changed.read_text()


KILLED_WHILE_KEEPING = """
import os, shutil
from compilegate_runtime import compile_cache

def half(source, target):
    with open(source, "rb") as whole, open(target, "wb") as part:
        part.write(whole.read()[:2])
    os._exit(9)

shutil.copy2 = half
compile_cache.keep()
"""


def test_a_file_that_was_half_copied_when_the_job_was_killed_is_not_restored(machine):
    first = machine()
    first.compile()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_KEEPING], cwd=TRAINING, check=False,
        env={**os.environ, "TMPDIR": str(first.local.parents[1])},
    )  # fmt: skip
    second = machine()
    compile_cache.restore()

    assert 9 == killed.returncode
    assert 1 == len(files(first.kept.parent))
    assert [] == files(second.local)


def test_a_full_disk_fails_no_job(machine, monkeypatch, capsys):
    job = machine()

    def full(*_):
        raise OSError(28, "No space left on device")

    with compile_cache.preserved():
        job.compile()
        monkeypatch.setattr("shutil.copy2", full)

    assert "No space left on device" in capsys.readouterr().out


def test_without_a_place_to_keep_it_the_cache_stays_where_it_is(machine, monkeypatch):
    job = machine()
    monkeypatch.delenv("COMPILEGATE_COMPILE_CACHE")
    with compile_cache.preserved():
        assert str(job.kept) == os.environ["TORCHINDUCTOR_CACHE_DIR"]

    assert not job.local.exists()


SEGMENT = """
import os, pathlib
place = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
assert "COMPILEGATE_COMPILE_CACHE" not in os.environ
(place / str(len(list(place.iterdir())))).write_text(str(place))
"""


def test_segments_of_a_speed_job_share_the_gates_cache_and_the_gate_keeps_it(
    machine, monkeypatch, tmp_path
):
    job = machine()
    (tmp_path / "program.py").write_text(SEGMENT)
    monkeypatch.setattr(speed_gate, "SOURCE", tmp_path)
    monkeypatch.setenv("COMPILEGATE_EVIDENCE_DIR", str(tmp_path / "evidence"))
    arm = '{"name": "baseline", "hyperparameters": {}}'
    words = ["--program", "program.py", "--blocks", "2", "--steps", "1", "--arm_0", arm]
    speed_gate.main(words)

    assert ["0", "1"] == files(job.kept)
    assert str(job.local) == (job.kept / "0").read_text()
