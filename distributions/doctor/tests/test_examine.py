"""One file: what is meant, what is suppressed, and that nothing makes it fall over."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate_doctor import ScriptError, examine
from compilegate_doctor.script import PYTHON
from distributions.doctor.tests.cases import CASES
from distributions.doctor.tests.scripts import findings, loop, rules

ROOT = Path(__file__).resolve().parents[1]
SYNC = "total += loss.item()"
SCRIPTS = [script for reported, quiet in CASES.values() for script in (*reported, *quiet)]


def test_a_finding_names_line_column_and_source() -> None:
    script = "# Größe\n" + loop("größe = loss.item()")
    (finding,) = (item for item in findings(script, "torch_compile") if item.rule == "host-sync")
    line = script.splitlines()[finding.place.line - 1]

    assert "größe = loss.item()" == finding.source
    assert line[finding.place.column - 1 : finding.place.end_column - 1] == "loss.item()"


def test_plain_pytorch_is_meant_for_torch_compile() -> None:
    assert ("torch_compile",) == examine(loop("pass").encode(), "t.py").compilers


def test_a_script_that_imports_torch_xla_is_meant_for_both() -> None:
    script = "import torch_xla\n" + loop("pass")

    assert ("torch_compile", "sagemaker_training_compiler") == examine(
        script.encode(), "t.py"
    ).compilers


def test_tensorflow_is_meant_for_the_managed_compiler() -> None:
    script = b"import tensorflow as tf\nmodel.fit(x)"

    assert ("sagemaker_training_compiler",) == examine(script, "t.py").compilers


@pytest.mark.parametrize("mark", ["host-sync", "loader-workers, host-sync", "*", "HOST-SYNC"])
def test_a_comment_on_the_line_or_the_one_above_suppresses(mark: str) -> None:
    comment = f"# compilegate: ignore[{mark}] shown to users"
    on_it, above = loop(f"{SYNC}  {comment}"), loop(f"{comment}\n{SYNC}")

    for script in (on_it, above):
        examination = examine(script.encode(), "t.py")
        assert (0, 1) == (len(examination.findings), examination.suppressed)


@pytest.mark.parametrize(
    "comment",
    [
        "# compilegate: ignore[device-wait] another rule",
        "# ignore[host-sync]",
        "# compilegate: ignore host-sync",
        "; x = '# compilegate: ignore[host-sync] in a string'",
    ],
)
def test_other_comments_suppress_nothing(comment: str) -> None:
    assert "host-sync" in rules(loop(f"{SYNC}  {comment}"))


def test_a_comment_suppresses_its_own_line_only() -> None:
    script = loop(f"{SYNC}  # compilegate: ignore[host-sync] why not\nx = 1\n{SYNC}")

    assert 1 == len([finding for finding in findings(script) if finding.rule == "host-sync"])


def test_settings_from_the_command_line_are_said_to_be_unseen_until_they_are_given() -> None:
    script = (
        "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "arguments, = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()\n"
        "Trainer(None, arguments).train()\n"
    )
    blind = examine(script.encode(), "t.py")
    seen = examine(script.encode(), "t.py", hyperparameters={"logging_steps": 1})

    assert ((), True) == (blind.findings, bool(blind.not_seen))
    assert () == seen.not_seen
    assert {"ragged-last-batch", "logged-tensor", "loader-workers"} == {
        finding.rule for finding in seen.findings
    }


def test_given_hyperparameters_go_before_an_options_default() -> None:
    script = (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--log-every', type=int, default=100)\nargs = p.parse_args()\n"
    ) + loop("if step % args.log_every == 0: total += loss.item()")

    assert "host-sync" not in rules(script)
    assert "host-sync" in rules(script, hyperparameters={"log_every": 1})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"def f(:\n  pass", "line 1"),
        (b"x = 1\nprint 'two'\n", "line 2"),
        (b"type = int\nprint 'two'\n", f"Fix: correct it, or write it for Python {PYTHON}, "),
        (b"\0", "is not text: it holds null bytes"),
        (b"x = 1\n\0", "is not text: it holds null bytes"),
        (b"# coding: nonsense\n", "is not text: unknown encoding: nonsense"),
        (b"\xff\xfe\x00", "is not text"),
        (b"x = 1\ny = 2\nz = '\xff'", "is not text"),
        (b"x = " + b"(" * 5000, "Python"),
        (b"x = " + b"-" * 100_000 + b"1", ""),
        (b"x" + b".y" * 20_000, ""),
    ],
)
def test_what_is_no_python_is_named_and_no_traceback(content: bytes, problem: str) -> None:
    try:
        examine(b"import torch\n" * bool(not problem) + content, "broken.py")
    except ScriptError as error:
        assert "broken.py" in str(error)
        assert problem in str(error)
    else:
        assert not problem


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fall_over(content: bytes) -> None:
    try:
        examine(content, "any.py")
    except ScriptError as error:
        assert "any.py" in str(error)


LINES = sorted({line for script in SCRIPTS for line in script.splitlines()})


@given(st.lists(st.sampled_from(LINES), max_size=25), st.integers(0, 3))
def test_no_mixture_of_training_code_makes_it_fall_over(lines: list[str], shift: int) -> None:
    text = "\n".join(["import torch, tensorflow", *(" " * shift + line for line in lines)])
    try:
        examine(text.encode(), "any.py", compilers=("torch_compile", "sagemaker_training_compiler"))
    except ScriptError as error:
        assert "any.py" in str(error)


@given(st.sampled_from(SCRIPTS), st.data())
def test_no_script_with_parts_taken_out_makes_it_fall_over(
    script: str, data: st.DataObject
) -> None:
    tree = ast.parse(script)
    blocks = [node.body for node in ast.walk(tree) if getattr(node, "body", None)
              and isinstance(node.body, list) and len(node.body) > 1]  # fmt: skip
    for _ in range(data.draw(st.integers(0, 4))):
        block = data.draw(st.sampled_from(blocks))
        if len(block) > 1:
            del block[data.draw(st.integers(0, len(block) - 1))]

    examine(ast.unparse(tree).encode(), "any.py")


@pytest.mark.parametrize(
    ("script", "code", "line"),
    [
        (loop("pass"), 0, ""),
        (loop(SYNC), 11, "t.py:17:18: slows: "),
        ("def f(:", 2, "t.py: line 1"),
    ],
    ids=["clean", "slow", "not Python"],
)
def test_it_runs_alone_with_the_standard_library(tmp_path, script, code, line) -> None:
    (tmp_path / "t.py").write_text(script)
    start = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['x', 't.py']; "
    start += "runpy.run_module('compilegate_doctor', run_name='__main__')"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start],
        cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert code == ended.returncode, ended.stderr
    assert (ended.stdout + ended.stderr).startswith(line)
