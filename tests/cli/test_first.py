"""``first`` runs a script under observation and writes what was seen of it, with the proofs."""

import json
import re
import sys
from pathlib import Path

import pytest

from compilegate.adapters.yaml_document import load_yaml
from compilegate_doctor import describe
from compilegate_init.first import causes
from compilegate_init.first.answer import LONGER, SHORTER, at_length, gain
from compilegate_init.first.bounded import Cut, Ended
from compilegate_init.first.seen import Seen
from compilegate_init.first.written import corrected, passed_words

SCRIPT = "import argparse, torch\nfor x, y in loader:\n    loss.backward()\n    optimizer.step()\n"
# Stands for a Python with torch: leaves what the observer would have seen of the run.
PYTHON = """\
#!{executable}
import json, pathlib, sys
settings = json.loads(sys.argv[2])
plan = {plan!r}
seen = plan[settings["compiler"] + ("" if settings["seed"] == 17 else " again")]
with open({started!r}, "a") as file:
    file.write(json.dumps([settings, sys.argv[4:]]) + "\\n")
if seen is not None:
    pathlib.Path(settings["out"]).write_text(json.dumps(seen))
"""
OPTIONS = [
    {"name": name, "also": [name.replace("-", "_")], "default": default, "required": False,
     "switch": default is False, "choices": []}
    for name, default in (("bs", 32), ("lr", 0.5), ("rounds", 3), ("seed", 1), ("no-cuda", False),
                          ("data", None))
]  # fmt: skip
OPTIONS[2]["also"] = ["epochs"]


def run(seconds=0.1, *, slow=(), **facts):
    """What the observer leaves; ``slow`` are steps in which something is compiled."""
    steps = [
        {"seconds": 5.0 if i in slow else seconds, "compiled": i in slow, "samples": 32,
         "learning_rate": 0.5}
        for i in range(20)
    ]  # fmt: skip
    return {
        "steps": steps, "python": "3.11.7", "torch": "2.13.0", "device": "cpu",
        "device_name": "cpu", "weights": ["float32"], "types": ["float32"], "matmul": "highest",
        "models": ["Net"], "parameters": 10, "calls": 20, "planned_steps": None, "managed": None,
        "compiles": [], "wrote": [], "ended": {"how": "finished"}, "metrics": {},
        "lines": [[20, "epoch 1 test accuracy: 81.5%"]], "initial_weights": "a",
        "shapes": [[1, [["input", [32, 8], "float32"]]]],
        "loader": {"batches": 63, "samples": 2010, "batch_size": 32, "drop_last": False},
        "packages": {"torch": ["torch", "2.13.0+cpu"], "timm": ["timm", "1.0.9"],
                     "torchvision": ["torchvision", "0.28.0"]},
        "parsers": [{"reader": "argparse.ArgumentParser", "options": OPTIONS, "positional": [],
                     "subcommand": "", "words": []}],
        "compiler": {"compile_seconds": 12.0 if slow else 0.0, "graphs": 2, "graph_breaks": 0,
                     "recompiles": 1},
        **facts,
    }  # fmt: skip


def plan(**changes):
    """The four runs: compiled steps take half as long, after 10 seconds more in the first one."""
    return {
        "none": run(), "none again": run(initial_weights="b", lines=[[20, "test accuracy: 82%"]]),
        "torch_compile": run(0.05, slow=(0, 1)), "torch_compile again": run(0.05, slow=(0,)),
        **changes,
    }  # fmt: skip


@pytest.fixture
def started(tmp_path):
    return tmp_path / "started"


@pytest.fixture
def call(invoke, tmp_path, started):
    def calling(*words, stdin=None, **changes):
        python = tmp_path / "python"
        text = PYTHON.format(executable=sys.executable, plan=plan(**changes), started=str(started))
        python.write_text(text)
        python.chmod(0o755)
        (tmp_path / "job.py").write_text(SCRIPT)
        return invoke("first", "job.py", "--python", python, "--force", *words, stdin=stdin)

    return calling


def value(document, path):
    for part in path.split("."):
        document = document[part]
    return document


