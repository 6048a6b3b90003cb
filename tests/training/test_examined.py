"""What every way in gives to the equivalence check, and when its figures are the run's evidence."""

import concurrent.futures
import json
import shutil
import subprocess
import sys
import time

import pytest
from compilegate_runtime import compile_cache, ending, kept, memory
from compilegate_runtime.compilers import NoCompiler
from compilegate_runtime.device import Processor
from compilegate_runtime.errors import HyperparameterError
from compilegate_runtime.ranks import Ranks
from compilegate_runtime.recorder import Recorder

from tests.training.jobs import SCRIPTS, STAND_IN, TRAINING
from tests.training.stand_ins import Clock
from tests.training.test_jobs import LANGUAGE_MODEL
from tests.training.test_launch import PLAIN, TRAINER, TRAINERS

FIRST = {kept.VARIABLE: kept.FIRST, kept.LIMIT: "200"}
LAST = {**FIRST, kept.VARIABLE: kept.LAST}
COMPILED = {"compiler": "torch_compile"}
SEGMENT = {**COMPILED, "max_steps": 4}
SCRIPT = {**COMPILED, "learning_rate": 0.05, "seed": 3}
TOGETHER = {**SCRIPT, "script": SCRIPTS / "together.py", "batch_size": 4}
# Beyond what rounding, another order of sums or another kernel does (decision study 3 saw 28).
FAULTY, SOUND = 1000, 28


def parts(done, arithmetic="single"):
    """Ratios by part; a run without figures shows why."""
    assert 0 == done.status, done.output
    figures = done.summary()["equivalence"]
    assert [] == figures["unseen"]
    return {one["part"]: one["ratio"] for one in figures["parts"]
            if one["arithmetic"] == arithmetic}  # fmt: skip


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    shutil.copytree(STAND_IN, folder / "lightning")
    for name in ("lightning_cli.py", "accelerate_loop.py"):
        shutil.copy(SCRIPTS / "init" / name, folder)
    return folder


@pytest.mark.training
@pytest.mark.parametrize(
    ("way", "processes"),
    [("family", 1), ("trainer", 1), ("lightning", 1), ("accelerate", 1),
     ("script of several processes", 2)],
)  # fmt: skip
def test_a_fault_of_compiled_code_is_seen_through_it(jobs, scripts, way, processes):
    if way == "trainer":
        jobs.warm(*TRAINERS)
    program, settings = {
        "family": ("causal_lm.py", {**LANGUAGE_MODEL, **SEGMENT, "batch_size": 2}),
        "trainer": ("launch.py", {**TRAINER, **SEGMENT, "output_dir": scripts / "out"}),
        "lightning": ("launch.py", {
            **SEGMENT, "script": scripts / "lightning_cli.py", "seed": 3,
            "argument_names": json.dumps({
                "learning_rate": "model.learning_rate", "batch_size": "data.batch_size",
                "seed": "seed_everything",
            }),
            "batch_size": 16, "learning_rate": 0.05, "positional": "fit",
        }),
        "accelerate": ("launch.py", {
            **SCRIPT, **SEGMENT, "script": scripts / "accelerate_loop.py", "batch_size": 8,
            "argument_names": '{"batch_size": "per_device_train_batch_size"}',
            "full_run_samples": 640,
        }),
        "script of several processes": ("launch.py", TOGETHER),  # which leaves their group
    }[way]  # fmt: skip
    run = jobs.run if processes == 1 else jobs.run_two
    variables = FIRST if "max_steps" in settings else LAST
    variables = {**variables, **({"PYTHONPATH": str(scripts)} if way == "lightning" else {})}
    done = run(SCRIPTS / "halved.py", variables, program=TRAINING / program, **settings)

    seen = parts(done)
    assert seen["gradients"] > FAULTY
    assert ("reduction" in seen) is (processes == 2)
    assert done.summary()["compiler"]["applied"]


@pytest.mark.training
def test_what_a_whole_run_of_a_script_does_is_examined_at_its_end(jobs):
    """Two calls a step, an epoch's last batch smaller, an evaluation that is compiled."""
    done = jobs.run("launch.py", LAST, **{**PLAIN, **COMPILED, "batch_size": 12, "accumulate": 2})
    seen, summary = parts(done), done.summary()

    expected = {"gradients", "randomness", "last_batch", "accumulation", "evaluation"}
    assert expected == seen.keys()
    assert all(ratio < SOUND for ratio in seen.values())
    assert ("last", 200.0) == tuple(
        summary["equivalence"][key] for key in ("weights", "limit_seconds")
    )
    assert "eval_accuracy" in summary["metrics"]


