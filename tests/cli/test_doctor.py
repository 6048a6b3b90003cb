"""``compilegate doctor`` as a user calls it."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
import yaml

from compilegate.domain.compilers import COMPILERS as DOMAIN
from compilegate_doctor import COMPILERS
from distributions.doctor.tests.scripts import loop

ROOT = Path(__file__).resolve().parents[2]
CLEAN = loop("total += loss.detach()")
SLOW = loop("total += loss.item()")
BROKEN = loop("pass", after="torch.compile(model)")
NOTED = loop("pass", after="train_loader = DataLoader(d, 8, drop_last=True)")
CUDA = loop("pass", after="model.cuda()")


@pytest.fixture
def doctor(invoke):
    return partial(invoke, "doctor")


def write(**files):
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)


def workload(**changes):
    """Writes w.yaml: a shipped workload, its source folder training, with changes."""
    document = yaml.safe_load((ROOT / "workloads" / "demo-lm.yaml").read_text())
    document["candidates"] = changes.pop("candidates", document["candidates"])
    document["training"] |= changes
    Path("w.yaml").write_text(yaml.safe_dump(document))
    Path("training").mkdir()


# Scripts, the options, the exit code, and what is shown or said of what is wrong.
ANSWERS = {
    "a note": ({"a": NOTED}, "a.py", 0, ("1 note.",)),
    "slows": (
        {"a": SLOW}, "a.py", 11,
        ("slows it: A value is fetched from the GPU in every step (host-sync)", "Fix: ",
         "line 17 total += loss.item()", "1 file with training code: 1 slows it."),
    ),
    "breaks": ({"a": BROKEN}, "a.py", 10, ("1 breaks it",)),
    "of several the worst": (
        {"a": SLOW, "b": BROKEN, "c": CLEAN}, "a.py b.py c.py", 10,
        ("3 files with training code: 1 breaks it, 1 slows it.",),
    ),
    "what a terminal would obey is not sent to it": (
        {"a": loop("total += loss.item()  # \x1b[2J\x07")}, "a.py", 11, ("\ufffd[2J\ufffd",),
    ),
    "rules of all": ({"a": CUDA}, "a.py --compiler all", 10, ()),
    **{f"compiler {name!r}": (
        {"a": CLEAN}, f"a.py --compiler={name}", 2,
        (f"--compiler: is not a compiler (got {name!r}). Fix: use one of {', '.join(DOMAIN)}, or",),
    ) for name in ("magic", "none")},
    "two formats": ({"a": SLOW}, "a.py --json --sarif", 2, ("exclude each other",)),
    "no file": ({}, "none.py", 2, ("does not exist",)),
    "a notebook": ({}, "book.ipynb", 2, ("jupyter nbconvert --to script book.ipynb",)),
    "text": ({}, "notes.txt", 2, ("is not a Python file",)),
    "a pipe": ({}, "pipe.py", 2, ("is not a plain file",)),
    "a huge file": (
        {"a": "import torch\n" * 200_000}, "a.py", 2, ("has 2,600,000 bytes, which is no script",),
    ),
    "no Python": ({"a": "x = 1\ndef f(:\n"}, "a.py", 2, ("a.py: line 2: is not Python",)),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_what_is_answered(case, doctor):
    files, words, code, expected = ANSWERS[case]
    write(**files)
    os.mkfifo("pipe.py")
    for name, text in (("book.ipynb", "{}"), ("notes.txt", "x")):
        Path(name).write_text(text)

    result = doctor(*words.split())

    shown = " ".join((result.stderr if code == 2 else result.stdout).split())
    assert code == result.exit_code
    assert [] == [part for part in expected if part not in shown]
    assert max(map(len, result.stdout.splitlines()), default=0) <= 80 or "--json" in words
    assert not {"\x1b", "\x07"} & set(result.stdout)
    assert "Traceback" not in result.stderr


def test_a_file_name_that_is_no_text_is_read_all_the_same(doctor):
    Path("src").mkdir()
    try:
        Path(os.fsdecode(b"src/tr\xffain.py")).write_text(SLOW)
    except OSError:
        pytest.skip("this file system wants text")

    for format_ in ((), ("--json",), ("--sarif",)):
        assert 11 == doctor("src", *format_).exit_code


def test_a_variant_is_examined_by_its_bases_rules_under_its_own_name(doctor):
    workload(candidates=[{"name": "strict", "compiler": "torch_compile_strict"}])
    write(**{"training/causal_lm": BROKEN})

    for words in (("w.yaml",), ("training", "--compiler", "torch_compile_strict")):
        result = doctor(*words, "--json")
        (file,) = json.loads(result.stdout)["files"]
        assert (10, ["torch_compile_strict"]) == (result.exit_code, file["compilers"])


def test_what_a_run_showed_goes_before_what_the_code_suggests(doctor):
    ragged = loop("pass", after="train_loader = DataLoader(d, 8, num_workers=4)")
    Path("src").mkdir()
    Path("src", "train.py").write_text(ragged)
    training = {"source_dir": "src", "hyperparameters": {"script": "train.py"}}

    def rules(**shapes):
        workload = {"training": training, "shapes": shapes}
        Path("first.json").write_text(json.dumps({"file": "job.yaml", "workload": workload}))
        (file,) = json.loads(doctor("first.json", "--json").stdout)["files"]
        return [finding["rule"] for finding in file["findings"]]

    assert [] == rules(static=True, drop_last=True)
    assert ["ragged-last-batch"] == rules(static=True, drop_last=False)
    assert ["dynamic-padding"] == rules(static=False, drop_last=True)


@pytest.mark.parametrize("text", ["{}", "no JSON", "[]", '{"workload": {"shapes": 1}}'])
def test_another_json_than_that_of_first_is_bad_input(text, doctor):
    Path("other.json").write_text(text)
    result = doctor("other.json")

    assert 2 == result.exit_code
    assert "other.json" in result.output


def test_environments_hidden_folders_and_links_out_are_not_searched(doctor, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "other.py").write_text(BROKEN)
    for name in ("src/deep", "src/.hidden", "src/venv/lib", "src/__pycache__"):
        Path(name).mkdir(parents=True)
        Path(name, "train.py").write_text(SLOW)
    Path("src/venv/pyvenv.cfg").touch()
    Path("src/link").symlink_to(outside, target_is_directory=True)
    Path("src/linked.py").symlink_to(outside / "other.py")
    Path("src/nowhere.py").symlink_to("missing.py")
    Path("src/circle.py").symlink_to("circle.py")
    Path("src/again").symlink_to(".", target_is_directory=True)
    document = json.loads(doctor("src", "--json").stdout)

    assert ["src/deep/train.py"] == [file["file"] for file in document["files"]]
    assert [] == document["unreadable"]


def test_a_broken_file_in_a_folder_does_not_hide_the_others(doctor):
    Path("src").mkdir()
    os.mkfifo("src/pipe.py")
    write(**{"src/huge": "import torch\n" * 200_000, "src/old": "import torch\nprint 'two'\n",
             "src/page": "{{ a template }}\n{%"})  # fmt: skip
    alone = doctor("src")
    write(**{"src/train": SLOW})
    both, document = doctor("src"), json.loads(doctor("src", "--json").stdout)

    assert (2, 11) == (alone.exit_code, both.exit_code)
    assert "not examined: src/old.py: line 2: is not Python" in both.stdout
    assert "page.py" not in both.stdout  # nothing in it speaks of training
    assert ["src/train.py"] == [file["file"] for file in document["files"]]
    unreadable = [one["file"] for one in document["unreadable"]]
    assert ["src/huge.py", "src/old.py", "src/pipe.py"] == unreadable


def test_the_repositorys_own_training_scripts_are_clean_for_torch_compile(doctor):
    result = doctor(ROOT / "training", "--compiler", "torch_compile")

    assert 0 == result.exit_code, result.stdout


def test_every_compiler_of_a_workload_file_is_one_that_the_doctor_has_rules_for():
    assert {name for compiler in DOMAIN.values() for name in compiler.examined_as} <= set(COMPILERS)


def test_a_workload_stands_for_its_script_compilers_and_hyperparameters(doctor):
    options = "import argparse\np = argparse.ArgumentParser()\n" \
        "p.add_argument('--log_every', default=50)\nargs = p.parse_args()\n"  # fmt: skip
    workload(
        hyperparameters={"log_every": 1, "script": "train.py"}, entry_point="launch.py",
        candidates=[{"name": "compile", "compiler": "torch_compile"}],
    )  # fmt: skip
    # Under the launcher the script that it runs.
    write(**{"training/train": options + loop("if step % args.log_every == 0: t += loss.item()")})

    result = doctor("w.yaml", "--json")

    (file,) = json.loads(result.stdout)["files"]
    assert (11, "training/train.py") == (result.exit_code, file["file"])
    assert ["torch_compile"] == file["compilers"]
    assert ["host-sync"] == [finding["rule"] for finding in file["findings"]]