def test_the_file_says_beside_each_value_how_it_was_seen(call, tmp_path):
    result = call("--instance-type", "ml.g5.xlarge", "--run-hours", "2", "--runs-per-week", "3",
                  "--margin", "0.5", "--json")  # fmt: skip

    assert 0 == result.exit_code, result.output
    document, file = json.loads(result.stdout), tmp_path / "job.yaml"
    workload, text = load_yaml(file), file.read_text()
    values = "training.hyperparameters"
    expected = {
        "training.batch_size": 32, "training.learning_rate": 0.5, "training.precision": "fp32",
        "training.instance_type": "ml.g5.xlarge", "training.max_runtime_hours": 4,
        "shapes.static": True, "shapes.drop_last": False, "schedule.run_hours": 2,
        "quality.metric": "eval_accuracy", "quality.goal": "maximize", "quality.margin": 0.5,
        f"{values}.full_run_samples": 6030,
    }  # fmt: skip
    assert expected == {path: value(workload, path) for path in expected}
    names = json.loads(value(workload, f"{values}.argument_names"))
    assert {"batch_size": "bs", "learning_rate": "lr"} == names
    pattern = json.loads(value(workload, f"{values}.metric_patterns"))["eval_accuracy"]
    assert "81.5" == re.findall(pattern, "epoch 1 test accuracy: 81.5%")[-1]
    for shown in ("batch_size: 32  # --bs, seen: first batches input [32, 8] float32",
                  "# seen: 2,010 samples an epoch, --rounds 3",
                  "# seen: 2,010 samples in batches of 32 leave 26",
                  "# seen: printed, 81.5 after 20 steps"):  # fmt: skip
        assert shown in text
    assert ([], 0.5) == (document["todo"], document["spread"])
    assert {"same": True, "another": True} == document["seeds"]
    assert ["timm==1.0.9", "torchvision"] == Path("requirements.txt").read_text().split()


def test_on_a_terminal_only_what_cannot_be_seen_is_asked(call, monkeypatch):
    monkeypatch.setattr("compilegate_init.first.command.is_interactive", lambda: True)

    result = call("--runs-per-week", "5", stdin="\nfoo\n2\n\n")

    assert 0 == result.exit_code, result.output
    workload = load_yaml(Path("job.yaml"))
    assert {"runs_per_week": 5, "run_hours": 2} == workload["schedule"]
    assert "ml.g5.xlarge" == workload["training"]["instance_type"]
    assert 1 == workload["quality"]["margin"]
    assert "(here 81.5, two seeds differ by 0.5) [1.0]" in " ".join(result.stdout.split())
    assert "TODO" not in Path("job.yaml").read_text()


def test_the_screen_says_the_gain_of_both_lengths_and_from_when_it_pays(call):
    text = " ".join(call("--run-hours", "2").stdout.split())

    assert re.search(r"Here, 20 steps: 0\.\d+x\. Your run of 2 h on this machine: 1\.9\dx, ", text)
    assert "By the estimate it pays from 24 s on." in text
    assert "do not tell" not in text
    alike = " ".join(call(torch_compile=run(slow=(0,))).stdout.split())
    assert "A run of 60 min on this machine" in alike
    assert "So few runs do not tell whether compiling pays at this length." in alike


def test_the_runs_differ_in_compiler_and_seed_alone(call, started):
    assert 0 == call("--steps", "7", "--", "--bs", "64").exit_code

    rows = [json.loads(row) for row in started.read_text().splitlines()]
    runs = [(one["compiler"], one["seed"], one["shift"], words) for one, words in rows]
    given_ = ["--bs", "64"]
    assert [
        ("none", 17, 0, given_), ("torch_compile", 17, 0, given_),
        ("none", 18, 0, [*given_, "--seed", "18"]),
        ("torch_compile", 18, 0, [*given_, "--seed", "18"]),
    ] == runs  # fmt: skip
    assert {7} == {one["steps"] for one, _ in rows}


def test_a_script_without_a_seed_has_its_own_moved(call, started):
    none = [{**run()["parsers"][0], "options": OPTIONS[:3]}]
    assert 0 == call(none=run(parsers=none)).exit_code

    last = json.loads(started.read_text().splitlines()[-1])
    assert (1, []) == (last[0]["shift"], last[1])


def test_a_seed_that_is_not_followed_is_not_passed(call):
    document = json.loads(call("--json", **{"none again": run()}).stdout)

    assert document["seeds"]["another"] is False
    names = value(document["workload"], "training.hyperparameters.argument_names")
    assert {"batch_size": "bs", "learning_rate": "lr", "seed": None} == json.loads(names)


def test_arguments_given_are_those_of_the_workload(call):
    result = call("--", "--rounds", "5", "--no-cuda", "--data=small", "--lr", "0.5")

    assert 0 == result.exit_code, result.output
    values = value(load_yaml(Path("job.yaml")), "training.hyperparameters")
    assert (5 * 2010, "no-cuda", True) == (
        values["full_run_samples"], values["flags"], values["no-cuda"],
    )  # fmt: skip
    assert "lr" not in values