@pytest.mark.training
def test_a_familys_run_is_examined_as_it_compiles(jobs):
    """Blocks alone and the optimizer, eight calls a step; in bfloat16, so that the model is
    compiled anew as well."""
    how = {
        "layers": 2, "precision": "bf16", "compile_regions": "auto", "compile_optimizer": "true",
        "batch_size": 8, "micro_batches": 8,
    }  # fmt: skip
    done = jobs.run_in_few_files("causal_lm.py", FIRST, **{**LANGUAGE_MODEL, **SEGMENT, **how})

    of_both = {"gradients", "accumulation"}  # no step changes a buffer
    for arithmetic, expected in {"own": {*of_both, "optimizer"}, "single": of_both}.items():
        seen = parts(done, arithmetic)
        assert expected == seen.keys()
        assert all(ratio < SOUND for ratio in seen.values())


KEPT = """
import json, os
import torch
from compilegate_runtime.compilers import NoCompiler
from compilegate_runtime.kept import COPIES, VARIABLE, Kept
os.environ[VARIABLE] = "first"

class Compiler(NoCompiler):
    compiles_modules, count = True, 0
    def compilations(self):
        return self.count

def kept(*calls):
    # Each call is a row count, and whether the compiler works for it or for an evaluation after.
    compiler = Compiler()
    one = Kept(torch, compiler)
    for rows, works in calls:
        batch = {"rows": torch.ones(rows, 2), "number": rows}
        one.training([batch])
        compiler.count += works == "train"
        if works == "evaluate":
            one.evaluating([torch.zeros(rows)])
            compiler.count += 1
        batch["rows"].zero_()
    one.done()
    size = lambda batches: [len(batch[0]["rows"]) for batch in batches]
    sound = all(bool(batch[0]["rows"].all()) for batch in one.batches() + one.further())
    return size(one.batches()), size(one.further()), one.missed, len(one.held_out()), sound

FIRST = [(4, "train"), (3, "train"), (4, ""), (4, "")]
stream = iter(range(3))
trained = Kept(torch, Compiler())
trained.training([torch.ones(2, requires_grad=True)])
consumed = Kept(torch, Compiler())
consumed.training([stream])

class Locked:
    def __copy__(self):
        raise TypeError

failing = Kept(torch, Compiler())
failing.evaluating([Locked()])
print(json.dumps({
    "as many as the first ones": kept(*FIRST),
    "a new shape that compiled": kept(*FIRST, (2, "train"), (4, "")),
    "a new shape that did not": kept(*FIRST, (2, ""), (2, "train")),
    "an old shape that compiled": kept(*FIRST, (4, "train"), (4, "")),
    "an evaluation that compiled": kept(*FIRST, (4, "evaluate"), (4, "evaluate"), (4, "evaluate")),
    "the last call of all": kept(*FIRST, (2, "train")),
    "more shapes than copies": kept(*FIRST, *[(10 + n, "") for n in range(COPIES)], (9, "train")),
    "a copy that fails": failing.missed, "consumed": list(stream),
    "trained": [trained.differentiated, consumed.differentiated],
}))
"""


@pytest.mark.training
def test_batches_are_kept_as_they_were_before_the_run_used_them(jobs):
    done = jobs.run_code(KEPT)

    assert ([0, 1, 2], [True, False]) == (done.pop("consumed"), done.pop("trained"))
    assert 1 == done.pop("a copy that fails"), "what is compiled from then on is not seen"
    first = [4, 3, 4, 4]
    assert {
        "as many as the first ones": [first, [], 0, 0, True],
        "a new shape that compiled": [first, [2], 0, 0, True],
        "a new shape that did not": [first, [], 1, 0, True],
        "an old shape that compiled": [first, [], 1, 0, True],
        "an evaluation that compiled": [first, [], 0, 2, True],
        "the last call of all": [first, [2], 0, 0, True],
        "more shapes than copies": [first, [], 1, 0, True],
    } == done


