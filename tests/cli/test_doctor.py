"""``compilegate doctor`` as a user calls it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from compilegate.cli.main import app
from compilegate.domain.compilers import COMPILERS as DOMAIN
from compilegate_doctor import COMPILERS
from distributions.doctor.tests.scripts import loop

ROOT = Path(__file__).resolve().parents[2]
CLEAN = loop("total += loss.detach()")
SLOW = loop("total += loss.item()")
BROKEN = loop("pass", after="torch.compile(model)")
NOTED = loop("pass", after="train_loader = DataLoader(d, 8, drop_last=True)")
Doctor = Callable[..., Result]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Doctor:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Result:
        words = ["doctor", *(str(argument) for argument in arguments)]
        return CliRunner().invoke(app, words, env={"COLUMNS": "80"})

    return call


def write(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("script", "code"), [(CLEAN, 0), (NOTED, 0), (SLOW, 11), (BROKEN, 10), ("x = 1\n", 0)]
)
def test_the_exit_code_says_how_bad_it_is(doctor: Doctor, script: str, code: int) -> None:
    write(train=script)

    assert code == doctor("train.py").exit_code


def test_of_several_files_the_worst_one_counts(doctor: Doctor) -> None:
    write(a=SLOW, b=BROKEN, c=CLEAN)

    assert 10 == doctor("a.py", "b.py", "c.py").exit_code


def test_it_fits_80_columns_and_names_line_rule_and_fix(doctor: Doctor) -> None:
    long = "total += loss.item()  # " + "a very long remark " * 12
    write(train=loop(long))
    shown = doctor("train.py").stdout

    assert max(map(len, shown.splitlines())) <= 80
    assert "slows it: A value is fetched from the GPU in every step (host-sync)" in shown
    assert "line 17    total += loss.item()" in shown
    assert "Fix: " in shown
    assert "1 file with training code: 1 slows it." in shown


def test_nothing_found_and_nothing_to_look_at_are_said_apart(doctor: Doctor) -> None:
    write(train=CLEAN, other="x = 1\n")

    assert "no findings" in doctor("train.py").stdout
    assert "No training code in 1 file." in doctor("other.py").stdout


def test_markup_in_a_script_is_shown_as_it_is(doctor: Doctor) -> None:
    write(train=loop("total += loss.item()  # [bold]x[/bold] [/]"))

    assert "[bold]x[/bold] [/]" in doctor("train.py").stdout


def test_what_a_terminal_would_obey_is_not_sent_to_it(doctor: Doctor) -> None:
    write(train=loop("total += loss.item()  # \x1b[2J\x07"))

    assert not {"\x1b", "\x07"} & set(doctor("train.py").stdout)


def test_a_file_name_that_is_no_text_is_read_all_the_same(doctor: Doctor) -> None:
    Path("src").mkdir()
    try:
        Path(os.fsdecode(b"src/tr\xffain.py")).write_text(SLOW)
    except OSError:
        pytest.skip("this file system wants text")

    for format_ in ((), ("--json",), ("--sarif",)):
        assert 11 == doctor("src", *format_).exit_code


def test_json_has_every_finding_with_its_place(doctor: Doctor) -> None:
    write(train=SLOW)
    document = json.loads(doctor("train.py", "--json").stdout)
    (file,) = document["files"]
    (finding,) = file["findings"]

    assert "train.py" == file["file"]
    assert ("host-sync", "slows", 17) == tuple(finding[key] for key in ("rule", "severity", "line"))
    assert (1, 0) == (document["counts"]["slows"], document["counts"]["breaks"])


def test_sarif_is_one_log_with_relative_places(doctor: Doctor) -> None:
    Path("src").mkdir()
    Path("src/train.py").write_text(SLOW)
    result = doctor("src", "--sarif")
    (run,) = json.loads(result.stdout)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]

    assert 11 == result.exit_code
    assert "src/train.py" == place["uri"]


def test_the_compiler_can_be_said(doctor: Doctor) -> None:
    write(train=loop("pass", after="model.cuda()"))

    assert 0 == doctor("train.py").exit_code
    assert 10 == doctor("train.py", "--compiler", "sagemaker_training_compiler").exit_code
    assert 10 == doctor("train.py", "--compiler", "all").exit_code


def test_a_variant_is_examined_by_its_bases_rules_under_its_own_name(doctor: Doctor) -> None:
    workload = yaml.safe_load((ROOT / "workloads" / "demo-lm.yaml").read_text())
    workload["candidates"] = [{"name": "strict", "compiler": "torch_compile_strict"}]
    Path("w.yaml").write_text(yaml.safe_dump(workload))
    Path("training").mkdir()
    Path("training/causal_lm.py").write_text(BROKEN)
    by_workload = doctor("w.yaml", "--json")
    by_option = doctor("training", "--compiler", "torch_compile_strict", "--json")

    for result in (by_workload, by_option):
        (file,) = json.loads(result.stdout)["files"]
        assert ["torch_compile_strict"] == file["compilers"]
        assert 10 == result.exit_code


@pytest.mark.parametrize("name", ["magic", "none", "", "TORCH_COMPILE"])
def test_an_unknown_compiler_is_refused_with_the_names_there_are(doctor: Doctor, name: str) -> None:
    write(train=CLEAN)
    result = doctor("train.py", "--compiler", name)
    error = " ".join(result.stderr.split())

    assert 2 == result.exit_code
    assert f"--compiler: is not a compiler (got {name!r})." in error
    assert f"Fix: use one of {', '.join(DOMAIN)}, or all" in error


def test_a_workload_stands_for_its_entry_point_compilers_and_hyperparameters(
    doctor: Doctor,
) -> None:
    workload = yaml.safe_load((ROOT / "workloads" / "demo-lm.yaml").read_text())
    workload["training"]["hyperparameters"] = {"log_every": 1}
    workload["candidates"] = [{"name": "compile", "compiler": "torch_compile"}]
    Path("w.yaml").write_text(yaml.safe_dump(workload))
    Path("training").mkdir()
    options = "import argparse\np = argparse.ArgumentParser()\n" \
        "p.add_argument('--log_every', default=50)\nargs = p.parse_args()\n"  # fmt: skip
    Path("training/causal_lm.py").write_text(
        options + loop("if step % args.log_every == 0: total += loss.item()")
    )
    (file,) = json.loads(doctor("w.yaml", "--json").stdout)["files"]

    assert "training/causal_lm.py" == file["file"]
    assert ["torch_compile"] == file["compilers"]
    assert ["host-sync"] == [finding["rule"] for finding in file["findings"]]


def test_a_folder_is_searched_but_not_environments_hidden_folders_or_links_out(
    doctor: Doctor, tmp_path_factory: pytest.TempPathFactory
) -> None:
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


def test_a_pipe_and_a_huge_file_are_refused_and_do_not_stop_a_folder(doctor: Doctor) -> None:
    Path("src").mkdir()
    os.mkfifo("src/pipe.py")
    Path("src/huge.py").write_bytes(b"import torch\n" * 200_000)
    Path("src/train.py").write_text(SLOW)

    piped, huge = doctor("src/pipe.py"), doctor("src/huge.py")
    document = json.loads(doctor("src", "--json").stdout)

    assert [2, 2] == [piped.exit_code, huge.exit_code]
    assert "is not a plain file" in piped.stderr
    assert "has 2,600,000 bytes, which is no script" in huge.stderr
    assert ["src/train.py"] == [file["file"] for file in document["files"]]
    assert ["src/huge.py", "src/pipe.py"] == [one["file"] for one in document["unreadable"]]


def test_a_broken_file_in_a_folder_does_not_hide_the_others(doctor: Doctor) -> None:
    Path("src").mkdir()
    Path("src/old.py").write_text("import torch\nprint 'two'\n")
    Path("src/page.py").write_text("{{ a template }}\n{%")
    alone = doctor("src")
    Path("src/train.py").write_text(SLOW)
    both = doctor("src")

    assert (2, 11) == (alone.exit_code, both.exit_code)
    assert "not examined: src/old.py: line 2: is not Python" in both.stdout
    assert "page.py" not in both.stdout  # nothing in it speaks of training


def test_under_the_launcher_the_script_that_it_runs_is_examined(doctor: Doctor) -> None:
    Path("code").mkdir()
    write(**{"code/train": SLOW})
    workload = yaml.safe_load((ROOT / "workloads" / "demo-lm.yaml").read_text())
    training = {**workload["training"], "source_dir": "code", "entry_point": "launch.py"}
    training["hyperparameters"] = {"script": "train.py"}
    Path("w.yaml").write_text(yaml.safe_dump({**workload, "training": training}))

    result = doctor("w.yaml", "--json")

    (file,) = json.loads(result.stdout)["files"]
    assert (11, "code/train.py") == (result.exit_code, file["file"])


PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.py", None, "does not exist"),
        ("book.ipynb", "{}", "jupyter nbconvert --to script book.ipynb"),
        ("notes.txt", "x", "is not a Python file"),
        ("bad.py", "x = 1\ndef f(:\n", "bad.py: line 2: is not Python"),
        ("newer.py", "def f(:\n", f"Python {PYTHON}, with which it is read here; if a newer"),
        ("work.yaml", "a: [", "work.yaml"),
    ],
)
def test_bad_input_is_one_message(doctor: Doctor, name: str, text: str | None, said: str) -> None:
    if text is not None:
        Path(name).write_text(text)
    result = doctor(name)

    assert 2 == result.exit_code
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_bad_input(doctor: Doctor) -> None:
    write(train=SLOW)
    Path("train.py").chmod(0)

    assert 2 == doctor("train.py").exit_code


def test_two_formats_at_once_are_refused(doctor: Doctor) -> None:
    write(train=SLOW)

    assert 2 == doctor("train.py", "--json", "--sarif").exit_code


def test_the_repositorys_own_training_scripts_are_clean_for_torch_compile(doctor: Doctor) -> None:
    result = doctor(ROOT / "training", "--compiler", "torch_compile")

    assert 0 == result.exit_code, result.stdout


def test_every_compiler_of_a_workload_file_is_one_that_the_doctor_has_rules_for() -> None:
    assert {name for compiler in DOMAIN.values() for name in compiler.examined_as} <= set(COMPILERS)