def test_a_compiled_run_that_fails_leaves_a_file_and_no_gain(call):
    document = json.loads(call("--json", torch_compile=None).stdout)

    assert document["gain"] is None
    assert document["no_gain_because"].startswith("compiled: ended without a training step")
    assert Path("job.yaml").exists()
    assert ["as it is", "compiled", "as it is, another seed"] == [
        one["run"] for one in document["runs"]
    ]


DYNAMO = "making a fake call\n  Explanation: got TypeError('int')\n  Hint: none"


@pytest.mark.parametrize(
    ("compiled_run", "words"),
    [
        (run(steps=[], ended={"how": "error", "error": "TorchRuntimeError", "message": DYNAMO,
                              "at": "model.py:66", "by_compiler": True}),
         "compiled: the compiler fails on this script after 0 steps: TorchRuntimeError: making a "
         "fake call: got TypeError('int') (model.py:66); it cannot be compiled as it is"),
        (run(steps=[], ended={"how": "error", "error": "FileExistsError", "message": "runs/1",
                              "at": "train.py:9", "by_compiler": False}),
         "compiled: ended by an error that the run as it is did not have, after 0 steps: "
         "FileExistsError: runs/1 (train.py:9)"),
        (run(steps=run()["steps"][:2]), "compiled: 2 steps are too few to be steady; --minutes"),
    ],
)  # fmt: skip
def test_a_compiled_run_that_ends_early_says_whether_the_compiler_fails(call, compiled_run, words):
    both = {"torch_compile": compiled_run, "torch_compile again": compiled_run}
    document = json.loads(call("--json", **both).stdout)

    assert document["gain"] is None
    assert document["no_gain_because"].startswith(words)


def test_a_script_that_is_still_compiled_at_its_limit_gets_more_minutes():
    why = causes.why_no_gain("compiled", Seen({}), cut(Cut.TIME), compiled=True)

    assert why == "compiled: still compiled after 9 s; --minutes gives more"


def test_a_run_without_a_step_says_why_and_leaves_nothing(call, tmp_path):
    result = call(none=run(steps=[], calls=0, ended={"how": "finished"}))

    assert 2 == result.exit_code
    assert "ended without a training step" in result.stderr
    assert not Path("job.yaml").exists()


def cut(why):
    return Ended(None, why, "", 9.0, 0)


def left(code, tail=""):
    return Ended(code, None, tail, 1.0, 0)


def error(name, message, **more):
    return {"how": "error", "error": name, "message": message, "at": "train.py:3", **more}