@pytest.fixture
def recorder(tmp_path):
    run = {"job": "cg-x", "arm": "compile", "replicate": 0, "seed": 17, "full_run_steps": 1000}
    clock = Clock()
    made = Recorder(tmp_path, run, steps=2, compiler=NoCompiler(), device=Processor(), clock=clock)
    for _ in made.steps([1, 2]):
        clock.now += 1.5
        made.end_step(1.0, samples=4)
    made.finish()
    yield made
    made.close()


def summary(recorder):
    return json.loads((recorder.folder / "summary.json").read_text())


@pytest.mark.parametrize(
    ("variables", "limit"),
    [
        ({kept.VARIABLE: kept.FIRST}, 30.0),  # 0.02 of 1,000 steps of 1.5 seconds
        ({kept.VARIABLE: kept.FIRST, kept.LIMIT: "7"}, 7.0),
        ({kept.VARIABLE: "always"}, None),
        ({}, None),
    ],
)
def test_figures_are_added_to_a_complete_run_and_change_nothing_of_it(
    recorder, monkeypatch, variables, limit
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = summary(recorder)
    recorder.subject = lambda: None
    recorder.examine()
    recorder.fail("stopped by SIGTERM before it finished")

    after = summary(recorder)
    figures = after.pop("equivalence", {"limit_seconds": None})
    assert (limit, before) == (figures["limit_seconds"], after)


def test_the_longest_check_takes_three_minutes():
    assert [20.0, 180.0] == [kept.limit_seconds(seconds) for seconds in (1000.0, 1e6)]


@pytest.mark.parametrize("limit", ["abc", "nan", "inf", "0", "-1", "86401"])
def test_a_limit_that_cannot_be_is_refused_before_the_run(tmp_path, monkeypatch, limit):
    monkeypatch.setenv(kept.LIMIT, limit)
    with pytest.raises(HyperparameterError, match=f"{kept.LIMIT}.*'{limit}'.*training.environment"):
        Recorder(tmp_path / "new", {}, steps=2, compiler=NoCompiler(), device=Processor())


@pytest.mark.parametrize(
    ("ended_by", "place", "status", "pool_seconds"),
    [
        ("SIGKILL", "equivalence.examine", -9, 0), ("SIGKILL", "equivalence.examine", -9, 1),
        ("SIGTERM", "equivalence.examine", 0, 1), ("SIGTERM", "compile_cache.keep", 0, 0),
    ],
)  # fmt: skip
def test_what_ends_the_process_in_the_check_leaves_a_run_that_is_complete_and_examined(
    tmp_path, ended_by, place, status, pool_seconds
):
    """All that an interpreter waits for at its end has been done by then."""
    code = f"""
import concurrent.futures, os, signal, threading, time
from pathlib import Path
from compilegate_runtime import compile_cache, equivalence, job, kept
from types import SimpleNamespace
os.environ["{kept.VARIABLE}"] = kept.LAST
settings = SimpleNamespace(arm="compile", replicate=0, seed=1, compiler="none")
{place} = lambda *_, **__: os.kill(os.getpid(), signal.{ended_by})
job.leave_process_group = lambda: print("left")
def late(name, seconds):
    time.sleep(seconds)
    Path(name).touch()
with job.recorded(settings, 1, 1) as recorder:
    recorder.begin_step()
    recorder.end_step(1.0, samples=4)
    pool = concurrent.futures.ThreadPoolExecutor(2)
    pool.submit(time.sleep, 0)
    pool.submit(late, "of a pool", {pool_seconds})
    threading.Thread(target=late, args=["of a thread", 0.5]).start()
    threading.Thread(target=time.sleep, args=[60], daemon=True).start()
    local = compile_cache._local_folder()
    local.mkdir(parents=True)
    (local / "graph").touch()
    recorder.finish()
    print("said")
    recorder.subject = lambda: None
    recorder.examine()
"""
    variables = {
        "SM_OUTPUT_DATA_DIR": str(tmp_path), "PYTHONPATH": str(TRAINING), "TMPDIR": str(tmp_path),
        compile_cache.KEPT: str(tmp_path / "kept") if pool_seconds else "",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=variables, timeout=30, check=False,
        capture_output=True, text=True,
    )  # fmt: skip

    assert (status, True) == (done.returncode, "said" in done.stdout), done.stderr
    assert (status == 0) is ("left" in done.stdout)
    left = json.loads((tmp_path / "evidence" / "summary.json").read_text())
    assert (True, True) == (left["finished"], left["examining"])
    kept_of_it = ["of a pool", "of a thread", *(["kept/graph"] if pool_seconds else [])]
    assert [] == [name for name in kept_of_it if not (tmp_path / name).exists()]


def test_a_pool_of_processes_is_waited_for_while_it_works(monkeypatch):
    monkeypatch.setattr(ending, "THREADS_SECONDS", 20.0)
    monkeypatch.setattr(compile_cache, "keep", lambda: None)
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        called = pool.submit(time.sleep, 1)
        begun = time.monotonic()
        ending.complete()

        assert called.done()
        assert time.monotonic() - begun < ending.THREADS_SECONDS


@pytest.mark.parametrize("others", [True, False])
def test_the_first_process_is_examining_until_the_others_are_through(recorder, monkeypatch, others):
    monkeypatch.setenv(kept.VARIABLE, kept.LAST)
    recorder.subject = lambda: None
    monkeypatch.setattr(Ranks, "reports", lambda _: [{}, {"finished": True}])
    monkeypatch.setattr(Ranks, "all_here", lambda *_: others)
    recorder.examine()

    assert others is not summary(recorder).get("examining", False)


@pytest.mark.parametrize(
    ("machine", "files", "processes", "left"),
    [
        (3, {}, "1", 3072),
        (3, {}, "3", 1024),
        (None, {}, "1", None),
        (3, {"memory.max": "max", "memory.current": "9", "memory.stat": "inactive_file 0"}, "1",
         3072),
        (3, {"memory.max": "900", "memory.current": "500", "memory.stat": "inactive_file 100"},
         "2", 250),
        (3, {"memory/memory.limit_in_bytes": "900", "memory/memory.usage_in_bytes": "500",
             "memory/memory.stat": "inactive_file 9\ntotal_inactive_file 300"}, "1", 700),
    ],
)  # fmt: skip
def test_memory_that_is_left_is_the_machines_or_its_containers(
    tmp_path, monkeypatch, *, machine, files, processes, left
):
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    kernel = "MemTotal: 9 kB\n" + ("" if machine is None else f"MemAvailable: {machine} kB\n")
    (tmp_path / "meminfo").write_text(kernel)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", processes)

    assert left == memory.left_bytes()


ROOM = """
import json
import torch
from compilegate_runtime import equivalence, memory
ran = []
def examined(left, **more):
    model = torch.nn.Linear(10, 10, bias=False)
    subject = equivalence.Subject(model, ran.append, [], **more)
    memory.left_bytes = lambda: left
    made = equivalence.examine(lambda: memory.with_room(subject))
    return [one["code"] for one in made["unseen"]], made["parts"]
# 100 weights: a copy of 4 bytes, gradients of 4; weights and gradients of 8. Of an optimizer's
# copies three of 4 and of 8 bytes.
step = {"optimizer": object(), "compiled_step": ran.append}
print(json.dumps([examined(2399), examined(2400), examined(None), examined(5999, **step),
                  examined(6000, **step), len(ran)]))
"""


@pytest.mark.training
def test_where_memory_does_not_suffice_nothing_is_run_and_the_figures_say_so(jobs):
    lacking, enough = [["out_of_memory"], []], [["too_few_batches"], []]
    *seen, ran = jobs.run_code(ROOM)
    codes = [[sorted(set(unseen))[-1:], parts] for unseen, parts in seen]
    assert [lacking, enough, enough, lacking, enough] == codes
    assert 0 == ran


def test_a_check_whose_time_is_over_ends_by_itself_and_one_that_hangs_with_its_process():
    code = """
import signal, time
from compilegate_runtime import ending
ending.HUNG_SECONDS = 0.1
try:
    with ending.ending_within(0.0):
        time.sleep(60)
except ending.Unseen as error:
    print(error.code, signal.getitimer(signal.ITIMER_REAL), flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
with ending.ending_within(0.0):
    time.sleep(60)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TRAINING, capture_output=True, text=True, timeout=30,
        check=True,
    )  # fmt: skip

    assert "time_exceeded (0.0, 0.0)" == done.stdout.strip()