# What the observer has left, how the process ended, and what the message must say.
ENDINGS = {
    "never ends": ({}, cut(Cut.TIME), "--minutes"),
    "all memory": ({}, cut(Cut.MEMORY), "smaller batch"),
    "forks": ({}, cut(Cut.PROCESSES), "workers"),
    "terminal": (error("EOFError", "EOF when reading a line"), left(0), "terminal"),
    "terminal's size": (
        {**error("ValueError", "not enough values"), "asks_terminal": True}, left(0), "stty",
    ),
    "file": (error("FileNotFoundError", "No such file: 'x'"), left(0), "does not find its data"),
    "data set": (error("RuntimeError", "Dataset not found."), left(0), "does not find its data"),
    "network": (error("URLError", "<urlopen error>"), left(0), "download"),
    "package": (
        error("ModuleNotFoundError", "No module named 'cv2'", module="cv2"), left(0),
        "pip install opencv-python",
    ),
    "requirement": (
        error("ModuleNotFoundError", "Requirement 'x[y]>=4.2' not met."), left(0),
        "pip install 'x[y]>=4.2'",
    ),
    "GPU": (
        error("AssertionError", "Torch not compiled with CUDA enabled"), left(0), "asks for a GPU",
    ),
    "release": (
        error("ImportError", "cannot import name 'a' from 'b' (b/__init__.py)"), left(0),
        "another release",
    ),
    "weights alone": (
        error("UnpicklingError", "Weights only load failed. This file can still"), left(0),
        "WEIGHTS_ONLY_LOAD=1",
    ),
    "GPU of a Trainer": (
        error("MisconfigurationException", "No supported gpu backend found!"), left(0),
        "asks for a GPU",
    ),
    "another error": (error("ValueError", "x"), left(0), "train.py:3"),
    "usage": ({"how": "exit", "code": 2}, left(0, "error: --data is required\n"), "--data is"),
    "says why": ({"how": "exit", "code": "give --data"}, left(0), "step: give --data"),
    "no torch": ({}, left(3), "no torch"),
    "signal": ({}, left(-11), "signal 11"),
    "no optimizer": ({"how": "enough", "calls": 300}, left(0), "without a training step"),
    "slow to compile": ({"calls": 1}, cut(Cut.TIME), "--minutes"),
    "download": (error("RuntimeError", "Error downloading x.gz:"), left(0), "could not download"),
    "no training": ({"how": "finished"}, left(0), "without a training step"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDINGS)
def test_each_way_to_end_has_its_cause_and_fix(name):
    ending, ended, words = ENDINGS[name]
    about = {key: ending.pop(key) for key in ("calls", "asks_terminal") if key in ending}
    facts = {"ended": ending, **about} if ending else {}
    problem = causes.why_not(Path("train.py"), Seen(facts), ended, Path("python"))

    assert words in str(problem)
    assert problem.fix


def test_shapes_that_move_are_named_and_a_smaller_last_batch_is_none_of_them():
    def shapes(*sizes):
        return {"shapes": [[1, [["input_ids", one, "int64"]]] for one in sizes]}

    padded = Seen(run(**shapes([32, 20], [32, 25], [32, 17])))
    last = Seen(run(**shapes([32, 20], [26, 20])))
    batches = Seen(run(**shapes([32, 20], [31, 20])))
    two_models = Seen(run(shapes=[[1, [["input", [8, 3], "float32"]]],
                                  [2, [["input", [8, 9], "float32"]]]]))  # fmt: skip

    assert ["input_ids dimension 1: 17 to 25"] == padded.moving()
    assert [] == last.moving()
    assert ["input_ids dimension 0: 31 to 32"] == batches.moving()
    assert [] == two_models.moving()


@pytest.mark.parametrize(
    ("facts", "precision"),
    [
        ({"types": ["bfloat16", "float32"]}, "bf16"),
        ({"types": ["float16"], "weights": ["float16"]}, "fp16"),
        ({"device": "cuda", "matmul": "high"}, "tf32"),
    ],
)
def test_the_precision_is_that_of_autocast_weights_or_matrix_products(facts, precision):
    assert precision == Seen(run(**facts)).precision[0]


def steps_of(*seconds):
    return Seen({"steps": [{"seconds": one, "compiled": False} for one in seconds]})


def test_steps_that_play_a_game_count_as_they_come():
    """Three of four steps are twice as fast, and each fourth one still waits for a game."""
    eager, compiled = steps_of(*40 * (0.1, 0.1, 0.1, 0.5)), steps_of(*40 * (0.05, 0.05, 0.05, 0.5))

    assert gain([(eager, compiled)], [3600.0]).steady == pytest.approx(0.8 / 0.65)


def test_steps_that_differ_much_widen_the_interval():
    alike, differing = steps_of(*20 * (0.1, 0.1)), steps_of(*20 * (0.02, 0.18))
    narrow, wide = (
        gain([(one, one), (one, one)], [3600.0]).at[0].interval for one in (alike, differing)
    )

    assert narrow[0] < 1 < narrow[1]
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_interval_allows_that_compiling_takes_longer_or_shorter_another_time():
    middle = at_length(60.0, [0.0], 1e-9, 30.0)

    assert middle.speedup == pytest.approx(60 / 90)
    assert middle.interval == pytest.approx((60 / (60 + 30 * LONGER), 60 / (60 + 30 * SHORTER)))


def test_too_few_steady_steps_give_no_gain():
    short = Seen(run(slow=tuple(range(2, 20))))

    assert short.pace() is None
    assert gain([(Seen(run()), short)], [3600.0]) is None


def test_what_is_logged_counts_before_what_is_printed():
    seen = Seen(run(metrics={"train_loss": 1.0, "acc": 0.5, "val_loss": 2.0}))

    assert ["acc", "val_loss"] == [one.metric.name for one in seen.reported()][:2]


def test_constants_are_those_that_a_file_of_settings_has_left():
    code = b"batch_size = 8\nlearning_rate = 0.1\nexec(open('configurator.py').read())\n"
    seen = Seen(run(parsers=[], globals={"batch_size": 16, "learning_rate": 0.01}))
    read = corrected(describe(code, "train.py"), seen, ["small.py", "--batch_size=4"])

    options = {one.name: one.default for one in read.command_line.options}
    assert {"batch_size": 4, "learning_rate": 0.01} == options


def test_words_go_to_the_options_that_take_them():
    read = describe(SCRIPT.encode(), "job.py")
    takes = corrected(read, Seen(run()), []).command_line
    passed = passed_words(["fit", "--bs=8", "--no-cuda", "--lr", "1e-3"], takes)

    assert ({"bs": 8, "lr": 0.001}, ("no-cuda",), ("fit",)) == (
        passed.options, passed.switches, passed.alone,
    )  # fmt: skip
